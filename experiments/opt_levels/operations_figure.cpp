#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/opt_levels/findings.h"
#include "fp16/formats.h"

namespace experiments::opt_levels {
namespace {

/// A kind of numbers that operations multiply or result in.
struct FormatColour {
  std::string_view label;
  std::string_view color;
  bool (*includes)(const OperationUse& use);
};
constexpr std::array format_colours{
    FormatColour{"FP64", "black", [](const OperationUse& use) { return use.operand_bits == 64; }},
    FormatColour{"FP32", "\"#BBBBBB\"", [](const OperationUse& use) { return use.operand_bits == 32; }},
    FormatColour{
        "BF16", "sky",
        [](const OperationUse& use) { return use.operand_bits == 16 && use.format == fp16::bfloat16; }},
    FormatColour{"FP16", "orange", [](const OperationUse& use) { return use.operand_bits == 16; }},
    FormatColour{"FP8", "green", [](const OperationUse& use) { return use.operand_bits == 8; }},
    FormatColour{"FP4", "purple", [](const OperationUse& use) { return use.operand_bits == 4; }}};

const FormatColour* colour_of(const OperationUse& use) {
  return &*std::ranges::find_if(format_colours, [&](const FormatColour& c) { return c.includes(use); });
}

/// In the order of format_colours those that an operation has.
std::vector<const FormatColour*> colours_of(const std::vector<OperationUse>& uses,
                                            std::string_view operation) {
  std::vector<const FormatColour*> colours;
  for (const OperationUse& use : uses) {
    const bool is_new = std::ranges::find(colours, colour_of(use)) == colours.end();
    if (use.operation == operation && is_new) colours.push_back(colour_of(use));
  }
  std::ranges::sort(colours);
  return colours;
}

bool is_drawn(const FormatColour& colour, const Findings& found) {
  return std::ranges::any_of(found.operations, [&](const std::vector<OperationUse>& uses) {
    return std::ranges::find(uses, &colour, colour_of) != uses.end();
  });
}

/// In the order of computation, casts last, which only some recipes have.
std::vector<std::string> operations_of(const Findings& found) {
  std::vector<std::string> names;
  for (const auto& uses : found.operations) {
    for (const OperationUse& use : uses) {
      if (use.operation != "cast" && std::ranges::find(names, use.operation) == names.end())
        names.push_back(use.operation);
    }
  }
  names.emplace_back("cast");
  return names;
}

/// A cell in as many parts as the operation has formats.
std::string cell(std::size_t column, std::size_t row, const std::vector<const FormatColour*>& colours) {
  std::string script;
  const double part = 0.94 / static_cast<double>(colours.size());
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const double left = static_cast<double>(column) - 0.47 + part * static_cast<double>(i);
    script += fmt::format(
        "set object rectangle from first {0:.4f}, first {1:.2f} to first {2:.4f}, first {3:.2f} fillcolor "
        "rgb "
        "{4} fillstyle solid 1.0 noborder\n"
        "set label '{5}' at first {6:.4f}, first {7} center front font ',{8}' textcolor rgb '{9}'\n",
        left, static_cast<double>(row) - 0.44, left + part, static_cast<double>(row) + 0.44,
        colours[i]->color,
        colours.size() == 1 ? colours[i]->label : colours[i]->label.substr(colours[i]->label.size() - 2),
        left + part / 2, row, colours.size() == 1 ? 10 : 9,
        colours[i]->label == "FP64" ? "#FFFFFF" : "#222222");
  }
  return script;
}

}  // namespace

Figure operations_figure(const Findings& found) {
  // Pixels; the title and the key need the least width.
  constexpr int column_width = 56, row_height = 26, top = 92, name_row = 150, least_width = 400;
  const std::vector<std::string> operations = operations_of(found);
  std::vector<std::string> recipes;
  for (const Recipe& recipe : found.recipes) recipes.push_back(recipe.name);
  const int left = text_width(operations) + 32;
  const int right = left + column_width * static_cast<int>(recipes.size());
  const int width = std::max(right + 30, left + least_width);
  const int height = top + row_height * static_cast<int>(operations.size()) + name_row;
  std::string cells;
  std::vector<std::string> x_tics, y_tics, keys;
  for (std::size_t column = 0; column < recipes.size(); ++column) {
    x_tics.push_back(fmt::format("{} {}", gnuplot_string(recipes[column]), column));
    for (std::size_t row = 0; row < operations.size(); ++row)
      cells += cell(column, row, colours_of(found.operations[column], operations[row]));
  }
  for (std::size_t row = 0; row < operations.size(); ++row)
    y_tics.push_back(fmt::format("{} {}", gnuplot_string(operations[row]), row));
  for (const FormatColour& colour : format_colours) {
    if (is_drawn(colour, found))
      keys.push_back(fmt::format("NaN with boxes linecolor rgb {} title '{}'", colour.color, colour.label));
  }
  return {
      .name = "operations",
      .title = "Which operation runs in which format",
      .caption = fmt::format(
          "{}: the formats of the values on the tape of a training step; of linear and conv2d under FP8 and "
          "FP4 recipes that of the operands which are multiplied, where the result is in bfloat16. Cells "
          "with "
          "two formats: some of the values are in one, some in the other. parameter: as the operations find "
          "it.",
          found.setup.description()),
      .script = fmt::format(
          "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset tmargin at screen {:.4f}\n"
          "set bmargin at screen {:.4f}\nset xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\nunset grid\n"
          "set xtics noenhanced rotate by -40 left ({})\nset ytics noenhanced ({})\n"
          "set key at graph 0, screen {:.4f} left top horizontal Left reverse maxcols 6 width 0\n{}plot {}\n",
          static_cast<double>(left) / width, static_cast<double>(right) / width,
          1 - static_cast<double>(top) / height, static_cast<double>(name_row) / height, recipes.size() - 1,
          operations.size() - 1, fmt::join(x_tics, ", "), fmt::join(y_tics, ", "), 1 - 42.0 / height, cells,
          fmt::join(keys, ", ")),
      .width = width,
      .height = height};
}

}  // namespace experiments::opt_levels
