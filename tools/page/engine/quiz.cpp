#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/block.h"
#include "fp16/codec.h"
#include "fp16/formats.h"
#include "fp16/neighbours.h"
#include "fp16/parse.h"
#include "fp16/philox.h"
#include "fp16/sum.h"
#include "tools/halflab/show/numbers.h"
#include "tools/halflab/show/page_fragment.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;
using fp16::binary16;
using show::page_fragment;

/// Numbers of one question, each drawn in a statement of its own: compilers differ in the order of parts of one.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t question) : random_{.key = seed, .stream = question} {}

  /// From 0 to count - 1.
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(std::uint64_t{random_.bits(next_++)} * count >> 32);
  }
  /// From first to last.
  int between(int first, int last) {
    return first + static_cast<int>(below(static_cast<std::uint32_t>(last - first + 1)));
  }

  template <class Rows>
  const auto& one_of(const Rows& rows) {
    return rows[below(static_cast<std::uint32_t>(rows.size()))];
  }

 private:
  fp16::Philox random_;
  std::uint64_t next_ = 0;
};

std::string brief(const fp16::Format& format, std::uint64_t code) {
  return show::describe(format, code).brief;
}

std::string half_text(double value) {
  return brief(binary16, fp16::encode<binary16>(value).bits);
}

/// A question by the key of its text and what stands in it; `right` and the other choices, in a drawn order; and the state of
/// the page that shows why.
Json question(Draw& draw, std::string_view kind, Json values, const std::string& right,
              std::vector<std::string> wrong, std::string why) {
  std::vector<std::string> choices;
  for (std::string& choice : wrong)
    if (choice != right && std::ranges::find(choices, choice) == choices.end())
      choices.push_back(std::move(choice));
  const auto place = draw.below(static_cast<std::uint32_t>(choices.size() + 1));
  choices.insert(choices.begin() + place, right);
  return {{"kind", kind},
          {"values", std::move(values)},
          {"choices", choices},
          {"right", place},
          {"why", std::move(why)}};
}

/// Which is larger, a + b or a?
Json larger(Draw& draw) {
  const int exponent = draw.between(11, 14);
  const double ulp = std::ldexp(1, exponent - 10), a = std::ldexp(1, exponent) + ulp * draw.between(0, 1000);
  const double b = ulp * std::ldexp(1, -draw.between(0, 2));
  const auto sum = fp16::add<binary16>(fp16::encode<binary16>(a).bits, fp16::encode<binary16>(b).bits).bits;
  const std::string both = fmt::format("{} + {}", half_text(a), half_text(b));
  const bool is_larger = fp16::decode<binary16>(sum) > a;
  return {{"kind", "larger"},
          {"values", {{"a", half_text(a)}, {"b", half_text(b)}}},
          {"choices", {both, half_text(a), "="}},
          {"right", is_larger ? 0 : 2},
          {"why", page_fragment("operation", {{"format", "binary16"}, {"value", both}})}};
}

/// The next number above one.
Json next(Draw& draw) {
  const auto code = static_cast<std::uint16_t>(draw.between(0x2c00, 0x6800));
  const auto above = [](std::uint16_t of) { return fp16::next_up<binary16>(of).bits; };
  const std::uint16_t once = above(code), twice = above(once);
  const double half = (fp16::decode<binary16>(code) + fp16::decode<binary16>(once)) / 2;
  return question(
      draw, "next", {{"x", brief(binary16, code)}}, brief(binary16, once),
      {brief(binary16, twice), fmt::format("{}", half), brief(binary16, above(above(twice)))},
      page_fragment("number", {{"format", "binary16"}, {"value", show::describe(binary16, code).code_text}}));
}

/// What a decimal becomes.
Json nearest(Draw& draw) {
  const int whole = draw.between(0, 9), tenth = draw.between(1, 9);
  const std::string decimal = fmt::format("{}.{}", whole, tenth);
  const std::uint16_t code = fp16::parse<binary16>(decimal).bits;
  return question(draw, "nearest", {{"x", decimal}}, brief(binary16, code),
                  {decimal, brief(binary16, fp16::next_up<binary16>(code).bits),
                   brief(binary16, fp16::next_down<binary16>(code).bits)},
                  page_fragment("number", {{"format", "binary16"}, {"value", decimal}}));
}

constexpr std::array narrow_formats{
    fp16::NamedFormat{"binary16", binary16}, fp16::NamedFormat{"bfloat16", fp16::bfloat16},
    fp16::NamedFormat{"e4m3", fp16::e4m3}, fp16::NamedFormat{"e5m2", fp16::e5m2}};

/// How many numbers lie from a power of two to the next.
Json count(Draw& draw) {
  const fp16::NamedFormat& row = draw.one_of(narrow_formats);
  const int exponent = draw.between(-2, 5);
  const auto numbers = [](const fp16::Format& format) {
    return std::to_string((1 << format.trailing_bits()) + 1);
  };
  std::vector<std::string> wrong;
  for (const fp16::NamedFormat& other : narrow_formats) wrong.push_back(numbers(other.format));
  const double low = std::ldexp(1, exponent);
  return question(
      draw, "count",
      {{"format", row.name}, {"low", fmt::format("{}", low)}, {"high", fmt::format("{}", 2 * low)}},
      numbers(row.format), wrong,
      page_fragment("number", {{"format", row.name},
                               {"value", fmt::format("{}", low)},
                               {"centre", fmt::format("{}", 1.5 * low)},
                               {"zoom", std::to_string(exponent)}}));
}

