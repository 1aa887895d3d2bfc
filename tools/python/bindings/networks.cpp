/// What training a network that is described by a file takes: bytes by role and by operator, and its kernels.

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "experiments/frame/toml_file.h"
#include "fp16/names.h"
#include "sim/optimizers/registry.h"
#include "sim/precision/precision_policy.h"
#include "sim/sizing/cost_model.h"
#include "sim/sizing/memory_model.h"
#include "tools/python/bindings/bindings.h"
#include "tools/python/bindings/calls.h"

namespace halflab_python {
namespace {

using Symbols = std::map<std::string, std::uint64_t>;

/// A network under a policy, with all that it refers to.
class NetworkUnderPolicy {
 public:
  NetworkUnderPolicy(const py::object& file, const py::dict& symbols, Spec policy)
      : policy_(sim::make_precision_policy(policy.text)),
        network_(read(py::cast<std::string>(file), py::cast<Symbols>(symbols))),
        typed_(sim::typed(network_, policy_)) {}
  NetworkUnderPolicy(const NetworkUnderPolicy&) = delete;
  NetworkUnderPolicy& operator=(const NetworkUnderPolicy&) = delete;

  const sim::TypedNetwork& typed() const { return typed_; }
  const sim::Network& network() const { return network_; }

 private:
  /// A file's faults are its reader's, a ValueError like all others.
  static sim::Network read(const std::string& file, const Symbols& symbols) {
    try {
      return sim::network_of(sim::read_network(experiments::read_toml_file(file), file), symbols);
    } catch (const std::runtime_error& error) {
      throw std::invalid_argument(error.what());
    }
  }

  sim::PrecisionPolicy policy_;
  sim::Network network_;
  sim::TypedNetwork typed_;
};

sim::Recomputation recomputation_named(std::string_view name) {
  struct Row {
    std::string_view name;
    sim::Recomputation recomputation;
  };
  static const auto rows = [] {
    std::array<Row, sim::recomputations.size()> result;
    std::ranges::transform(sim::recomputations, result.begin(), [](sim::Recomputation each) {
      return Row{name_of(each), each};
    });
    return result;
  }();
  return names::find_by_name(rows, "recomputation", name).recomputation;
}

py::dict by_role(const sim::StepMemory& step) {
  py::dict result;
  for (const sim::MemoryRoleOfStep& role : sim::step_roles())
    result[py::str(std::string(role.name))] = step.*role.bytes;
  return result;
}

/// A step of a network that is nothing but parameters of so many elements, none of a batch norm.
py::dict parameter_memory(const py::object& elements, Spec policy, Spec optimizer) {
  const sim::PrecisionPolicy made = sim::make_precision_policy(policy.text);
  sim::Network network{.input_is_indices = true};
  for (const std::size_t count : py::cast<std::vector<std::size_t>>(elements))
    network.parameters.push_back({.name = {}, .shape = {count}});
  return by_role(sim::step_memory(sim::typed(network, made), names::parse_spec(optimizer.text)));
}

py::dict memory(const py::object& file, const py::dict& symbols, Spec policy, Spec optimizer,
                const std::string& recomputation) {
  const NetworkUnderPolicy model(file, symbols, policy);
  const sim::StepMemory step =
      sim::step_memory(model.typed(), names::parse_spec(optimizer.text), recomputation_named(recomputation));
  py::dict result = by_role(step);
  result["total"] = step.total();
  result["inference"] = step.inference();
  result["parameters"] = model.network().parameter_count();
  return result;
}

py::dict activations(const py::object& file, const py::dict& symbols, Spec policy,
                     const std::string& recomputation) {
  const NetworkUnderPolicy model(file, symbols, policy);
  const sim::Activations kept = sim::activations(model.typed(), recomputation_named(recomputation));
  py::list names, values, saved, masks;
  for (std::size_t op = 0; op < kept.of_operators.size(); ++op) {
    names.append(model.network().operators[op].name);
    values.append(kept.of_operators[op].values);
    saved.append(kept.of_operators[op].saved);
    masks.append(kept.of_operators[op].masks);
  }
  using namespace py::literals;
  return py::dict("name"_a = names, "values"_a = values, "saved"_a = saved, "masks"_a = masks);
}

py::dict kernels(const py::object& file, const py::dict& symbols, Spec policy) {
  const NetworkUnderPolicy model(file, symbols, policy);
  py::list operators, names, phases, classes, flop, bytes;
  for (const sim::Kernel& kernel : sim::kernels_of(model.typed())) {
    operators.append(model.network().operators[kernel.op].name);
    names.append(kernel.name);
    phases.append(name_of(kernel.phase));
    classes.append(name_of(kernel.operator_class));
    flop.append(kernel.flop);
    bytes.append(kernel.bytes);
  }
  using namespace py::literals;
  return py::dict("operator"_a = operators, "kernel"_a = names, "phase"_a = phases,
                  "operator_class"_a = classes, "flop"_a = flop, "bytes"_a = bytes);
}

py::dict policies() {
  py::dict table;
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    py::dict roles;
    for (const auto& [role, held] : sim::roles_of(policy)) roles[py::str(role)] = held;
    table[py::str(std::string(policy.name))] = roles;
  }
  return table;
}

}  // namespace

// The package puts files in the place of names of networks, checks the names of symbols and says in its
// docstrings what comes back.
void bind_networks(py::module_& module) {
  define(module, "memory(network, symbols, policy, optimizer, recomputation)", "", memory);
  define(module, "parameter_memory(elements, policy, optimizer)", "", parameter_memory);
  define(module, "activations(network, symbols, policy, recomputation)", "", activations);
  define(module, "kernels(network, symbols, policy)", "", kernels);
  module.def("unknown_network_message", [](const std::string& name, const std::vector<std::string>& allowed) {
    return names::unknown_name_message("network", name, allowed);
  });
  module.def("shown", &shown);
  module.def("is_name", &is_name);
  module.attr("policies") = policies();
  module.attr("optimizers") = py::tuple(py::cast(names::names_of(sim::optimizers())));
}

}  // namespace halflab_python
