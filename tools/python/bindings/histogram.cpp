#include "tools/python/bindings/histogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "fp16/names.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

using fp16::ExponentHistogram;
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
  py::array_t<std::int64_t> result = new_array<std::int64_t>({octaves});
  for (int i = 0; i < octaves; ++i) result.mutable_at(i) = ExponentHistogram::min_exponent + i;
  return result;
}

py::array_t<double> edges() {
  py::array_t<double> result = new_array<double>({octaves + 1});
  for (int i = 0; i <= octaves; ++i)
    result.mutable_at(i) = std::ldexp(1.0, ExponentHistogram::min_exponent + i);
  return result;
}

py::array_t<std::int64_t> counts(const ExponentHistogram& histogram) {
  py::array_t<std::int64_t> result = new_array<std::int64_t>({octaves});
  for (int i = 0; i < octaves; ++i) {
    result.mutable_at(i) =
        static_cast<std::int64_t>(histogram.octave(ExponentHistogram::min_exponent + i).total);
  }
  return result;
}

/// A row for each octave, its columns those of ExponentHistogram::Octave.
py::array_t<std::int64_t> octave_counts(const ExponentHistogram& histogram) {
  py::array_t<std::int64_t> result = new_array<std::int64_t>({octaves, 4});
  for (int i = 0; i < octaves; ++i) {
    const ExponentHistogram::Octave& octave = histogram.octave(ExponentHistogram::min_exponent + i);
    int column = 0;
    for (const std::uint64_t count : {octave.total, octave.powers_of_two, octave.near_next, octave.top})
      result.mutable_at(i, column++) = static_cast<std::int64_t>(count);
  }
  return result;
}

py::array integers(const std::string& name, const py::object& values) {
  const py::array given = reals(values);
  const char kind = given.dtype().kind();
  if (kind == 'i' || kind == 'u' || given.size() == 0) return given;
  throw std::invalid_argument(name + ": " + shortened(py::str(given.dtype())) +
                              " is not allowed; allowed: integers");
}

std::vector<ExponentHistogram::Octave> octaves_of(const py::object& counts) {
  const Array<std::int64_t> rows(integers("counts", counts));
  if (rows.ndim() != 2 || rows.shape(0) != octaves || rows.shape(1) != 4)
    throw std::invalid_argument(
        "counts: an array of another shape is not allowed; allowed: (277, 4), as octaves");
  std::vector<ExponentHistogram::Octave> result;
  for (py::ssize_t i = 0; i < octaves; ++i) {
    const std::int64_t total = rows.at(i, 0), powers = rows.at(i, 1), near = rows.at(i, 2),
                       top = rows.at(i, 3);
    if (powers < 0 || top < 0 || near < top || total < powers || total - powers < near)
      throw std::invalid_argument(
          "counts: row " + std::to_string(i) +
          " is not allowed; allowed: 0 <= top <= near_next, powers_of_two + near_next <= total");
    const auto count = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    result.push_back({count(total), count(powers), count(near), count(top)});
  }
  return result;
}

void add_counts(ExponentHistogram& histogram, const py::object& counts, double max_abs, std::uint64_t zero,
                std::uint64_t infinite, std::uint64_t nan) {
  const std::vector<ExponentHistogram::Octave> rows = octaves_of(counts);
  const bool has_values = std::ranges::any_of(rows, [](const auto& octave) { return octave.total > 0; });
  if (!(max_abs >= 0 && std::isfinite(max_abs) && (max_abs > 0) == has_values))
    throw std::invalid_argument(
        "max_abs = " + names::number_text(max_abs) +
        " is not allowed; allowed: the largest finite magnitude, 0 where octaves are empty");
  histogram += ExponentHistogram(ExponentHistogram::min_exponent, rows,
                                 {.zero = zero, .infinite = infinite, .nan = nan, .max_abs = max_abs});
}

ExponentHistogram shifted(const ExponentHistogram& histogram, int octaves_up) {
  constexpr int farthest = octaves - 1;
  if (octaves_up < -farthest || octaves_up > farthest)
    throw std::invalid_argument("log2 = " + std::to_string(octaves_up) +
                                " is not allowed; allowed: whole numbers in [-276, 276]");
  return fp16::scaled(histogram, octaves_up);
}

std::optional<int> recommended_log2_scale(const ExponentHistogram& histogram) {
  const std::optional<int> headroom = histogram.log2_headroom();
  return headroom ? std::optional(*headroom - 1) : std::nullopt;
}

/// One log2 of a scale or an array of them.
py::array log2_scales(const py::object& log2_scale) {
  return integers("log2_scale", log2_scale);
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

/// Codes of a format that numpy has not, decoded a piece at a time.
void add_codes(ExponentHistogram& histogram, const py::object& values, const NamedFormat& format) {
  constexpr auto fits_floats = [](const Format& each) { return fp16::contains(fp16::binary32, each); };
  with_format(format, "values", fits_floats, [&]<const Format & F>() {
    const Array<Bits<F>> given(values);
    std::array<float, 4096> buffer;
    for (std::span<const Bits<F>> rest = span_of(given); !rest.empty();) {
      const std::size_t size = std::min(rest.size(), buffer.size());
      fp16::decode<F>(rest.first(size), std::span(buffer).first(size));
      histogram.add(std::span<const float>(buffer).first(size));
      rest = rest.subspan(size);
    }
  });
}

}  // namespace

