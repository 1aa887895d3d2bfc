#include "experiments/common/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "experiments/common/text_table.h"
#include "sim/files.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view style_sheet = R"(
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #5c5c5c; --line: #d8d8d8; --paper: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a8a8a8; --line: #444444; --paper: #191919; }
}
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 52rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
h1 { margin: 0 0 1.5rem; font-size: 1.7rem; line-height: 1.2; }
h2 { margin: 2rem 0 0.4rem; font-size: 1.15rem; line-height: 1.3; }
p { margin: 0.6rem 0; }
.name { color: var(--soft); font-size: 0.85rem; }
.headline { font-size: 1.1rem; }
.text { white-space: pre-line; }
.wide { overflow-x: auto; }
table { margin: 0.8rem 0; border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
td.value { overflow-wrap: anywhere; }
hr { margin: 2.5rem 0; border: 0; border-top: 1px solid var(--line); }
figure { margin: 1.2rem 0 2rem; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; border-radius: 4px; background: #ffffff; }
figcaption { margin-top: 0.5rem; color: var(--soft); font-size: 0.9rem; }
details { margin: 0.6rem 0; border-top: 1px solid var(--line); padding-top: 0.6rem; }
summary { cursor: pointer; }
sup { line-height: 0; }
h3 { margin: 1.2rem 0 0; font-size: 0.95rem; }
@media print {
  :root { --ink: #000000; --soft: #444444; --line: #bbbbbb; --paper: #ffffff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
}
)";

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

// ---- reading a run directory

[[noreturn]] void throw_about(const fs::path& directory, std::string_view file, std::string_view what) {
  throw std::runtime_error(fmt::format("run directory '{}': {} {}", directory.string(), file, what));
}

std::string read_text(const fs::path& directory, const std::string& file) {
  const std::optional<std::string> text = sim::contents_of(directory / file);
  if (!text) {
    throw_about(directory, file, "cannot be read; must be a directory that an experiment wrote and finished");
  }
  return *text;
}

ordered_json read_object(const fs::path& directory, const std::string& file) {
  ordered_json object = ordered_json::parse(read_text(directory, file), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw_about(directory, file, "is not a JSON object; must be as an experiment wrote it");
  return object;
}

std::string shown(const ordered_json& value) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, part] : value.items()) {
    parts.push_back(value.is_object() ? fmt::format("{} {}", key, shown(part)) : shown(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

ReportRun::Facts facts(const ordered_json& object, const std::set<std::string>& without = {}) {
  ReportRun::Facts facts;
  for (const auto& [key, value] : object.items()) {
    if (!without.contains(key)) facts.emplace_back(key, shown(value));
  }
  return facts;
}

/// Throws ordered_json::exception where the manifest is not what an experiment writes.
ReportRun run_of(const ordered_json& manifest, const fs::path& directory) {
  const std::string last_name = fs::weakly_canonical(directory).filename().string();
  ReportRun run{
      .directory = last_name,
      .name = manifest.value("experiment", last_name),
      .question = manifest.value("question", ""),
      .verdict = read_text(directory, "verdict.txt"),
      .figures = {},
      .options = facts(manifest.value("options", ordered_json::object())),
      .circumstances =
          facts(manifest, {"experiment", "question", "options", "seed", "threads", "figures", "files"}),
      .summary = facts(read_object(directory, "summary.json")),
  };
  for (const ordered_json& figure : manifest.value("figures", ordered_json::array())) {
    const std::string name = figure.at("name").get<std::string>();
    const bool drawn = fs::exists(directory / (name + ".svg"));
    run.figures.push_back({.title = figure.at("title").get<std::string>(),
                           .caption = figure.at("caption").get<std::string>(),
                           .svg = drawn ? read_text(directory, name + ".svg") : "",
                           .script = name + ".gp"});
  }
  return run;
}

// ---- inlining an SVG

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

// ---- writing the page

std::vector<std::string_view> paragraphs_of(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    std::string_view paragraph = text.substr(0, end);
    while (paragraph.ends_with('\n')) paragraph.remove_suffix(1);
    if (!paragraph.empty()) paragraphs.push_back(paragraph);
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return paragraphs;
}

std::string html_table(const TextTable& table) {
  std::vector<std::string_view> classes;
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    classes.push_back(is_numeric_column(table, column) ? " class=\"number\"" : "");
    html += fmt::format("<th{}>{}</th>", classes[column], typeset(table.columns[column]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column) {
      html += fmt::format("<td{}>{}</td>", classes[column], typeset(row[column]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string verdict_html(const ReportRun& run) {
  std::string html;
  std::string_view paragraph_class = "text headline";
  for (const std::string_view paragraph : paragraphs_of(run.verdict)) {
    TextTable table;
    html += parse_text_table(paragraph, table)
                ? html_table(table)
                : fmt::format("<p class=\"{}\">{}</p>\n", paragraph_class, typeset(paragraph));
    paragraph_class = "text";
  }
  return html;
}

std::string figure_element(const ReportRun::Figure& figure, int number) {
  const std::string picture = figure.svg.empty()
                                  ? fmt::format(
                                        "<p>{} was not drawn; <code>gnuplot {}</code> in the run's "
                                        "directory draws it.</p>",
                                        escaped(figure.title), escaped(figure.script))
                                  : inline_svg(figure.svg, fmt::format("figure{}-", number), figure.title);
  return fmt::format("<figure>\n{}\n<figcaption><b>Figure {}.</b> {}</figcaption>\n</figure>\n", picture,
                     number, typeset(figure.caption));
}

/// `figure_number` counts on over the page.
std::string run_section(const ReportRun& run, int& figure_number) {
  std::string html =
      fmt::format("<section>\n<h2>{}: {}</h2>\n<div class=\"name\">{}</div>\n{}", escaped(run.directory),
                  escaped(run.question), escaped(run.name), verdict_html(run));
  for (const ReportRun::Figure& figure : run.figures) html += figure_element(figure, ++figure_number);
  return html + "</section>\n";
}

std::string facts_table(std::string_view heading, const ReportRun::Facts& facts) {
  if (facts.empty()) return "";
  std::string html = fmt::format("<h3>{}</h3>\n<table>\n", heading);
  for (const auto& [key, value] : facts) {
    html += fmt::format("<tr><td>{}</td><td class=\"value\">{}</td></tr>\n", escaped(key), escaped(value));
  }
  return html + "</table>\n";
}

std::string details_element(const ReportRun& run) {
  return fmt::format("<details>\n<summary>{} ({})</summary>\n{}{}{}</details>\n", escaped(run.directory),
                     escaped(run.name), facts_table("Options", run.options),
                     facts_table("Summary", run.summary),
                     facts_table("Build and machine", run.circumstances));
}

}  // namespace

ReportRun read_run(const fs::path& directory) {
  constexpr const char* manifest_file = "manifest.json";
  const ordered_json manifest = read_object(directory, manifest_file);
  try {
    return run_of(manifest, directory);
  } catch (const ordered_json::exception&) {
    throw_about(directory, manifest_file,
                "lacks an entry or has one of another kind; must be as an experiment wrote it");
  }
}

std::string headline(const ReportRun& run) {
  const std::vector<std::string_view> paragraphs = paragraphs_of(run.verdict);
  std::string line{paragraphs.empty() ? "" : paragraphs.front()};
  std::ranges::replace(line, '\n', ' ');
  return line;
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

std::string report_page(std::string_view title, const std::vector<ReportRun>& runs) {
  std::string sections;
  std::string details;
  int figure_number = 0;
  for (const ReportRun& run : runs) {
    sections += run_section(run, figure_number);
    details += details_element(run);
  }
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>{1}</style>
</head>
<body>
<h1>{0}</h1>
{2}<hr>
<h2>What was run</h2>
{3}</body>
</html>
)",
                     escaped(title), style_sheet, sections, details);
}

}  // namespace experiments
