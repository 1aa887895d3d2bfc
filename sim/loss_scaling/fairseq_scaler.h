#pragma once

#include <limits>
#include <string>

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

/// Defaults of the command line for one device; those of the class itself are 2^15 and 2000.
struct FairseqOptions {
  double init_scale = 128;
  double growth_factor = 2;     ///< S is multiplied by it, or divided
  int growth_interval = 16384;  ///< 2^14 / (devices * micro-batches)
  double tolerance = 0;         ///< share of bad steps since S last moved below which S stays
  double threshold = 0;         ///< S does not fall below it; 0: none
  double min_scale = 1e-4;      ///< S at or below it ends the run

  static constexpr std::string_view subject = "scaler 'fairseq'";
  static void visit(auto& self, auto&& field) {
    const names::Interval not_negative{.lower = 0, .includes_lower = true};
    constexpr double largest = std::numeric_limits<float>::max();
    field("init_scale", self.init_scale,
          names::Interval{.lower = 0, .upper = largest, .includes_upper = true});
    field("growth_factor", self.growth_factor, names::Interval{.lower = 1});
    field("growth_interval", self.growth_interval,
          names::closed_interval(1, std::numeric_limits<int>::max()));
    field("tolerance", self.tolerance, names::closed_interval(0, 1));
    field("threshold", self.threshold, not_negative);
    field("min_scale", self.min_scale, not_negative);
  }
};

/// fairseq's dynamic loss scaler.
///   bad step: skipped. Counted with the other bad steps since S last moved; when their share of the steps
///   since then reaches `tolerance`, S <- S / growth_factor, or `threshold` if that is more. If S is then
///   min_scale or less, it takes its old value again and the run ends.
///   clean step: applied. S <- S * growth_factor when the steps since the last bad one are a multiple of
///   growth_interval.
/// S is binary64, scale() is S rounded to binary32. The original sees a bad step by the norm of all
/// gradients; here their elements decide.
///
/// Source: facebookresearch/fairseq fairseq/optim/dynamic_loss_scaler.py.
class FairseqScaler final : public LossScaler {
 public:
  using Options = FairseqOptions;

  /// Throws std::invalid_argument for an option outside its interval or init_scale < min_scale.
  explicit FairseqScaler(const Options& options = {});

  std::string_view name() const override { return "fairseq"; }
  float scale() const override { return static_cast<float>(state_.scale); }
  std::string abort_reason() const override { return abort_reason_; }
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override { return names::named_values(state_); }
  void restore(const names::NamedValues& state) override { state_ = names::state_from<State>(state); }

 private:
  struct State {
    double scale = 0;
    int iteration = 0;
    int last_overflow = -1;
    int last_rescale = -1;
    int overflows_since_rescale = 0;

    static constexpr std::string_view subject = Options::subject;
    static void visit(auto& self, auto&& field) {
      const names::Interval count = names::closed_interval(0, std::numeric_limits<int>::max());
      const names::Interval index = names::closed_interval(-1, count.upper);
      field("scale", self.scale, names::closed_interval(0, std::numeric_limits<double>::infinity()));
      field("iteration", self.iteration, count);
      field("last_overflow", self.last_overflow, index);
      field("last_rescale", self.last_rescale, index);
      field("overflows_since_rescale", self.overflows_since_rescale, count);
    }
  };

  Decision decide(const GradientSummary& summary) override;
  Decision bad_step();
  void back_off();

  Options options_;
  State state_;
  std::string abort_reason_;
};

}  // namespace sim
