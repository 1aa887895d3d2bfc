#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/hist/findings.h"
#include "tools/halflab/inputs.h"

namespace halflab::hist {
namespace {

using namespace experiments;

double share_of_all(const Findings& found, std::uint64_t count) {
  return found.share(found.total, count);
}

std::string power(int exponent) {
  return exponent == 0 ? "1" : fmt::format("2^{}", exponent);
}

std::string at_most(double share) {
  return share == 0 ? "0 %" : fmt::format("at most {}", percent(share));
}

/// Whether a loss is too small to be worth a scale.
bool is_small(double share) {
  return share < 0.001;
}

std::string plateau_clause(const Findings& found) {
  const CastForecast total = found.forecast(found.total);
  const int lowest = *total.plateau_lowest_log2(), highest = *total.headroom_log2();
  if (const double left = total.flushed_share(highest); !is_small(left))
    return fmt::format("even the largest S without overflow, {}, leaves {} zero", power(highest),
                       percent(left));
  if (lowest == highest) return fmt::format("S = {} alone makes so few zero", power(highest));
  return fmt::format("every S from {} to {} makes as few zero, to 0.1 % of the values", power(lowest),
                     power(highest));
}

/// Whether a smaller loss than at S = 1 is to be had at the shown scale.
bool shown_scale_helps(const Findings& found) {
  const CastCounts &one = found.total.at_one, &shown = found.total.at_shown;
  return one.overflowed > shown.overflowed || one.flushed > shown.flushed ||
         (one.flushed == shown.flushed && one.subnormal > shown.subnormal);
}

/// A format that keeps nearly all at S = 1 has nothing to recommend, unless its digits become fewer.
bool shows_scale(const Findings& found) {
  if (found.shown_log2 != found.recommended_log2) return true;
  return shown_scale_helps(found) &&
         (found.total.at_one.overflowed > 0 || !is_small(share_of_all(found, found.total.at_one.flushed)) ||
          !is_small(share_of_all(found, found.total.at_one.subnormal)));
}

/// Tensors with zeros that may have been other numbers before they were stored.
struct ZeroTensors {
  std::uint64_t tensors = 0;
  std::string first;
  std::set<std::string_view> formats = {};

