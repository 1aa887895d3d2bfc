#include "experiments/training/memory_need.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/parallel.h"
#include "experiments/training/training_setup.h"
#include "sim/models/registry.h"
#include "sim/optimizers/registry.h"
#include "sim/tensor/allocation_trace.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using experiments::MemoryDemand;
using experiments::RunChoice;
using experiments::TrainingOptions;
using experiments::TrainingSetup;

namespace {

constexpr int batch = 7;

/// What a run with that batch takes: by all that its thread allocates, and by its own account.
struct Measured {
  std::int64_t traced = 0;
  std::uint64_t charged = 0;
};

Measured measure(const TrainingSetup& setup, const RunChoice& choice) {
  sim::AllocationTrace trace;
  sim::Trainer trainer = setup.trainer(choice);
  trace.restart();
  for (int applied = 0, made = 0; applied < 2 && made < 40; ++made) applied += !trainer.step().skipped();
  return {.traced = std::ranges::max(trace.levels()), .charged = trainer.memory().peak_bytes()};
}

std::uint64_t forecast(const TrainingSetup& setup, const RunChoice& choice) {
  const sim::PrecisionPolicy policy = sim::make_precision_policy(choice.policy);
  const auto [name, given] = names::parse_numeric_spec(choice.scaler);
  return setup.forecast(choice, policy, sim::make_any_scaler(name, given), setup.budget()).peak_bytes(batch);
}

/// The line that a step with so many examples is refused with; empty where it is not.
std::string refusal(std::uint64_t examples, std::uint64_t available, std::uint64_t side_by_side = 1) {
  TrainingOptions options{.model = "mlp:hidden1=8:hidden2=4"};
  const TrainingSetup setup(options);
  const sim::MemoryForecast needed =
      setup.forecast({}, sim::find_precision_policy("fp32"), sim::make_any_scaler("none"), setup.budget());
  try {
    experiments::require_steps_fit({.run = "mlp under fp32",
                                    .batch = examples,
                                    .side_by_side = side_by_side,
                                    .available = {available, "are free"}},
                                   needed);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("memory: the peak of every model under every policy is known to the byte, twins and all") {
  for (const sim::ModelRow& row : sim::models()) {
    TrainingOptions options{.model = std::string(row.name), .batch = batch, .steps = 2};
    const TrainingSetup setup(options);
    for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
      INFO(row.name, " under ", policy.name);
      const RunChoice choice{.policy = std::string(policy.name), .scaler = policy.scaler_spec()};
      const Measured alone = measure(setup, choice);
      CHECK(forecast(setup, choice) == static_cast<std::uint64_t>(alone.traced));
      CHECK(forecast(setup, choice) == alone.charged);
    }
    for (const char* policy : {"fp32", "amp"}) {
      INFO(row.name, " with a twin under ", policy);
      const RunChoice choice{
          .policy = policy, .twin_every = 2, .accumulation_steps = 3, .clipping = {.max_norm = 1}};
      const Measured with_twin = measure(setup, choice);
      CHECK(forecast(setup, choice) == static_cast<std::uint64_t>(with_twin.traced));
      CHECK(static_cast<std::uint64_t>(with_twin.traced) > with_twin.charged);
    }
  }
}

TEST_CASE("memory: the peak of several ranks is known to the byte, and their account is that of rank 0") {
  TrainingOptions options{.model = "cnn:channels=2", .batch = batch, .steps = 2};
  const TrainingSetup setup(options);
  const std::uint64_t of_one_example = setup
                                           .forecast({.policy = "O2"}, sim::make_precision_policy("O2"),
                                                     sim::make_any_scaler("none"), setup.budget())
                                           .peak_bytes(1);
  for (const bool sync : {false, true}) {
    const RunChoice choice{.policy = "O2", .parallel = {.ranks = batch, .sync_batch_norm = sync}};
    const Measured measured = measure(setup, choice);
    CHECK(forecast(setup, choice) == static_cast<std::uint64_t>(measured.traced));
    CHECK(of_one_example == measured.charged);
  }
}

TEST_CASE("memory: a refused batch is a multiple of the ranks") {
  TrainingOptions options{.model = "mlp:hidden1=8:hidden2=4"};
  const TrainingSetup setup(options);
  const sim::MemoryForecast needed =
      setup.forecast({.parallel = {.ranks = 8}}, sim::find_precision_policy("fp32"),
                     sim::make_any_scaler("none"), setup.budget());
  CHECK(needed.smallest_batch() == 8);
  CHECK(needed.largest_batch(needed.peak_bytes(96), 5000) == 96);
  CHECK(needed.largest_batch(needed.peak_bytes(96) - 1, 5000) == 88);
  CHECK(needed.largest_batch(needed.peak_bytes(96), 50) == 48);
  CHECK(needed.largest_batch(needed.peak_bytes(8) - 1, 5000) == 0);
}

TEST_CASE("memory: what parameters take alone is part of what a run takes, for every optimizer") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    for (const char* name : {"fp32", "O2", "fp16", "fp64"}) {
      INFO(row.name, " under ", name);
      TrainingOptions options{
          .model = "mlp:hidden1=40:hidden2=24", .optimizer = std::string(row.name), .batch = 1};
      const TrainingSetup setup(options);
      const sim::PrecisionPolicy& policy = sim::find_precision_policy(name);
      sim::Trainer trainer = setup.trainer({.policy = name});
      const auto charged = [&](sim::MemoryRole role) { return trainer.memory().current_bytes(role); };
      std::uint64_t expected = charged(sim::MemoryRole::weights) + charged(sim::MemoryRole::master_weights) +
                               charged(sim::MemoryRole::optimizer_state);
      trainer.step();
      const std::vector<sim::Tensor>& weights = trainer.state().weights;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const fp16::Format seen = sim::model_format(policy, trainer.state().specs[i]);
        expected += weights[i].size() *
                    static_cast<std::uint64_t>(seen.size_bytes() + policy.unscaled_gradients.size_bytes());
      }
      CHECK(experiments::parameter_bytes(setup.model(), policy, row.name) == expected);
      CHECK(expected < trainer.memory().peak_bytes());
    }
  }
}

