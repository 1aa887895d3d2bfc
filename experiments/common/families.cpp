#include "experiments/common/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "fp16/formats.h"
#include "sim/arithmetic.h"
#include "sim/data/registry.h"
#include "sim/loss_scaling/registry.h"
#include "sim/models/registry.h"
#include "sim/ops/operation.h"
#include "sim/optimizers/registry.h"
#include "sim/precision_policy.h"
#include "sim/registry.h"
#include "sim/schedules/registry.h"

namespace experiments {
namespace {

std::vector<Variant> bare(const std::vector<std::string>& names) {
  std::vector<Variant> variants;
  for (const std::string& name : names) variants.push_back({.name = name});
  return variants;
}

template <sim::RegistryRows Rows>
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
  for (const auto& [name, value] : options_of(sim::GivenOptions{})) {
    details.push_back({.name = name, .value = sim::number_text(value)});
    try {
      options_of(sim::GivenOptions{{name, std::numeric_limits<double>::quiet_NaN()}});
    } catch (const sim::OptionError& error) {
      details.back().allowed = error.allowed();
    }
  }
  return details;
}

std::vector<VariantDetail> scaler_options(std::string_view name) {
  return options_of_variant(
      [name](const sim::GivenOptions& given) { return sim::options_of(sim::make_any_scaler(name, given)); });
}

std::vector<VariantDetail> optimizer_options(std::string_view name) {
  return options_of_variant(
      [name](const sim::GivenOptions& given) { return sim::make_optimizer(name, given)->options(); });
}

std::vector<VariantDetail> schedule_options(std::string_view name) {
  return options_of_variant(
      [name](const sim::GivenOptions& given) { return sim::make_schedule(name, given)->options(); });
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

// A new family is one row.
constexpr std::array rows{
    Family{"formats", [] { return bare(sim::names_of(fp16::formats)); }, nullptr},
    Family{"policies", [] { return described(sim::precision_policies()); }, policy_roles},
    Family{"ops", operations, nullptr},
    Family{"models", [] { return described(sim::models()); }, model_options},
    Family{"scalers", scalers, scaler_options},
    Family{"optimizers", [] { return described(sim::optimizers()); }, optimizer_options},
    Family{"schedules", [] { return described(sim::schedules()); }, schedule_options},
    Family{"accumulations", [] { return bare(sim::product_accumulation_names()); }, nullptr},
    Family{"data", [] { return described(sim::data_sources()); }, nullptr},
};
static_assert(sim::has_unique_names(rows));

const Family& find_family(std::string_view name) {
  return sim::find_by_name(rows, "family", name);
}

using Row = std::array<std::string, 3>;

/// The cells in columns, two spaces apart; a column that is empty throughout takes no space.
std::string in_columns(const std::vector<Row>& lines) {
  std::array<std::size_t, 3> widths{};
  for (const Row& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Row& line : lines) {
    std::string padded;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (widths[i] > 0) padded += fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + '\n';
  }
  return text;
}

std::string variant_listing(const Family& family, std::string_view name) {
  const std::vector<Variant> variants = family.variants();
  const auto variant = std::ranges::find(variants, name, &Variant::name);
  if (variant == variants.end())
    throw std::invalid_argument(sim::unknown_name_message(family.name, name, names_in(family.name)));
  std::string text = in_columns({{variant->name, variant->kind, variant->description}});
  std::vector<Row> lines;
  if (family.details != nullptr) {
    for (const VariantDetail& detail : family.details(name))
      lines.push_back({"  " + detail.name, detail.value, detail.allowed});
  }
  return text + (lines.empty() ? "  no options\n" : in_columns(lines));
}

}  // namespace

std::span<const Family> families() {
  return rows;
}

std::vector<std::string> names_in(std::string_view family) {
  return sim::names_of(std::span<const Variant>(find_family(family).variants()));
}

std::string names_by_kind(std::string_view family) {
  std::string text, kind;
  for (const Variant& variant : find_family(family).variants()) {
    if (variant.kind != kind) {
      text += fmt::format("\n{}: {}", variant.kind, variant.name);
      kind = variant.kind;
    } else {
      text += (text.empty() ? "" : ", ") + variant.name;
    }
  }
  return text;
}

std::string listing(std::string_view text) {
  const std::size_t colon = text.find(':');
  const Family& family = find_family(text.substr(0, colon));
  if (colon != std::string_view::npos) return variant_listing(family, text.substr(colon + 1));
  std::vector<Row> lines;
  for (const Variant& variant : family.variants())
    lines.push_back({variant.name, variant.kind, variant.description});
  return in_columns(lines);
}

}  // namespace experiments
