#pragma once
/// The recipes that opt_levels compares: precision policies, each with the scaler that it comes with.

#include <string>
#include <string_view>
#include <vector>

#include "sim/loss_scaling/registry.h"
#include "sim/precision/precision_policy.h"

namespace experiments::opt_levels {

struct Recipe {
  std::string name;
  sim::PrecisionPolicy policy;
  std::string scaler;  ///< with its options, or what stands in the place of one

  /// A new one. Throws std::invalid_argument where there is no such scaler.
  sim::AnyScaler make_scaler() const;
};

/// What all others are held against: FP32, as Apex calls it.
inline constexpr std::string_view reference = "O0";

/// The recipes that a list such as "O1,fp16:reductions=binary32,fp4_tensor" names, in its order, the reference
/// before all others: policies with their overrides, and two that no policy's name stands for, which show what
/// block scales are for. `fp8_unscaled` is fp8 with the scale 1 in every cast, `fp4_tensor` nvfp4 with one scale
/// a tensor, that of its largest value, in the place of the blocks'. "all" is each of them without overrides.
///
/// Throws std::invalid_argument, one line that names --recipes, for what is no such list.
std::vector<Recipe> parse_recipes(std::string_view list);

/// The names that such a list is made of.
std::vector<std::string> recipe_names();

}  // namespace experiments::opt_levels
