/// Global loss scalers, which need no tensors, and the list of all.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/// A GradScaler's keys and the options of `dynamic` that they are; its counter of clean steps is no option.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> torch_options{
    {{"scale", "init_scale"},
     {"growth_factor", "growth_factor"},
     {"backoff_factor", "backoff_factor"},
     {"growth_interval", "growth_interval"}}};
constexpr std::string_view torch_tracker = "_growth_tracker";

[[noreturn]] void reject_torch_state(const std::string& what) {
  throw std::invalid_argument("from_torch: " + what +
                              "; allowed: the state_dict() of an enabled GradScaler, with scale, "
                              "growth_factor, backoff_factor, growth_interval, _growth_tracker");
}

std::unique_ptr<LossScaler> from_torch(const py::dict& state_dict) {
  std::map<std::string, double> given;
  for (const auto& [key, value] : state_dict) {
    const auto name = checked_cast<std::string>("from_torch: key", key, "names");
    given[name] = checked_cast<double>("from_torch: " + name, value, "a number");
  }
  const auto taken = [&](std::string_view key) {
    const auto found = given.extract(std::string(key));
    if (!found) reject_torch_state("key '" + std::string(key) + "' is missing");
    return found.mapped();
  };
  names::GivenOptions options;
  for (const auto& [key, option] : torch_options) options[std::string(option)] = taken(key);
  const double tracker = taken(torch_tracker);
  const auto scale = static_cast<float>(options["init_scale"]);  // of a state before the first step it is not
  if (!given.empty()) reject_torch_state("key '" + given.begin()->first + "' is not allowed");
  if (scale == 0) options.erase("init_scale");  // where S has come to, though none begins there
  std::unique_ptr<LossScaler> scaler = sim::make_scaler("dynamic", options);
  names::NamedValues state = scaler->state();
  for (auto& [name, value] : state) {
    if (name == "scale") value = scale;
    if (name == "growth_tracker") value = tracker;
  }
  scaler->restore(state);
  return scaler;
}

/// One thing that is known of every step of a sequence, or nothing.
template <class T>
class Steps {
 public:
  Steps(std::string_view name, const py::object& values) {
    if (values.is_none()) return;
    const py::object plain = py::hasattr(values, "tolist") ? values.attr("tolist")() : values;
    if (!py::isinstance<py::sequence>(plain) || py::isinstance<py::str>(plain))
      throw std::invalid_argument(std::string(name) + " = " + shown(values) +
                                  " is not allowed; allowed: a sequence, a value for each step");
    const py::list elements(plain);
    values_.emplace();
    for (const py::handle element : elements)
      values_->push_back(value_of(fmt::format("{} of step {}", name, values_->size()), element));
  }
  std::optional<std::size_t> size() const { return values_ ? std::optional(values_->size()) : std::nullopt; }
  std::optional<T> at(std::size_t step) const {
    return values_ ? std::optional((*values_)[step]) : std::nullopt;
  }

 private:
  /// A bool may be 0 or 1, too, as tables have it.
  static T value_of(const std::string& place, const py::handle& element) {
    if constexpr (std::is_same_v<T, bool>) {
      if (element.equal(py::int_(0)) || element.equal(py::int_(1))) return element.equal(py::int_(1));
    }
    return checked_cast<T>(place, element, halflab_python::allowed_values<T>());
  }

  std::optional<std::vector<T>> values_;
};

std::size_t common_length(std::initializer_list<std::optional<std::size_t>> lengths) {
  std::optional<std::size_t> common;
  for (const std::optional<std::size_t>& length : lengths) {
    if (length && common && *length != *common)
      throw std::invalid_argument("replay: sequences of " + std::to_string(*common) + " and " +
                                  std::to_string(*length) + " steps are not allowed; allowed: one length");
    if (length) common = length;
  }
  return common.value_or(0);
}

py::object replay(LossScaler& scaler, const py::object& found_inf, const py::object& max_abs,
                  const py::object& exponents, const py::object& twin) {
  const Steps<bool> found("found_inf", found_inf);
  const Steps<double> largest("max_abs", max_abs);
  const Steps<const ExponentHistogram*> histograms("exponents", exponents), twins("twin", twin);
  const std::size_t steps = common_length({found.size(), largest.size(), histograms.size(), twins.size()});
  const names::NamedValues before = scaler.state();
  py::list scales, decisions;
  try {
    for (std::size_t step = 0; step < steps; ++step) {
      scales.append(scaler.scale());
      const std::string_view decision =
          update(scaler, found.at(step), largest.at(step), histograms.at(step).value_or(nullptr),
                 twins.at(step).value_or(nullptr));
      decisions.append(decision);
      if (decision == name_of(sim::Decision::abort)) break;
    }
  } catch (const std::invalid_argument& error) {
    scaler.restore(before);
    throw std::invalid_argument("step " + std::to_string(py::len(decisions)) + ": " + error.what());
  }
  const py::module_ numpy = py::module_::import("numpy");
  using namespace py::literals;
  return py::module_::import("halflab._columns")
      .attr("structured")(py::dict("scale"_a = numpy.attr("array")(scales, "dtype"_a = "float64"),
                                   "decision"_a = numpy.attr("array")(decisions, "dtype"_a = "U5")));
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
  define(
      scaler, "replay($self, found_inf=None, max_abs=None, exponents=None, twin=None)",
      "update() for each step of a sequence, which leaves the scaler behind the last: a structured array\n"
      "with the fields scale, the S of each step, and decision. Arguments are sequences of update()'s; an\n"
      "'abort' ends them. Where one is not allowed, the scaler stays what it was.\n\n"
      ">>> halflab.Scaler('dynamic').replay([True, False, False])['scale']\n"
      "array([65536., 32768., 32768.])",
      replay);
  const Signature of_torch(
      "from_torch(state_dict)",
      "The scaler 'dynamic' that goes on where a torch.amp.GradScaler with this state_dict() would.\n\n"
      ">>> halflab.Scaler.from_torch({'scale': 1024.0, 'growth_factor': 2.0, 'backoff_factor': 0.5, "
      "'growth_interval': 2000, '_growth_tracker': 7})\n"
      "Scaler('dynamic'), S = 1024");
  scaler.def_static(of_torch.name().c_str(), bound(of_torch, std::function(from_torch)),
                    of_torch.docstring().c_str());
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
      .def("__repr__",
           [](const LossScaler& own) {
             return "Scaler('" + std::string(own.name()) + "'), S = " + names::number_text(own.scale());
           })
      .def(py::pickle(
          [](const LossScaler& own) {
            return py::make_tuple(own.name(), dict_of(own.options()), dict_of(own.state()));
          },
          [](const py::tuple& pickled) {
            auto scaler = make_scaler(Spec{py::cast<std::string>(pickled[0])}, py::dict(pickled[1]));
            restore(*scaler, pickled[2]);
            return scaler;
          }));
  module.attr("scalers") = scaler_table();
}

}  // namespace halflab_python
