#include "experiments/training/gradient_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "experiments/frame/record.h"
#include "experiments/frame/whole_file.h"
#include "sim/tape/gradients.h"
#include "sim/tensor/extremes.h"
#include "sim/tensor/memory_account.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;
using fp16::ExponentHistogram;

constexpr std::string_view format_name = "halflab gradient record";
constexpr int version = 1;

constexpr const char* steps_name = "steps";
const std::vector<std::string> step_columns{"step",        "scale",        "found_inf",       "max_abs",
                                            "max_abs_all", "twin_max_abs", "twin_max_abs_all"};
const std::vector<std::string> exponent_columns{"step",      "of", "exponent_log2", "values", "powers_of_two",
                                                "near_next", "top"};

// Writing.

void add_exponents_of(Table& table, std::uint64_t step, const char* of, const ExponentHistogram& exponents) {
  for (const auto& [name, count] :
       {std::pair("zero", exponents.zero()), {"infinite", exponents.infinite()}, {"nan", exponents.nan()}})
    table.row({step, of, name, count, 0, 0, 0});
  for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent; ++e) {
    const ExponentHistogram::Octave& octave = exponents.octave(e);
    if (octave.total > 0)
      table.row({step, of, e, octave.total, octave.powers_of_two, octave.near_next, octave.top});
  }
}

// Reading.

/// The rows of a CSV file of numbers and names without quotes.
class Rows {
 public:
  explicit Rows(const fs::path& file, const std::vector<std::string>& columns)
      : file_(file), text_(read_file(file)) {
    const std::vector<std::string_view> header = next();
    if (!std::ranges::equal(header, columns)) refuse("its header is not that of a gradient record");
  }

  bool at_end() const { return position_ >= text_.size(); }

  std::vector<std::string_view> next() {
    ++line_;
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    std::vector<std::string_view> cells;
    for (std::size_t begin = position_; begin <= end;) {
      const std::size_t comma = std::min(text_.find(',', begin), end);
      cells.push_back(std::string_view(text_).substr(begin, comma - begin));
      begin = comma + 1;
    }
    position_ = end + 1;
    return cells;
  }

  template <class Number>
  Number number(std::string_view cell) const {
    Number value{};
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size())
      refuse(fmt::format("'{}' is no number", cell));
    return value;
  }

  [[noreturn]] void refuse(std::string_view problem) const {
    throw std::runtime_error(fmt::format("file '{}', line {}: {}", file_.string(), line_, problem));
  }

 private:
  fs::path file_;
  std::string text_;
  std::size_t position_ = 0;
  std::size_t line_ = 0;
};

void read_steps(const fs::path& folder, GradientRecord& record) {
  Rows rows(folder / fmt::format("{}.csv", steps_name), step_columns);
  while (!rows.at_end()) {
    const std::vector<std::string_view> cells = rows.next();
    if (cells.size() != step_columns.size()) rows.refuse("it has not as many cells as the header");
    StepGradients step{.step = rows.number<std::uint64_t>(cells[0]),
                       .scale = rows.number<double>(cells[1]),
                       .found_nonfinite = rows.number<int>(cells[2]) != 0,
                       .max_abs = rows.number<double>(cells[3]),
                       .max_abs_all = rows.number<double>(cells[4]),
                       .twin_max_abs = rows.number<double>(cells[5]),
                       .twin_max_abs_all = rows.number<double>(cells[6])};
    if (!record.steps.empty() && step.step <= record.steps.back().step) rows.refuse("steps must ascend");
    record.steps.push_back(std::move(step));
  }
}

/// The counts of one step of the run or its twin.
struct Counts {
  std::vector<ExponentHistogram::Octave> octaves = std::vector<ExponentHistogram::Octave>(
      ExponentHistogram::max_exponent - ExponentHistogram::min_exponent + 1);
  ExponentHistogram::Rest rest;
};

void read_exponents(const fs::path& folder, GradientRecord& record) {
  Rows rows(folder / "exponents.csv", exponent_columns);
  std::map<std::pair<std::uint64_t, bool>, Counts> found;
  while (!rows.at_end()) {
    const std::vector<std::string_view> cells = rows.next();
    if (cells.size() != exponent_columns.size()) rows.refuse("it has not as many cells as the header");
    const bool is_twin = cells[1] == "twin";
    if (!is_twin && cells[1] != "run") rows.refuse(fmt::format("'{}' is neither run nor twin", cells[1]));
    Counts& counts = found[{rows.number<std::uint64_t>(cells[0]), is_twin}];
    const auto count = [&](std::size_t cell) { return rows.number<std::uint64_t>(cells[cell]); };
    if (cells[2] == "zero") {
      counts.rest.zero = count(3);
    } else if (cells[2] == "infinite") {
      counts.rest.infinite = count(3);
    } else if (cells[2] == "nan") {
      counts.rest.nan = count(3);
    } else {
      const int exponent = rows.number<int>(cells[2]);
      if (exponent < ExponentHistogram::min_exponent || exponent > ExponentHistogram::max_exponent)
        rows.refuse(fmt::format("an exponent of {} is none of binary32", exponent));
      counts.octaves[static_cast<std::size_t>(exponent - ExponentHistogram::min_exponent)] = {
          count(3), count(4), count(5), count(6)};
    }
  }
  for (StepGradients& step : record.steps) {
    for (const bool is_twin : {false, true}) {
      const auto counts = found.find({step.step, is_twin});
      if (counts == found.end()) continue;
      counts->second.rest.max_abs = is_twin ? step.twin_max_abs_all : step.max_abs_all;
      (is_twin ? step.twin_exponents : step.exponents)
          .emplace(ExponentHistogram::min_exponent, counts->second.octaves, counts->second.rest);
    }
  }
}

