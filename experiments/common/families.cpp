#include "experiments/common/families.h"

#include <array>

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

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const sim::Operation* operation : sim::operations()) names.emplace_back(operation->name);
  return names;
}

// A new family is one row.
constexpr std::array rows{
    Family{"formats", [] { return sim::names_of(fp16::formats); }},
    Family{"policies", [] { return sim::names_of(sim::precision_policies()); }},
    Family{"ops", operation_names},
    Family{"models", [] { return sim::names_of(sim::models()); }},
    Family{"scalers", [] { return sim::names_of(sim::scalers()); }},
    Family{"optimizers", [] { return sim::names_of(sim::optimizers()); }},
    Family{"schedules", [] { return sim::names_of(sim::schedules()); }},
    Family{"accumulations", sim::product_accumulation_names},
    Family{"data", [] { return sim::names_of(sim::data_sources()); }},
};
static_assert(sim::has_unique_names(rows));

}  // namespace

std::span<const Family> families() {
  return rows;
}

std::vector<std::string> names_in(std::string_view family) {
  return sim::find_by_name(rows, "family", family).names();
}

}  // namespace experiments
