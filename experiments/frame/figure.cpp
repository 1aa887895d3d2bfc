#include "experiments/frame/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "experiments/frame/child_process.h"
#include "experiments/frame/figure_style.h"
#include "experiments/frame/whole_file.h"

namespace experiments {
namespace {

/// Pixels from the left between which panels with their key in a column of its own lie.
constexpr int key_plot_left = 110, key_plot_right = 710;

/// Pixels around heat maps: the scale of colours and its texts, the gap between two, title and x axis.
constexpr int scale_room = 130, map_gap = 30, title_room = 92, axis_room = 72, row_height = 14;
constexpr int least_height_of_a_map = 8 * row_height;  // that the numbers of the scale of colours need
constexpr int map_width = 560, least_map_width = 300, most_tics_of_a_map = 12;

int width_of_a_map(std::size_t maps) {
  return maps == 1 ? map_width : least_map_width;
}

constexpr std::size_t most_characters = 44;  // of a name that fit beside a map

/// A name without its middle, as far as it is longer.
std::string shortened(const std::string& name) {
  if (name.size() <= most_characters) return name;
  const auto begins_character = [&](std::size_t i) {
    return (static_cast<unsigned char>(name[i]) & 0xc0) != 0x80;
  };
  std::size_t head = most_characters / 2, tail = name.size() - most_characters / 2;
  while (!begins_character(head)) --head;
  while (tail < name.size() && !begins_character(tail)) ++tail;
  return name.substr(0, head) + "…" + name.substr(tail);
}

/// How many parts, with the points or slashes behind them, all names begin with.
std::size_t common_beginning(const std::vector<std::string>& names) {
  std::size_t common = names.front().size();
  for (const std::string& name : names) {
    const auto end = std::ranges::mismatch(names.front(), name).in2;
    common = std::min(common, static_cast<std::size_t>(end - name.begin()));
  }
  const std::size_t last = names.front().substr(0, common).find_last_of("./");
  return last == std::string::npos ? 0 : last + 1;
}

/// Where names are long, what all of them begin and end with is left out, so that they can be told apart.
std::vector<std::string> labels_of(const HeatMapAxes& axes) {
  std::vector<std::string> labels = axes.tensors;
  const auto is_long = [](const std::string& name) { return name.size() > most_characters; };
  if (labels.size() > 1 && std::ranges::any_of(labels, is_long)) {
    std::vector<std::string> backward = labels;
    for (std::string& name : backward) std::ranges::reverse(name);
    const std::size_t beginning = common_beginning(labels), end = common_beginning(backward);
    for (std::string& label : labels)
      label = (beginning > 0 ? "…" : "") + label.substr(beginning, label.size() - beginning - end) +
              (end > 0 ? "…" : "");
  }
  std::ranges::transform(labels, labels.begin(), shortened);
  return labels;
}

int names_width(const HeatMapAxes& axes) {
  return text_width(labels_of(axes), 10) + 15;  // in a smaller font than other tics
}

/// The beginning of a multiplot of heat maps, and what they all have.
std::string common_axes(const HeatMapAxes& axes) {
  const double height = heat_map_height(axes);
  const std::vector<std::string> labels = labels_of(axes);
  std::string tensors = labels.empty() ? "''" : "", tics;
  for (std::size_t row = 1; row <= labels.size(); ++row) {
    const std::string_view comma = row == 1 ? "" : ", ";
    tensors += fmt::format("{}{}", comma, gnuplot_string(axes.tensors[row - 1]));
    tics += fmt::format("{}{} {}", comma, gnuplot_string(labels[row - 1]), row);
  }
  return fmt::format(
      "array tensors[{}] = [{}]\n"
      "row_of(tensor) = sum [i = 1:|tensors|] (tensors[i] eq tensor ? i : 0)\n"
      "cell_row(tensor, value) = row_of(tensor) > 0 && value > 0 ? row_of(tensor) : NaN\n"
      "set multiplot\nunset key\nset grid xtics noytics\nset style fill solid 1.0 noborder\n"
      "set palette defined ({})\n"
      "set logscale cb\nset cbrange [0.001:100]\nset cbtics ('0.001' 0.001, '0.01' 0.01, '0.1' 0.1, 1, 10, "
      "100)\nset cblabel {}\nunset colorbox\n"
      "set tmargin at screen {:.4f}\nset bmargin at screen {:.4f}\n"
      "set xrange [{}:{}]\nset yrange [{}.5:0.5]\nset xtics {}\nset xlabel {}\n"
      "set ytics nomirror out scale 0.5 noenhanced font ',10' ({})\n",
      std::max<std::size_t>(labels.size(), 1), tensors, figure_style::palette,
      gnuplot_string(axes.color_label), 1 - title_room / height, axis_room / height, axes.lowest,
      axes.highest, axes.tensors.size(), octaves_between_tics(axes.highest - axes.lowest, most_tics_of_a_map),
      gnuplot_string(axes.x_label), tics);
}

/// Beside the maps; `left` and `width` as fractions of the figure, whose height is in pixels.
std::string scale_of_colours(double left, double width, double figure_height) {
  return fmt::format("set colorbox user origin screen {:.4f}, screen {:.4f} size screen {:.4f}, {:.4f}\n",
                     left, axis_room / figure_height, width,
                     std::min(300.0, figure_height - title_room - axis_room) / figure_height);
}

/// Names of tensors stand at the first map only.
std::string cells(const HeatMap& map) {
  return fmt::format(
      "plot \"{0}.csv\" using ({1}):(cell_row(strcol('tensor'), {2})):({1} - 0.5):({1} + 0.5):"
      "(row_of(strcol('tensor')) - 0.5):(row_of(strcol('tensor')) + 0.5):({2}) "
      "with boxxyerror linecolor palette notitle\nunset ytics\n",
      map.table, map.x, map.percent);
}

/// A tic's label: 0.0002, 0.5, 3000, or by a power of ten.
std::string tic_label(int digit_tenths, int decade) {
  const double value = digit_tenths * std::pow(10, decade - 1);
  if (decade >= -4 && decade <= 3) return fmt::format("{:.4g}", value);
  if (digit_tenths == 10) return fmt::format("10^{{{}}}", decade);
  return fmt::format("{:g}·10^{{{}}}", digit_tenths / 10.0, decade);
}

/// "set ytics" at those of the decades' tenfold `steps` that lie between the two, and how many these are.
struct LogTics {
  std::string script;
  std::size_t count = 0;
};

LogTics log_tics(double lowest, double highest, const std::vector<int>& steps, int decades) {
  const int first = static_cast<int>(std::floor(std::log10(lowest) / decades)) * decades;
  const int last = static_cast<int>(std::ceil(std::log10(highest)));
  std::vector<std::string> tics;
  for (int decade = first; decade <= last; decade += decades) {
    for (const int tenths : steps) {
      const double value = tenths * std::pow(10, decade - 1);
      if (value > 0.999 * lowest && value < 1.001 * highest)
        tics.push_back(fmt::format("{} {:g}", gnuplot_string(tic_label(tenths, decade)), value));
    }
  }
  return {.script = fmt::format("set ytics ({})\n", fmt::join(tics, ", ")), .count = tics.size()};
}

std::string log_axis(double lowest, double highest) {
  return fmt::format("set logscale y\nset yrange [{:.3g}:{:.3g}]\n", lowest, highest);
}

/// From tic to tic, every so many decades.
std::string long_log_axis(double lowest, double highest) {
  constexpr double rounding = 1e-9;
  constexpr int most_tics = 8;
  const double first = std::log10(lowest) + rounding, last = std::log10(highest) - rounding;
  const int decades = std::max(1, static_cast<int>(std::ceil((last - first) / most_tics)));
  const double bottom = std::pow(10, std::floor(first / decades) * decades),
               top = std::pow(10, std::ceil(last / decades) * decades);
  return log_axis(bottom, top) + log_tics(bottom, top, {10}, decades).script;
}

/// With as many tics within a decade as it takes for a few.
std::string short_log_axis(double lowest, double highest) {
  constexpr std::size_t fewest_tics = 4;
  LogTics tics;
  for (const std::vector<int>& steps : {std::vector{10, 20, 50},
                                        {10, 15, 20, 30, 40, 50, 70},
                                        {10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90}}) {
    tics = log_tics(lowest, highest, steps, 1);
    if (tics.count >= fewest_tics) break;
  }
  return log_axis(lowest, highest) + tics.script;
}

/// What gnuplot complained about, on one line; empty when it did not. Its messages begin with the quoted name
/// of the script, what stands between them only shows the place.
std::string complaint(const ChildResult& result) {
  std::string messages;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    // A curve without points is no fault: no step may have been skipped, nothing may have overflowed.
    if (line.starts_with('"') && line.find("Skipping data file with no valid points") == std::string::npos)
      messages += (messages.empty() ? "" : "; ") + line;
  }
  if (!messages.empty() || result.status == 0) return messages;
  return how_it_ended(result);
}

/// Whether the file's last bytes hold the mark that such files end with.
bool ends_with(const std::filesystem::path& file, std::string_view mark) {
  constexpr int room = 16;  // some gnuplots end with an empty line
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(-room, std::ios::end);
  std::string last(room, '\0');
  return stream.read(last.data(), room) && last.find(mark) != std::string::npos;
}

/// Whether both pictures are there to their ends. On a full disk gnuplot cuts them and reports success.
bool is_whole(const Figure& figure, const std::filesystem::path& directory) {
  return ends_with(directory / (figure.name + ".svg"), "</svg>") &&
         ends_with(directory / (figure.name + ".png"), "IEND");
}

}  // namespace