// Recording.

struct Largest {
  double weights = 0, all = 0;

  void add(const sim::GradientSite& site, double magnitude) {
    all = std::max(all, magnitude);
    if (sim::is_weight(site)) weights = std::max(weights, magnitude);
  }
};

void add_step(Table& steps, Table& exponents, const StepGradients& step) {
  steps.row({step.step, step.scale, step.found_nonfinite ? 1 : 0, step.max_abs, step.max_abs_all,
             step.twin_max_abs, step.twin_max_abs_all});
  if (step.exponents) add_exponents_of(exponents, step.step, "run", *step.exponents);
  if (step.twin_exponents) add_exponents_of(exponents, step.step, "twin", *step.twin_exponents);
  steps.flush();
  exponents.flush();
}

[[noreturn]] void throw_gap(const fs::path& file, std::uint64_t step) {
  throw std::runtime_error(fmt::format(
      "record '{}' lacks steps before {}, from which the run goes on; allowed: the record of these "
      "steps, or to remove the run's checkpoint, which begins it anew",
      file.string(), step));
}

/// Leaves the rows of the steps before `step` alone, and no half of a row that a kill left behind: the step of the last row,
/// none without a row. Throws std::runtime_error where the file does not begin with the header.
std::optional<std::uint64_t> cut_before(const fs::path& file, const std::vector<std::string>& columns,
                                        std::uint64_t step) {
  const std::optional<std::string> text = contents_of(file);
  const std::string header = fmt::format("{}\n", fmt::join(columns, ","));
  if (!text || !text->starts_with(header)) throw_gap(file, step);
  std::optional<std::uint64_t> last;
  std::size_t begin = header.size();
  for (std::size_t end = text->find('\n', begin); end != std::string::npos; end = text->find('\n', begin)) {
    std::uint64_t found = 0;
    const auto [after, error] = std::from_chars(text->data() + begin, text->data() + end, found);
    if (error != std::errc{} || found >= step) break;
    last = found;
    begin = end + 1;
  }
  fs::resize_file(file, begin);
  return last;
}

/// The folder of a record, for more steps.
struct OpenRecord {
  /// Goes on behind what is there of the steps before `step`. Throws std::runtime_error where one of them is missing.
  OpenRecord(const fs::path& folder, const GradientRecord& record, std::uint64_t step)
      : steps(opened(folder, steps_name, step_columns, step)),
        exponents(opened(folder, "exponents", exponent_columns, step)) {
    write_file(folder / "manifest.json", Json::object({{"format", format_name},
                                                       {"version", version},
                                                       {"source", record.source},
                                                       {"scaler", record.scaler},
                                                       {"exponents_every", record.exponents_every}})
                                                 .to_text(2) +
                                             "\n");
  }

  static Table opened(const fs::path& folder, const std::string& name,
                      const std::vector<std::string>& columns, std::uint64_t step) {
    fs::create_directories(folder);
    const fs::path file = folder / (name + ".csv");
    if (step > 0) {
      const std::optional<std::uint64_t> last = cut_before(file, columns, step);
      if (name == steps_name && last != step - 1) throw_gap(file, step);
    }
    return {name, {.file = file, .goes_on = step > 0}, columns};
  }

  void add(const StepGradients& step) { add_step(steps, exponents, step); }

  Table steps, exponents;
};

class GradientRecorder final : public sim::StepObserver {
 public:
  GradientRecorder(std::optional<fs::path> folder, GradientRecord described, bool has_several_passes)
      : folder_(std::move(folder)),
        described_(std::move(described)),
        has_several_passes_(has_several_passes) {}

  /// A step of several passes tells after the last one whether their sum is finite; the twins of all are made before that.
  sim::BackwardNeeds needs(std::size_t step) const override {
    return {.twin = has_several_passes_ || is_sampled(step)};
  }

  void after_decision(const sim::ObservedDecision& decision, sim::StepRecord& step) override {
    if (!folder_) return;
    const sim::AllocationScope uncounted(nullptr);
    if (!step_) step_ = {.step = step.step, .scale = decision.loss_scale, .max_abs = 0, .max_abs_all = 0};
    add_run(decision, *step_);
    if (decision.twin) {
      add_twin(decision.gradients.sites, *decision.twin, *step_);
    } else if (step_->found_nonfinite) {
      add_twin(decision.gradients.sites,
               decision.tape.backward(decision.loss, {.loss_scale = 1, .twin = fp16::binary32}), *step_);
    }
  }

