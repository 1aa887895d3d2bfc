#include "tools/python/bindings/arguments.h"

#include <fmt/format.h>

#include "fp16/format_names.h"
#include "fp16/names.h"
#include "sim/tensor/random.h"

namespace halflab_python {
namespace {

constexpr std::array attribute_names{"rounding",           "seed",  "saturate", "flush_to_zero",
                                     "denormals_are_zero", "counts"};

std::size_t item_size(const py::array& array) {
  return py::cast<std::size_t>(array.attr("itemsize"));
}

/// Whether numpy makes an array of `values` element by element.
bool is_sequence(const py::handle& values) {
  if (PyList_Check(values.ptr()) || PyTuple_Check(values.ptr())) return true;
  return PySequence_Check(values.ptr()) && !PyObject_CheckBuffer(values.ptr()) &&
         !py::hasattr(values, "__array__") && !py::hasattr(values, "__array_interface__");
}

/// Whether `values` is a masked array, or a sequence with one in it. Throws where sequences are nested deeper
/// than numpy has dimensions: a list that holds itself has no end.
bool has_mask(std::string_view subject, const py::handle& values, const py::handle& masked_array,
              int depth = 0) {
  constexpr int dimensions = 64;
  if (PyFloat_Check(values.ptr()) || PyLong_Check(values.ptr()) || PyUnicode_Check(values.ptr()))
    return false;
  if (!is_sequence(values)) return py::isinstance(values, masked_array);
  if (depth == dimensions)
    throw std::invalid_argument(std::string(subject) + ": sequences nested " + std::to_string(depth + 1) +
                                " deep are not allowed; allowed: up to " + std::to_string(dimensions) +
                                " dimensions");
  return std::any_of(values.begin(), values.end(), [&](const py::handle& value) {
    return has_mask(subject, value, masked_array, depth + 1);
  });
}

/// A tensor or an array of types that numpy lacks as numbers that it has; all else as it is.
py::object in_numpy(const py::object& values) {
  constexpr std::string_view known = "biufcOSU";
  const bool is_known =
      py::isinstance<py::array>(values)
          ? known.find(py::cast<py::array>(values).dtype().kind()) != std::string_view::npos
          : is_sequence(values) || PyFloat_Check(values.ptr()) || PyLong_Check(values.ptr());
  return is_known ? values : py::object(py::module_::import("halflab._arrays").attr("numbers")(values));
}

/// numpy's array of whatever it takes, but for masked arrays, whose mask it would drop.
py::array as_array(std::string_view subject, const py::object& given, const py::object& dtype = py::none()) {
  const py::object values = in_numpy(given);
  if (has_mask(subject, values, py::module_::import("numpy.ma").attr("MaskedArray")))
    throw std::invalid_argument(
        std::string(subject) +
        ": a masked array is not allowed; allowed: its .filled(value) or .compressed()");
  try {
    return py::module_::import("numpy").attr("asarray")(values, dtype, "C");
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError) || !is_sequence(values)) throw;
    throw std::invalid_argument(std::string(subject) + ": a sequence of which numpy makes no array (" +
                                shortened(py::str(error.value())) +
                                ") is not allowed; allowed: one array or tensor, as torch.stack() makes");
  }
}

bool is_number(const py::handle& value) {
  int overflow = 0;
  if (PyLong_Check(value.ptr())) PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0 && (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()));
}

/// The first element that is no number, of what numpy keeps as text or as objects; else the type of all.
std::string what_is_wrong(const py::array& array) {
  constexpr std::string_view unlike_numbers = "OSU";
  if (unlike_numbers.find(array.dtype().kind()) != std::string_view::npos) {
    for (const py::handle& element : py::list(array.attr("ravel")().attr("tolist")()))
      if (!is_number(element)) return shown(element);
  }
  return shortened(py::str(array.dtype()));
}

py::array reject_dtype(const py::array& array) {
  throw std::invalid_argument(
      "values: " + what_is_wrong(array) +
      " is not allowed; allowed: float16, float32, float64, integers of magnitude up to 2^53, bool");
}

