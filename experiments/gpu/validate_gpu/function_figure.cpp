#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/gpu/validate_gpu/functions.h"
#include "experiments/validation/double_oracle.h"

namespace experiments::validate_gpu {
namespace {

constexpr int panel_columns = 4, panel_width = 300, panel_height = 190, title_room = 96, key_room = 48,
              key_gap = 16, panel_gap = 72, axis_room = 44, label_room = 20, left_room = 84, right_room = 24,
              column_gap = 72;

std::string number_text(double number) {
  return fmt::format("{:.4f}", number);
}

/// The middle of a block of codes in binades from zero, negative for negative numbers: an axis on which every code
/// has the same room.
double position_of(const FunctionErrors::Block& block) {
  const double binades = ((block.first & 0x7FFF) + 0.5 * FunctionErrors::block_size) / 1024;
  return block.first & 0x8000 ? -binades : binades;
}

const TableOf<FunctionErrors> functions_table{
    .name = "functions",
    .rows = "each operation of the family functions, by subject",
    .columns = {{"function", "", &FunctionErrors::function},
                {"subject", "", &FunctionErrors::subject},
                {"operands", "operands", [](auto&) { return 1 << 16; }},
                {"not_correctly_rounded", "results", &FunctionErrors::misrounded},
                {"wrong", "results", &FunctionErrors::wrong},
                {"other_nans", "results", &FunctionErrors::other_nans},
                {"largest_error_ulp", "ulp", &FunctionErrors::largest_ulp},
                {"largest_error_at_bits", "", [](auto& e) { return bits_text(half_number, e.largest_at); }},
                {"largest_error_at", "1", [](auto& e) { return value_text(half_number, e.largest_at); }},
                {"order_breaks", "pairs of neighbouring operands", &FunctionErrors::order_breaks},
                {"first_order_break_at_bits", "",
                 [](auto& e) { return e.order_breaks == 0 ? "" : bits_text(half_number, e.first_break); }}},
    .when = "functions in --op"};

struct BlockRow {
  const FunctionErrors& errors;
  const FunctionErrors::Block& block;
};

const TableOf<BlockRow> blocks_table{
    .name = "ulp_errors",
    .rows = fmt::format("{} neighbouring operands in a row of functions.csv", FunctionErrors::block_size),
    .columns = {{"function", "", [](auto& r) { return r.errors.function; }},
                {"subject", "", [](auto& r) { return r.errors.subject; }},
                {"position_binades", "binades", [](auto& r) { return position_of(r.block); }},
                {"first_bits", "", [](auto& r) { return bits_text(half_number, r.block.first); }},
                {"first", "1", [](auto& r) { return value_text(half_number, r.block.first); }},
                {"lowest_error_ulp", "ulp", [](auto& r) { return r.block.lowest_ulp; }},
                {"highest_error_ulp", "ulp", [](auto& r) { return r.block.highest_ulp; }},
                {"not_correctly_rounded", "results", [](auto& r) { return r.block.misrounded; }}},
    .when = functions_table.when};

void write_tables(RunRecord& record, const std::vector<FunctionErrors>& errors) {
  functions_table.write(record, errors);
  const auto add_block = blocks_table.start(record);
  for (const FunctionErrors& each : errors) {
    std::vector<FunctionErrors::Block> sorted = each.blocks;
    std::ranges::sort(sorted, {}, position_of);
    for (const FunctionErrors::Block& block : sorted) add_block({each, block});
  }
}

std::vector<std::string> names_of(const std::vector<FunctionErrors>& errors,
                                  std::string FunctionErrors::*field) {
  std::vector<std::string> names;
  for (const FunctionErrors& each : errors) {
    if (std::ranges::find(names, each.*field) == names.end()) names.push_back(each.*field);
  }
  return names;
}

/// A band from the lowest to the highest error of each block of operands; the first subject in front, so that the
/// others show where their errors are larger.
std::string panel_script(const std::string& function, const std::vector<std::string>& subjects,
                         const std::vector<FunctionErrors>& errors) {
  double largest = 0.5;
  for (const FunctionErrors& each : errors) {
    if (each.function == function) largest = std::max(largest, std::fabs(each.largest_ulp));
  }
  std::string script = fmt::format("set title {}\nset yrange [{}:{}]\nplot ", gnuplot_string(function),
                                   -1.15 * largest, 1.15 * largest);
  for (std::size_t i = subjects.size(); i-- > 0;) {
    const std::string where = column_is("function", function) + " && " + column_is("subject", subjects[i]);
    script += fmt::format(
        "{}\"ulp_errors.csv\" using ({} ? column('position_binades') : NaN):(column('lowest_error_ulp')):"
        "(column('highest_error_ulp')) with filledcurves linetype {} fillstyle solid 0.6 notitle",
        i + 1 == subjects.size() ? "" : ", ", where, i + 1);
  }
  return script + "\nunset label\n";
}

/// Names in the colours of the bands, side by side: gnuplot's own key is no wider than a panel.
std::string key_script(const std::vector<std::string>& subjects, const Figure& figure) {
  std::string script;
  double left = left_room;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const std::string text = "■ " + subjects[i];
    script += fmt::format(
        "set label {} at screen {:.4f}, screen {:.4f} left textcolor linetype {} font ',12'\n",
        gnuplot_string(text), left / figure.width, 1 - key_room / static_cast<double>(figure.height), i + 1);
    left += text_width({&text, 1}) + key_gap;
  }
  return script;
}

Figure figure_of(const std::vector<FunctionErrors>& errors) {
  const std::vector<std::string> functions = names_of(errors, &FunctionErrors::function);
  const std::vector<std::string> subjects = names_of(errors, &FunctionErrors::subject);
  const int panels = static_cast<int>(functions.size());
  const int columns = std::min(panels, panel_columns), lines = (panels + columns - 1) / columns;
  Figure figure{
      .name = "ulp_errors",
      .title = "Errors of functions of half against their operand, in units in the last place",
      .caption = fmt::format(
          "Lowest and highest error among {} neighbouring operands; correct rounding stays within half "
          "a unit. Operands in the order of their codes, so that every binade is as wide; "
          "what is hidden is no larger.",
          FunctionErrors::block_size),
      .script = {},
      .width = std::max(640, columns * panel_width),
      .height = title_room + lines * panel_height + label_room};
  const double width = figure.width, height = figure.height;
  figure.script = fmt::format(
      "unset label\nunset xlabel\nset multiplot layout {},{} title title margins {:.3f},{:.3f},{:.3f},{:.3f} "
      "spacing {:.3f},{:.3f}\n"
      "unset key\n{}"
      "set xrange [-31:31]\nset title offset 0,-0.6 font ',12' noenhanced\n"
      "set tics font ',10'\nset xtics ('-2^{{15}}' -30, '-1' -15, '0' 0, '1' 15, '2^{{15}}' 30)\n"
      "set ylabel 'ulp' offset 1,0\n",
      lines, columns, left_room / width, 1 - right_room / width, (axis_room + label_room) / height,
      1 - title_room / height, column_gap / width, panel_gap / height, key_script(subjects, figure));
  for (int panel = 0; panel < panels; ++panel) {
    if (panel == panels - columns)  // from here on no panel has another one below
      figure.script += "set xlabel 'operand (by exponent, both signs)' offset 0,0.4 font ',11'\n";
    figure.script += panel_script(functions[static_cast<std::size_t>(panel)], subjects, errors);
  }
  figure.script += "unset multiplot\n";
  return figure;
}

std::string errors_text(const std::vector<FunctionErrors>& errors) {
  TextTable table{.columns = {"function", "subject", "not correctly rounded", "largest error, ulp",
                              "at operand", "wrong", "other NaNs", "order breaks"},
                  .rows = {}};
  for (const FunctionErrors& each : errors) {
    table.rows.push_back({each.function, each.subject, long_number(each.misrounded),
                          number_text(each.largest_ulp), value_text(half_number, each.largest_at),
                          long_number(each.wrong), long_number(each.other_nans),
                          long_number(each.order_breaks)});
  }
  return table.text();
}

}  // namespace

Outputs function_outputs() {
  return outputs_of(functions_table, blocks_table);
}

void write_functions(Run& run, const std::vector<FunctionErrors>& errors) {
  if (errors.empty()) return;
  write_tables(run.record(), errors);
  run.record().verdict(errors_text(errors));
  run.figure(figure_of(errors));
}

}  // namespace experiments::validate_gpu
