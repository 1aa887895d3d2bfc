#include "experiments/report/page.h"

#include <fmt/format.h>

#include "experiments/frame/text_table.h"
#include "experiments/report/html.h"

namespace experiments::report {
namespace {

constexpr std::string_view style_sheet = R"(
:root { color-scheme: light dark; --ink: #1c1c1c; --soft: #5c5c5c; --line: #d8d8d8; --paper: #ffffff;
  --shade: rgb(0 0 0 / 0.25); }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a8a8a8; --line: #444444; --paper: #191919;
    --shade: rgb(255 255 255 / 0.3); }
}
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 52rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
h1 { margin: 0 0 1.5rem; font-size: 1.7rem; line-height: 1.2; }
h2 { margin: 2rem 0 0.4rem; font-size: 1.15rem; line-height: 1.3; }
p { margin: 0.6rem 0; }
.name { color: var(--soft); font-size: 0.85rem; }
.headline { font-size: 1.1rem; }
.text { white-space: pre-line; }
.wide { width: max-content; min-width: 100%; max-width: calc(100vw - 3rem); margin-left: 50%; transform: translateX(-50%);
  overflow-x: auto; scrollbar-width: thin;
  background: linear-gradient(to right, var(--paper) 40%, transparent) left / 3rem 100% local no-repeat,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 3rem 100% local no-repeat,
    linear-gradient(to right, var(--shade), transparent) left / 1rem 100% scroll no-repeat,
    linear-gradient(to left, var(--shade), transparent) right / 1rem 100% scroll no-repeat; }
