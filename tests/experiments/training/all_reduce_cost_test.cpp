#include "experiments/training/all_reduce_cost.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using experiments::AllReduceCost;
using experiments::SeedGroup;

namespace {

SeedGroup group_of(const std::vector<double>& losses) {
  SeedGroup group{.policy = "amp", .scaler = "static"};
  for (const double loss : losses)
    group.results.push_back({.values = {{"final_loss", loss}, {"final_accuracy", 1 - loss}}});
  return group;
}

constexpr sim::DataParallel four_ranks{.ranks = 4};

}  // namespace

TEST_CASE("all-reduce cost: only ranks whose all-reduce rounds have one") {
  CHECK(experiments::rounds_in_all_reduce(four_ranks));
  CHECK(!experiments::rounds_in_all_reduce({.ranks = 1}));
  CHECK(!experiments::rounds_in_all_reduce(experiments::all_reduced_in_fp32(four_ranks)));
  CHECK(experiments::rounds_in_all_reduce(
      {.ranks = 2, .all_reduce = {.precision = sim::AllReducePrecision::fp32_accumulation}}));
}

TEST_CASE("all-reduce cost: pairs of the same seed, a loss as a share, an accuracy as a difference") {
  const SeedGroup runs = group_of({0.521, 0.2605, 0.3885}), in_fp32 = group_of({0.5, 0.25, 0.375});
  const AllReduceCost cost{"static", runs, in_fp32};
  CHECK(cost.of("final_loss").mean == doctest::Approx(0.04));
  CHECK(cost.of("final_accuracy").mean == doctest::Approx(-0.015));
  const std::string loss = experiments::all_reduce_cost_sentence(four_ranks, std::vector{cost}, "final_loss");
  CHECK(loss.starts_with(
      "What an all-reduce in fp16 over 4 ranks costs: static ends worse than the same all-reduced in FP32. "
      "Final test loss against an all-reduce in FP32, in %, in pairs of the same seed: static +4.0 ["));
  const std::string points =
      experiments::all_reduce_cost_sentence(four_ranks, std::vector{cost}, "final_accuracy");
  CHECK(points.find(": static ends worse than the same") != std::string::npos);
  CHECK(points.find("Test accuracy against an all-reduce in FP32, in points, in pairs of the same seed: "
                    "static -1.50 [") != std::string::npos);
}

TEST_CASE("all-reduce cost: two seeds are no evidence, and what diverges is said to") {
  const auto sentence = [](const std::vector<AllReduceCost>& costs) {
    return experiments::all_reduce_cost_sentence(four_ranks, costs, "final_loss");
  };
  const std::string begin = "What an all-reduce in fp16 over 4 ranks costs: ";
  const SeedGroup two = group_of({0.52, 0.26}), in_fp32 = group_of({0.5, 0.25});
  CHECK(sentence({{"static", two, in_fp32}})
            .starts_with(begin + "whether anything is judged from 3 seeds on. Final"));
  const SeedGroup diverged = group_of({0.5, 1.0 / 0.0, 0.5}), same = group_of({0.5, 0.5, 0.5});
  CHECK(sentence({{"none", diverged, same}, {"static", same, same}})
            .starts_with(
                begin +
                "none leaves no finite loss; static cannot be told from the same all-reduced in FP32. "));
}
