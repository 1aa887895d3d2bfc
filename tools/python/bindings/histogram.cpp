#include "tools/python/bindings/histogram.h"

#include <array>
#include <cmath>
#include <string>

#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

using sim::ExponentHistogram;
using Prediction = std::uint64_t (ExponentHistogram::*)(int) const;

constexpr int octaves = ExponentHistogram::max_exponent - ExponentHistogram::min_exponent + 1;

int checked_log2_scale(std::int64_t log2_scale) {
  constexpr int lowest = -112, highest = 123;  // within them predictions are exact, of doubles too
  if (log2_scale >= lowest && log2_scale <= highest) return static_cast<int>(log2_scale);
  throw std::invalid_argument("log2_scale = " + std::to_string(log2_scale) +
                              " is not allowed; allowed: whole numbers in [" + std::to_string(lowest) + ", " +
                              std::to_string(highest) + "]");
}

py::array_t<std::int64_t> exponents() {
  py::array_t<std::int64_t> result(octaves);
  for (int i = 0; i < octaves; ++i) result.mutable_at(i) = ExponentHistogram::min_exponent + i;
  return result;
}

py::array_t<double> edges() {
  py::array_t<double> result(octaves + 1);
  for (int i = 0; i <= octaves; ++i)
    result.mutable_at(i) = std::ldexp(1.0, ExponentHistogram::min_exponent + i);
  return result;
}

py::array_t<std::int64_t> counts(const ExponentHistogram& histogram) {
  py::array_t<std::int64_t> result(octaves);
  for (int i = 0; i < octaves; ++i) {
    result.mutable_at(i) =
        static_cast<std::int64_t>(histogram.octave(ExponentHistogram::min_exponent + i).total);
  }
  return result;
}

/// One log2 of a scale or an array of them.
py::array log2_scales(const py::object& log2_scale) {
  const py::array given = reals(log2_scale);
  const char kind = given.dtype().kind();
  if (kind == 'i' || kind == 'u' || given.size() == 0) return given;
  throw std::invalid_argument("log2_scale: " + py::cast<std::string>(py::str(given.dtype())) +
                              " is not allowed; allowed: integers");
}

auto prediction(Prediction predicted) {
  return [predicted](const ExponentHistogram& histogram, const py::object& log2_scale) {
    const py::array given = log2_scales(log2_scale);
    const Array<std::int64_t> scales(given);
    py::array_t<std::int64_t> result = empty_like<std::int64_t>(given);
    for (py::ssize_t i = 0; i < scales.size(); ++i) {
      const int scale = checked_log2_scale(scales.data()[i]);
      result.mutable_data()[i] = static_cast<std::int64_t>((histogram.*predicted)(scale));
    }
    return unwrapped(result);
  };
}

py::dict zones(const ExponentHistogram& histogram, const py::object& log2_scale) {
  const Array<std::int64_t> given(log2_scales(log2_scale));
  if (given.ndim() != 0) throw std::invalid_argument("zones: log2_scale is an array; allowed: one integer");
  const int scale = checked_log2_scale(*given.data());
  const std::uint64_t flushed = histogram.flushed_at_scale(scale);
  const std::uint64_t subnormal = histogram.subnormal_at_scale(scale);
  const std::uint64_t overflowed = histogram.overflowed_at_scale(scale);
  py::dict result;
  result["zero"] = histogram.zero();
  result["flushed"] = flushed;
  result["subnormal"] = subnormal;
  result["normal"] = histogram.nonzero_finite() - flushed - subnormal - overflowed;
  result["overflowed"] = overflowed;
  result["infinite"] = histogram.infinite();
  result["nan"] = histogram.nan();
  return result;
}

}  // namespace

void add_to(ExponentHistogram& histogram, const py::object& values) {
  const py::array given = reals(values);
  const bool is_float = given.dtype().kind() == 'f';
  if (is_float && given.itemsize() == 2) {
    histogram.add(span_of(Array<std::uint16_t>(given.attr("view")("uint16"))));
  } else if (is_float && given.itemsize() == 4) {
    histogram.add(span_of(Array<float>(given)));
  } else {
    histogram.add(span_of(as_doubles(given)));
  }
}

