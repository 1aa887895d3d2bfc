/// How fast is the code, held against what the machine can do and against the best peer, measured in the same
/// run?
///
/// Every case first shows that it computes the right thing, then all are timed on one thread, interleaved in
/// random order, and the medians are reported. A rate is elements, products or steps per second; a ratio is
/// our rate over the limit's.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/laboratory.h"
#include "fp16/vector_path.h"
#include "sim/tensor/random.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"

namespace bench {

void require(bool right, std::string_view what) {
  if (!right) throw std::runtime_error(fmt::format("{} computes something else than its definition", what));
}

std::vector<float> normal_values(std::size_t count, std::string_view purpose) {
  const sim::RandomStream random(0, purpose);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

bool has_avx2() {
  return std::ranges::find(fp16::available_vector_paths(), fp16::VectorPath::avx2_f16c) !=
         fp16::available_vector_paths().end();
}

std::vector<float> gradient_like_values(std::size_t count, std::string_view purpose) {
  const sim::RandomStream random(1, purpose);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = -30 + static_cast<int>(random.below(i, 26));
    values[i] = std::ldexp(1 + random.uniform(2 * i), exponent) * (random.bits(2 * i + 1) & 1 ? 1.0f : -1.0f);
  }
  return values;
}

}  // namespace bench

namespace {

using bench::Case;

struct Options {
  std::string rows;  ///< a part of the names of the cases that are measured
  int repetitions = 9;
  double seconds = 0.05;  ///< per repetition and case
};

/// One thread is pinned to the first core that the process may use; more may run on all of them.
class Cores {
 public:
  Cores() { sched_getaffinity(0, sizeof allowed_, &allowed_); }

  void give(int threads) const {
    cpu_set_t chosen = allowed_;
    if (threads == 1) {
      CPU_ZERO(&chosen);
      for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&chosen) == 0; ++core) {
        if (CPU_ISSET(core, &allowed_)) CPU_SET(core, &chosen);
      }
    }
    sched_setaffinity(0, sizeof chosen, &chosen);
  }

 private:
  cpu_set_t allowed_;
};

/// Collects the median time of one call of every case.
class Medians final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration) {
        seconds_[run.run_name.function_name].push_back(run.GetAdjustedRealTime() / 1e9);
      }
    }
  }
  double median(const std::string& name) { return quantile(name, 0.5); }
  /// The distance between the quartiles over the median.
  double spread(const std::string& name) {
    return (quantile(name, 0.75) - quantile(name, 0.25)) / median(name);
  }

 private:
  double quantile(const std::string& name, double share) {
    std::vector<double>& times = seconds_.at(name);
    std::ranges::sort(times);
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size()))];
  }

  std::map<std::string, std::vector<double>> seconds_;
};

void time_all(const std::vector<Case>& cases, const Options& options, Medians& medians) {
  const Cores cores;
  for (const Case& timed : cases) {
    benchmark::RegisterBenchmark(timed.name.c_str(),
                                 [&timed, &cores](benchmark::State& state) {
                                   if (experiments::is_interrupted())
                                     return state.SkipWithError("interrupted");
                                   cores.give(timed.threads);
                                   for (auto _ : state) timed.work();
                                 })
        ->UseRealTime()
        ->MinTime(options.seconds)
        ->Repetitions(options.repetitions);
  }
  std::string program = "bench", interleave = "--benchmark_enable_random_interleaving=true";
  std::array<char*, 3> arguments{program.data(), interleave.data(), nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments.data());
  benchmark::RunSpecifiedBenchmarks(&medians);
  experiments::throw_if_interrupted();
}

std::string rate_text(double rate) {
  for (const auto& [unit, factor] : {std::pair{" G", 1e9}, std::pair{" M", 1e6}, std::pair{" k", 1e3}}) {
    if (rate >= factor) return fmt::format("{:.3g}{}", rate / factor, unit);
  }
  return fmt::format("{:.3g}", rate);
}

using bench::Rates;

/// The rate of the fastest of a case's limits; 0 without one.
double limit_of(const Case& timed, const Rates& rates) {
  double limit = 0;
  for (const std::string& name : timed.limits) limit = std::max(limit, rates.at(name));
  return limit;
}

struct RateRow {
  double rate;
  double limit;
};

const experiments::SummaryOf<RateRow> rate_summary{
    {{"rate.<case>", "elements, products or steps per second", &RateRow::rate}}};
const experiments::SummaryOf<RateRow> limit_summary{
    {{"limit.<case>", "the rate of what it is held against", &RateRow::limit},
     {"ratio.<case>", "the first over the second; higher is better",
      [](auto& row) { return row.rate / row.limit; }}}};

