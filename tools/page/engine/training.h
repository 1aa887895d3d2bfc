#pragma once
/// What the page asks of the simulator, by the rules of engine.h: trainings, some of them at once, a step at a time.

#include <cstdint>

extern "C" {

/// The networks: name, what it is, widths of its layers, parameters, batch, optimizer, learning rate.
const char* engine_networks();

/// Begins a training under a policy and a scaler, each a name with options as on a command line, and gives its number, from 0.
int engine_begin_training(const char* network, const char* policy, const char* scaler, std::uint64_t seed);

/// Puts another loss scaler in the place of a training's own, from its next step on.
void engine_replace_scaler(int training, const char* scaler);

/// S that a loss scaler begins with.
double engine_first_scale(const char* scaler);

/// Makes a step: its number, loss, S, what became of it, and of every gradient how many values are zero, were rounded to
/// zero, or are not finite.
const char* engine_step(int training);

void engine_end_training(int training);

/// A hash (FNV-1a, 64 bits) of the products of matrices, a chain of fused multiply-adds of binary32 for each element, whose
/// operands are drawn so that sums cancel, lie halfway between two floats, and below the normal ones.
std::uint64_t engine_product_hash(std::uint64_t seed);
}
