/// How fast is the code, held against what the machine can do and against the best peer, measured in the same
/// run?
///
/// Every case first shows that it computes the right thing, then all are timed on one thread, interleaved in
/// random order, and the medians are reported. A rate is elements, products or steps per second; a ratio is
/// our rate over the limit's.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/common/text_table.h"
#include "experiments/common/training_setup.h"
#include "fp16/bulk.h"
#include "fp16/gemm.h"
#include "fp16/half.h"
#include "sim/loss_scaling/registry.h"
#include "sim/random.h"
#include "sim/statistics/exponent_histogram.h"
#include "tests/bench/peers.h"

namespace {

struct Options {
  int repetitions = 9;
  double seconds = 0.1;  ///< per repetition and case
};

/// Something timed: `work` does `items` units of it.
struct Case {
  std::string name;
  double items;
  std::function<void()> work;
  std::string limit = {};  ///< the case it is held against; its own rate alone is reported without one
};

void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(fmt::format("{} computes something else than its definition", what));
}

constexpr std::size_t array_size = 1 << 20;
constexpr std::size_t product_size = 512;

std::vector<float> normal_values(std::size_t count, std::string_view purpose) {
  const sim::RandomStream random(0, purpose);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.normal(i);
  return values;
}

/// Magnitudes log-uniform from 2^-30 to 2^-4, as gradients have them: a third below FP16's normal range.
std::vector<float> gradient_like_values(std::size_t count) {
  const sim::RandomStream random(0, "gradient-like");
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = -30 + static_cast<int>(random.below(i, 26));
    values[i] = std::ldexp(1 + random.uniform(2 * i), exponent) * (random.bits(2 * i + 1) & 1 ? 1.0f : -1.0f);
  }
  return values;
}

void add_conversions(std::vector<Case>& cases) {
  struct Data {
    std::string suffix;
    std::vector<float> floats;
    std::vector<std::uint16_t> halves = std::vector<std::uint16_t>(array_size);
    std::vector<float> back = std::vector<float>(array_size);
  };
  static std::array data{Data{"", normal_values(array_size, "bench")},
                         Data{"_gradient_like", gradient_like_values(array_size)}};
  for (Data& d : data) {
    fp16::float_to_half(d.floats, d.halves);
    for (std::size_t i = 0; i < array_size; i += 101) {
      require(d.halves[i] == fp16::float_to_half_bits(d.floats[i]), "float_to_half");
    }
    cases.push_back({"raw_f16c_float_to_half" + d.suffix, array_size,
                     [&] { bench::raw_f16c_float_to_half(d.floats.data(), d.halves.data(), array_size); }});
    cases.push_back({"float_to_half" + d.suffix, array_size, [&] { fp16::float_to_half(d.floats, d.halves); },
                     "raw_f16c_float_to_half" + d.suffix});
    cases.push_back({"portable_float_to_half" + d.suffix, array_size,
                     [&] { fp16::float_to_half(d.floats, d.halves, {}, {.path = fp16::VectorPath::portable}); }});
    cases.push_back({"raw_f16c_half_to_float" + d.suffix, array_size,
                     [&] { bench::raw_f16c_half_to_float(d.halves.data(), d.back.data(), array_size); }});
    cases.push_back({"half_to_float" + d.suffix, array_size, [&] { fp16::half_to_float(d.halves, d.back); },
                     "raw_f16c_half_to_float" + d.suffix});
  }
}

void add_products(std::vector<Case>& cases) {
  constexpr std::size_t n = product_size;
  constexpr double products = static_cast<double>(n) * n * n;
  static std::vector<float> a = normal_values(n * n, "a"), b = normal_values(n * n, "b"), c(n * n);
  for (std::vector<float>* matrix : {&a, &b}) {
    for (float& x : *matrix) x = fp16::half(x);
  }
  const fp16::MatrixOperand left{a.data(), fp16::binary32, n, n, n}, right{b.data(), fp16::binary32, n, n, n};
  cases.push_back({"eigen_float", products, [] { bench::eigen_product(a.data(), b.data(), c.data(), n); }});
  for (const auto& [name, accumulation] : {std::pair{"gemm_fp32_chain", fp16::Accumulation::fp32_fma_chain},
                                           std::pair{"gemm_fp16_fma", fp16::Accumulation::fp16_fma_chain}}) {
    const auto work = [=] { fp16::gemm(left, right, c.data(), n, accumulation); };
    work();
    fp16::half in_half(0.0f);
    float in_float = 0;
    for (std::size_t k = 0; k < n; ++k) {
      in_half = fp16::fma(fp16::half(a[7 * n + k]), fp16::half(b[k * n + 11]), in_half);
      in_float = std::fma(a[7 * n + k], b[k * n + 11], in_float);
    }
    const bool fp16 = accumulation == fp16::Accumulation::fp16_fma_chain;
    require(c[7 * n + 11] == (fp16 ? float(in_half) : in_float), name);
    cases.push_back({name, products, work, "eigen_float"});
  }
}

