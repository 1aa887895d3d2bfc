/// Formats as objects; codes and values both ways; fields, texts and neighbours of codes.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "fp16/classification.h"
#include "fp16/exponent.h"
#include "fp16/format_names.h"
#include "fp16/names.h"
#include "fp16/neighbours.h"
#include "fp16/text.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

constexpr std::array<std::string_view, 5> encodings{"ieee", "finite_nan", "fnuz", "finite", "power_of_two"};

constexpr std::array<std::string_view, 10> number_classes{
    "signalling_nan", "quiet_nan",     "negative_infinity",  "negative_normal", "negative_subnormal",
    "negative_zero",  "positive_zero", "positive_subnormal", "positive_normal", "positive_infinity"};

/// Finite numbers, ascending.
py::array_t<double> numbers_of(const NamedFormat& named) {
  const Format& format = named.format;
  constexpr int widest = 20;
  if (format.width() > widest) {
    throw std::invalid_argument("values: " + std::string(named.name) + " has " +
                                std::to_string(format.finite_values()) +
                                " numbers; allowed: formats of up to " + std::to_string(widest) + " bits");
  }
  py::array_t<double> numbers = new_array<double>({static_cast<py::ssize_t>(format.finite_values())});
  with_format(named, "values", any_format, [&]<const Format & F>() {
    double* out = numbers.mutable_data();
    if constexpr (F.is_signed()) {
      for (Bits<F> magnitude = fp16::max_finite_bits<F>; magnitude > 0; --magnitude)
        *out++ = fp16::decode<F>(fp16::with_sign<F>(magnitude, true));
    }
    for (std::uint64_t code = 0; code <= F.max_finite_code(); ++code)
      *out++ = fp16::decode<F>(static_cast<Bits<F>>(code));
  });
  return numbers;
}

template <const Format& F>
py::array_t<Bits<F>> encoded_doubles(const Array<double>& values, const RoundingArguments& rounding) {
  py::array_t<Bits<F>> bits = empty_like<Bits<F>>(values);
  // What a float rounds to with the same 32 bits, its double does with these 64.
  std::vector<std::uint64_t> random;
  for (const std::uint32_t r : rounding.random_bits(span_of(values).size()))
    random.push_back(std::uint64_t{r} << 32 | 0xffffffff);
  transform_elements<F>([](double value, const fp16::Attributes& a) { return fp16::encode<F>(value, a); },
                        writable(bits), rounding, {.random_bits_64 = random}, span_of(values));
  return bits;
}

/// Rounds numpy's float16 or float32 by its codes, which say what is subnormal or a signalling NaN; wider numbers do not.
template <const Format& F, const Format& From>
py::array_t<Bits<F>> encoded_codes(const py::array& values, const RoundingArguments& rounding) {
  const Array<Bits<From>> given = codes_of<From>(values);
  py::array_t<Bits<F>> bits = empty_like<Bits<F>>(values);
  const std::vector<std::uint32_t> random = rounding.random_bits(span_of(given).size());
  const fp16::ArrayOptions options{.random_bits_32 = random};
  if (rounding.counts == nullptr && From == fp16::binary32) {
    fp16::encode<F>(span_of(Array<float>(values)), writable(bits), rounding.attributes, options);
  } else if (rounding.counts == nullptr) {
    fp16::convert<F, From>(span_of(given), writable(bits), rounding.attributes, options);
  } else {
    transform_elements<F>(
        [](Bits<From> code, const fp16::Attributes& a) { return fp16::convert<F, From>(code, a); },
        writable(bits), rounding, options, span_of(given));
  }
  return bits;
}

template <const Format& F>
py::array_t<Bits<F>> encoded(const py::array& values, const RoundingArguments& rounding) {
  if (are_floats(values, sizeof(std::uint16_t))) return encoded_codes<F, fp16::binary16>(values, rounding);
  if (are_floats(values, sizeof(float))) return encoded_codes<F, fp16::binary32>(values, rounding);
  return encoded_doubles<F>(as_doubles(values), rounding);
}

py::object encode(const py::object& values, const py::object& format, const py::kwargs& attributes) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  py::array result;
  with_format(format_argument(format), "encode", any_format,
              [&]<const Format & F>() { result = encoded<F>(reals(values), rounding); });
  return unwrapped(result);
}

py::object decode(const py::object& bits, const py::object& format) {
  py::array result;
  with_format(format_argument(format), "decode", any_format, [&]<const Format & F>() {
    const Array<Bits<F>> given = codes<F>(bits);
    result = decoded<F>(span_of(given), given);
  });
  return unwrapped(result);
}

