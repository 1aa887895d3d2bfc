#pragma once
/// What Python's arguments mean: formats by name, attributes of rounding, and arrays of reals, codes and
/// numbers of a format. Whatever is not allowed is a std::invalid_argument, in Python a ValueError, one line.

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/bits.h"
#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "fp16/names.h"
#include "fp16/rounding_names.h"
#include "tools/python/bindings/calls.h"

namespace halflab_python {

namespace py = pybind11;
using fp16::Bits;
using fp16::Format;
using fp16::NamedFormat;

template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

/// What rounding did to arrays, added up over calls.
struct Counts {
  fp16::RoundingCounts rounding;
  std::uint64_t underflow = 0;
  std::uint64_t divide_by_zero = 0;
  std::uint64_t invalid = 0;

  std::uint64_t total() const { return rounding.exact + rounding.inexact + rounding.overflowed; }
  py::dict as_dict() const;

  template <const Format& F>
  void add(const fp16::Result<F>& result) {
    const fp16::Flags& flags = result.flags;
    rounding += {.exact = !flags.inexact,
                 .inexact = flags.inexact && !flags.overflow,
                 .subnormal = fp16::is_subnormal<F>(result.bits),
                 .flushed = flags.inexact && fp16::is_zero<F>(result.bits),
                 .overflowed = flags.overflow};
    underflow += flags.underflow;
    divide_by_zero += flags.divide_by_zero;
    invalid += flags.invalid;
  }
};

/// A seed, or none.
std::optional<std::uint64_t> seed_argument(const py::handle& seed);

/// The keyword arguments of everything that rounds.
struct RoundingArguments {
  fp16::Attributes attributes = {};
  std::optional<std::uint64_t> seed;  ///< given if and only if rounding is stochastic
  Counts* counts = nullptr;

