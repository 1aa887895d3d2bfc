#pragma once
/// What the page asks of gradients, by the rules of engine.h: values counted by exponent, kept by number.

#include <cstddef>
#include <cstdint>

extern "C" {

/// Keeps counts that were recorded, and gives their number: JSON of the first octave's exponent, of each octave [values, exact
/// powers of two, near the next, at the top, sum of squares], and of the zeros and the values that are not finite.
int engine_keep_counts(const char* recorded);

/// Counts the values of all tensors of floating-point numbers in a .npy or .safetensors file, which is here as bytes: of each
/// tensor, and of all together first where there are several, its number, name, shape, format, and counts.
const char* engine_count_file(const char* name, const char* bytes, std::size_t size);

/// Forgets what has this number.
void engine_forget_counts(int number);

/// What is drawn of counts: the lowest octave, values of each octave, and those that are in none.
const char* engine_counts(int number);

/// What the cast to binary16 makes of the values times 2^scale_log2, to nearest-even: values that are flushed to zero, become
/// subnormal, normal, infinite; the flushed part of the norm; and the largest scale without an infinity, null where none from
/// 2^-112 to 2^122 is.
const char* engine_cast_counts(int number, int scale_log2);
}