py::object round_to(const py::object& values, const py::object& format, const py::kwargs& attributes) {
  return decode(encode(values, format, attributes), format);
}

/// Each code's piece(code), in an array of the codes' shape.
template <const Format& F, class Piece>
py::object each(const Array<Bits<F>>& bits, Piece piece) {
  auto result = empty_like<decltype(piece(Bits<F>{}))>(bits);
  std::ranges::transform(span_of(bits), result.mutable_data(), piece);
  return unwrapped(result);
}

template <const Format& F>
py::object each_text(const Array<Bits<F>>& bits, std::string (*text_of)(fp16::Code<F>)) {
  py::list texts;
  for (const Bits<F> code : span_of(bits)) texts.append(text_of(code));
  const py::module_ numpy = py::module_::import("numpy");
  const py::object array = numpy.attr("array")(texts, py::arg("dtype") = "U");
  return unwrapped(array.attr("reshape")(bits.attr("shape")));
}

template <const Format& F>
int exponent_of(Bits<F> code) {
  if (!fp16::is_finite<F>(code)) return F.emax() + 1;
  return fp16::is_zero<F>(code) ? F.emin() : std::max(fp16::ilogb<F>(code).value, F.emin());
}

template <const Format& F>
double significand_of(Bits<F> code) {
  const Bits<F> magnitude = fp16::magnitude<F>(code);
  if (!fp16::is_finite<F>(code)) return std::fabs(fp16::decode<F>(magnitude));
  return std::ldexp(fp16::decode<F>(magnitude), -exponent_of<F>(code));
}

py::dict fields(const py::object& bits, const py::object& format) {
  py::dict result;
  with_format(format_argument(format), "fields", any_format, [&]<const Format & F>() {
    const Array<Bits<F>> given = codes<F>(bits);
    result["sign"] = each<F>(given, [](Bits<F> code) -> std::int64_t { return fp16::is_negative<F>(code); });
    result["biased_exponent"] = each<F>(given, [](Bits<F> code) -> std::int64_t {
      return static_cast<std::int64_t>(fp16::magnitude<F>(code) >> F.trailing_bits());
    });
    result["trailing_significand"] =
        each<F>(given, [](Bits<F> code) -> std::int64_t { return code & fp16::trailing_mask<F>; });
    result["exponent"] = each<F>(given, [](Bits<F> code) -> std::int64_t { return exponent_of<F>(code); });
    result["significand"] = each<F>(given, [](Bits<F> code) { return significand_of<F>(code); });
    result["number_class"] = each_text<F>(given, [](fp16::Code<F> code) {
      return std::string(number_classes[static_cast<std::size_t>(fp16::classify<F>(code))]);
    });
  });
  return result;
}

template <const Format& F>
struct TextStyle {
  std::string_view name;
  std::string (*text_of)(fp16::Code<F> code);
};
template <const Format& F>
constexpr std::array text_styles{
    TextStyle<F>{"shortest", fp16::to_shortest<F>}, TextStyle<F>{"exact", fp16::to_exact<F>},
    TextStyle<F>{"hex", fp16::to_hex<F>}, TextStyle<F>{"fields", fp16::to_fields<F>}};

py::object text(const py::object& bits, const py::object& format, const std::string& style) {
  py::object result;
  with_format(format_argument(format), "text", any_format, [&]<const Format & F>() {
    const auto text_of = names::find_by_name(text_styles<F>, "style", style).text_of;
    result = each_text<F>(codes<F>(bits), text_of);
  });
  return result;
}

/// The distance to the next number away from zero.
template <const Format& F>
double spacing(Bits<F> code) {
  if (!fp16::is_finite<F>(code)) return std::fabs(fp16::decode<F>(code));
  return std::ldexp(1.0, exponent_of<F>(code) - F.trailing_bits());
}

py::object ulp(const py::object& values, const py::object& format) {
  const py::array given = reals(values);
  py::array_t<double> result = empty_like<double>(given);
  with_format(format_argument(format), "ulp", any_format, [&]<const Format & F>() {
    std::ranges::transform(exact_codes<F>(given, "values"), result.mutable_data(), spacing<F>);
  });
  return unwrapped(result);
}