void record(experiments::Run& run, const std::vector<Case>& cases, const Rates& rates) {
  for (const Case& timed : cases) {
    const RateRow row{rates.at(timed.name), limit_of(timed, rates)};
    rate_summary.write(run.record(), row, {timed.name});
    if (row.limit != 0) limit_summary.write(run.record(), row, {timed.name});
  }
}

/// One row an operation: ours, the limit, and each peer that has it.
std::string operations_table(const std::vector<Case>& cases, const Rates& rates) {
  const std::array peers{&bench::imath, &bench::eigen_half, &bench::float16};
  experiments::TextTable table{.columns = {"elements per second", "ours", "limit", "ratio"}, .rows = {}};
  for (const bench::HalfLoops* peer : peers) table.columns.emplace_back(peer->name);
  for (const Case& timed : cases) {
    const double limit = limit_of(timed, rates);
    if (limit == 0 || timed.name.starts_with("gemm")) continue;
    const double rate = rates.at(timed.name);
    std::vector<std::string> row{timed.name, rate_text(rate), rate_text(limit),
                                 fmt::format("{:.2f}", rate / limit)};
    for (const bench::HalfLoops* peer : peers) {
      const auto found = rates.find(fmt::format("{}_{}", peer->name, timed.name));
      row.push_back(found == rates.end() ? "-" : rate_text(found->second));
    }
    table.rows.push_back(std::move(row));
  }
  return table.text();
}

std::string text_of(const bench::Derived& figure) {
  return figure.value ? fmt::format("{:.2f}", *figure.value) : "not run: " + figure.why_not_run;
}

void record_derived(experiments::Run& run, const std::string& title,
                    const std::vector<bench::Derived>& figures) {
  if (figures.empty()) return;
  experiments::TextTable table{.columns = {title, "value", "target", "note"}, .rows = {}};
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  for (const bench::Derived& figure : figures) {
    run.record().summary(figure.key,
                         figure.value ? experiments::Value(*figure.value) : experiments::Value("not run"));
    table.rows.push_back({figure.key, text_of(figure), or_dash(figure.limit), or_dash(figure.note)});
  }
  if (std::ranges::all_of(figures, &std::string::empty, &bench::Derived::note)) {
    table.columns.pop_back();
    for (std::vector<std::string>& row : table.rows) row.pop_back();
  }
  run.record().verdict(table.text());
}

const experiments::SummaryKey observed_slowdown{
    "slowdown.<case>", "time of an operation on arrays with flags or counts over that without"};

std::vector<bench::Derived> derive_from_observed(const std::vector<Case>& cases, const Rates& rates) {
  std::vector<bench::Derived> figures;
  for (const Case& timed : cases) {
    if (!timed.is_observed) continue;
    const bool counts = timed.name.find("_counts") != std::string::npos;
    figures.push_back({.key = experiments::filled(observed_slowdown.name, {timed.name}),
                       .value = rates.at(timed.needs.front()) / rates.at(timed.name),
                       .limit = counts ? "at most 2.2" : "at most 1.3"});
  }
  return figures;
}

/// What follows from the cases that were measured; Python's libraries are timed where all of them were.
void record_all_derived(experiments::Run& run, const std::vector<Case>& cases, const Rates& rates,
                        bool with_python) {
  record_derived(run, "arrays with flags or counts, over without", derive_from_observed(cases, rates));
  record_derived(run, "steps compared", bench::derive_from_steps(cases, rates));
  if (with_python) {
    record_derived(run, "casts of float32 numbers, over Python's libraries",
                   bench::derive_from_array_peers(rates));
    record_derived(run, "steps in fp32, PyTorch's time over ours", bench::derive_from_pytorch(rates));
    record_derived(run, "steps in PyTorch, with watch over without", bench::derive_from_watch());
  }
  record_derived(run, "every step under amp, with over without", bench::derive_from_instruments(rates));
}

/// Everything of ours that has no row above.
std::string others_table(const std::vector<Case>& cases, const Rates& rates) {
  experiments::TextTable table{.columns = {"case", "per second", "held against", "ratio"}, .rows = {}};
  for (const Case& timed : cases) {
    const double limit = limit_of(timed, rates);
    const bool is_product = timed.name.starts_with("gemm");
    if (timed.is_peer || timed.is_instrumented || timed.is_observed || (limit != 0 && !is_product)) continue;
    const double rate = rates.at(timed.name);
    table.rows.push_back({timed.name, rate_text(rate),
                          is_product ? timed.limits.front() + ", " + rate_text(limit) : "-",
                          is_product ? fmt::format("{:.2f}", rate / limit) : "-"});
  }
  return table.text();
}