.wide::-webkit-scrollbar { height: 0.5rem; }
.wide::-webkit-scrollbar-thumb { border-radius: 0.25rem; background: var(--soft); }
.wide th:first-child, .wide td:first-child { position: sticky; left: 0; background: var(--paper); }
.label { display: inline-block; width: max-content; max-width: 14rem; overflow-wrap: break-word; }
.note { margin: 0.2rem 0; color: var(--soft); font-size: 0.85rem; }
table { margin: 0.8rem 0; border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
td.value { overflow-wrap: anywhere; }
hr { margin: 2.5rem 0; border: 0; border-top: 1px solid var(--line); }
figure { margin: 1.2rem 0 2rem; break-inside: avoid; }
figure img { display: block; min-width: 100%; height: auto; border-radius: 4px; background: #ffffff; }
nav { display: flex; flex-wrap: wrap; gap: 0.4rem 1.6rem; margin-bottom: 1.2rem; font-size: 0.9rem; }
a { color: inherit; text-decoration-color: var(--soft); text-underline-offset: 0.15em; }
.answer { display: grid; grid-template-columns: 20rem 1fr; gap: 0 1.4rem; align-items: start; break-inside: avoid;
  margin: 1.6rem 0; padding-top: 1.2rem; border-top: 1px solid var(--line); }
.answer h2 { margin-top: 0; }
.answer p { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 6; overflow: hidden; font-size: 0.95rem; }
.answer img { width: 100%; height: auto; border-radius: 4px; background: #ffffff; }
@media (max-width: 38rem) {
  .answer { grid-template-columns: 1fr; }
  .wide th:first-child, .wide td:first-child { min-width: 5rem; max-width: 8rem; overflow-wrap: anywhere; }
}
figcaption { margin-top: 0.5rem; color: var(--soft); font-size: 0.9rem; }
details { margin: 0.6rem 0; border-top: 1px solid var(--line); padding-top: 0.6rem; }
summary { cursor: pointer; }
sup { line-height: 0; }
h3 { margin: 1.2rem 0 0; font-size: 0.95rem; }
@media print {
  :root { --ink: #000000; --soft: #444444; --line: #bbbbbb; --paper: #ffffff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
  tr { break-inside: avoid; }
  .wide { width: auto; max-width: none; margin-left: 0; transform: none; overflow: visible; background: none; }
  figure img { width: 100%; }
  .wide table { font-size: 6.5pt; }
  .wide th, .wide td { padding: 0.1rem 0.45rem 0.1rem 0; }
}
)";

/// Begins what may be wider than the text, and scrolls where it is wider than the window; by the keyboard too.
constexpr std::string_view wide = "<div class=\"wide\" tabindex=\"0\">";

/// The first cell of a row: names of tensors are long, and may be broken behind their points.
std::string label(std::string html) {
  constexpr std::string_view chance = "<wbr>";
  for (std::size_t point = html.find('.'); point != std::string::npos; point = html.find('.', point + 1))
    html.insert(point + 1, chance);
  return fmt::format("<span class=\"label\">{}</span>", html);
}

std::string html_table(const TextTable& table) {
  std::vector<std::string_view> classes;
  std::string html = std::string(wide) + "<table>\n<thead><tr>";
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    classes.push_back(is_numeric_column(table, column) ? " class=\"number\"" : "");
    html += fmt::format("<th{}>{}</th>", classes[column], typeset(table.columns[column]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string cell = typeset(row[column]);
      html += fmt::format("<td{}>{}</td>", classes[column], column == 0 ? label(cell) : cell);
    }
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  for (const std::string& note : table.notes)
    html += fmt::format("<p class=\"note\">{}</p>\n", typeset(note));
  return html;
}

std::string verdict_html(const RunDirectory& run) {
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

std::string figure_element(const RunDirectory::Figure& figure, int number) {
  const std::string picture = figure.svg.empty()
                                  ? fmt::format(
                                        "<p>{} was not drawn; <code>gnuplot {}</code> in the run's "
                                        "directory draws it.</p>",
                                        escaped(figure.title), escaped(figure.script))
                                  : image_of(figure.svg, figure.title);
  return fmt::format("<figure>\n{}{}</div>\n<figcaption><b>Figure {}.</b> {}</figcaption>\n</figure>\n", wide,
                     picture, number, typeset(figure.caption));
}

std::string facts_table(std::string_view heading, const RunDirectory::Facts& facts) {
  if (facts.empty()) return "";
  std::string html = fmt::format("<h3>{}</h3>\n<table>\n", heading);
  for (const auto& [key, value] : facts) {
    html += fmt::format("<tr><td>{}</td><td class=\"value\">{}</td></tr>\n", escaped(key), escaped(value));
  }
  return html + "</table>\n";
}

}  // namespace

std::string document(std::string_view title, std::string_view body) {
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>{1}</style>
</head>
<body>
{2}</body>
</html>
)",
                     escaped(title), style_sheet, body);
}

std::string run_section(const RunDirectory& run, int& figure_number) {
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n<div class=\"name\">{}{}</div>\n{}",
                                 escaped(run.question), escaped(run.directory),
                                 run.name == run.directory ? "" : fmt::format(" ({})", escaped(run.name)),
                                 verdict_html(run));
  for (const RunDirectory::Figure& figure : run.figures) html += figure_element(figure, ++figure_number);
  return html + "</section>\n";
}

std::string provenance(const RunDirectory& run) {
  return facts_table("Options", run.options) + facts_table("Build and machine", run.circumstances);
}

std::string folded(std::string_view title, std::string_view body) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escaped(title), body);
}

std::string summary_table(const RunDirectory& run) {
  return facts_table("Summary", run.summary);
}

std::string report_page(std::string_view title, const std::vector<RunDirectory>& runs) {
  std::string sections;
  std::string details;
  int figure_number = 0;
  for (const RunDirectory& run : runs) {
    sections += run_section(run, figure_number);
    details += folded(fmt::format("{} ({})", run.directory, run.name), summary_table(run) + provenance(run));
  }
  return document(title, fmt::format("<h1>{}</h1>\n{}<hr>\n<h2>What was run</h2>\n{}", escaped(title),
                                     sections, details));
}

}  // namespace experiments::report