py::object ulp_distance(const py::object& a, const py::object& b, const py::object& format) {
  const std::vector<py::array> given = broadcast({a, b});
  py::array_t<std::uint64_t> result = empty_like<std::uint64_t>(given[0]);
  with_format(format_argument(format), "ulp_distance", any_format, [&]<const Format & F>() {
    std::ranges::transform(exact_codes<F>(given[0], "a"), exact_codes<F>(given[1], "b"),
                           result.mutable_data(), fp16::ulp_distance<F>);
  });
  return unwrapped(result);
}

void bind_format_class(py::module_& module) {
  const auto own = [](auto get) { return [get](const NamedFormat& named) { return get(named.format); }; };
  py::class_<NamedFormat> format(
      module, "Format",
      "A binary floating-point format: a row of halflab.formats. Everything is computed from its width of\n"
      "exponent, its precision and its encoding.");
  format
      .def("__reduce__",
           [](const NamedFormat& named) {
             return py::make_tuple(py::module_::import("halflab._arrays").attr("format_of"),
                                   py::make_tuple(named.name));
           })
      .def_property_readonly("name", [](const NamedFormat& named) { return named.name; })
      .def_property_readonly(
          "encoding",
          [](const NamedFormat& named) { return encodings[static_cast<std::size_t>(named.format.encoding)]; },
          "Which codes are no finite numbers: 'ieee', 'finite_nan' (no infinities, one NaN of either sign),\n"
          "'fnuz' (no infinities, no -0, one NaN), 'finite' (all are), 'power_of_two' (scales: unsigned, no "
          "zero).")
      .def_property_readonly("exponent_bits", own([](const Format& f) { return f.exponent_bits; }),
                             "Bits of the biased exponent.")
      .def_property_readonly("precision", own([](const Format& f) { return f.precision; }),
                             "Bits of the significand p, the implicit leading one counted.")
      .def_property_readonly("width", own([](const Format& f) { return f.width(); }), "Bits of a code.")
      .def_property_readonly("size_bytes", own([](const Format& f) { return f.size_bytes(); }),
                             "Bytes of the smallest integer that holds a code.")
      .def_property_readonly("bias", own([](const Format& f) { return f.bias(); }),
                             "Biased exponent minus exponent, of normal numbers.")
      .def_property_readonly("emin", own([](const Format& f) { return f.emin(); }),
                             "Exponent of the smallest normal number.")
      .def_property_readonly("emax", own([](const Format& f) { return f.emax(); }),
                             "Exponent of the largest number.")
      .def_property_readonly("emin_subnormal", own([](const Format& f) { return f.emin_subnormal(); }),
                             "Exponent of the smallest subnormal number.")
      .def_property_readonly("max", own([](const Format& f) { return f.max(); }),
                             "The largest finite number.")
      .def_property_readonly("min_normal", own([](const Format& f) { return f.min_normal(); }),
                             "The smallest positive normal number, 2^emin.")
      .def_property_readonly("min_subnormal", own([](const Format& f) { return f.min_subnormal(); }),
                             "The smallest positive number.")
      .def_property_readonly("epsilon", own([](const Format& f) { return f.epsilon(); }),
                             "From 1 to the next larger number, 2^(1-p).")
      .def_property_readonly("unit_roundoff", own([](const Format& f) { return f.unit_roundoff(); }),
                             "Largest relative error of rounding a normal number to nearest, 2^-p.")
      .def_property_readonly("digits10", own([](const Format& f) { return f.digits10(); }),
                             "Decimal digits that survive the way into the format and back.")
      .def_property_readonly("max_digits10", own([](const Format& f) { return f.max_digits10(); }),
                             "Decimal digits that tell any two numbers apart.")
      .def_property_readonly("finite_values", own([](const Format& f) { return f.finite_values(); }),
                             "How many finite numbers there are, both zeros being one.")
      .def_property_readonly("is_signed", own([](const Format& f) { return f.is_signed(); }))
      .def_property_readonly("has_zero", own([](const Format& f) { return f.has_zero(); }))
      .def_property_readonly("has_negative_zero", own([](const Format& f) { return f.has_negative_zero(); }))
      .def_property_readonly("has_infinity", own([](const Format& f) { return f.has_infinity(); }))
      .def_property_readonly("has_nan", own([](const Format& f) { return f.has_nan(); }))
      .def_property_readonly("has_nan_payload", own([](const Format& f) { return f.has_nan_payload(); }),
                             "Whether NaNs carry a payload and are quiet or signalling.")
      .def_property_readonly("has_arithmetic", own([](const Format& f) { return f.has_arithmetic(); }),
                             "False of formats of scales, which only convert.")
      .def("__repr__",
           [](const NamedFormat& named) { return "halflab.formats['" + std::string(named.name) + "']"; })
      .def("__eq__", [](const NamedFormat& a, const NamedFormat& b) { return a.format == b.format; })
      .def("__eq__", [](const NamedFormat&, const py::object&) { return false; })
      .def("__hash__", [](const NamedFormat& named) { return py::hash(py::str(std::string(named.name))); });
  define(format, "contains($self, narrow)",
         "Whether every number of `narrow` is one of this format.\n\n"
         ">>> halflab.binary32.contains('binary16')\n"
         "True",
         [](const NamedFormat& wide, const py::object& narrow) {
           return fp16::contains(wide.format, format_argument(narrow).format);
         });
  define(format, "values($self)",
         "All finite numbers, ascending, both zeros as one. Formats of up to 20 bits.\n\n"
         ">>> halflab.e2m1.values()[7:]\n"
         "array([0. , 0.5, 1. , 1.5, 2. , 3. , 4. , 6. ])",
         numbers_of);

  py::dict table;
  for (const NamedFormat& row : fp16::formats) table[py::str(std::string(row.name))] = row;
  module.attr("formats") = table;
  py::dict aliases;
  for (const NamedFormat& alias : fp16::format_aliases)
    aliases[py::str(std::string(alias.name))] = table[py::str(std::string(fp16::name_of(alias.format)))];
  module.attr("_format_aliases") = aliases;
}

}  // namespace