void add_to(ExponentHistogram& histogram, const py::object& values) {
  const py::module_ arrays = py::module_::import("halflab._arrays");
  const py::tuple in_order = arrays.attr("in_memory_order")(values);
  if (!in_order[1].is_none()) return add_codes(histogram, in_order[0], format_argument(in_order[1]));
  const py::array given = reals(in_order[0]);
  if (are_floats(given, sizeof(std::uint16_t))) {
    histogram.add(span_of(Array<std::uint16_t>(given.attr("view")("uint16"))));
  } else if (are_floats(given, sizeof(float))) {
    histogram.add(span_of(Array<float>(given)));
  } else {
    histogram.add(span_of(as_doubles(given)));
  }
}

void bind_histogram(py::module_& module) {
  py::class_<ExponentHistogram> histogram(
      module, "ExponentHistogram",
      "Counts of values by binary exponent. From one pass over an array follows exactly what a cast to "
      "binary16\n"
      "(nearest-even) loses at every scale 2^m: shifted by m octaves, this is the histogram of the scaled "
      "values.\n"
      "|S x| <= 2^-25 becomes zero, below 2^-14 subnormal, from 65520 on infinite.");
  define_constructor(
      histogram, "ExponentHistogram(values=())",
      "The histogram of the values of an array, any shape: of numpy, ml_dtypes or PyTorch (on the\n"
      "CPU), in float16, bfloat16, float32, float64 or FP8; no copy is made where it is dense.\n\n"
      ">>> halflab.ExponentHistogram([0.75, -0.5, 0.0])\n"
      "ExponentHistogram of 3 values",
      [](const py::object& values) {
        ExponentHistogram result;
        add_to(result, values);
        return result;
      });
  define(histogram, "add($self, values)",
         "Counts the values of an array, any shape.\n\n>>> halflab.ExponentHistogram().add([0.75, 1.5])",
         add_to);
  define(histogram, "add_counts($self, counts, max_abs, zero=0, infinite=0, nan=0)",
         "Adds counts that were kept, or made elsewhere, such as on a GPU: `counts` are rows as "
         "octave_counts has\n"
         "them, max_abs the largest finite magnitude among what they count.\n\n"
         ">>> one = halflab.ExponentHistogram([0.75, 1.5])\n"
         ">>> both = halflab.ExponentHistogram([0.0])\n"
         ">>> both.add_counts(one.octave_counts, one.max_abs)\n"
         ">>> both\n"
         "ExponentHistogram of 3 values",
         add_counts);
  define(histogram, "shifted($self, log2)",
         "The histogram of the values times 2^log2.\n\n"
         ">>> halflab.ExponentHistogram([0.75]).shifted(3) == halflab.ExponentHistogram([6.0])\n"
         "True",
         shifted);
  histogram
      .def(
          "__iadd__",
          [](ExponentHistogram& own, const ExponentHistogram& other) -> ExponentHistogram& {
            return own += other;
          },
          py::is_operator())
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
      .def_property_readonly(
          "octave_counts", octave_counts,
          "A row for each octave: values, exact powers of two, |x| >= (2 - 2^-10) 2^e, and of\n"
          "these |x| >= (2 - 2^-11) 2^e. The edges are where casts to binary16 round up.")
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
      .def_property_readonly("recommended_log2_scale", recommended_log2_scale,
                             "log2 of the loss scale an octave below the largest without overflow, or None.")
      .def(py::pickle(
          [](const ExponentHistogram& own) {
            return py::make_tuple(octave_counts(own), own.max_abs(), own.zero(), own.infinite(), own.nan());
          },
          [](const py::tuple& state) {
            ExponentHistogram histogram;
            add_counts(histogram, state[0], py::cast<double>(state[1]), py::cast<std::uint64_t>(state[2]),
                       py::cast<std::uint64_t>(state[3]), py::cast<std::uint64_t>(state[4]));
            return histogram;
          }))
      .def("__repr__", [](const ExponentHistogram& own) {
        return "ExponentHistogram of " + std::to_string(own.total()) + " values";
      });
  const auto define_prediction = [&](const std::string& name, const char* text, Prediction predicted) {
    define(histogram, name + "($self, log2_scale)",
           std::string("How many non-zero finite values the cast of 2^log2_scale * x to binary16 ") + text +
               ";\nlog2_scale is an integer or an array of them. Exact.\n\n"
               ">>> n = halflab.ExponentHistogram([2.0**-30, 3e4])." +
               name + "([0, 8])",
           prediction(predicted));
  };
  define_prediction("flushed_at_scale", "turns into zeros", &ExponentHistogram::flushed_at_scale);
  define_prediction("subnormal_at_scale", "turns into subnormal numbers",
                    &ExponentHistogram::subnormal_at_scale);
  define_prediction("overflowed_at_scale", "turns into infinities", &ExponentHistogram::overflowed_at_scale);
  define(histogram, "zones($self, log2_scale=0)",
         "Where the cast of 2^log2_scale * x to binary16 puts all values, a dict of counts: zero, flushed,\n"
         "subnormal, normal, overflowed, infinite, nan. zero, infinite and nan were so before.\n\n"
         ">>> halflab.ExponentHistogram([2.0**-30, 1.0]).zones(8)['subnormal']\n"
         "1",
         zones);
}

}  // namespace halflab_python
