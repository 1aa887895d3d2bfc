#include "experiments/training/counted_gradients.h"

#include <fmt/format.h>

#include <cmath>

namespace experiments {

double share_of(std::uint64_t whole, std::uint64_t count) {
  return whole == 0 ? 0 : static_cast<double>(count) / static_cast<double>(whole);
}

double share_of_nonzero(const fp16::ExponentHistogram& gradients, std::uint64_t count) {
  return share_of(gradients.nonzero_finite(), count);
}

std::optional<int> recommended_scale_log2(const fp16::ExponentHistogram& gradients) {
  const std::optional<int> headroom = gradients.log2_headroom();
  return headroom ? std::optional(*headroom - 1) : std::nullopt;
}

std::string nonfinite_clause(const fp16::ExponentHistogram& fp32_gradients) {
  const std::uint64_t nonfinite = fp32_gradients.infinite() + fp32_gradients.nan();
  if (nonfinite == 0) return {};
  return fmt::format("{} of {} gradients are infinite or NaN in FP32 already, which no loss scale cures",
                     nonfinite, fp32_gradients.total());
}

std::string octaves_alive_clause(std::string_view tensor, double octaves_alive) {
  const double exponent = std::nearbyint(10 * (octaves_alive - 25)) / 10 + 0.0;  // 0.0 makes 0 of -0
  return fmt::format(
      "the largest gradient of {} is 2^{:.1f}, {:.1f} octaves {} the 2^-25 where nearest-even rounding "
      "reaches zero",
      tensor, exponent, std::abs(octaves_alive), octaves_alive < 0 ? "below" : "above");
}

}  // namespace experiments