void bind_formats(py::module_& module) {
  bind_format_class(module);
  define(module, "encode(values, format='binary16', **attributes)",
         "The codes of `values`, each rounded once, in the smallest unsigned dtype that holds a code.\n\n"
         "Infinities and NaNs stay what they are where the format has them; what it lacks: an infinity\n"
         "overflows to a NaN or, saturating or without NaNs, to the largest number; a NaN becomes +0.\n"
         "For **attributes see help(halflab).\n\n"
         ">>> halflab.encode([0.1, 70000.0], rounding='toward_zero')\n"
         "array([11878, 31743], dtype=uint16)",
         encode);
  define(module, "decode(bits, format='binary16')",
         "The exact values of codes, as float64.\n\n"
         ">>> halflab.decode([0x3C00, 0x7BFF])\n"
         "array([1.0000e+00, 6.5504e+04])",
         decode);
  define(module, "round_to(values, format='binary16', **attributes)",
         "`values` rounded once to numbers of the format, as float64: decode(encode(...)).\n\n"
         ">>> halflab.round_to([0.3, 500.0], 'e4m3', saturate=True)\n"
         "array([3.125e-01, 4.480e+02])",
         round_to);
  define(module, "fields(bits, format='binary16')",
         "What codes consist of, a dict of arrays: `sign` (0, 1), `biased_exponent` and\n"
         "`trailing_significand` as stored; `exponent` and `significand` such that the value is\n"
         "(-1)^sign * significand * 2^exponent, with 1 <= significand < 2 of normal and < 1 of subnormal\n"
         "numbers (infinities and NaNs: emax + 1 and the value itself); `number_class`, IEEE 754's.\n\n"
         ">>> halflab.fields([0x3C00, 0x0001])['exponent']\n"
         "array([  0, -14])",
         fields);
  define(module, "text(bits, format='binary16', style='shortest')",
         "Codes as text: 'shortest', the fewest decimal digits that read back; 'exact', all digits; 'hex',\n"
         "as 0x1.8p-3; 'fields', sign, exponent and significand in binary.\n\n"
         ">>> print(halflab.text(halflab.encode(0.1), style='exact'))\n"
         "0.0999755859375",
         text);
  define(module, "ulp(values, format='binary16')",
         "The unit in the last place of numbers of the format, 2^(max(e, emin) - p + 1): the spacing from\n"
         "|x| upward. Of an infinity an infinity, of a NaN a NaN.\n\n"
         ">>> halflab.ulp([1.0, 2048.0])\n"
         "array([9.765625e-04, 2.000000e+00])",
         ulp);
  define(module, "ulp_distance(a, b, format='binary16')",
         "How many numbers one passes from a to b, as uint64; all ones where either is a NaN.\n\n"
         ">>> print(halflab.ulp_distance(1.0, 1.5))\n"
         "512",
         ulp_distance);
}

}  // namespace halflab_python