std::string gnuplot_string(std::string_view text) {
  std::string result = "'";
  for (const char character : text)
    result += character == '\'' ? std::string("''") : std::string(1, character);
  return result + "'";
}

std::string zones(const std::vector<Zone>& zones) {
  // Labels stand in the upper sixth of the plot, which an automatic y range leaves free by these offsets.
  std::string script = "set offsets 0, 0, graph 0.2, 0\n";
  for (const Zone& zone : zones) {
    script += fmt::format(
        "set object rectangle from first {0}, graph 0 to first {1}, graph 1 behind fillcolor rgb {2} "
        "fillstyle transparent solid 0.10 noborder\n"
        "set label {3} at first {4}, graph 0.955 center textcolor rgb \"#444444\" font ',12'\n",
        zone.from, zone.to, zone.color, gnuplot_string(zone.label), (zone.from + zone.to) / 2);
  }
  return script;
}

std::string marks(const std::vector<Mark>& marks) {
  std::string script;
  for (const Mark& mark : marks) {
    const bool left = mark.side == Mark::Side::left, above = mark.label_height >= 1;
    script += fmt::format(
        "set arrow from first {0}, graph 0 to first {0}, graph {1} nohead front linecolor rgb black "
        "linewidth 1 dashtype 2\n"
        "set label {2} at first {3}, graph {4} {5} offset character {6}, {7} front font ',12'\n",
        mark.x, above ? 1 : 0.92, gnuplot_string(mark.label), mark.label_x.value_or(mark.x),
        mark.label_height, left ? "right" : "left", left ? -0.4 : 0.4, above ? 0.7 : 0.0);
  }
  return script;
}

