#pragma once
/// Which of a network's gradients the experiments draw, and which one they warn of.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <ranges>
#include <vector>

#include "sim/tape/tape.h"

namespace experiments {

/// The sites of one kind that figures show, in the order of computation: biases are left to the tables. A site
/// is any struct with the name and kind of a sim::GradientSite.
template <class Site>
std::vector<Site> drawn_sites(const std::vector<Site>& sites, sim::GradientSite::Kind kind) {
  std::vector<Site> drawn;
  std::ranges::copy_if(sites, std::back_inserter(drawn),
                       [&](const Site& site) { return site.kind == kind && !site.name.ends_with(".bias"); });
  return drawn;
}

/// Sites of both kinds, the outputs of layers before the weights.
template <class Site>
std::vector<Site> drawn_sites(const std::vector<Site>& sites) {
  std::vector<Site> drawn = drawn_sites(sites, sim::GradientSite::Kind::activation);
  std::ranges::copy(drawn_sites(sites, sim::GradientSite::Kind::weight), std::back_inserter(drawn));
  return drawn;
}

/// Iterator to the site with the fewest octaves_alive() (the first on a tie), the end when there is none: a
/// tensor without a finite non-zero gradient has nothing that could vanish, nor has one that is_rounding_noise.
template <std::ranges::forward_range Sites>
std::ranges::borrowed_iterator_t<Sites> nearest_to_vanishing(Sites&& sites) {
  constexpr double out_of_question = std::numeric_limits<double>::infinity();
  const auto octaves = [](const auto& site) {
    const double alive = site.octaves_alive();
    return site.is_rounding_noise || !std::isfinite(alive) ? out_of_question : alive;
  };
  const auto nearest = std::ranges::min_element(sites, {}, octaves);
  const auto end = std::ranges::end(sites);
  return nearest == end || octaves(*nearest) == out_of_question ? end : nearest;
}

}  // namespace experiments