void add_histogram(std::vector<Case>& cases) {
  static const std::vector<float> values = gradient_like_values(array_size);
  sim::ExponentHistogram check;
  check.add(values);
  require(check.total() == array_size, "exponent_histogram");
  cases.push_back({"exponent_histogram", array_size, [] {
                     sim::ExponentHistogram histogram;
                     histogram.add(values);
                     benchmark::DoNotOptimize(histogram.max_abs());
                   }});
}

/// Whole training steps of each model under each policy, without twin or statistics.
void add_steps(std::vector<Case>& cases) {
  for (const sim::ModelRow& model : sim::models()) {
    for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
      auto options = std::make_shared<experiments::TrainingOptions>();
      options->model = model.name;
      auto setup = std::make_shared<experiments::TrainingSetup>(*options);
      auto trainer =
          std::make_shared<sim::Trainer>(setup->trainer(policy.name, sim::make_scaler("dynamic"), 0));
      cases.push_back({fmt::format("step_{}_{}", model.name, policy.name), 1,
                       [options, setup, trainer] { trainer->step(); }});
    }
  }
}

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
  double median(const std::string& name) {
    std::vector<double>& times = seconds_.at(name);
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

 private:
  std::map<std::string, std::vector<double>> seconds_;
};

void time_all(const std::vector<Case>& cases, const Options& options, Medians& medians) {
  for (const Case& timed : cases) {
    benchmark::RegisterBenchmark(timed.name.c_str(),
                                 [&timed](benchmark::State& state) {
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
}

std::string rate_text(double rate) {
  for (const auto& [unit, factor] : {std::pair{" G", 1e9}, std::pair{" M", 1e6}, std::pair{" k", 1e3}}) {
    if (rate >= factor) return fmt::format("{:.3g}{}", rate / factor, unit);
  }
  return fmt::format("{:.3g}", rate);
}

void run(experiments::Run& run, const Options& options) {
  std::vector<Case> cases;
  add_conversions(cases);
  add_products(cases);
  add_histogram(cases);
  add_steps(cases);
  Medians medians;
  time_all(cases, options, medians);

  std::map<std::string, double> rates;
  for (const Case& timed : cases) rates[timed.name] = timed.items / medians.median(timed.name);
  experiments::TextTable table{.columns = {"case", "per second", "held against", "its rate", "ratio"},
                               .rows = {}};
  for (const Case& timed : cases) {
    run.record().summary("rate." + timed.name, rates[timed.name]);
    if (timed.limit.empty()) {
      table.rows.push_back({timed.name, rate_text(rates[timed.name]), "-", "-", "-"});
      continue;
    }
    const double limit = rates.at(timed.limit);
    run.record().summary("limit." + timed.name, limit);
    run.record().summary("ratio." + timed.name, rates[timed.name] / limit);
    table.rows.push_back({timed.name, rate_text(rates[timed.name]), timed.limit, rate_text(limit),
                          fmt::format("{:.2f}", rates[timed.name] / limit)});
  }
  run.record().verdict(table.text());
  run.record().verdict(
      fmt::format("Medians of {} repetitions on one thread, cases interleaved; conversions of 2^20 elements, "
                  "products of {} x {} matrices, steps with each model's own batch.",
                  options.repetitions, product_size, product_size));
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
                   .summary_keys = {{"rate.<case>", "elements, products or steps per second"},
                                    {"limit.<case>", "the rate of what it is held against"},
                                    {"ratio.<case>", "the first over the second; higher is better"}}},
       .options =
           [&](experiments::CommandLine& command_line) {
             command_line.add("--repetitions", options.repetitions, "times that every case is measured",
                              {.minimum = 1, .maximum = 1000, .quick = 3});
             command_line.add("--seconds", options.seconds, "of each repetition of a case, at least",
                              {.minimum = 0.001, .maximum = 10, .quick = 0.02});
           },
       .body = [&](experiments::Run& r) { run(r, options); }});
}
