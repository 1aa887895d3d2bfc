#include "experiments/training/gradient_sites.h"

#include <doctest/doctest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fp16/names.h"

using Kind = sim::GradientSite::Kind;

namespace {

struct Site {
  std::string name;
  Kind kind;
};

/// What sim::TwinComparison tells of a tensor.
struct Tensor {
  double alive;
  bool is_rounding_noise = false;

  double octaves_alive() const { return alive; }
};

constexpr double nothing = -std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("gradient sites: figures show layers' outputs before weights, each in order, without biases") {
  const std::vector<Site> sites{{"hidden.weight", Kind::weight}, {"hidden.bias", Kind::weight},
                                {"hidden", Kind::activation},    {"output.weight", Kind::weight},
                                {"output.bias", Kind::weight},   {"output", Kind::activation}};
  const auto names = [](const std::vector<Site>& drawn) { return names::names_of(std::span(drawn)); };
  using Names = std::vector<std::string>;
  CHECK(names(experiments::drawn_sites(sites, Kind::weight)) == Names{"hidden.weight", "output.weight"});
  CHECK(names(experiments::drawn_sites(sites)) ==
        Names{"hidden", "output", "hidden.weight", "output.weight"});
}

TEST_CASE("gradient sites: nearest to vanishing is the lowest tensor that has something to lose") {
  const std::vector<Tensor> tensors{{9}, {-4, true}, {nothing}, {3}, {3}};
  CHECK(experiments::nearest_to_vanishing(tensors) == tensors.begin() + 3);
  const std::vector<Tensor> lost{{-1}, {-2}};  // wholly below 2^-25
  CHECK(experiments::nearest_to_vanishing(lost) == lost.begin() + 1);
}

TEST_CASE("gradient sites: where nothing can vanish, none is nearest") {
  const std::vector<Tensor> none, silent{{nothing}, {5, true}};
  CHECK(experiments::nearest_to_vanishing(none) == none.end());
  CHECK(experiments::nearest_to_vanishing(silent) == silent.end());
}