std::string panel(int index, int count) {
  constexpr double top = 0.94, axis_room = 0.085, key_room = 0.07;
  const double height = top / count, bottom = top - height * (index + 1);
  return fmt::format(
      "unset object\nunset arrow\nunset label\n{}set bmargin at screen {:.4f}\nset tmargin at screen "
      "{:.4f}\n",
      index == 0 ? "eval draw_title\n" : "", bottom + axis_room, bottom + height - key_room);
}

KeyColumn::KeyColumn(std::span<const std::string> titles) {
  constexpr int sample_width = 70, least_width = 920;
  figure_width_ = std::max(key_plot_right + sample_width + text_width(titles), least_width);
}

std::string KeyColumn::script() const {
  const auto screen = [&](int pixels) { return static_cast<double>(pixels) / figure_width_; };
  return fmt::format(
      "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
      "set key at graph 1.02, graph 1 left top vertical Left reverse noenhanced maxcols 1\n",
      screen(key_plot_left), screen(key_plot_right));
}

std::string plot(const std::vector<Curve>& curves) {
  std::string script = "plot ";
  for (const Curve& curve : curves) {
    script +=
        fmt::format("{}\"{}.csv\" using (({}) ? ({}) : NaN):({}) {} {}",
                    &curve == &curves.front() ? "" : ", \\\n  ", curve.table, curve.where, curve.x, curve.y,
                    curve.style, curve.title.empty() ? "notitle" : "title " + gnuplot_string(curve.title));
  }
  return script + "\n";
}

std::string log_axis(std::span<const double> values) {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  for (const double value : values) {
    if (!(value > 0) || std::isinf(value)) continue;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  if (highest == 0) lowest = highest = 0.3;
  return highest > 1000 * lowest ? long_log_axis(lowest, highest)
                                 : short_log_axis(0.8 * lowest, 1.25 * highest);
}

int octaves_between_tics(double octaves, int most_tics) {
  return 4 * std::max(1, static_cast<int>(std::ceil(octaves / (4 * most_tics))));
}

int heat_map_width(const HeatMapAxes& axes, std::size_t maps) {
  const int count = static_cast<int>(maps);
  return names_width(axes) + count * width_of_a_map(maps) + (count - 1) * map_gap + scale_room;
}

int heat_map_height(const HeatMapAxes& axes) {
  return title_room + axis_room +
         std::max(row_height * static_cast<int>(axes.tensors.size()), least_height_of_a_map);
}

std::string heat_maps(const std::vector<HeatMap>& maps, const HeatMapAxes& axes) {
  const double width = heat_map_width(axes, maps.size()), height = heat_map_height(axes);
  std::string script = common_axes(axes);
  int left = names_width(axes);
  for (const HeatMap& map : maps) {
    const int right = left + width_of_a_map(maps.size());
    script += "unset label\nunset arrow\n";
    if (&map == &maps.front()) script += "eval draw_title\n";
    if (&map == &maps.back()) script += scale_of_colours((right + 20) / width, 18 / width, height);
    script += fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\n"
        "set label {} at graph 0.5, screen {:.4f} center noenhanced font ',13'\n{}",
        left / width, right / width, gnuplot_string(map.title), 1 - 60 / height, axes.x_marks);
    script += cells(map);
    left = right + map_gap;
  }
  return script + "unset multiplot\n";
}

