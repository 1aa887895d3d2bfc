#pragma once
/// What the weights are kept in between two steps: the one thing that the runs of a condition differ in.

#include <array>
#include <cstddef>
#include <string_view>

#include "fp16/formats.h"
#include "fp16/rounding.h"
#include "sim/precision/precision_policy.h"

namespace experiments::master_weights {

struct WeightStorage {
  std::string_view name;
  std::string_view title;
  fp16::Format format = fp16::binary32;
  fp16::Rounding rounding = fp16::Rounding::nearest_even;
  bool fp16_model = true;  ///< false: all in FP32
};

/// All in FP32; FP32 master weights; then the same without them.
inline constexpr std::array storages{
    WeightStorage{.name = "fp32", .title = "all in FP32", .fp16_model = false},
    WeightStorage{.name = "masters", .title = "FP32 masters"},
    WeightStorage{.name = "fp16", .title = "FP16, nearest", .format = fp16::binary16},
    WeightStorage{.name = "fp16_stochastic",
                  .title = "FP16, stochastic",
                  .format = fp16::binary16,
                  .rounding = fp16::Rounding::stochastic},
    WeightStorage{.name = "bf16", .title = "bfloat16, nearest", .format = fp16::bfloat16},
    WeightStorage{.name = "bf16_stochastic",
                  .title = "bfloat16, stochastic",
                  .format = fp16::bfloat16,
                  .rounding = fp16::Rounding::stochastic}};

/// Places in `storages`.
inline constexpr std::size_t reference = 0, masters = 1, fp16_nearest = 2, fp16_stochastic = 3,
                             bf16_nearest = 4, bf16_stochastic = 5;

/// Apex O2 with FP32 gradients and FP32 optimizer arithmetic, whatever the weights are kept in: from the same
/// weights all of them make the same update, in FP32, and only what the sum is rounded to differs.
sim::PrecisionPolicy policy_of(const WeightStorage& storage);

/// How the significands of weights lie in [1, 2).
enum class Significands {
  uniform,      ///< as within an octave of a smooth distribution
  logarithmic,  ///< with density 1/(m ln 2), as of numbers that spread over many octaves (Benford's law)
};

/// The share of the updates d of weights w with |w|/|d| = `ratio` that leave the weight as it was, where
/// weights are rounded to `precision` digits, to nearest or stochastically.
///
/// With spacing u = 2^(e+1-p) of the numbers in [2^e, 2^(e+1)) and w = m 2^e:
/// - to nearest an update is lost when |d| < u/2, that is when m < t = ratio/2^p. So none is below the ratio
///   2^p and all are from 2^(p+1) on (2^11 and 2^12 of binary16); between them it is the share of the
///   significands below t: t - 1 of uniform, log2 t of logarithmic ones.
/// - stochastically it is lost with probability 1 - |d|/u, or 1 - m/t with t = ratio/2^(p-1). Of uniform
///   significands this makes (t-1)^2/2t up to t = 2 and then 1 - 3/2t; of logarithmic ones log2 t - (t-1)/(t
///   ln 2) and then 1 - 1/(t ln 2). Below t = 1 nothing is lost, and at no ratio everything.
///
/// Left out: ties, |d| = u/2, which weights with an even significand lose and those with an odd one do not;
/// powers of two, one significand of 2^(p-1), below which numbers lie twice as dense, so that an update
/// towards zero is lost from the ratio 2^(p+1) on only; and subnormal weights, with the spacing of the smallest
/// normal ones.
double expected_swallowed_share(double ratio, const WeightStorage& storage, Significands significands);

}  // namespace experiments::master_weights
