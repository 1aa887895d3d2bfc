#pragma once
/// Rows of numbers that a reader types.

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <vector>

#include "fp16/parse.h"

namespace halflab::page {

/// Numbers with blanks, commas or semicolons between them, each rounded to F. Throws std::invalid_argument for no number, what
/// is no number, a comma between two digits, which many languages write for a point, and more than `most` numbers.
template <const fp16::Format& F>
std::vector<fp16::Bits<F>> read_row(std::string_view text, std::size_t most) {
  constexpr std::string_view between = " ,;\t\r\n";
  const auto is_digit = [&](std::size_t place) {
    return place < text.size() && '0' <= text[place] && text[place] <= '9';
  };
  std::vector<fp16::Bits<F>> row;
  for (std::size_t begin = 0; (begin = text.find_first_not_of(between, begin)) != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const fp16::ParseResult<F> found = fp16::parse<F>(word);
    if (found.error != std::errc{} || found.end != word.data() + word.size())
      throw std::invalid_argument(
          fmt::format("'{}', number {} of the row, is no number; allowed: such as 0.1, "
                      "-2e-3 or 0x1p-14, with blanks between",
                      word.substr(0, 40), row.size() + 1));
    if (is_digit(end - 1) && text.substr(end).starts_with(',') && is_digit(end + 1))
      throw std::invalid_argument(
          fmt::format("number {} of the row has a comma between digits; decimals are written with a point: "
                      "0.1, and numbers have blanks between them",
                      row.size() + 1));
    if (row.size() == most) throw std::invalid_argument(fmt::format("at most {} numbers are allowed", most));
    row.push_back(found.bits);
    begin = end;
  }
  if (row.empty()) throw std::invalid_argument("there is no number in the row");
  return row;
}

}  // namespace halflab::page
