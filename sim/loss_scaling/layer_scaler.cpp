#include "sim/loss_scaling/layer_scaler.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

namespace sim {

double joined_scale(std::span<const BranchGradient> branches, double limit) {
  if (branches.empty()) throw std::invalid_argument("joined_scale: no branch given; allowed: at least one");
  double max_abs = 0;
  std::vector<double> scales;
  for (const BranchGradient& branch : branches) {
    max_abs = std::max(max_abs, branch.max_abs / branch.scale);
    scales.push_back(branch.scale);
  }
  std::ranges::sort(scales, std::greater<>());
  const auto fits = [&](double scale) { return max_abs * scale < limit; };
  const auto largest = std::ranges::find_if(scales, fits);
  if (largest != scales.end()) return *largest;
  double scale = scales.back();
  while (scale >= 0.125 && !fits(scale)) scale /= 2;
  return scale;
}

}  // namespace sim