/// A sum at the largest number.
Json overflow(Draw& draw) {
  const double added = draw.one_of(std::array{1, 8, 15, 16, 31, 32, 100});
  const auto sum =
      fp16::add<binary16>(fp16::max_finite_bits<binary16>, fp16::encode<binary16>(added).bits).bits;
  const std::string text = fmt::format("65504 + {}", added);
  return question(draw, "result", {{"x", text}}, brief(binary16, sum),
                  {"inf", "65504", fmt::format("{}", 65504 + added)},
                  page_fragment("operation", {{"format", "binary16"}, {"value", text}}));
}

std::string power(int exponent) {
  return fmt::format("2^{}", exponent);
}

/// A product near the smallest number.
Json tiny(Draw& draw) {
  const int a = -draw.between(9, 14), b = -draw.between(9, 14);
  const auto product = fp16::multiply<binary16>(fp16::encode<binary16>(std::ldexp(1, a)).bits,
                                                fp16::encode<binary16>(std::ldexp(1, b)).bits)
                           .bits;
  const std::string text = fmt::format("{} * {}", power(a), power(b));
  const std::string right =
      fp16::is_zero<binary16>(product) ? "0" : power(std::ilogb(fp16::decode<binary16>(product)));
  return question(draw, "result", {{"x", text}}, right, {"0", power(a + b), power(-14), power(-24)},
                  page_fragment("operation", {{"format", "binary16"}, {"value", text}}));
}

/// What a chain of ones comes to.
Json ones(Draw& draw) {
  const auto chain = []<const fp16::Format & F>() {
    const std::vector<fp16::Bits<F>> terms(4096, fp16::encode<F>(1.0).bits);
    return brief(F, fp16::sum_sequential<F>(terms).bits);
  };
  const std::array sums{chain.operator()<binary16>(), chain.operator()<fp16::bfloat16>(),
                        chain.operator()<fp16::e4m3>(), chain.operator()<fp16::e5m2>()};
  const std::uint32_t row = draw.below(narrow_formats.size());
  std::vector<std::string> wrong(sums.begin(), sums.end());
  wrong.push_back("4096");
  return question(
      draw, "ones", {{"format", narrow_formats[row].name}}, sums[row], wrong,
      page_fragment("sum", {{"format", narrow_formats[row].name}, {"terms", "ones"}, {"count", "4096"}}));
}

/// The one of the narrow formats that comes closest to a number.
Json closest(Draw& draw) {
  for (;;) {
    const int digit = draw.between(1, 9), exponent = draw.between(-9, 6);
    const std::string text = fmt::format("{}e{}", digit, exponent);
    const show::ExactNumber exact = show::ExactNumber::from_text(text);
    std::vector<double> errors;
    std::vector<std::string> names;
    for (const fp16::NamedFormat& row : narrow_formats) {
      const auto value = show::exact_value(row.format, show::round(row.format, exact).code);
      errors.push_back(value ? std::fabs(ratio(*value + -exact, exact)) : HUGE_VAL);
      names.emplace_back(row.name);
    }
    const auto best = std::ranges::min_element(errors);
    if (std::ranges::count(errors, *best) > 1) continue;
    return question(draw, "closest", {{"x", text}}, names[static_cast<std::size_t>(best - errors.begin())],
                    names, page_fragment("number", {{"format", "binary16"}, {"value", text}}));
  }
}

/// The number of a code.
Json code(Draw& draw) {
  const int magnitude = draw.between(0x3000, 0x5c00), sign = draw.between(0, 1);
  const auto bits = static_cast<std::uint16_t>(magnitude | sign << 15);
  const show::Description number = show::describe(binary16, bits);
  const auto changed = [&](int by) { return brief(binary16, static_cast<std::uint16_t>(bits ^ by)); };
  return question(draw, "code", {{"code", number.code_text}, {"fields", number.fields}}, number.brief,
                  {changed(0x8000), changed(0x0400), changed(0x0200)},
                  page_fragment("number", {{"format", "binary16"}, {"value", number.code_text}}));
}

/// What becomes of the neighbour of an outlier.
Json block(Draw& draw) {
  const int largest = draw.one_of(std::array{3, 6, 12, 24, 48, 96});
  const std::string neighbour = fmt::format("0.{}", draw.between(1, 9)),
                    row = fmt::format("{} {}", largest, neighbour);
  const std::array values{static_cast<float>(largest),
                          std::bit_cast<float>(fp16::parse<fp16::binary32>(neighbour).bits)};
  std::array<std::uint8_t, 1> scales{};
  std::array<std::uint8_t, 2> elements{};
  std::array<double, 2> decoded{};
  fp16::encode_blocks<fp16::mxfp4>(values, scales, elements);
  fp16::decode_blocks<fp16::mxfp4>(elements, scales, decoded);
  return question(draw, "block", {{"largest", std::to_string(largest)}, {"neighbour", neighbour}},
                  fmt::format("{}", decoded[1]), {"0", neighbour, "0.5", "1"},
                  page_fragment("blocks", {{"format", "mxfp4"}, {"row", row}, {"place", "0"}}));
}

constexpr std::array kinds{larger, next, nearest, count, overflow, tiny, ones, closest, code, block};

Json questions(std::uint64_t seed) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Draw draw(seed, i);
    rows.push_back(kinds[i](draw));
  }
  return rows;
}

}  // namespace
}  // namespace halflab::page

const char* engine_quiz(double seed) {
  using namespace halflab::page;
  return answer(questions(static_cast<std::uint64_t>(seed)));
}
