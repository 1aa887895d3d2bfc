#pragma once

#include "sim/loss_scaling/keyed_state.h"
#include "sim/loss_scaling/layer_scaler.h"

namespace sim {

/// How a layer's alpha follows from the gradient delta that arrives there, before all bounds. u_max here is
/// the option divided by fan_out where the weights or products are read, and
/// q = sqrt(2) erfinv(underflow_probability), so that |x| < q sigma has this probability for x ~ N(0,
/// sigma^2).
enum class AdaLossMethod {
  /// max(1, u_min / (q sigma)), at most u_max / max|delta|; sigma = standard deviation of delta. What the
  /// released code does, which hands the rule no weights.
  approx_range,
  /// The paper's form for matrix products: sigma^2 = (sigma_delta^2 + mu_delta^2) (sigma_w^2 + mu_w^2) *
  /// fan_out / 2, half because of ReLUs, and max|delta| max|w| in place of max|delta|.
  approx_range_product,
  /// approx_range with |delta| taken as log-normal: u_min / its quantile of order underflow_probability.
  approx_range_lognormal,
  /// max(1, u_min / smallest product), at most u_max / largest product.
  element_wise_range,
  /// element_wise_range of min|delta| min|w|, taken as 1e-15 at least, and max|delta| max|w|; u_min is divided
  /// by fan_out too.
  abs_range,
  fixed,  ///< fixed_scale
};

struct AdaLossOptions {
  AdaLossMethod method = AdaLossMethod::approx_range;  ///< as a number: 0 to 5 in the order above
  double init_scale = 1;                               ///< P at the loss
  double underflow_probability = 1e-3;                 ///< T_uf, share of values that may stay below u_min
  double u_min = 6e-8;                                 ///< magnitudes to be lifted above this
  double u_max = 6e4;                                  ///< and kept below that
  double scale_cap = 16;                               ///< of one alpha
  double accumulated_cap = 1024;                       ///< of P after a layer
  double fixed_scale = 1;                              ///< alpha of method fixed, before the caps
  int recompute_interval = 1;                          ///< steps for which a layer keeps its alpha
  bool power_of_two = true;                            ///< alpha is rounded down to a power of two
  bool skip_nonfinite = false;  ///< skip steps with non-finite weight gradients; the original never does

  static constexpr std::string_view subject = "scaler 'ada_loss'";
  static void visit(auto& self, auto&& field) {
    constexpr names::Interval positive{.lower = 0};
    field("method", self.method, names::closed_interval(0, 5));
    field("init_scale", self.init_scale, positive);
    field("underflow_probability", self.underflow_probability, names::closed_interval(1e-12, 0.999999));
    field("u_min", self.u_min, positive);
    field("u_max", self.u_max, positive);
    field("scale_cap", self.scale_cap, positive);
    field("accumulated_cap", self.accumulated_cap, positive);
    field("fixed_scale", self.fixed_scale, positive);
    field("recompute_interval", self.recompute_interval, names::closed_interval(1, 1'000'000'000));
    field("power_of_two", self.power_of_two, names::closed_interval(0, 1));
    field("skip_nonfinite", self.skip_nonfinite, names::closed_interval(0, 1));
  }
};

/// Adaptive loss scaling: at each layer the gradient delta, which carries the scale P, is multiplied by alpha
/// on its way to the layer's input, just enough that few of its values underflow there. The layer's own
/// weight gradient is formed from delta as it arrived and divided by P.
///
/// Every recompute_interval steps a layer computes alpha by its method; 1 where sigma is 0, where nothing
/// differs from zero, and where a statistic is not finite (the original stops). In every step that alpha is
/// bounded: by accumulated_cap / P, then by scale_cap, then rounded down to a power of two. It can be less
/// than 1. Without power_of_two the original rounds it to binary16; here it stays a double.
///
/// Source: R. Zhao, B. Vogel, T. Ahmed, "Adaptive Loss Scaling for Mixed Precision Training",
/// arXiv:1910.12385, 2019; its code, kumasento/gradient-scaling ada_loss/. In double, where the code has
/// binary32.
class AdaLoss final : public LayerScaler {
 public:
  using Options = AdaLossOptions;

  /// Throws std::invalid_argument for an option outside its interval or u_min >= u_max.
  explicit AdaLoss(const Options& options = {});

  std::string_view name() const override { return "ada_loss"; }
  double loss_scale() const override { return options_.init_scale; }
  LayerNeeds needs() const override;
  LayerScale scale(std::string_view layer, const LayerGradient& gradient) override;
  double joined(std::span<const BranchGradient> branches) const override;
  Decision update(std::span<const LayerOutcome> layers) override;
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override;
  void restore(const names::NamedValues& state) override;

 private:
  struct LayerState {
    double alpha = 1;  // before the bounds
    int age = 0;       // steps since those that computed it, modulo recompute_interval

    static constexpr std::string_view subject = Options::subject;
    static void visit(auto& self, auto&& field) {
      field("alpha", self.alpha, names::Interval{.lower = 0});
      field("age", self.age, names::closed_interval(0, 1'000'000'000));
    }
  };

  // Magnitudes estimated to lie behind the layer, and where they are wanted; low = 0: no estimate.
  struct Range {
    double low = 0, high = 0;
    double u_min = 0, u_max = 0;
  };

  Range range_of(const LayerGradient& layer) const;
  double unbounded(const LayerGradient& layer) const;
  double bounded(double alpha, double scale) const;

  Options options_;
  double normal_quotient_;     // q
  double lognormal_quantile_;  // of ln|delta|, in standard deviations from the mean
  KeyedStates<LayerState> layers_;
};

/// The inverse of the error function, for -1 < x < 1; odd, 0 at 0. Newton's iteration on erf's series, with
/// nothing but + - * / of doubles, so the same bits everywhere. |erf(erfinv(x)) - x| < 2^-48 |x|, found
/// against MPFR at 20,000 points from 2^-60 to 1 - 2^-50; erfinv itself has a relative error below 2^-48 for
/// |x| <= 0.9.
double erfinv(double x);

}  // namespace sim
