#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "experiments/frame/files.h"
#include "experiments/frame/printable.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {
namespace {

using experiments::GradientRecord;
using experiments::StepGradients;
namespace fs = std::filesystem;

constexpr std::uint64_t longest_file = std::uint64_t{1} << 30;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // of UTF-8, as spreadsheets write it

/// Without blanks and quotes around it.
std::string bare(const std::string& cell) {
  constexpr const char* around = " \t\r\"";
  const std::size_t first = cell.find_first_not_of(around);
  return first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(around) - first + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = line.find(',', begin);
    cells.push_back(bare(line.substr(begin, end - begin)));
  }
  return cells;
}

/// Which cell holds what, from the header.
struct Columns {
  std::optional<std::size_t> step, max_abs, scale, found_inf;
};

Columns columns_of(const std::string& first_line, const std::string& file) {
  const std::vector<std::string> header = cells_of(first_line);
  Columns columns;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "step") columns.step = i;
    if (header[i] == "max_abs") columns.max_abs = i;
    if (header[i] == "scale") columns.scale = i;
    if (header[i] == "found_inf") columns.found_inf = i;
  }
  if (!columns.step || !(columns.max_abs || (columns.scale && columns.found_inf)))
    throw std::runtime_error(
        fmt::format("file '{}' is no record: its first line is '{}', and no line is an overflow's of Apex, "
                    "DeepSpeed or fairseq; allowed: their logs, a folder that --record wrote, or a CSV file "
                    "whose first line names the columns, as step,max_abs or step,scale,found_inf",
                    file, experiments::one_line(bare(first_line).substr(0, 60))));
  return columns;
}

double number(const std::string& text, const std::string& place) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::runtime_error(fmt::format("{}: '{}' is no number", place, experiments::one_line(text)));
  return value;
}

/// Whether a cell says yes: 1, or True as Python writes it.
bool truth(const std::string& text, const std::string& place) {
  if (text == "True" || text == "true") return true;
  return text != "False" && text != "false" && number(text, place) != 0;
}

std::uint64_t step_number(double value, const std::string& place) {
  if (!(value >= 0 && value < 0x1p53 && value == std::floor(value)))
    throw std::runtime_error(fmt::format("{}: step is {}; must be an integer from 0", place, value));
  return static_cast<std::uint64_t>(value);
}

double magnitude(double value, const std::string& place) {
  if (value < 0) throw std::runtime_error(fmt::format("{}: max_abs is {}; must be at least 0", place, value));
  return value;
}

double scale(double value, const std::string& place) {
  if (!(value > 0 && std::isfinite(value)))
    throw std::runtime_error(fmt::format("{}: scale is {}; must be more than 0, and finite", place, value));
  return value;
}

/// A magnitude that is not finite is that of a step that was not, unless found_inf says otherwise; an empty cell is not
/// known.
StepGradients step_of(const std::vector<std::string>& cells, const Columns& columns,
                      const std::string& place) {
  const auto value = [&](const std::optional<std::size_t>& column, const auto& check) {
    return column && !cells[*column].empty() ? check(number(cells[*column], place), place)
                                             : StepGradients::unknown;
  };
  const double max_abs = value(columns.max_abs, magnitude);
  StepGradients step{.step = step_number(number(cells[*columns.step], place), place),
                     .scale = value(columns.scale, scale),
                     .max_abs = max_abs};
  const bool looked = columns.max_abs && !cells[*columns.max_abs].empty();
  step.found_nonfinite =
      columns.found_inf ? truth(cells[*columns.found_inf], place) : looked && !std::isfinite(max_abs);
  if (step.found_nonfinite && looked && !std::isfinite(max_abs))
    step.max_abs = std::isnan(step.scale) ? INFINITY : StepGradients::unknown;
  return step;
}

GradientRecord read_csv(const std::string& file) {
  std::istringstream lines(experiments::read_file(file, longest_file));
  std::string line;
  std::getline(lines, line);
  if (line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
  const std::size_t width = cells_of(line).size();
  const Columns columns = columns_of(line, file);
  GradientRecord record{.source = file, .scaler = ""};
  for (std::size_t row = 2; std::getline(lines, line); ++row) {
    if (bare(line).empty()) continue;
    const std::string place = fmt::format("file '{}', line {}", file, row);
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != width)
      throw std::runtime_error(fmt::format("{}: {} cells under a header of {}", place, cells.size(), width));
    record.steps.push_back(step_of(cells, columns, place));
    if (record.steps.size() > 1 && record.steps.back().step <= record.steps.rbegin()[1].step)
      throw std::runtime_error(place + ": steps must ascend");
  }
  return record;
}

