#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct LstmLayerOptions {
  std::size_t context = 1;  ///< tokens in a sequence
};

/// A layer of long short-term memory: inputs x (batch * context x inputs), weights of the inputs (4 hidden x
/// inputs) and of the hidden state (4 hidden x hidden), bias (4 hidden). Output: the hidden state after every
/// token (batch * context x hidden), from zero states. The sum of a gate is one chain over the inputs and
/// then over the hidden state, plus the bias; gates are activated in binary32. Cell and hidden state are
/// rounded to the output's format at every step. Saved: the activated gates and the cells.
extern const Operation lstm;

}  // namespace sim