  bool is_stochastic() const { return attributes.rounding == fp16::Rounding::stochastic; }
  /// 32 uniform bits for each of `size` elements, a function of the seed; none unless rounding is stochastic.
  std::vector<std::uint32_t> random_bits(std::size_t size) const;
  /// The attributes for element i of those for which random_bits() gave `random`.
  fp16::Attributes attributes_of(std::size_t i, std::span<const std::uint32_t> random) const;
  /// Throws where rounding is stochastic: `subject` has many roundings and no bits for them.
  void reject_stochastic(std::string_view subject) const;
};
RoundingArguments rounding_arguments(const py::kwargs& arguments);

/// A Format, its name, another name of it or a dtype of numpy or PyTorch.
const NamedFormat& format_argument(const py::object& format);

[[noreturn]] void reject_format(std::string_view subject, std::string_view name,
                                bool (*is_allowed)(const Format& format));

/// Calls visit.template operator()<F>() for the row F that is `format`; throws unless Allowed{}(F).
template <class Allowed, class Visit>
void with_format(const NamedFormat& format, std::string_view subject, Allowed, Visit&& visit) {
  fp16::for_each_format([&]<const Format & F>() {
    if (F != format.format) return;
    if constexpr (Allowed{}(F)) {
      visit.template operator()<F>();
    } else {
      reject_format(subject, format.name, Allowed{});
    }
  });
}

inline constexpr auto any_format = [](const Format&) { return true; };
inline constexpr auto has_arithmetic = [](const Format& format) { return format.has_arithmetic(); };

/// Whether an array holds floating-point numbers of that many bytes. Asked of Python: where pybind11 is older
/// than numpy 2, the size that its own classes read in numpy's structures is not there.
bool are_floats(const py::array& array, std::size_t bytes);

/// A numpy array of float16, float32, float64, integers of magnitude up to 2^53 or booleans, nothing rounded
/// yet.
py::array reals(const py::object& values);
/// Real numbers as doubles, exactly.
inline Array<double> as_doubles(const py::array& reals) {
  return Array<double>(reals);
}
/// An array of integers; throws for others than the codes of `format`, which end at `last`.
py::array integers_up_to(std::uint64_t last, const py::object& bits, std::string_view format);
[[noreturn]] void reject_operand(std::string_view operand, double value, std::string_view format);

/// Arrays of one shape, as numpy broadcasts them.
std::vector<py::array> broadcast(const std::vector<py::object>& values);

/// A new array. Made from a number of elements, not a shape, its strides would be those of numpy 1 alone.
template <class T>
py::array_t<T> new_array(std::vector<py::ssize_t> shape) {
  return py::array_t<T>(std::move(shape));
}
/// A new array of the shape of another.
template <class T>
py::array_t<T> empty_like(const py::array& shape) {
  return new_array<T>({shape.shape(), shape.shape() + shape.ndim()});
}

/// The array, or the scalar that an array without dimensions holds.
py::object unwrapped(const py::array& array);

template <class T>
std::span<const T> span_of(const Array<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}
template <class T>
std::span<T> writable(py::array_t<T>& array) {
  return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

/// Codes of F; throws for integers that are none.
template <const Format& F>
Array<Bits<F>> codes(const py::object& bits) {
  const py::array given = integers_up_to(~std::uint64_t{0} >> (64 - F.width()), bits, fp16::name_of(F));
  return Array<Bits<F>>(given);
}

/// The codes of numpy's floats of F; NaNs keep all their bits.
template <const Format& F>
Array<Bits<F>> codes_of(const py::array& floats) {
  return Array<Bits<F>>(floats.attr("view")(py::dtype::of<Bits<F>>()));
}

/// The codes of reals that are numbers of F; throws, naming the operand, where one is not.
template <const Format& F>
std::vector<Bits<F>> exact_codes(const py::array& reals, std::string_view operand) {
  const auto size = static_cast<std::size_t>(reals.size());
  std::vector<Bits<F>> result(size);
  if constexpr (F == fp16::binary16 || F == fp16::binary32 || F == fp16::binary64) {
    if (are_floats(reals, sizeof(Bits<F>))) {
      const Array<Bits<F>> given = codes_of<F>(reals);
      std::ranges::copy(span_of(given), result.begin());
      return result;
    }
  }
  const Array<double> doubles = as_doubles(reals);
  for (std::size_t i = 0; i < size; ++i) {
    const double value = doubles.data()[i];
    const fp16::Result<F> encoded = fp16::encode<F>(value);
    const bool is_number = value != value ? F.has_nan() : !encoded.flags.inexact && !encoded.flags.invalid;
    if (!is_number) reject_operand(operand, value, fp16::name_of(F));
    result[i] = encoded.bits;
  }
  return result;
}

/// The values of codes, in the shape of `shape`.
template <const Format& F>
py::array_t<double> decoded(std::span<const Bits<F>> codes, const py::array& shape) {
  py::array_t<double> values = empty_like<double>(shape);
  if constexpr (fp16::contains(fp16::binary32, F)) {
    std::vector<float> floats(codes.size());
    fp16::decode<F>(codes, floats);
    std::ranges::copy(floats, values.mutable_data());
  } else {
    std::ranges::transform(codes, values.mutable_data(), [](Bits<F> code) { return fp16::decode<F>(code); });
  }
  return values;
}

/// out[i] = operation(in[i]..., attributes), one element at a time, counted if that is wanted.
template <const Format& F, class Operation, class... In>
void transform_elements(const Operation& operation, std::span<Bits<F>> out, const RoundingArguments& rounding,
                        const fp16::ArrayOptions& options, std::span<const In>... in) {
  const auto counted = [&](In... operands, const fp16::Attributes& attributes) {
    const fp16::Result<F> result = operation(operands..., attributes);
    if (rounding.counts != nullptr) rounding.counts->add<F>(result);
    return result;
  };
  fp16::transform<F>(counted, out, rounding.attributes, options, in...);
}

}  // namespace halflab_python