/// A library's line about an overflow. Where it names the new scale alone, the old one was `factor` times as large.
struct LogLine {
  const char* kind;
  std::regex pattern;
  double factor;
};

/// What all of them hold; regular expressions are slow on a log's other lines.
constexpr std::string_view in_every_log_line = "loss scale";

const std::array<LogLine, 3>& log_lines() {
  static const std::array lines{
      LogLine{"DeepSpeed", std::regex(R"(Attempted loss scale: ([0-9.e+-]+))"), 1},
      LogLine{"Apex",
              std::regex(R"(overflow\.\s+Skipping step, (?:loss scaler (?:\d+ )?)?)"
                         R"(reducing loss scale to ([0-9.e+-]+))"),
              2},
      LogLine{"fairseq",
              std::regex(R"(overflow detected, (?:ignoring gradient, )?setting loss scale to: ([0-9.e+-]+))"),
              2},
  };
  return lines;
}

/// The folder itself, or the one record that a run left in it.
fs::path record_in(const fs::path& folder) {
  if (fs::exists(folder / "exponents.csv")) return folder;
  std::vector<std::string> records;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied)) {
    if (entry.path().filename() == "record" && fs::exists(entry.path() / "exponents.csv"))
      records.push_back(entry.path().string());
  }
  std::ranges::sort(records);
  if (records.size() > 1)
    throw std::runtime_error(fmt::format("folder '{}' has {} records; name one, such as {}", folder.string(),
                                         records.size(), records.front()));
  if (records.empty() && !fs::exists(folder / "manifest.json"))
    throw std::runtime_error(fmt::format(
        "folder '{}' holds no record, which --record of a training program writes", folder.string()));
  return records.empty() ? folder : fs::path(records.front());
}

}  // namespace

GradientRecord read_record(const std::string& path) {
  GradientRecord record =
      experiments::is_folder(path) ? experiments::read_gradient_record(record_in(path)) : read_csv(path);
  if (record.steps.empty()) throw std::runtime_error(fmt::format("record '{}' has no steps", path));
  return record;
}

std::vector<LogBounds::Overflow> LogBounds::bounding() const {
  std::vector<Overflow> found;
  std::ranges::copy_if(overflows, std::back_inserter(found), [](auto& each) { return each.scale > 0; });
  return found;
}

double LogBounds::lowest_scale() const {
  const std::vector<Overflow> bounds = bounding();
  return bounds.empty() ? NAN : std::ranges::min(bounds, {}, &Overflow::scale).scale;
}

double LogBounds::highest_scale() const {
  const std::vector<Overflow> bounds = bounding();
  return bounds.empty() ? NAN : std::ranges::max(bounds, {}, &Overflow::scale).scale;
}

std::size_t LogBounds::sinking() const {
  const std::vector<Overflow> bounds = bounding();
  std::size_t count = std::min<std::size_t>(bounds.size(), 1);
  while (count < bounds.size() && bounds.rbegin()[count].scale > bounds.rbegin()[count - 1].scale) ++count;
  return count;
}

std::optional<LogBounds> read_log(const std::string& path) {
  if (experiments::is_folder(path)) return std::nullopt;
  const std::string text = experiments::read_file(path, longest_file);
  for (const LogLine& kind : log_lines()) {
    LogBounds bounds{.kind = kind.kind, .overflows = {}};
    std::istringstream lines(text);
    std::string line;
    for (std::size_t row = 1; std::getline(lines, line); ++row) {
      if (line.find(in_every_log_line) == std::string::npos) continue;
      std::smatch found;
      const std::string begin = line.substr(0, 2000);  // regular expressions recurse
      if (std::regex_search(begin, found, kind.pattern))
        bounds.overflows.push_back({row, kind.factor * number(found[1], path)});
    }
    if (!bounds.overflows.empty()) return bounds;
  }
  return std::nullopt;
}

}  // namespace halflab::replay
