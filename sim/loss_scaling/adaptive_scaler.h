#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

struct AdaptiveOptions {
  int headroom = 2;          ///< octaves kept free above the largest gradient of a step
  int window = 32;           ///< steps remembered
  int twin_every = 100;      ///< steps from one twin to the next when nothing overflows
  int max_gap = 16;          ///< octaves below the twin's limit from which on an overflow has another cause
  int min_log2_scale = -24;  ///< S never falls below 2^min_log2_scale
  int max_log2_scale = 40;   ///< S never rises above 2^max_log2_scale

  static constexpr std::string_view subject = "scaler 'adaptive'";
  static void visit(auto& self, auto&& field) {
    field("headroom", self.headroom, names::closed_interval(0, 15));
    field("window", self.window, names::closed_interval(1, 10'000));
    field("twin_every", self.twin_every, names::closed_interval(1, 1'000'000'000));
    field("max_gap", self.max_gap, names::closed_interval(1, 1000));
    field("min_log2_scale", self.min_log2_scale, names::closed_interval(-100, 100));
    field("max_log2_scale", self.max_log2_scale, names::closed_interval(-100, 100));
  }
};

/// Sets S from the gradients' exponents instead of by trial and error: S = 2^m for the m that loses least,
/// where an overflow loses a whole step and a flushed gradient loses itself:
///   loss(m) = share of the remembered steps that 2^m would have brought to overflow
///           + share of the non-zero gradients of the last finite twin that 2^m would have flushed to zero.
/// Of several such m the largest is taken, for it leaves the fewest subnormals.
///
/// A step overflows at 2^m when m > limit - headroom, unless m is as small as allowed. Its limit is the
/// largest m for which its largest gradient stays within 65504, by the exponents of the run and, where there
/// is one, of the twin. A step with an infinity or NaN among its weight or activation gradients wants a twin,
/// which decides:
///   twin not finite: no scale cures it. S stays, and the step leaves no trace.
///   twin finite, but log2 S more than max_gap octaves below the twin's limit: the same, because something
///   other than the size of the gradients made it overflow.
///   else: the limit is the twin's, or log2 S - 1 if that is less, and S backs off at once to where it should
///   be.
/// A step whose weight gradients are not finite is skipped. One whose gradients are all zero has no limit.
///
/// Hence no skipped step is needed to learn S: the first step, made at S = 1, wants a twin, which shows what
/// the run flushed. A step overflows only if its largest gradient exceeds those remembered by more than
/// `headroom` octaves, or where the small gradients that a larger S saves weigh more than the steps it costs.
/// A NaN that no scale cures never moves S, however long it lasts.
///
/// Scales are powers of two within 2^-100 .. 2^100, where dividing a finite binary16 value by S is exact and
/// normal in binary32. The default ceiling, 2^40, moves the flush threshold to 2^-65, far below what an FP32
/// weight of ordinary size can feel.
class AdaptiveScaler final : public LossScaler {
 public:
  using Options = AdaptiveOptions;

  /// Throws std::invalid_argument for an option outside its interval or min_log2_scale > max_log2_scale.
  explicit AdaptiveScaler(const Options& options = {});

  std::string_view name() const override { return "adaptive"; }
  float scale() const override;
  bool needs_exponents() const override { return true; }
  bool may_want_twin() const override { return true; }
  bool wants_twin(const GradientSummary& summary) const override;
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override;
  void restore(const names::NamedValues& state) override;

 private:
  Decision decide(const GradientSummary& summary) override;
  bool is_beyond_cure(const GradientSummary& summary) const;
  void learn(const GradientSummary& summary);
  std::optional<int> limit_of(const GradientSummary& summary) const;
  void remember_limit(int limit);
  void remember_flushing(const fp16::ExponentHistogram& exponents);
  int best_log2_scale() const;

  Options options_;
  int log2_scale_;
  int steps_until_twin_ = 0;
  std::vector<double>
      flushed_share_;       // of the last finite twin at 2^min_log2_scale, 2^(min_log2_scale + 1), ...
  std::deque<int> limits_;  // oldest first, at most `window` of them
};

}  // namespace sim
