#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/printable.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {
namespace {

using experiments::GradientRecord;
using experiments::StepGradients;

constexpr std::uint64_t longest_file = std::uint64_t{1} << 30;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    const std::size_t first = cell.find_first_not_of(" \t\r"), last = cell.find_last_not_of(" \t\r");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

/// Which cell holds what, from the header.
struct Columns {
  std::optional<std::size_t> step, max_abs, scale, found_inf;
};

Columns columns_of(const std::vector<std::string>& header, const std::string& file) {
  Columns columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "step") columns.step = i;
    if (header[i] == "max_abs") columns.max_abs = i;
    if (header[i] == "scale") columns.scale = i;
    if (header[i] == "found_inf") columns.found_inf = i;
  }
  if (!columns.step || !columns.max_abs)
    throw std::runtime_error(
        fmt::format("file '{}' is no record: a folder that --record wrote, a CSV file with the columns step "
                    "and max_abs, or a log of Apex, "
                    "DeepSpeed or fairseq is needed",
                    file));
  return columns;
}

double number(const std::string& text, const std::string& place) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::runtime_error(fmt::format("{}: '{}' is no number", place, experiments::one_line(text)));
  return value;
}

GradientRecord read_csv(const std::string& file) {
  std::istringstream lines(experiments::read_file(file, longest_file));
  std::string line;
  std::getline(lines, line);
  const std::size_t width = cells_of(line).size();
  const Columns columns = columns_of(cells_of(line), file);
  GradientRecord record{.source = file, .scaler = ""};
  for (std::size_t row = 2; std::getline(lines, line); ++row) {
    const std::string place = fmt::format("file '{}', line {}", file, row);
    const std::vector<std::string> cells = cells_of(line);
    if (cells.empty()) continue;
    if (cells.size() != width)
      throw std::runtime_error(fmt::format("{}: {} cells under a header of {}", place, cells.size(), width));
    const auto value = [&](const std::optional<std::size_t>& column) {
      return column ? number(cells[*column], place) : StepGradients::unknown;
    };
    StepGradients step{.step = static_cast<std::uint64_t>(value(columns.step)),
                       .scale = value(columns.scale),
                       .max_abs = value(columns.max_abs)};
    step.found_nonfinite = columns.found_inf && value(columns.found_inf) != 0;
    if (!record.steps.empty() && step.step <= record.steps.back().step)
      throw std::runtime_error(place + ": steps must ascend");
    record.steps.push_back(std::move(step));
  }
  return record;
}

/// A library's line about an overflow. Where it names the new scale alone, the old one was `factor` times as large.
struct LogLine {
  const char* kind;
  const char* pattern;
  double factor;
};

constexpr std::array log_lines{
    LogLine{"DeepSpeed", R"(Attempted loss scale: ([0-9.e+]+))", 1},
    LogLine{"Apex",
            R"(Gradient overflow\.\s+Skipping step, loss scaler \d+ reducing loss scale to ([0-9.e+]+))", 2},
    LogLine{"fairseq", R"(overflow detected, ignoring gradient, setting loss scale to: ([0-9.e+]+))", 2},
};

}  // namespace

GradientRecord read_record(const std::string& path) {
  GradientRecord record =
      std::filesystem::is_directory(path) ? experiments::read_gradient_record(path) : read_csv(path);
  if (record.steps.empty()) throw std::runtime_error(fmt::format("record '{}' has no steps", path));
  return record;
}

std::optional<LogBounds> read_log(const std::string& path) {
  if (std::filesystem::is_directory(path)) return std::nullopt;
  const std::string text = experiments::read_file(path, longest_file);
  for (const LogLine& kind : log_lines) {
    const std::regex pattern(kind.pattern);
    LogBounds bounds{.kind = kind.kind, .overflowed_at = {}};
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      const std::string begin = line.substr(0, 2000);  // regular expressions recurse
      if (std::regex_search(begin, found, pattern))
        bounds.overflowed_at.push_back(kind.factor * number(found[1], path));
    }
    if (!bounds.overflowed_at.empty()) return bounds;
  }
  return std::nullopt;
}

}  // namespace halflab::replay
