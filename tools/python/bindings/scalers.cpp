/// Global loss scalers, which need no tensors, and the list of all.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "fp16/names.h"
#include "sim/loss_scaling/registry.h"
#include "tools/python/bindings/bindings.h"
#include "tools/python/bindings/histogram.h"

namespace halflab_python {
namespace {

using fp16::ExponentHistogram;
using sim::LossScaler;

py::dict dict_of(const names::NamedValues& values) {
  py::dict result;
  for (const auto& [name, value] : values) result[py::str(name)] = value;
  return result;
}

/// What a scaler says that an option allows; NaN lies in no interval.
std::string allowed_values(std::string_view scaler, const std::string& option) {
  try {
    sim::make_any_scaler(scaler, {{option, std::numeric_limits<double>::quiet_NaN()}});
  } catch (const names::OptionError& error) {
    return error.allowed();
  }
  return {};
}

py::dict scaler_table() {
  py::dict table;
  for (const sim::ScalerRow& row : sim::scalers()) {
    py::dict options;
    for (const auto& [name, value] : sim::options_of(sim::make_any_scaler(row.name))) {
      py::dict option;
      option["default"] = value;
      option["allowed"] = allowed_values(row.name, name);
      options[py::str(name)] = option;
    }
    py::dict entry;
    entry["kind"] = sim::kind_name(row.kind);
    entry["description"] = row.description;
    entry["options"] = options;
    table[py::str(std::string(row.name))] = entry;
  }
  return table;
}

std::unique_ptr<LossScaler> make_scaler(Spec spec, const py::kwargs& options) {
  auto [name, given] = names::parse_numeric_spec(spec.text);
  for (const auto& [key, value] : options) {
    const auto option = py::cast<std::string>(key);
    const auto number = checked_cast<double>("'" + name + "': " + option, value, "a number, True or False");
    if (!given.emplace(option, number).second)
      throw std::invalid_argument("'" + spec.text + "': option '" + option + "' is given twice");
  }
  return sim::make_scaler(name, given);
}

/// What is known of one step; a histogram says what is not said otherwise.
struct Step {
  std::optional<bool> found_inf;
  std::optional<double> max_abs;
  const ExponentHistogram* exponents;
  const ExponentHistogram* twin;

  template <class Use>
  auto with_summary(const Use& use) const {
    const auto has_nonfinite = [](const ExponentHistogram* histogram) {
      return histogram != nullptr && histogram->infinite() + histogram->nan() > 0;
    };
    const sim::TwinSummary twin_summary{.finite = !has_nonfinite(twin), .exponents = twin};
    if (!found_inf && exponents == nullptr)
      throw std::invalid_argument("nothing is known of the step; allowed: found_inf, exponents or both");
    return use(sim::GradientSummary{.found_nonfinite = found_inf.value_or(has_nonfinite(exponents)),
                                    .max_abs = largest(),
                                    .exponents = exponents,
                                    .twin = twin != nullptr ? &twin_summary : nullptr});
  }