/// Adds a case, what it is held against and what figures on it need.
void choose(const std::vector<Case>& cases, const Case& added, std::set<std::string>& names) {
  if (!names.insert(added.name).second) return;
  for (const auto* others : {&added.limits, &added.needs}) {
    for (const std::string& other : *others)
      choose(cases, *std::ranges::find(cases, other, &Case::name), names);
  }
}

/// The cases whose names contain `part`, and those that they need.
std::vector<Case> chosen(const std::vector<Case>& cases, const std::string& part) {
  std::set<std::string> names;
  for (const Case& each : cases) {
    if (!each.is_peer && each.name.find(part) != std::string::npos) choose(cases, each, names);
  }
  if (names.empty()) throw std::invalid_argument(fmt::format("--rows: no case has '{}' in its name", part));
  std::vector<Case> found;
  std::ranges::copy_if(cases, std::back_inserter(found),
                       [&](const Case& each) { return names.contains(each.name); });
  return found;
}

/// A sentence on the cases whose times scatter too much to be compared; empty without such.
std::string scattered(const std::vector<Case>& cases, Medians& medians) {
  constexpr double too_much = 0.1;
  std::vector<std::string> names;
  for (const Case& each : cases) {
    const double spread = medians.spread(each.name);
    if (spread > too_much) names.push_back(fmt::format("{} ({:.0f} %)", each.name, 100 * spread));
  }
  if (names.empty()) return {};
  return fmt::format("Not to be relied on, for half of their times lie more than 10 % apart: {}.",
                     fmt::join(names, ", "));
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [title, add] : {std::pair{"binary16", &bench::add_number_cases},
                                   {"other attributes and formats", &bench::add_attribute_cases},
                                   {"block formats", &bench::add_block_cases},
                                   {"packed codes", &bench::add_packing_cases},
                                   {"matrix products", &bench::add_product_cases},
                                   {"updates in memory", &bench::add_update_cases},
                                   {"histograms in memory", &bench::add_histogram_cases},
                                   {"files", &bench::add_command_cases},
                                   {"training steps", &bench::add_training_cases}}) {
    const auto first = std::ssize(cases);
    add(cases);
    for (Case& added : cases | std::views::drop(first)) added.group = title;
  }
  return cases;
}

void run(experiments::Run& run, const Options& options) {
  std::vector<Case> cases = all_cases();
  if (!options.rows.empty()) cases = chosen(cases, options.rows);
  Medians medians;
  time_all(cases, options, medians);

  Rates rates;
  for (const Case& timed : cases) rates[timed.name] = timed.items / medians.median(timed.name);
  record(run, cases, rates);
  run.record().verdict(operations_table(cases, rates));
  run.record().verdict(others_table(cases, rates));
  record_all_derived(run, cases, rates, options.rows.empty());
  bench::draw_roofline(run, cases, rates);
  if (const std::string scatter = scattered(cases, medians); !scatter.empty()) run.record().verdict(scatter);
  run.record().verdict(fmt::format(
      "Medians of {} repetitions on one pinned core (_2_threads: two threads), cases interleaved; arrays of "
      "2^20 elements, N(0,1) or "
      "gradient-like (2^-30 .. 2^-4), matrices 512 x 512, steps with each model's own batch. Ours: {} path, "
      "compiled as always. Limits (the faster of plain AVX2 and AVX-512 loops over F16C) and peers: "
      "-O3 -march=native -DNDEBUG; their fma but the limit's rounds twice.",
      options.repetitions, fp16::name_of(fp16::active_vector_path())));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return experiments::run(
      argc, argv,
      {.program = {.name = "bench",
                   .question =
                       "How fast is the code against the machine's limits and the best peers, in one run?",
                   .example = "bench --quick --out results/bench",
                   .outputs =
                       experiments::outputs_of(rate_summary, limit_summary, bench::derived_keys(),
                                               std::vector{observed_slowdown}, bench::roofline_outputs())},
       .options =
           [&](experiments::CommandLine& command_line) {
             command_line.add("--rows", options.rows,
                              "measure only what has this in its name: 'stochastic', 'step_mlp'", "NAME");
             command_line.add("--repetitions", options.repetitions, "times that every case is measured",
                              {.minimum = 1, .maximum = 1000, .quick = 3});
             command_line.add("--seconds", options.seconds, "of each repetition of a case, at least",
                              {.minimum = 0.001, .maximum = 10, .quick = 0.02});
           },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
