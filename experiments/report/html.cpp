#include "experiments/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

namespace experiments::report {
namespace {

struct Attribute {
  std::string_view name;
  std::string_view value;
  std::size_t begin;  ///< in the tag, white space before it included
  std::size_t end;
};

/// The attributes of a tag such as `<path id='a' d="...">`, in order.
std::vector<Attribute> attributes_of(std::string_view tag) {
  constexpr std::string_view space = " \t\r\n";
  std::vector<Attribute> attributes;
  for (std::size_t equals = tag.find('='); equals != std::string_view::npos; equals = tag.find('=', equals)) {
    const std::size_t before_name = tag.find_last_of(space, equals);
    const std::size_t value = equals + 2;
    if (before_name == std::string_view::npos || value > tag.size()) break;
    const std::size_t close = tag.find(tag[equals + 1], value);
    if (close == std::string_view::npos) break;
    attributes.push_back({.name = tag.substr(before_name + 1, equals - before_name - 1),
                          .value = tag.substr(value, close - value),
                          .begin = tag.find_last_not_of(space, before_name) + 1,
                          .end = close + 1});
    equals = close + 1;
  }
  return attributes;
}

/// Where in an attribute's value the id begins that it refers to (`#a` or `url(#a)`); npos when it refers to
/// none.
std::size_t reference_begin(const Attribute& attribute) {
  if (attribute.name.ends_with("href") && attribute.value.starts_with('#')) return 1;
  const std::size_t url = attribute.value.find("url(#");
  return url == std::string_view::npos ? url : url + 5;
}

std::string_view reference_in(const Attribute& attribute) {
  const std::string_view reference = attribute.value.substr(reference_begin(attribute));
  return reference.substr(0, reference.find(')'));
}

template <typename Visit>
void for_each_tag(std::string_view svg, Visit&& visit) {
  for (std::size_t begin = svg.find('<'); begin != std::string_view::npos; begin = svg.find('<', begin + 1)) {
    const std::size_t end = std::min(svg.find('>', begin), svg.size() - 1) + 1;
    visit(begin, svg.substr(begin, end - begin));
  }
}

std::set<std::string_view> referenced_ids(std::string_view svg) {
  std::set<std::string_view> ids;
  for_each_tag(svg, [&ids](std::size_t, std::string_view tag) {
    for (const Attribute& attribute : attributes_of(tag)) {
      if (reference_begin(attribute) != std::string_view::npos) ids.insert(reference_in(attribute));
    }
  });
  return ids;
}

/// Removes the ids that nothing needs, also a second definition, and puts the prefix before the others.
class IdRenamer {
 public:
  IdRenamer(std::string_view svg, std::string_view prefix) : needed_(referenced_ids(svg)), prefix_(prefix) {}

  std::string rewritten(std::string_view tag) {
    std::string result;
    std::size_t copied = 0;
    const auto insert_prefix_at = [&](std::size_t position) {
      result += tag.substr(copied, position - copied);
      result += prefix_;
      copied = position;
    };
    for (const Attribute& attribute : attributes_of(tag)) {
      const auto value_begin = static_cast<std::size_t>(attribute.value.data() - tag.data());
      if (attribute.name == "id" && needed_.erase(attribute.value) == 0) {
        result += tag.substr(copied, attribute.begin - copied);
        copied = attribute.end;
      } else if (attribute.name == "id") {
        insert_prefix_at(value_begin);
      } else if (reference_begin(attribute) != std::string_view::npos) {
        insert_prefix_at(value_begin + reference_begin(attribute));
      }
    }
    return result += tag.substr(copied);
  }

 private:
  std::set<std::string_view> needed_;  ///< referred to, and not yet defined
  std::string_view prefix_;
};

/// gnuplot's titles and descriptions that say nothing about the figure.
bool is_boilerplate(std::string_view element) {
  return element.starts_with("<desc>") || element.starts_with("<title>Gnuplot<") ||
         element.starts_with("<title>gnuplot_plot_");
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += character;
    }
  }
  return result;
}

/// Escaped text, with powers such as 2^-24 set as the exponents they are.
std::string typeset(std::string_view text) {
  const auto is_digit = [](char character) { return character >= '0' && character <= '9'; };
  std::string result;
  for (std::size_t caret = text.find('^'); caret != std::string_view::npos; caret = text.find('^')) {
    std::size_t end = caret + 1;
    if (end < text.size() && text[end] == '-') ++end;
    const std::size_t digits = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
      for (++end; end < text.size() && is_digit(text[end]);) ++end;
    }
    const bool is_power = caret > 0 && is_digit(text[caret - 1]) && end > digits;
    result += escaped(text.substr(0, is_power ? caret : end));
    if (is_power) result += fmt::format("<sup>{}</sup>", text.substr(caret + 1, end - caret - 1));
    text.remove_prefix(end);
  }
  return result + escaped(text);
}

std::string inline_svg(std::string_view file, std::string_view prefix, std::string_view label) {
  const std::size_t begin = file.find("<svg");
  const std::size_t end = file.rfind("</svg>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    throw std::runtime_error(fmt::format("figure '{}': the file has no <svg> element", label));
  }
  const std::string_view svg = file.substr(begin, end + 6 - begin);
  IdRenamer renamer(svg, prefix);
  std::string result;
  std::size_t copied = 0;
  for_each_tag(svg, [&](std::size_t position, std::string_view tag) {
    if (position < copied) return;  // inside a dropped element
    result += svg.substr(copied, position - copied);
    copied = position + tag.size();
    if (is_boilerplate(svg.substr(position))) {
      copied = svg.find('>', copied) + 1;
    } else if (position == 0) {
      result += fmt::format("<svg role=\"img\" aria-label=\"{}\"{}", escaped(label),
                            renamer.rewritten(tag).substr(4));
    } else {
      result += renamer.rewritten(tag);
    }
  });
  return result;
}

}  // namespace experiments::report
