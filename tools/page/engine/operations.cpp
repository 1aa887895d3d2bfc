#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/philox.h"
#include "tools/halflab/show/findings.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"
#include "tools/page/engine/exact_text.h"
#include "tools/page/engine/named.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;
using show::Operator;

show::Findings rounded_by_last(std::string_view text, const fp16::NamedFormat& format) {
  show::Findings found = show::measure(std::string(text), format);
  if (!found.is_rounded()) throw std::invalid_argument(fmt::format("{} rounds nothing", found.input));
  return found;
}

/// (rest times near + away times far) / (rest + away).
double mean_of(const show::ExactNumber& near, const show::ExactNumber& far, std::uint32_t rest,
               std::uint32_t away) {
  const auto whole = [](std::uint32_t number) {
    return show::ExactNumber(false, number ? show::Limbs{number} : show::Limbs{}, 0);
  };
  const show::ExactNumber sum = near * whole(rest) + far * whole(away);
  return sum.is_zero() ? 0 : ratio(sum, whole(rest + away));
}

/// Draws of stochastic rounding: how many of the first n went away from zero, for n that grow by about a fortieth, and the
/// mean of all.
Json draws(std::string_view text, const fp16::NamedFormat& format, std::uint64_t seed, std::uint32_t count) {
  const show::Findings found = rounded_by_last(text, format);
  const auto rounded = [&](fp16::Rounding rounding, std::uint64_t random_bits = 0) {
    return rounded_again(found, {.rounding = rounding, .random_bits = random_bits}).code;
  };
  const std::uint64_t near = rounded(fp16::Rounding::toward_zero);
  const std::uint64_t far = rounded(fp16::Rounding::stochastic);
  const auto near_value = show::exact_value(format.format, near),
             far_value = show::exact_value(format.format, far);
  if (!found.discarded || !near_value || !far_value || near == far) return nullptr;
  const fp16::Philox random{.key = seed};
  std::uint32_t away = 0;
  Json numbers = Json::array(), counts = Json::array();
  for (std::uint32_t n = 1, next = 1; n <= count; ++n) {
    const fp16::Philox::Block words = random.block(n - 1);
    away += rounded(fp16::Rounding::stochastic, words[0] | std::uint64_t{words[1]} << 32) == far;
    if (n < next && n < count) continue;
    numbers.push_back(n);
    counts.push_back(away);
    next = n + 1 + n / 40;
  }
  return {{"near", show::describe(format.format, near).brief},
          {"far", show::describe(format.format, far).brief},
          {"chance", found.discarded->fraction},
          {"numbers", numbers},
          {"away", counts},
          {"mean", mean_of(*near_value, *far_value, count - away, away)},
          {"exact", exact_text(found)}};
}

Json way(std::string_view name, std::string_view step, const show::Description& result) {
  return {{"way", name}, {"step", step}, {"result", result.brief}, {"code", result.code_text}};
}

/// Other ways to compute the same: a product that is rounded before the sum, and the operation in binary32, rounded again.
Json ways(std::string_view text, const fp16::NamedFormat& format) {
  const show::Findings found = rounded_by_last(text, format);
  Json rows = Json::array({way("once", found.steps.empty() ? "" : found.steps.back().text, found.result)});
  if (found.last.operation == Operator::fused_multiply_add) {
    const auto& code = [&](std::size_t i) { return found.operands[i].number.code_text; };
    const show::Findings twice =
        show::measure(fmt::format("{} * {} + {}", code(0), code(1), code(2)), format);
    rows.push_back(way("product_first", twice.steps.back().text, twice.result));
  }
  if (found.last.operation == Operator::number || format.format.precision >= fp16::binary32.precision)
    return rows;
  std::vector<std::uint64_t> wide = operands_of(found);
  for (std::uint64_t& code : wide) code = show::convert(fp16::binary32, format.format, code).code;
  const std::uint64_t in_float = show::apply(fp16::binary32, found.last, wide, found.exact).code;
  const std::uint64_t back = show::convert(format.format, fp16::binary32, in_float).code;
  rows.push_back(way("through_float", show::describe(fp16::binary32, in_float).brief,
                     show::describe(format.format, back)));
  return rows;
}

}  // namespace
}  // namespace halflab::page

const char* engine_draws(const char* format, const char* text, double seed, double count) {
  using namespace halflab::page;
  return answer(
      draws(text, format_named(format), static_cast<std::uint64_t>(seed), static_cast<std::uint32_t>(count)));
}

const char* engine_ways(const char* format, const char* text) {
  using namespace halflab::page;
  return answer(ways(text, format_named(format)));
}
