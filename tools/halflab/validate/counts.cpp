#include <algorithm>
#include <utility>

#include "tools/halflab/validate/findings.h"

namespace halflab::validate {

Share& Share::operator+=(const Share& other) {
  results += other.results;
  differing += other.differing;
  most_ulp = std::max(most_ulp, other.most_ulp);
  return *this;
}

Counts& Counts::operator+=(const Counts& other) {
  results += other.results;
  differing += other.differing;
  beyond += other.beyond;
  one_nan += other.one_nan;
  nan_bits += other.nan_bits;
  zero_signs += other.zero_signs;
  by_ulp += other.by_ulp;
  for (std::size_t i = 0; i <= parts; ++i) {
    for (std::size_t j = 0; j <= parts; ++j) by_part[i][j] += other.by_part[i][j];
  }
  for (const auto& [set, count] : other.by_deviations) by_deviations[set] += count;
  for (std::size_t i = 0; i < contradictions.size(); ++i) contradictions[i] += other.contradictions[i];
  for (const Counterexample& example : other.first) add_first(example);
  return *this;
}

void Counts::add_first(const Counterexample& example) {
  const auto place = [](const Counterexample& each) { return std::pair(each.difference, each.index); };
  if (first.size() == most_first && place(example) > place(first.back())) return;
  first.insert(std::ranges::upper_bound(first, place(example), {}, place), example);
  if (first.size() > most_first) first.pop_back();
}

std::size_t part_of(const fp16::Format& format, const CodeQuestions& questions, std::uint64_t code) {
  if (questions.is_nan(code)) return parts;
  const auto most = static_cast<__int128>(format.max_finite_code()) + format.has_infinity();
  const __int128 place = questions.ordinal(code) + (format.is_signed() ? most : 0);
  const __int128 places = (format.is_signed() ? 2 * most : most) + 1;
  return static_cast<std::size_t>(place * static_cast<__int128>(parts) / places);
}

std::uint64_t first_code(const fp16::Format& format, std::size_t part) {
  const auto most = static_cast<__int128>(format.max_finite_code()) + format.has_infinity();
  const __int128 places = (format.is_signed() ? 2 * most : most) + 1;
  const __int128 place = (static_cast<__int128>(part) * places + static_cast<__int128>(parts) - 1) /
                         static_cast<__int128>(parts);
  const __int128 ordinal = place - (format.is_signed() ? most : 0);
  return ordinal < 0 ? static_cast<std::uint64_t>(-ordinal) | std::uint64_t{1} << (format.width() - 1)
                     : static_cast<std::uint64_t>(ordinal);
}

}  // namespace halflab::validate