template <class Integer>
void require_exact_doubles(const py::array& array) {
  constexpr auto limit = Integer{1} << 53;
  const Array<Integer> values(array);
  for (const Integer value : span_of(values)) {
    if (value <= limit && (value >= 0 || value >= Integer{0} - limit)) continue;
    throw std::invalid_argument("values: " + std::to_string(value) +
                                " is not allowed; allowed: integers of magnitude up to 2^53");
  }
}

/// An array of integers, of objects where Python's own are too large for numpy's or beside others of 64 bits.
py::array integers(const py::object& bits) {
  const py::array array = as_array("bits", bits);
  const char kind = array.dtype().kind();
  if (kind == 'i' || kind == 'u' || array.size() == 0) return array;
  if (!py::isinstance<py::array>(bits)) {
    const py::array objects = as_array("bits", bits, py::str("O"));
    const auto is_integer = [](const py::handle& each) {
      return PyIndex_Check(each.ptr()) && !PyBool_Check(each.ptr());
    };
    const py::list elements(objects.attr("ravel")());
    if (std::all_of(elements.begin(), elements.end(), is_integer)) return objects;
  }
  throw std::invalid_argument("bits: " + shortened(py::str(array.dtype())) +
                              " is not allowed; allowed: integers");
}

/// The name of a dtype of numpy or PyTorch; all else as it is.
py::object name_of_dtype(const py::object& format) {
  if (PyType_Check(format.ptr()) || py::isinstance<py::dtype>(format))
    return py::module_::import("numpy").attr("dtype")(format).attr("name");
  const auto text = py::cast<std::string>(py::str(py::type::handle_of(format)));
  return text == "<class 'torch.dtype'>" ? py::str(format).attr("removeprefix")("torch.") : format;
}

}  // namespace

py::dict Counts::as_dict() const {
  py::dict counts;
  counts["exact"] = rounding.exact;
  counts["inexact"] = rounding.inexact;
  counts["subnormal"] = rounding.subnormal;
  counts["flushed"] = rounding.flushed;
  counts["overflowed"] = rounding.overflowed;
  counts["underflow"] = underflow;
  counts["divide_by_zero"] = divide_by_zero;
  counts["invalid"] = invalid;
  return counts;
}

std::vector<std::uint32_t> RoundingArguments::random_bits(std::size_t size) const {
  std::vector<std::uint32_t> bits(is_stochastic() ? size : 0);
  if (is_stochastic()) sim::RandomStream(*seed, "halflab.stochastic_rounding").fill_bits(0, bits);
  return bits;
}

fp16::Attributes RoundingArguments::attributes_of(std::size_t i,
                                                  std::span<const std::uint32_t> random) const {
  fp16::Attributes result = attributes;
  if (is_stochastic()) result.random_bits = random[i] * std::uint64_t{0x100000001};
  return result;
}

void RoundingArguments::reject_stochastic(std::string_view subject) const {
  if (!is_stochastic()) return;
  throw std::invalid_argument(std::string(subject) +
                              ": rounding 'stochastic' is not allowed; allowed: the other roundings, or "
                              "partial_sums");
}

std::optional<std::uint64_t> seed_argument(const py::handle& seed) {
  if (seed.is_none()) return std::nullopt;
  return checked_cast<std::uint64_t>("seed", seed, "integers from 0 to 2^64 - 1");
}

RoundingArguments rounding_arguments(const py::kwargs& arguments) {
  RoundingArguments result;
  for (const auto& [key, value] : arguments) {
    const auto name = py::cast<std::string>(key);
    const auto flag = [&, &given = value] { return checked_cast<bool>(name, given, allowed_values<bool>()); };
    if (name == "rounding") {
      const auto rounding = checked_cast<std::string>(name, value, "names of roundings");
      result.attributes.rounding = names::find_by_name(fp16::named_roundings, "rounding", rounding).rounding;
    } else if (name == "seed") {
      result.seed = seed_argument(value);
    } else if (name == "saturate") {
      result.attributes.saturate = flag();
    } else if (name == "flush_to_zero") {
      result.attributes.flush_to_zero = flag();
    } else if (name == "denormals_are_zero") {
      result.attributes.denormals_are_zero = flag();
    } else if (name == "counts") {
      if (!value.is_none()) result.counts = checked_cast<Counts*>(name, value, "a halflab.Counts");
    } else {
      throw std::invalid_argument(
          names::unknown_name_message("attribute", name, {attribute_names.begin(), attribute_names.end()}));
    }
  }
  if (result.is_stochastic() != result.seed.has_value()) {
    throw std::invalid_argument(result.seed ? "seed: allowed only with rounding='stochastic'"
                                            : "rounding 'stochastic' needs a seed, an integer");
  }
  return result;
}