  void after_last_decision(sim::StepRecord&) override {
    if (!folder_) return;
    if (!is_sampled(step_->step) && !step_->found_nonfinite) {
      step_->twin_exponents.reset();
      step_->twin_max_abs = step_->twin_max_abs_all = StepGradients::unknown;
    }
    if (!file_) file_.emplace(*folder_, described_, step_->step);
    file_->add(*step_);
    step_.reset();
  }

 private:
  bool is_sampled(std::size_t step) const {
    return step % static_cast<std::size_t>(described_.exponents_every) == 0;
  }

  /// A step may have a decision for each of several losses or passes; it is told of them together.
  void add_run(const sim::ObservedDecision& decision, StepGradients& kept) const {
    Largest largest{kept.max_abs, kept.max_abs_all};
    const sim::ScaledGradients& scaled = decision.gradients;
    for (std::size_t i = 0; i < scaled.sites.size(); ++i) {
      const sim::Extremes extremes = sim::extremes_of(scaled.values.gradients[i]);
      largest.add(scaled.sites[i], extremes.max_abs / scaled.values.scales[i]);
      kept.found_nonfinite |= extremes.found_nonfinite && sim::is_weight(scaled.sites[i]);
    }
    kept.max_abs = largest.weights;
    kept.max_abs_all = largest.all;
    if (!is_sampled(kept.step)) return;
    if (const auto exponents = exponents_of_loss(scaled)) add(kept.exponents, *exponents);
  }

  /// With the factor of each gradient divided out; none where one of these is no power of two.
  static std::optional<ExponentHistogram> exponents_of_loss(const sim::ScaledGradients& scaled) {
    ExponentHistogram sum;
    for (std::size_t i = 0; i < scaled.sites.size(); ++i) {
      const std::optional<int> log2 = log2_of_power(scaled.values.scales[i]);
      if (!log2) return std::nullopt;
      ExponentHistogram exponents;
      sim::add_exponents(exponents, scaled.values.gradients[i]);
      sum += fp16::scaled(exponents, -*log2);
    }
    return sum;
  }

  static void add_twin(const std::vector<sim::GradientSite>& sites, const sim::SiteGradients& twin,
                       StepGradients& kept) {
    Largest largest;
    ExponentHistogram exponents;
    for (std::size_t i = 0; i < twin.gradients.size(); ++i) {
      largest.add(sites[i], sim::extremes_of(twin.gradients[i]).max_abs);
      sim::add_exponents(exponents, twin.gradients[i]);
    }
    kept.twin_max_abs = std::fmax(kept.twin_max_abs, largest.weights);
    kept.twin_max_abs_all = std::fmax(kept.twin_max_abs_all, largest.all);
    add(kept.twin_exponents, exponents);
  }

  static void add(std::optional<ExponentHistogram>& kept, const ExponentHistogram& more) {
    if (kept) {
      *kept += more;
    } else {
      kept = more;
    }
  }

  std::optional<fs::path> folder_;
  GradientRecord described_;
  bool has_several_passes_;
  std::optional<StepGradients> step_;
  std::optional<OpenRecord> file_;
};

}  // namespace

std::optional<int> log2_of_power(double scale) {
  int exponent = 0;
  const bool is_power = std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5;
  return is_power ? std::optional(exponent - 1) : std::nullopt;
}

void write_gradient_record(const fs::path& folder, const GradientRecord& record) {
  OpenRecord file(folder, record, 0);
  for (const StepGradients& step : record.steps) file.add(step);
}

GradientRecord read_gradient_record(const fs::path& folder) {
  const fs::path file = folder / "manifest.json";
  const Json manifest = Json::from_text(read_file(file));
  const auto refuse = [&](const std::string& problem) {
    throw std::runtime_error(fmt::format("file '{}' {}", file.string(), problem));
  };
  if (manifest.value("format") != Json(format_name))
    refuse("is not that of a gradient record, which --record of a training program writes");
  if (manifest.value("version") != Json(version))
    refuse(fmt::format("is of a gradient record of version {}; allowed: {}",
                       manifest.value("version").to_text(), version));
  GradientRecord record;
  try {
    record = {.source = manifest.at("source").string(),
              .scaler = manifest.at("scaler").string(),
              .exponents_every = static_cast<int>(manifest.at("exponents_every").integer())};
  } catch (const JsonError& error) {
    refuse(fmt::format("is damaged: {}", error.what()));
  }
  read_steps(folder, record);
  read_exponents(folder, record);
  return record;
}

std::unique_ptr<sim::StepObserver> make_gradient_recorder(std::optional<fs::path> folder,
                                                          GradientRecord described, bool has_several_passes) {
  return std::make_unique<GradientRecorder>(std::move(folder), std::move(described), has_several_passes);
}

}  // namespace experiments