std::string column_is(std::string_view column, std::string_view text) {
  return fmt::format("strcol({}) eq {}", gnuplot_string(column), gnuplot_string(text));
}

std::string gnuplot_script(const Figure& figure) {
  constexpr double title_and_key = 86, axis = 58;  // pixels
  return fmt::format(R"(# Draws {name}.svg and {name}.png from the tables beside it: gnuplot {name}.gp
{style}
title = {title}
draw_title = 'set label title at graph 0, screen 0.965 left noenhanced font ",15" textcolor rgb "#222222"'
do for [kind in "svg png"] {{
  unset label; unset arrow; unset object
  if (kind eq "svg") {{
    set terminal svg size {width}, {height} font "sans-serif,13" background "#ffffff"
    set xtics offset 0, 0.38; set ytics offset 0.6, 0; set xlabel offset 0, 0.95; set ylabel offset 0.9, 0; set key spacing 1
  }} else {{
    # In pixels as the SVG: a point is 4/3 of a pixel, and of pixels there are twice as many.
    set terminal pngcairo size {png_width}, {png_height} font "sans-serif,13" fontscale 2 * 3/4. linewidth 2 pointscale 2.7 dashlength 0.5 background "#ffffff"
    set xtics offset 0, 0.2; set ytics offset 0, 0; set xlabel offset 0, 0.42; set ylabel offset 0, 0; set key spacing 1.2
  }}
  set tmargin at screen {top:.4f}; set bmargin at screen {bottom:.4f}
  set output '{name}.'.kind
  eval draw_title

{script}
}}
unset output
)",
                     fmt::arg("name", figure.name), fmt::arg("style", figure_style::lines_and_colours),
                     fmt::arg("title", gnuplot_string(figure.title)), fmt::arg("width", figure.width),
                     fmt::arg("height", figure.height), fmt::arg("png_width", 2 * figure.width),
                     fmt::arg("png_height", 2 * figure.height),
                     fmt::arg("top", 1 - title_and_key / figure.height),
                     fmt::arg("bottom", axis / figure.height), fmt::arg("script", figure.script));
}

Drawing draw(const Figure& figure, const std::filesystem::path& directory, double time_limit_s) {
  const std::string script = figure.name + ".gp";
  write_file(directory / script, gnuplot_script(figure));
  // -d: without the user's own start-up file. Scripts are UTF-8, which gnuplot can take only in such a locale.
  const ChildResult result = run_child({.words = {"gnuplot", "-d", script},
                                        .directory = directory,
                                        .time_limit_s = time_limit_s,
                                        .variables = {"LC_ALL=C.UTF-8"}});
  if (result.spawn_error == ENOENT) {
    return {
        .problem =
            "gnuplot was not found; the figures are left as .gp scripts, to be drawn by 'gnuplot NAME.gp'",
        .gnuplot_missing = true};
  }
  if (result.spawn_error != 0) {
    return {.problem = fmt::format("gnuplot could not be started ({})",
                                   std::generic_category().message(result.spawn_error))};
  }
  const bool was_cut = result.status == 0 && !is_whole(figure, directory);
  if (result.status != 0 || was_cut) {  // what it drew so far is no figure
    for (const char* extension : {".svg", ".png"})
      std::filesystem::remove(directory / (figure.name + extension));
  }
  if (result.timed_out) {
    return {.problem = fmt::format("gnuplot took longer than {} s and was ended; '{}' is left as a script",
                                   time_limit_s, script)};
  }
  const std::string complaints = complaint(result);
  if (!complaints.empty()) return {.problem = fmt::format("gnuplot: {}", complaints)};
  if (was_cut)
    return {.problem =
                fmt::format("gnuplot could not write all of a figure; '{}' is left as a script", script)};
  return {};
}

}  // namespace experiments
