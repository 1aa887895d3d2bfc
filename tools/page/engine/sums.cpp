#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/codec.h"
#include "fp16/dot.h"
#include "fp16/formats.h"
#include "fp16/mma.h"
#include "fp16/philox.h"
#include "fp16/sum.h"
#include "tools/halflab/show/numbers.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"
#include "tools/page/engine/named.h"
#include "tools/page/engine/rows_of_numbers.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;
using fp16::binary32;
using fp16::binary64;

constexpr std::size_t most_terms = 4096, points_of_curve = 32;

struct Question {
  std::string_view terms;
  std::string_view own;
  std::size_t count;
  std::uint64_t seed;
};

/// Term i of a series, rounded once.
template <const fp16::Format& F>
struct Series {
  std::string_view name;
  fp16::Bits<F> (*term)(std::uint64_t i, std::uint64_t seed);
};

template <const fp16::Format& F>
constexpr std::array series{
    Series<F>{"ones", [](std::uint64_t, std::uint64_t) { return fp16::encode<F>(1.0).bits; }},
    Series<F>{"tenths", [](std::uint64_t, std::uint64_t) { return fp16::parse<F>("0.1").bits; }},
    /// In [0, 1), by Philox.
    Series<F>{"random",
              [](std::uint64_t i, std::uint64_t seed) {
                return fp16::encode<F>(std::ldexp(fp16::Philox{.key = seed}.bits(i), -32)).bits;
              }},
    /// 1 - 1/2 + 1/3 - ...
    Series<F>{"alternating", [](std::uint64_t i, std::uint64_t) {
                const double sign = i % 2 == 0 ? 1.0 : -1.0;
                return fp16::divide<F>(fp16::encode<F>(sign).bits,
                                       fp16::encode<F>(static_cast<double>(i + 1)).bits)
                    .bits;
              }}};

/// The terms; a reader's own ones are repeated as often as is needed.
template <const fp16::Format& F>
std::vector<fp16::Bits<F>> terms_of(const Question& question) {
  if (question.count < 1 || question.count > most_terms)
    throw std::invalid_argument(
        fmt::format("{} terms are not allowed; allowed: 1 to {}", question.count, most_terms));
  std::vector<fp16::Bits<F>> terms(question.count);
  if (question.terms == "own") {
    const auto own = read_row<F>(question.own, most_terms);
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = own[i % own.size()];
  } else {
    const Series<F>& named = row_named(series<F>, "series of terms", question.terms);
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = named.term(i, question.seed);
  }
  return terms;
}

/// A sum: the code of a format and its value.
struct Summed {
  const fp16::Format* format;
  std::uint64_t code;
  double value;
};

template <const fp16::Format& F>
Summed summed(fp16::Bits<F> code) {
  return {&F, code, fp16::decode<F>(code)};
}

/// Calls visit(family, name, way), where way(terms) is a Summed, for every way of the library to add up codes of F.
template <const fp16::Format& F, class Visit>
void for_each_way(Visit visit) {
  using Terms = std::span<const fp16::Bits<F>>;
  const std::vector<fp16::Bits<F>> ones(most_terms, fp16::encode<F>(1.0).bits);
  for (const fp16::SumOrder<F>& order : fp16::sum_orders<F>)
    visit("sum", order.name, [&](Terms terms) { return summed<F>(order.sum(terms, {}).bits); });
  if constexpr (fp16::contains(binary32, F))
    for (const fp16::DotOrder<F>& order : fp16::dot_orders<F>)
      visit("dot", order.name, [&](Terms terms) {
        return summed<F>(order.dot(terms, Terms(ones).first(terms.size()), {}).bits);
      });
  if constexpr (F == fp16::binary16) {
    for (const fp16::TensorCore& core : fp16::tensor_cores) {
      visit("mma_binary32", core.name, [&](Terms terms) {
        return summed<binary32>(fp16::mma_dot<binary32>(core, terms, Terms(ones).first(terms.size()), 0));
      });
      visit("mma_binary16", core.name, [&](Terms terms) {
        return summed<fp16::binary16>(
            fp16::mma_dot<fp16::binary16>(core, terms, Terms(ones).first(terms.size()), 0));
      });
    }
  }
}

/// The exact sum, rounded to binary64.
struct Exact {
  double value;
  bool is_rounded, has_overflowed;

  template <const fp16::Format& F>
  static Exact of(std::span<const fp16::Bits<F>> terms) {
    const fp16::Result<binary64> sum = fp16::sum_exact<binary64, F>(terms);
    return {std::bit_cast<double>(sum.bits), sum.flags.inexact, sum.flags.overflow};
  }

  bool is(double other) const {
    return (value == other || (std::isnan(value) && std::isnan(other))) && !is_rounded;
  }

  /// Its digits where they are all and few, else about, to twelve.
  std::string text() const {
    constexpr std::size_t few = 20;
    if (has_overflowed) return value > 0 ? "> 1.79e308" : "< -1.79e308";
    const std::string digits = show::describe(binary64, std::bit_cast<std::uint64_t>(value)).exact;
    return digits.size() <= few && !is_rounded ? digits : fmt::format("≈ {:.12g}", value);
  }
};