  float largest() const {
    constexpr double limit = std::numeric_limits<float>::max();
    if (max_abs && !(*max_abs >= 0 && *max_abs <= limit)) {
      throw std::invalid_argument("max_abs = " + names::number_text(*max_abs) +
                                  " is not allowed; allowed: magnitudes of finite float32 numbers");
    }
    const double magnitude = max_abs.value_or(exponents != nullptr ? exponents->max_abs() : 0);
    return static_cast<float>(std::min(magnitude, limit));
  }
};

std::string_view update(LossScaler& scaler, std::optional<bool> found_inf, std::optional<double> max_abs,
                        const ExponentHistogram* exponents, const ExponentHistogram* twin) {
  return Step{found_inf, max_abs, exponents, twin}.with_summary(
      [&](const sim::GradientSummary& summary) { return name_of(scaler.update(summary)); });
}

bool wants_twin(const LossScaler& scaler, std::optional<bool> found_inf, std::optional<double> max_abs,
                const ExponentHistogram* exponents) {
  if (scaler.needs_exponents() && exponents == nullptr) {
    throw std::invalid_argument("scaler '" + std::string(scaler.name()) +
                                "': a step came without the exponents of its gradients");
  }
  return Step{found_inf, max_abs, exponents, nullptr}.with_summary(
      [&](const sim::GradientSummary& summary) { return scaler.wants_twin(summary); });
}

void restore(LossScaler& scaler, const py::dict& state) {
  names::NamedValues values;
  for (const auto& [key, value] : state) {
    const auto name = checked_cast<std::string>("state: key", key, "names");
    values.emplace_back(name, checked_cast<double>("state: " + name, value, "a number"));
  }
  scaler.restore(values);
}

}  // namespace

void bind_scalers(py::module_& module) {
  py::class_<LossScaler> scaler(
      module, "Scaler",
      "A global loss scaler: a state machine that chooses the factor S of the loss from what each step's "
      "gradients\n"
      "were. Scaler('dynamic:growth_interval=20') and Scaler('dynamic', growth_interval=20) are the same;\n"
      "halflab.scalers lists names, options with their defaults, and kinds, of which this one is 'global'.");
  define_constructor(scaler, "Scaler(spec, **options)",
                     "A scaler by its name, with its options behind colons or as keywords.\n\n"
                     ">>> halflab.Scaler('dynamic', growth_interval=20)\n"
                     "Scaler('dynamic'), S = 65536",
                     make_scaler);
  define(
      scaler, "update($self, found_inf=None, max_abs=None, exponents=None, twin=None)",
      "Takes what is known of the step's SCALED gradients, moves `scale` for the next step and returns\n"
      "what becomes of this one: 'apply', 'skip' or 'abort'.\n\n"
      "found_inf: an infinity or NaN was found; max_abs: the largest finite magnitude. Both follow from\n"
      "exponents, an ExponentHistogram, where they are not given; without either, max_abs is 0, from which\n"
      "openseq2seq_log_max, the only one to look at it, learns nothing. twin: an ExponentHistogram of\n"
      "unscaled gradients in a wide format.\n\n"
      ">>> halflab.Scaler('dynamic').update(found_inf=True)\n"
      "'skip'",
      update);
  define(scaler, "wants_twin($self, found_inf=None, max_abs=None, exponents=None)",
         "Whether update() of the step just made should bring a twin.\n\n"
         ">>> halflab.Scaler('dynamic').wants_twin(found_inf=True)\n"
         "False",
         wants_twin);
  define(scaler, "restore($self, state)",
         "Goes on from a `state`.\n\n"
         ">>> halflab.Scaler('dynamic').restore(halflab.Scaler('dynamic').state)",
         restore);
  scaler.def_property_readonly("name", &LossScaler::name)
      .def_property_readonly("scale", &LossScaler::scale, "S of the coming step.")
      .def_property_readonly("unscale_scale", &LossScaler::unscale_scale,
                             "What the gradients of the step just updated are divided by.")
      .def_property_readonly("needs_exponents", &LossScaler::needs_exponents,
                             "Whether update() needs an ExponentHistogram.")
      .def_property_readonly("abort_reason", &LossScaler::abort_reason,
                             "Why update() last said 'abort', in one line.")
      .def_property_readonly(
          "updates_per_backward",
          [](const LossScaler& own) {
            return own.update_granularity() == sim::UpdateGranularity::per_backward;
          },
          "Whether update() is called after each micro-batch, not once a step.")
      .def_property_readonly(
          "options", [](const LossScaler& own) { return dict_of(own.options()); }, "Options in force.")
      .def_property_readonly(
          "state", [](const LossScaler& own) { return dict_of(own.state()); },
          "All that the next decision depends on besides the options.")
      .def("__repr__", [](const LossScaler& own) {
        return "Scaler('" + std::string(own.name()) + "'), S = " + names::number_text(own.scale());
      });
  module.attr("scalers") = scaler_table();
}

}  // namespace halflab_python
