#pragma once

#include "sim/optimizers/adam.h"

namespace sim {

struct AdamW8bitOptions : AdamWOptions {
  static constexpr std::string_view subject = "optimizer 'adamw8bit'";
};

/// AdamW whose moments are stored in 8 bits: DynamicMap with sign for m and without for v, in blocks of 256
/// with one binary32 maximum each, 2.03 bytes of state per weight. Parameters of fewer than 4096 weights keep
/// their moments in UpdateArithmetic::state. The arithmetic is AdamW's, so runs differ from AdamW's by the
/// storage alone.
///
/// A weight whose gradient is not finite stays, decay apart from it too, and its moments become 0, as in
/// bitsandbytes. A second moment beyond the largest number makes those of its block NaN at the next step.
///
/// Differs from bitsandbytes (csrc, kOptimizerStatic8bit2StateBlockwise) in that weight decay comes before
/// the step, as in PyTorch, not after it, in the order of AdamW's operations, and in that divisions round
/// correctly.
///
/// Source: T. Dettmers et al., "8-bit Optimizers via Block-wise Quantization" (ICLR 2022).
class AdamW8bit final : public Adam {
 public:
  using Options = AdamW8bitOptions;
  static constexpr std::size_t smallest_8bit_size = 4096;

  explicit AdamW8bit(const Options& options = {}, const UpdateArithmetic& arithmetic = {})
      : Adam(names::checked(options), arithmetic, WeightDecay::decoupled) {}

  std::string_view name() const override { return "adamw8bit"; }

 protected:
  MomentStorage moment_storage(std::size_t moment, std::size_t parameter_size) const override;
  void compute(const UpdateChunk<float>& chunk) const override;
  void compute(const UpdateChunk<double>& chunk) const override;
};

}  // namespace sim