TEST_CASE("memory: the batch that a refusal names fits, and one more does not") {
  TrainingOptions options{.model = "mlp:hidden1=8:hidden2=4"};
  const TrainingSetup setup(options);
  const sim::MemoryForecast needed =
      setup.forecast({}, sim::find_precision_policy("fp32"), sim::make_any_scaler("none"), setup.budget());
  const std::uint64_t of_100 = needed.peak_bytes(100);
  CHECK(needed.largest_batch(of_100, 5000) == 100);
  CHECK(needed.largest_batch(of_100 - 1, 5000) == 99);
  CHECK(needed.largest_batch(of_100, 50) == 50);
  CHECK(needed.largest_batch(needed.peak_bytes(1) - 1, 50) == 0);

  CHECK(refusal(100, of_100) == "");
  CHECK(refusal(100, 2 * of_100, 2) == "");
  const std::string needs = "mlp under fp32 needs " + experiments::bytes_text(needed.peak_bytes(300)) +
                            " for tensors at --batch 300, and ";
  // Half is left for blocks that are kept, and for what is no tensor.
  const std::uint64_t all = 2 * of_100 + 1;
  CHECK(refusal(300, all) ==
        needs + experiments::bytes_text(all) + " of memory are free; allowed: --batch up to 100");
  CHECK(refusal(300, 9) == needs +
                               "8.58e-06 MiB of memory are free; allowed: a smaller network, not even "
                               "--batch 1 fits");
  CHECK(refusal(300, needed.peak_bytes(1) * 3 / 2)
            .ends_with("allowed: --batch 1, which leaves little room, or a smaller network"));
  CHECK(refusal(300, needed.peak_bytes(1) - 1).ends_with("not even --batch 1 fits"));
  CHECK(refusal(300, 3 * all, 3).starts_with("3 runs of mlp under fp32, side by side, need "));
  CHECK(refusal(300, 3 * all, 3)
            .ends_with("allowed: --batch up to 100, or fewer runs at one time (--threads)"));
}

TEST_CASE("memory: runs of one policy's name that differ in its formats, or in number, are looked at each") {
  TrainingOptions options{.model = "mlp:hidden1=300:hidden2=100", .batch = 1};
  const TrainingSetup setup(options);
  const sim::PrecisionPolicy& small = sim::find_precision_policy("O2");
  sim::PrecisionPolicy large = small;
  large.weights = large.optimizer_state = large.unscaled_gradients = large.update_operations = fp16::binary64;
  const auto peak = [&](const sim::PrecisionPolicy& policy) {
    const sim::AnyScaler none = sim::make_any_scaler("none");
    return static_cast<double>(setup.forecast({}, policy, none, setup.budget()).peak_bytes(1));
  };
  const double between =
      std::sqrt(peak(small) * peak(large));  // so far from both that other processes do not matter
  REQUIRE(between > 1.2 * peak(small));
  const auto runs = static_cast<std::size_t>(static_cast<double>(sim::available_memory().bytes) / between);
  CHECK_NOTHROW(setup.trainer({}, large));
  const experiments::SideBySide side_by_side(runs);
  CHECK_NOTHROW(setup.trainer({}, small));
  CHECK_THROWS_WITH_AS(setup.trainer({}, large), doctest::Contains(" runs of mlp:"), std::runtime_error);
}

TEST_CASE("memory: what there is, is the least of machine, control groups and limits") {
  const test::TemporaryDirectory root;
  const auto write = [&root](const fs::path& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  const auto available = [&root] { return sim::available_memory(root.path()).bytes; };
  CHECK(available() == std::numeric_limits<std::uint64_t>::max());
  write("proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:    5000 kB\nSwapFree: 1000 kB\n");
  CHECK(available() == 6000 * 1024);
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/memory.max", "4000000\n");
  CHECK(available() == 4000000);
  write("sys/fs/cgroup/outer/memory.current", "3000000\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 500000\n");
  CHECK(available() == 1500000);
  write("sys/fs/cgroup/outer/inner/memory.high", "1000000\n");
  CHECK(available() == 1000000);
  CHECK(sim::available_memory(root.path()).bound == "are left by the control group");
  write("sys/fs/cgroup/memory.max", "999\n");  // what a container sees of its own
  CHECK(available() == 999);
  write("proc/self/cgroup", "4:memory:/group\n");
  write("sys/fs/cgroup/memory/group/memory.limit_in_bytes", "700\n");
  write("sys/fs/cgroup/memory/group/memory.usage_in_bytes", "800\n");
  CHECK(available() == 0);
}

TEST_CASE("memory: where it runs out, the line says over what") {
  const auto run_out = []() -> int { throw std::bad_alloc(); };
  CHECK_THROWS_WITH_AS(experiments::while_doing("reading --data 'x'", run_out),
                       "memory ran out while reading --data 'x'", std::runtime_error);
}