/// What befalls a chain of additions, each by the number of terms that it had.
struct Chain {
  std::optional<std::size_t> overflows_after;
  /// When it last changed, if it is finite and an eighth of the terms or more follows unnoticed.
  std::optional<std::size_t> stagnates_after;

  template <const fp16::Format& F>
  static Chain of(std::span<const fp16::Bits<F>> terms) {
    std::array<fp16::Bits<F>, 2> step{terms[0], 0};
    std::size_t last_change = 0, last_term = 0;
    for (std::size_t i = 1; i < terms.size(); ++i) {
      step[1] = terms[i];
      const fp16::Result<F> next = fp16::sum_sequential<F>(step);
      if (next.flags.overflow) return {.overflows_after = i + 1, .stagnates_after = {}};
      if (!fp16::is_zero<F>(terms[i])) last_term = i;
      if (next.bits != step[0]) last_change = i;
      step[0] = next.bits;
    }
    const bool stands = fp16::is_finite<F>(step[0]) && last_change + 1 + terms.size() / 8 <= last_term;
    return {.overflows_after = {}, .stagnates_after = stands ? std::optional(last_change + 1) : std::nullopt};
  }
};

template <const fp16::Format& F>
Json sums(const Question& question, std::size_t prefix) {
  const std::vector<fp16::Bits<F>> all = terms_of<F>(question);
  const std::span<const fp16::Bits<F>> terms =
      std::span(all).first(std::clamp<std::size_t>(prefix, 1, all.size()));
  const Exact exact = Exact::of<F>(terms);
  const double wanted = exact.value;
  Json ways = Json::array();
  for_each_way<F>([&](std::string_view family, std::string_view name, const auto& way) {
    const Summed found = way(terms);
    const show::Description number = show::describe(*found.format, found.code);
    Json row{{"family", family}, {"name", name}, {"result", number.brief}, {"code", number.code_text}};
    row["is_exact"] = exact.is(found.value);
    row["error"] = found.value - wanted;
    row["relative_error"] = wanted == 0 ? Json() : Json((found.value - wanted) / wanted);
    ways.push_back(std::move(row));
  });
  const Chain chain = Chain::of<F>(terms);
  Json texts = Json::array();
  for (const fp16::Bits<F> term : terms.first(std::min<std::size_t>(terms.size(), 8)))
    texts.push_back(show::describe(F, term).brief);
  return {{"terms", terms.size()},
          {"first", texts},
          {"last", show::describe(F, terms.back()).brief},
          {"exact", exact.text()},
          {"overflows_after", optional(chain.overflows_after)},
          {"stagnates_after", optional(chain.stagnates_after)},
          {"ways", ways}};
}

/// The sum of the first n terms in one way, and exactly, for n that are evenly spread.
template <const fp16::Format& F>
Json curve(const Question& question, std::string_view family, std::string_view name) {
  const std::vector<fp16::Bits<F>> terms = terms_of<F>(question);
  const std::size_t points = std::min(points_of_curve, terms.size());
  Json numbers = Json::array(), exacts = Json::array(), values = Json::array();
  const auto prefix = [&](std::size_t i) { return std::span(terms).first((i + 1) * terms.size() / points); };
  for (std::size_t i = 0; i < points; ++i) {
    numbers.push_back(prefix(i).size());
    exacts.push_back(Exact::of<F>(prefix(i)).value);
  }
  for_each_way<F>([&](std::string_view its_family, std::string_view its_name, const auto& way) {
    if (its_family != family || its_name != name) return;
    for (std::size_t i = 0; i < points; ++i) values.push_back(way(prefix(i)).value);
  });
  return {{"numbers", numbers}, {"exact", exacts}, {"values", values}};
}

/// Calls visit.operator()<F>() for the format of this name, one with arithmetic.
template <class Visit>
Json in_format(std::string_view name, Visit visit) {
  const fp16::Format& format = format_named(name).format;
  Json found;
  fp16::for_each_format([&]<const fp16::Format & F>() {
    if constexpr (F.has_arithmetic())
      if (F == format) found = visit.template operator()<F>();
  });
  if (found.is_null())
    throw std::invalid_argument(fmt::format("{} is a format of scales, without sums", name));
  return found;
}

Question question_of(const char* terms, const char* own, double count, double seed) {
  return {terms, own, static_cast<std::size_t>(count), static_cast<std::uint64_t>(seed)};
}

}  // namespace
}  // namespace halflab::page

const char* engine_sums(const char* format, const char* terms, const char* own, double count, double seed,
                        double prefix) {
  using namespace halflab::page;
  const Question question = question_of(terms, own, count, seed);
  return answer(in_format(
      format, [&]<const fp16::Format & F>() { return sums<F>(question, static_cast<std::size_t>(prefix)); }));
}

const char* engine_sum_curve(const char* format, const char* terms, const char* own, double count,
                             double seed, const char* family, const char* name) {
  using namespace halflab::page;
  const Question question = question_of(terms, own, count, seed);
  return answer(
      in_format(format, [&]<const fp16::Format & F>() { return curve<F>(question, family, name); }));
}

const char* engine_series() {
  using namespace halflab::page;
  Json names = Json::array();
  for (const auto& row : series<fp16::binary16>) names.push_back(row.name);
  names.push_back("own");
  return answer(names);
}
