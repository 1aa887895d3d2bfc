#include "sim/optimizers/registry.h"

#include <array>

#include "fp16/names.h"
#include "sim/optimizers/adam.h"
#include "sim/optimizers/adamw_8bit.h"
#include "sim/optimizers/sgd.h"

namespace sim {
namespace {

template <class Variant>
std::unique_ptr<Optimizer> make(const names::GivenOptions& options, const UpdateArithmetic& arithmetic) {
  return std::make_unique<Variant>(names::options_from<typename Variant::Options>(options), arithmetic);
}

constexpr std::array rows{
    OptimizerRow{"sgd", "stochastic gradient descent, with or without momentum, Nesterov's too", false,
                 make<Sgd>},
    OptimizerRow{"momentum", "stochastic gradient descent with heavy-ball momentum", false, make<Momentum>},
    OptimizerRow{"adam", "Adam with bias correction; weight decay in the gradient", true, make<Adam>},
    OptimizerRow{"adamw", "Adam with decoupled weight decay", true, make<AdamW>},
    OptimizerRow{"adamw8bit", "AdamW with moments of 8 bits, in blocks of 256", true, make<AdamW8bit>},
};
static_assert(names::has_unique_names(rows));

}  // namespace

std::span<const OptimizerRow> optimizers() {
  return rows;
}

const OptimizerRow& find_optimizer(std::string_view name) {
  return names::find_by_name(rows, "optimizer", name);
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const names::GivenOptions& options,
                                          const UpdateArithmetic& arithmetic) {
  return find_optimizer(name).make(options, arithmetic);
}

}  // namespace sim