const NamedFormat& format_argument(const py::object& format) {
  if (py::isinstance<NamedFormat>(format)) return py::cast<const NamedFormat&>(format);
  const auto name = checked_cast<std::string>("format", name_of_dtype(format),
                                              "a name, a halflab.Format, a dtype of numpy or PyTorch");
  const auto row = std::ranges::find(fp16::formats, fp16::name_in_table(name), &NamedFormat::name);
  if (row != fp16::formats.end()) return *row;
  if (name == "fp8" || name == "FP8" || name == "float8")
    throw std::invalid_argument("format '" + name +
                                "' is not allowed; allowed: e4m3 (FP8 of weights and activations), "
                                "e5m2 (FP8 of gradients)");
  std::vector<std::string> allowed = names::names_of(fp16::formats);
  std::ranges::copy(names::names_of(fp16::format_aliases), std::back_inserter(allowed));
  throw std::invalid_argument(names::unknown_name_message("format", name, allowed));
}

bool are_floats(const py::array& array, std::size_t bytes) {
  return array.dtype().kind() == 'f' && item_size(array) == bytes;
}

py::array reals(const py::object& values) {
  py::array array = as_array("values", values);
  if (!py::cast<bool>(array.dtype().attr("isnative")))
    array = array.attr("astype")(array.dtype().attr("newbyteorder")("="));
  switch (array.dtype().kind()) {
    case 'b':
      return array;
    case 'i':
      if (item_size(array) == 8) require_exact_doubles<std::int64_t>(array);
      return array;
    case 'u':
      if (item_size(array) == 8) require_exact_doubles<std::uint64_t>(array);
      return array;
    case 'f':
      return item_size(array) <= 8 ? array : reject_dtype(array);
    default:
      return reject_dtype(array);
  }
}

py::array integers_up_to(std::uint64_t last, const py::object& bits, std::string_view format) {
  const py::array array = integers(bits);
  if (array.size() == 0) return array;
  const py::object lowest = array.attr("min")(), highest = array.attr("max")();
  if (lowest < py::int_(0) || highest > py::int_(last)) {
    const py::object wrong = lowest < py::int_(0) ? lowest : highest;
    throw std::invalid_argument("bits: " + shown(py::int_(wrong)) + " is no code of " + std::string(format) +
                                "; allowed: integers from 0 to " + std::to_string(last));
  }
  return array;
}

void reject_format(std::string_view subject, std::string_view name,
                   bool (*is_allowed)(const Format& format)) {
  std::vector<std::string> allowed;
  for (const NamedFormat& row : fp16::formats) {
    if (is_allowed(row.format)) allowed.emplace_back(row.name);
  }
  throw std::invalid_argument(std::string(subject) + ": format '" + std::string(name) +
                              "' is not allowed; allowed: " + fmt::format("{}", fmt::join(allowed, ", ")));
}

void reject_operand(std::string_view operand, double value, std::string_view format) {
  const std::string number = names::number_text(value);
  throw std::invalid_argument(fmt::format(
      "{}: {} is not a number of {}; allowed: its numbers, as halflab.round_to({}{}) gives one", operand,
      number, format, number, format == "binary16" ? "" : fmt::format(", '{}'", format)));
}

std::vector<py::array> broadcast(const std::vector<py::object>& values) {
  py::list arrays;
  for (const py::object& value : values) arrays.append(reals(value));
  const py::module_ numpy = py::module_::import("numpy");
  std::vector<py::array> result;
  for (const py::handle array : numpy.attr("broadcast_arrays")(*arrays))
    result.push_back(numpy.attr("ascontiguousarray")(array).attr("reshape")(array.attr("shape")));
  return result;
}

py::object unwrapped(const py::array& array) {
  return array[py::tuple()];
}

}  // namespace halflab_python