  void add(const TensorFound& tensor) {
    if (++tensors == 1) first = tensor.name;
    formats.insert(tensor.stored_as);
  }
  std::string text() const {
    return fmt::format("{} stored as {}", counted(tensors, "tensor"), fmt::join(formats, " or "));
  }
};

/// Tensors of zeros alone, in formats whose range ends where gradients may still be.
ZeroTensors all_zero(const Findings& found) {
  ZeroTensors zero;
  for (const TensorFound& tensor : found.tensors) {
    const Exponents& exponents = tensor.exponents;
    if (exponents.total() > 0 && exponents.zero() == exponents.total() &&
        scalar_format(tensor.stored_as).format.emin() > fp16::binary32.emin())
      zero.add(tensor);
  }
  return zero;
}

/// What the format keeps without a scale, and which would help.
std::string answer(const Findings& found) {
  if (found.total.exponents.total() == 0) return "There is nothing to lose: the tensors are empty.";
  if (found.total.exponents.nonzero_finite() == 0)
    return found.total.nonfinite() > 0   ? "No value is finite and other than zero."
           : all_zero(found).tensors > 0 ? "No value is other than zero."
                                         : "There is nothing to lose: no value is other than zero.";
  const double flushed = share_of_all(found, found.total.at_one.flushed),
               subnormal = share_of_all(found, found.total.at_one.subnormal);
  const double norm = found.forecast(found.total).norm_lost_at_most(0, found.total.squares);
  const std::string plateau = plateau_clause(found);
  if (found.total.at_one.overflowed > 0)
    return fmt::format(
        "Without a scale {} of the values overflow {} and {} become zero; S must be {} or less.",
        percent(share_of_all(found, found.total.at_one.overflowed)), found.format.name, percent(flushed),
        power(*found.forecast(found.total).headroom_log2()));
  if (!is_small(flushed))
    return fmt::format("Without a scale {} makes {} of the non-zero values zero, {} of the norm; {}.",
                       found.format.name, percent(flushed), at_most(norm), plateau);
  if (!is_small(subnormal) && shown_scale_helps(found))
    return fmt::format(
        "Without a scale {} makes {} of the non-zero values zero, but {} subnormal, which takes digits from "
        "them; {}.",
        found.format.name, percent(flushed), percent(subnormal), plateau);
  return fmt::format(
      "{} needs no loss scale to keep these tensors: at S = 1 it makes {} of the non-zero values zero, {} of "
      "the norm{}; {}.",
      found.format.name, percent(flushed), at_most(norm),
      is_small(subnormal)
          ? ""
          : fmt::format(", and {} subnormal, with fewer digits, as any S does", percent(subnormal)),
      plateau);
}

std::string shown_sentence(const Findings& found) {
  if (found.total.exponents.nonzero_finite() == 0 || !shows_scale(found)) return {};
  const bool is_recommended = found.shown_log2 == found.recommended_log2;
  const double flushed = share_of_all(found, found.total.at_shown.flushed),
               subnormal = share_of_all(found, found.total.at_shown.subnormal),
               overflow = share_of_all(found, found.total.at_shown.overflowed);
  std::string sentence =
      fmt::format("At {}S = {}, {} become zero and {} subnormal", is_recommended ? "the recommended " : "",
                  power(found.shown_log2), percent(flushed), percent(subnormal));
  if (overflow > 0) sentence += fmt::format(", and {} overflow", percent(overflow));
  return sentence + ".";
}

std::string nonfinite_sentence(const Findings& found) {
  const auto is_bad = [](const TensorFound& tensor) { return tensor.nonfinite() > 0; };
  const auto first = std::ranges::find_if(found.tensors, is_bad);
  if (first == found.tensors.end()) return {};
  const std::uint64_t values = found.total.nonfinite();
  return fmt::format(
      "{} value{} NaN or infinite already, which no scale cures, in {} of {} tensors, first in {}.", values,
      values == 1 ? " is" : "s are", std::ranges::count_if(found.tensors, is_bad), found.tensors.size(),
      first->name);
}

/// How many tensors are lost as wholes.
std::string vanished_sentence(const Findings& found) {
  const std::vector<const TensorFound*> tensors = found.by_loss();
  const auto vanished = std::ranges::count_if(tensors, [](const TensorFound* tensor) {
    return tensor->at_one.flushed == tensor->exponents.nonzero_finite();
  });
  if (vanished == 0 || tensors.size() == 1) return {};
  return fmt::format("All that is not zero in {} of {} tensors becomes zero.", vanished, tensors.size());
}

/// The one tensor without which S could be far larger, and with profit.
std::string limit_sentence(const Findings& found) {
  constexpr int far = 4;  // octaves
  std::vector<const TensorFound*> tensors = found.by_loss();
  const auto headroom = [&](const TensorFound* tensor) { return *found.forecast(*tensor).headroom_log2(); };
  std::ranges::stable_sort(tensors, {}, headroom);
  if (tensors.size() < 2 || headroom(tensors[1]) - headroom(tensors[0]) < far) return {};
  const auto flushed_of_others = [&](int scale_log2) {
    std::uint64_t flushed = 0, nonzero = 0;
    for (std::size_t i = 1; i < tensors.size(); ++i) {
      flushed += found.forecast(*tensors[i]).flushed(scale_log2);
      nonzero += tensors[i]->exponents.nonzero_finite();
    }
    return static_cast<double>(flushed) / static_cast<double>(nonzero);
  };
  const int limit = headroom(tensors[0]), without = headroom(tensors[1]);
  if (flushed_of_others(limit) - flushed_of_others(without) < 0.01) return {};
  return fmt::format(
      "{} alone sets the limit of S: without it, {} of the values become zero at S = {}, the largest "
      "for the others.",
      tensors[0]->name, percent(flushed_of_others(without)), power(without));
}

/// On files that may have lost values before: zeros beside numbers that had lost digits.
std::string stored_zeros_sentence(const Findings& found) {
  ZeroTensors some;
  for (const TensorFound* const tensor : found.by_loss()) {
    const double zeros =
        static_cast<double>(tensor->exponents.zero()) / static_cast<double>(tensor->exponents.total());
    if (!is_small(zeros) &&
        *tensor->exponents.lowest_exponent() < scalar_format(tensor->stored_as).format.emin())
      some.add(*tensor);
  }
  if (some.tensors == 0) return {};
  return fmt::format(
      "{} hold{} exact zeros beside subnormal numbers: which of them were zero before they were stored "
      "cannot be told.",
      some.text(), some.tensors == 1 ? "s" : "");
}

std::string all_zero_sentence(const Findings& found) {
  const ZeroTensors zero = all_zero(found);
  if (zero.tensors == 0) return {};
  return fmt::format(
      "{} hold{} nothing but zeros{}: whether all was zero before it was stored cannot be told.", zero.text(),
      zero.tensors == 1 ? "s" : "", found.tensors.size() == 1 ? "" : ", first " + zero.first);
}

constexpr std::ptrdiff_t shown_column = 6;  ///< where the scale is told, after the overflow

std::string scales_with_fewest_zeros(const CastForecast& forecast) {
  const std::optional<int> highest = forecast.headroom_log2();
  if (!highest) return "-";
  const double left = forecast.flushed_share(*highest);
  const int lowest = *forecast.plateau_lowest_log2();
  return fmt::format("{}{}{}", lowest == *highest ? "" : power(lowest) + " to ", power(*highest),
                     left == 0 ? "" : fmt::format(": {}", percent(left)));
}

std::vector<std::string> cells(const Findings& found, const TensorFound& tensor) {
  const CastForecast forecast = found.forecast(tensor);
  std::vector<std::string> texts{
      tensor.name,
      fmt::format("{}", tensor.exponents.total()),
      percent(tensor.exponents.total() == 0 ? 0
                                            : static_cast<double>(tensor.exponents.zero()) /
                                                  static_cast<double>(tensor.exponents.total())),
      percent(found.share(tensor, tensor.at_one.flushed)),
      percent(found.share(tensor, tensor.at_one.subnormal)),
      percent(found.share(tensor, tensor.at_one.overflowed)),
      percent(forecast.norm_lost_at_most(0, tensor.squares)),
      fmt::format("{:.3g}", tensor.exponents.max_abs()),
      scales_with_fewest_zeros(forecast)};
  if (shows_scale(found))
    texts.insert(texts.begin() + shown_column, percent(found.share(tensor, tensor.at_shown.flushed)));
  return texts;
}

TextTable verdict_table(const Findings& found) {
  constexpr std::size_t most_rows = 12;
  TextTable table{
      .columns = {"tensor", "values", "exact zero", "becomes zero", "subnormal", "overflow", "of the norm",
                  "largest", "fewest zeros at S"},
      .rows = {},
      .notes = {"becomes zero, subnormal, overflow: of the non-zero values, at S = 1.",
                "of the norm: of the values that become zero at S = 1, at most.",
                "fewest zeros: without overflow; what becomes zero even at the largest S beside it."}};
  if (found.scaled_by_log2 != 0)
    table.notes.emplace_back("largest: as the files hold it, times their scale.");
  if (shows_scale(found))
    table.columns.insert(table.columns.begin() + shown_column,
                         fmt::format("zero at {}", power(found.shown_log2)));
  const std::vector<const TensorFound*> sorted = found.by_loss();
  for (const TensorFound* const tensor : sorted) {
    if (table.rows.size() == most_rows) {
      table.notes.push_back(fmt::format("The {} tensors that lose most of {}; --out writes all.", most_rows,
                                        found.tensors.size()));
      break;
    }
    table.rows.push_back(cells(found, *tensor));
  }
  if (found.tensors.size() > 1) table.rows.push_back(cells(found, found.total));
  return table;
}

}  // namespace

void write_verdict(RunRecord& record, const Findings& found) {
  std::string verdict;
  const auto say = [&](const std::string& sentence) {
    if (!sentence.empty()) verdict += (verdict.empty() ? "" : " ") + sentence;
  };
  say(nonfinite_sentence(found));
  say(answer(found));
  say(shown_sentence(found));
  say(limit_sentence(found));
  say(vanished_sentence(found));
  say(stored_zeros_sentence(found));
  say(all_zero_sentence(found));
  say(found.remark);
  record.verdict(verdict);
  if (found.total.exponents.nonzero_finite() > 0) record.verdict(verdict_table(found).text());
}

}  // namespace halflab::hist