void bind_histogram(py::module_& module) {
  const auto at_scale = [](const char* name, const char* text) {
    return documented(
        std::string(name) + "($self, log2_scale)",
        std::string("How many non-zero finite values the cast of 2^log2_scale * x to binary16 ") + text +
            ";\nlog2_scale is an integer or an array of them. Exact.");
  };
  py::class_<ExponentHistogram>(module, "ExponentHistogram",
                                "Counts of values by binary exponent. From one pass over an array follows "
                                "exactly what a cast to binary16\n"
                                "(nearest-even) loses at every scale 2^m: shifted by m octaves, this is the "
                                "histogram of the scaled values.\n"
                                "|S x| <= 2^-25 becomes zero, below 2^-14 subnormal, from 65520 on infinite.")
      .def(py::init([](const py::object& values) {
             ExponentHistogram histogram;
             if (!values.is_none()) add_to(histogram, values);
             return histogram;
           }),
           py::arg("values") = py::none(), documented("__init__(self, values=None)", "").c_str())
      .def("add", add_to, py::arg("values"),
           documented("add($self, values)", "Counts the values of an array, any shape.").c_str())
      .def("__iadd__",
           [](ExponentHistogram& histogram, const ExponentHistogram& other) { return histogram += other; })
      .def(
          "__eq__", [](const ExponentHistogram& a, const ExponentHistogram& b) { return a == b; },
          py::is_operator())
      .def_property_readonly(
          "exponents", [](const py::object&) { return exponents(); },
          "e of each octave 2^e <= |x| < 2^(e+1), from -149 to 127.")
      .def_property_readonly(
          "edges", [](const py::object&) { return edges(); },
          "2^e of the octaves' borders, one more than there are octaves.")
      .def_property_readonly(
          "counts", counts,
          "Values in each octave. Smaller ones count in the lowest, larger ones in the highest.")
      .def_property_readonly("zero", &ExponentHistogram::zero, "Zeros.")
      .def_property_readonly("infinite", &ExponentHistogram::infinite, "Infinities.")
      .def_property_readonly("nan", &ExponentHistogram::nan, "NaNs.")
      .def_property_readonly("nonzero_finite", &ExponentHistogram::nonzero_finite, "All in octaves.")
      .def_property_readonly("total", &ExponentHistogram::total, "All values.")
      .def_property_readonly("max_abs", &ExponentHistogram::max_abs, "The largest finite magnitude, or 0.")
      .def_property_readonly("lowest_exponent", &ExponentHistogram::lowest_exponent,
                             "The lowest octave with a value, or None.")
      .def_property_readonly("highest_exponent", &ExponentHistogram::highest_exponent,
                             "The highest octave with a value, or None.")
      .def_property_readonly("log2_headroom", &ExponentHistogram::log2_headroom,
                             "The largest m for which 2^m keeps every finite value within 65504, or None.")
      .def("flushed_at_scale", prediction(&ExponentHistogram::flushed_at_scale), py::arg("log2_scale"),
           at_scale("flushed_at_scale", "turns into zeros").c_str())
      .def("subnormal_at_scale", prediction(&ExponentHistogram::subnormal_at_scale), py::arg("log2_scale"),
           at_scale("subnormal_at_scale", "turns into subnormal numbers").c_str())
      .def("overflowed_at_scale", prediction(&ExponentHistogram::overflowed_at_scale), py::arg("log2_scale"),
           at_scale("overflowed_at_scale", "turns into infinities").c_str())
      .def("zones", zones, py::arg("log2_scale") = 0,
           documented("zones($self, log2_scale=0)",
                      "Where the cast of 2^log2_scale * x to binary16 puts all values, a dict of counts: "
                      "zero, flushed,\n"
                      "subnormal, normal, overflowed, infinite, nan. zero, infinite and nan were so before.")
               .c_str())
      .def("__repr__", [](const ExponentHistogram& histogram) {
        return "ExponentHistogram of " + std::to_string(histogram.total()) + " values";
      });
}

}  // namespace halflab_python
