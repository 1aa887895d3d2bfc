#include "experiments/opt_levels/recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>

#include "experiments/frame/command_line.h"
#include "fp16/formats.h"
#include "fp16/names.h"

namespace experiments::opt_levels {
namespace {

constexpr std::string_view no_cast_scales = "casts at scale 1";

/// Every cast at the scale 1. The trainer gives a policy that scales its casts a rule for it, and this is none.
class UnscaledCasts final : public sim::TensorScaler {
 public:
  std::string_view name() const override { return "unscaled"; }
  float scale(std::string_view, const fp16::Format&, float) override { return 1; }
  void end_step() override {}
  names::NamedValues options() const override { return {}; }
  names::NamedValues state() const override { return {}; }
  void restore(const names::NamedValues&) override {}
};

Recipe fp8_unscaled(std::string name) {
  return {.name = std::move(name),
          .policy = sim::find_precision_policy("fp8"),
          .scaler = std::string(no_cast_scales)};
}

Recipe fp4_tensor(std::string name) {
  sim::PrecisionPolicy policy = sim::find_precision_policy("nvfp4");
  for (sim::OperandFormat* operand :
       {&policy.operands.activations, &policy.operands.weights, &policy.operands.gradients}) {
    operand->kind = sim::OperandFormat::Kind::per_tensor;
    operand->element = fp16::e2m1;
  }
  return {.name = std::move(name), .policy = policy, .scaler = "current"};
}

struct OwnRecipe {
  std::string_view name;
  Recipe (*make)(std::string name);
};
constexpr std::array own_recipes{OwnRecipe{"fp8_unscaled", fp8_unscaled},
                                 OwnRecipe{"fp4_tensor", fp4_tensor}};

Recipe recipe_of(const std::string& spec) {
  const auto own = std::ranges::find(own_recipes, spec, &OwnRecipe::name);
  if (own != own_recipes.end()) return own->make(spec);
  const std::vector<std::string> names = recipe_names();
  if (std::ranges::find(names, names::name_in(spec)) == names.end())
    throw std::invalid_argument(names::unknown_name_message("recipe", names::name_in(spec), names));
  const sim::PrecisionPolicy policy = sim::make_precision_policy(spec);
  return {.name = spec, .policy = policy, .scaler = policy.scaler_spec()};
}

std::vector<std::string> specs_in(std::string_view list) {
  if (list == "all") return recipe_names();
  std::vector<std::string> specs;
  for (const auto& part : std::views::split(list, ',')) specs.emplace_back(part.begin(), part.end());
  return specs;
}

}  // namespace

sim::AnyScaler Recipe::make_scaler() const {
  if (scaler == no_cast_scales) return std::make_unique<UnscaledCasts>();
  const auto [scaler_name, given] = names::parse_numeric_spec(scaler);
  return sim::make_any_scaler(scaler_name, given);
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names = names::names_of(sim::precision_policies());
  std::ranges::copy(names::names_of(std::span(own_recipes)), std::back_inserter(names));
  return names;
}

std::vector<Recipe> parse_recipes(std::string_view list) {
  return from_option("--recipes", [&] {
    std::vector<Recipe> recipes{recipe_of(std::string(reference))};
    std::vector<std::string> seen;
    for (const std::string& spec : specs_in(list)) {
      if (std::ranges::find(seen, spec) != seen.end())
        throw std::invalid_argument(fmt::format("'{}' stands there twice; allowed: each once", spec));
      seen.push_back(spec);
      if (spec != reference) recipes.push_back(recipe_of(spec));
    }
    return recipes;
  });
}

}  // namespace experiments::opt_levels
