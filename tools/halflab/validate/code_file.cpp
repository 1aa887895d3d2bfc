#include "tools/halflab/validate/code_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "experiments/frame/files.h"
#include "experiments/frame/printable.h"

namespace halflab::validate {
namespace {

namespace files = experiments::tensor_files;

/// What stands before a comment, without blanks around it.
std::string_view code_in(std::string_view line) {
  constexpr std::string_view blanks = " \t\r";
  line = line.substr(0, line.find("//"));
  const std::size_t begin = line.find_first_not_of(blanks);
  return begin == line.npos ? std::string_view{}
                            : line.substr(begin, line.find_last_not_of(blanks) + 1 - begin);
}

}  // namespace

bool is_hex(std::string_view path) {
  return path.ends_with(".hex") || path.ends_with(".mem");
}

std::string hex_lines(std::span<const std::byte> codes, std::size_t width) {
  std::string text;
  text.reserve(codes.size() / width * (2 * width + 1));
  for (std::size_t i = 0; i < codes.size(); i += width) {
    std::uint64_t code = 0;
    std::memcpy(&code, codes.data() + i, width);
    fmt::format_to(std::back_inserter(text), "{:0{}x}\n", code, 2 * width);
  }
  return text;
}

std::vector<std::byte> codes_in(std::string_view text, const std::string& file, int bits) {
  const auto width = static_cast<std::size_t>(bits / 8);
  std::vector<std::byte> codes;
  std::size_t number = 0, most_digits = 0;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view word = code_in(text.substr(begin, end - begin));
    begin = end + 1;
    if (word.empty() || word == fmt::format("@{:x}", codes.size() / width)) continue;
    const std::string_view digits = word.substr(word.starts_with("0x") ? 2 : 0);
    std::uint64_t code = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc{} || stop != digits.data() + digits.size() || (bits < 64 && code >> bits != 0))
      files::refuse(file, fmt::format("has '{}' in line {}, which is no code of {} bits in hexadecimal",
                                      experiments::one_line(word), number + 1, bits));
    most_digits = std::max(most_digits, digits.size());
    const std::size_t place = codes.size();
    codes.resize(place + width);
    std::memcpy(codes.data() + place, &code, width);
  }
  if (most_digits > 0 && most_digits < 2 * width)
    files::refuse(
        file, fmt::format("has codes of at most {} digits; one at least must have {}, as codes of {} bits do",
                          most_digits, 2 * width, bits));
  return codes;
}

CodeFile::CodeFile(const std::string& place, const files::RawLayout& raw) {
  if (!is_hex(place)) {
    file_.emplace(place, raw);
    return;
  }
  const files::ElementType* const type = raw.type != nullptr ? raw.type : files::type_of_format("binary16");
  if (type->bits % 8 != 0)
    files::refuse(place, fmt::format("cannot hold {}, which has no whole bytes", type->format));
  codes_ = codes_in(experiments::read_file(place), place, type->bits);
  tensor_ = {.name = place,
             .shape = {codes_.size() / static_cast<std::size_t>(type->bits / 8)},
             .type = type,
             .elements = codes_.size() / static_cast<std::size_t>(type->bits / 8),
             .data = codes_,
             .is_mapped = false,
             .file = place};
}

}  // namespace halflab::validate
