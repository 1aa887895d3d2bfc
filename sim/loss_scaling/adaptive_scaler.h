#pragma once

#include <deque>

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

struct AdaptiveOptions {
  int headroom = 2;         ///< octaves kept free above the largest gradient remembered
  int window = 32;          ///< steps remembered
  int min_log2_scale = 0;   ///< S never falls below 2^min_log2_scale
  int max_log2_scale = 40;  ///< S never rises above 2^max_log2_scale

  static constexpr std::string_view subject = "scaler 'adaptive'";
  static void visit(auto& self, auto&& field) {
    field("headroom", self.headroom, closed_interval(0, 15));
    field("window", self.window, closed_interval(1, 1'000'000));
    field("min_log2_scale", self.min_log2_scale, closed_interval(-100, 100));
    field("max_log2_scale", self.max_log2_scale, closed_interval(-100, 100));
  }
};

/// Sets S from the gradients' exponents instead of by trial and error. Each step leaves one limit, the
/// largest m known to be harmless for its unscaled gradients:
///   all gradients finite: m = log2 S + log2_headroom of the scaled ones, so that 2^m max|g| <= 65504;
///   one infinite or NaN: m = log2 S - 1, because log2 S was too much (skipped if summary.found_nonfinite);
///   all zero: none.
/// The next S is 2^(smallest limit of the last `window` steps - headroom), clamped to the allowed range.
///
/// Hence no skipped step is needed to learn S; a step overflows only if its largest gradient exceeds all
/// remembered ones by more than `headroom` octaves; a larger gradient lowers S at once and holds it down for
/// `window` steps; an overflow lowers S by headroom + 1 octaves for as long. While nothing but zeros is
/// remembered S doubles every step: either the gradients are truly zero and S does not matter, or all of them
/// were flushed and it must rise.
///
/// S starts at 2^0 (clamped). The floor is 2^0 by default, because scaling exists to lift small gradients:
/// where even the unscaled ones are not finite no scale cures it, and S waits there instead of collapsing.
/// The default ceiling, 2^40, moves the flush threshold to 2^-65, far below what an FP32 weight of ordinary
/// size can feel. Scales are powers of two within 2^-100 .. 2^100, where dividing a finite binary16 value by
/// S is exact and normal in binary32.
class AdaptiveScaler final : public LossScaler {
 public:
  using Options = AdaptiveOptions;

  /// Throws std::invalid_argument for an option outside its interval or min_log2_scale > max_log2_scale.
  explicit AdaptiveScaler(const Options& options = {});

  std::string_view name() const override { return "adaptive"; }
  float scale() const override;
  /// Throws std::invalid_argument when a finite step comes without its exponents.
  Decision update(const GradientSummary& summary) override;
  bool needs_exponents() const override { return true; }
  NamedValues options() const override { return named_values(options_); }
  NamedValues state() const override;
  void restore(const NamedValues& state) override;

 private:
  int limit_of(const GradientSummary& summary) const;
  int clamped(int log2_scale) const;

  Options options_;
  int log2_scale_;
  std::deque<int> limits_;  // oldest first, at most `window` of them
};

}  // namespace sim
