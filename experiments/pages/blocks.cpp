#include "experiments/pages/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace experiments::pages {
namespace {

constexpr std::string_view opening = "<!-- ", begin = ":begin", closing = " -->", template_end = "-->";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

struct Mark {
  std::string name;
  bool has_template;
};

std::optional<Mark> begin_of(std::string_view line) {
  if (!line.starts_with(opening)) return std::nullopt;
  line.remove_prefix(opening.size());
  const bool has_template = !line.ends_with(closing);
  if (!has_template) line.remove_suffix(closing.size());
  if (!line.ends_with(begin)) return std::nullopt;
  return Mark{std::string(line.substr(0, line.size() - begin.size())), has_template};
}

/// The block that begins in the first of the lines, and where the next line is.
struct Block {
  std::string name;
  std::string marks;         ///< the lines before the text
  std::string own_template;  ///< whole lines
  std::string text;          ///< whole lines, as they are
  std::string end;           ///< the last line
  std::size_t next;
};

Block read_block(const std::vector<std::string>& lines, std::size_t at, const Mark& mark) {
  Block block{.name = mark.name, .marks = lines[at] + '\n', .next = at + 1};
  const auto collect = [&](std::string& into, std::string_view last) {
    for (; block.next < lines.size() && lines[block.next] != last; ++block.next)
      into += lines[block.next] + '\n';
    if (block.next++ >= lines.size())
      throw std::invalid_argument(fmt::format("the block '{}' has no line '{}'", mark.name, last));
  };
  if (mark.has_template) {
    collect(block.own_template, template_end);
    block.marks += fmt::format("{}{}\n", block.own_template, template_end);
  }
  block.end = fmt::format("{}{}:end{}", opening, mark.name, closing);
  collect(block.text, block.end);
  return block;
}

/// Calls `line` for each line outside of blocks and `block` for each block.
template <class OnLine, class OnBlock>
void visit(const std::string& page, OnLine&& line, OnBlock&& block) {
  const std::vector<std::string> lines = lines_of(page);
  for (std::size_t at = 0; at < lines.size();) {
    if (const auto mark = begin_of(lines[at])) {
      const Block found = read_block(lines, at, *mark);
      block(found);
      at = found.next;
    } else {
      line(lines[at++]);
    }
  }
}

/// Characters, each of which may take several bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

std::string wrap_paragraph(const std::string& paragraph, std::string_view later, std::size_t width) {
  std::string result, line;
  std::istringstream words(paragraph);
  for (std::string word; words >> word;) {
    if (!line.empty() && length_of(line) + 1 + length_of(word) > width) {
      result += line + '\n';
      line = std::string(later) + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return result + line + '\n';
}

}  // namespace

std::string with_blocks(const std::string& page, const std::map<std::string, BlockMaker>& makers) {
  std::string result;
  visit(
      page, [&](const std::string& line) { result += line + '\n'; },
      [&](const Block& block) {
        const auto maker = makers.find(block.name);
        result += block.marks;
        result += maker == makers.end() ? block.text : maker->second(block.own_template);
        result += block.end + '\n';
      });
  return result;
}

std::string without_blocks(const std::string& page) {
  std::string result;
  visit(
      page, [&](const std::string& line) { result += line + '\n'; }, [](const Block&) {});
  return result;
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string result, paragraph;
  std::string_view later;
  const auto finish = [&] {
    if (!paragraph.empty()) result += wrap_paragraph(paragraph, later, width);
    paragraph.clear();
  };
  for (const std::string& line : lines_of(text)) {
    const bool is_quoted = line.starts_with("> "), is_item = line.starts_with("- ");
    const bool stands_alone = line.empty() || line == ">" || line.starts_with('|') || line.starts_with('#');
    if (stands_alone || is_item || paragraph.empty()) finish();
    if (stands_alone) {
      result += line + '\n';
      continue;
    }
    if (paragraph.empty()) later = is_quoted ? "> " : is_item ? "  " : "";
    paragraph += (paragraph.empty() ? "" : " ") + (is_quoted && !paragraph.empty() ? line.substr(2) : line);
  }
  finish();
  return result;
}

}  // namespace experiments::pages
