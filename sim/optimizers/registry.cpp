#include "sim/optimizers/registry.h"

#include <array>

#include "sim/optimizers/adam.h"
#include "sim/optimizers/momentum.h"
#include "sim/optimizers/sgd.h"
#include "sim/registry.h"

namespace sim {
namespace {

template <class Variant>
std::unique_ptr<Optimizer> make(const GivenOptions& options) {
  return std::make_unique<Variant>(options_from<typename Variant::Options>(options));
}

constexpr std::array rows{
    OptimizerRow{"sgd", "stochastic gradient descent without state", make<Sgd>},
    OptimizerRow{"momentum", "stochastic gradient descent with heavy-ball momentum", make<Momentum>},
    OptimizerRow{"adam", "Adam with bias correction", make<Adam>},
};
static_assert(has_unique_names(rows));

}  // namespace

std::span<const OptimizerRow> optimizers() {
  return rows;
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const GivenOptions& options) {
  return find_by_name(rows, "optimizer", name).make(options);
}

}  // namespace sim
