#include "experiments/common/figure.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "sim/record.h"

namespace experiments {
namespace {

constexpr std::string_view style = R"(reset
set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing NaN
blue = "#0072B2"; vermillion = "#D55E00"; green = "#009E73"; purple = "#CC79A7"
orange = "#E69F00"; sky = "#56B4E9"; yellow = "#F0E442"; black = "#000000"; grey = "#777777"
set linetype 1 linecolor rgb blue linewidth 2 pointtype 7 pointsize 0.6
set linetype 2 linecolor rgb vermillion linewidth 2 pointtype 5 pointsize 0.6
set linetype 3 linecolor rgb green linewidth 2 pointtype 9 pointsize 0.8
set linetype 4 linecolor rgb purple linewidth 2 pointtype 13 pointsize 0.8
set linetype 5 linecolor rgb orange linewidth 2 pointtype 11 pointsize 0.8
set linetype 6 linecolor rgb sky linewidth 2 pointtype 4 pointsize 0.6
set linetype 7 linecolor rgb black linewidth 2 pointtype 6 pointsize 0.6
set linetype cycle 7
set border 3 linecolor rgb "#444444" linewidth 1
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set grid xtics ytics linetype 1 linecolor rgb "#E3E3E3" linewidth 0.75
set format "%h"
set tmargin 4.6
set key at graph 0, graph 1.03 left bottom horizontal Left reverse maxcols 5 width -1 samplen 2.6 font ",12" textcolor rgb "#222222"
set style fill solid 1.0 noborder
)";

/// Collects what a child writes into the pipe until it closes it.
std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

struct ChildResult {
  int spawn_error = 0;
  int status = 0;
  std::string err = {};
};

/// Runs `gnuplot -d <script>` in `directory`, found on PATH, without a shell; -d: without the user's own
/// start-up file.
ChildResult run_gnuplot(const std::string& script, const std::filesystem::path& directory) {
  std::array<int, 2> err_pipe;
  if (::pipe2(err_pipe.data(), O_CLOEXEC) != 0) return {.spawn_error = errno};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, err_pipe[1], STDERR_FILENO);

  std::string program = "gnuplot";
  std::string option = "-d";
  std::string file = script;
  std::array<char*, 4> arguments{program.data(), option.data(), file.data(), nullptr};
  ChildResult result;
  pid_t child = 0;
  result.spawn_error = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(err_pipe[1]);
  if (result.spawn_error == 0) {
    result.err = read_all(err_pipe[0]);
    while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(err_pipe[0]);
  return result;
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
  if (messages.empty() && result.status != 0) return fmt::format("ended with wait status {}", result.status);
  return messages;
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
    const bool left = mark.side == Mark::Side::left;
    script += fmt::format(
        "set arrow from first {0}, graph 0 to first {0}, graph 0.92 nohead front linecolor rgb black "
        "linewidth 1 "
        "dashtype (8,4)\n"
        "set label {1} at first {0}, graph {2} {3} offset character {4}, 0 front font ',12'\n",
        mark.x, gnuplot_string(mark.label), mark.label_height, left ? "right" : "left", left ? -0.4 : 0.4);
  }
  return script;
}

std::string panel(int index, int count) {
  constexpr double top = 0.94, axis_room = 0.10, key_room = 0.07;
  const double height = top / count, bottom = top - height * (index + 1);
  return fmt::format(
      "unset object\nunset arrow\nunset label\n{}set bmargin at screen {:.4f}\nset tmargin at screen "
      "{:.4f}\n",
      index == 0 ? "eval draw_title\n" : "", bottom + axis_room, bottom + height - key_room);
}

std::string key_at_right() {
  return "set lmargin at screen 0.09\nset rmargin at screen 0.68\n"
         "set key at screen 0.69, screen 0.88 left top vertical Left reverse noenhanced maxcols 1\n";
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

std::string log_range(const std::vector<double>& values) {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  for (const double value : values) {
    if (!(value > 0) || std::isinf(value)) continue;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  if (highest == 0) lowest = highest = 0.3;
  return fmt::format("set yrange [{:.3g}:{:.3g}]\n", 0.8 * lowest, 1.25 * highest);
}

std::string column_is(std::string_view column, std::string_view text) {
  return fmt::format("strcol({}) eq {}", gnuplot_string(column), gnuplot_string(text));
}

std::string gnuplot_script(const Figure& figure) {
  return fmt::format(R"(# Draws {name}.svg and {name}.png from the tables beside it: gnuplot {name}.gp
{style}
title = {title}
draw_title = 'set label title at graph 0, screen 0.965 left noenhanced font ",15" textcolor rgb "#222222"'
do for [kind in "svg png"] {{
  unset label; unset arrow; unset object
  if (kind eq "svg") {{
    set terminal svg size {width}, {height} font "Arial,13" background "#ffffff"
  }} else {{
    set terminal pngcairo size {png_width}, {png_height} font "Arial,13" fontscale 2 linewidth 2 pointscale 2 background "#ffffff"
  }}
  set output '{name}.'.kind
  eval draw_title

{script}
}}
unset output
)",
                     fmt::arg("name", figure.name), fmt::arg("style", style),
                     fmt::arg("title", gnuplot_string(figure.title)), fmt::arg("width", figure.width),
                     fmt::arg("height", figure.height), fmt::arg("png_width", 2 * figure.width),
                     fmt::arg("png_height", 2 * figure.height), fmt::arg("script", figure.script));
}

Drawing draw(const Figure& figure, const std::filesystem::path& directory) {
  const std::string script = figure.name + ".gp";
  sim::write_file(directory / script, gnuplot_script(figure));
  const ChildResult result = run_gnuplot(script, directory);
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
  if (result.status != 0) {  // what it drew so far is no figure
    for (const char* extension : {".svg", ".png"})
      std::filesystem::remove(directory / (figure.name + extension));
  }
  const std::string complaints = complaint(result);
  if (!complaints.empty()) return {.problem = fmt::format("gnuplot: {}", complaints)};
  return {};
}

}  // namespace experiments
