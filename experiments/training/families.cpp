#include "experiments/training/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "fp16/formats.h"
#include "fp16/names.h"
#include "sim/data/registry.h"
#include "sim/loss_scaling/registry.h"
#include "sim/models/registry.h"
#include "sim/ops/registry.h"
#include "sim/optimizers/registry.h"
#include "sim/precision/arithmetic.h"
#include "sim/precision/precision_policy.h"
#include "sim/schedules/registry.h"
#include "sim/trainer/allreduce_registry.h"

namespace experiments {
namespace {

std::vector<Variant> bare(const std::vector<std::string>& names) {
  std::vector<Variant> variants;
  for (const std::string& name : names) variants.push_back({.name = name});
  return variants;
}

template <names::RegistryRows Rows>
std::vector<Variant> described(Rows&& rows) {
  std::vector<Variant> variants;
  for (const auto& row : rows) {
    variants.push_back({.name = std::string(row.name), .description = std::string(row.description)});
  }
  return variants;
}

std::vector<Variant> operations() {
  std::vector<Variant> variants;
  for (const sim::Operation* row : sim::operations())
    variants.push_back({.name = std::string(row->name), .description = std::string(row->description)});
  return variants;
}

std::vector<Variant> scalers() {
  std::vector<Variant> variants;
  for (const sim::ScalerRow& row : sim::scalers()) {
    variants.push_back({.name = std::string(row.name),
                        .kind = std::string(sim::kind_name(row.kind)),
                        .description = std::string(row.description)});
  }
  return variants;
}

/// `options_of(given)` makes the variant and says what options it then has. What each may be, the refusal of
/// NaN says, which lies in no interval.
template <class OptionsOf>
std::vector<VariantDetail> options_of_variant(OptionsOf&& options_of) {
  std::vector<VariantDetail> details;
  for (const auto& [name, value] : options_of(names::GivenOptions{})) {
    details.push_back({.name = name, .value = names::number_text(value)});
    try {
      options_of(names::GivenOptions{{name, std::numeric_limits<double>::quiet_NaN()}});
    } catch (const names::OptionError& error) {
      details.back().allowed = error.allowed();
    }
  }
  return details;
}

std::vector<VariantDetail> scaler_options(std::string_view name) {
  return options_of_variant([name](const names::GivenOptions& given) {
    return sim::options_of(sim::make_any_scaler(name, given));
  });
}

std::vector<VariantDetail> optimizer_options(std::string_view name) {
  return options_of_variant(
      [name](const names::GivenOptions& given) { return sim::make_optimizer(name, given)->options(); });
}

std::vector<VariantDetail> schedule_options(std::string_view name) {
  return options_of_variant(
      [name](const names::GivenOptions& given) { return sim::make_schedule(name, given)->options(); });
}

std::vector<VariantDetail> model_options(std::string_view name) {
  return options_of_variant(sim::find_model(name).options);
}

std::vector<VariantDetail> policy_roles(std::string_view name) {
  std::vector<VariantDetail> details;
  for (auto& [role, value] : sim::roles_of(sim::find_precision_policy(name)))
    details.push_back({.name = role, .value = value});
  return details;
}

std::vector<VariantDetail> all_reduce_options(std::string_view name) {
  std::vector<VariantDetail> details;
  for (const auto& [option, value, allowed, meaning] : sim::options_of(sim::make_all_reduce(name)))
    details.push_back({.name = option, .value = value, .allowed = allowed, .meaning = meaning});
  return details;
}

// A new family is one row.
constexpr std::array rows{
    Family{"formats", [] { return bare(names::names_of(fp16::formats)); }, nullptr},
    Family{"policies", [] { return described(sim::precision_policies()); }, policy_roles},
    Family{"ops", operations, nullptr},
    Family{"models", [] { return described(sim::models()); }, model_options},
    Family{"scalers", scalers, scaler_options},
    Family{"optimizers", [] { return described(sim::optimizers()); }, optimizer_options},
    Family{"schedules", [] { return described(sim::schedules()); }, schedule_options},
    Family{"accumulations", [] { return bare(sim::product_accumulation_names()); }, nullptr},
    Family{"allreduce", [] { return described(sim::all_reduce_orders()); }, all_reduce_options},
    Family{"data", [] { return described(sim::data_sources()); }, nullptr},
};
static_assert(names::has_unique_names(rows));

}  // namespace

Families families() {
  return rows;
}

}  // namespace experiments
