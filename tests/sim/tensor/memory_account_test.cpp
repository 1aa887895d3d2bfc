#include "sim/tensor/memory_account.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "sim/optimizers/moment.h"
#include "sim/tensor/tensor.h"
#include "tests/sim/training_runs.h"

using sim::AllocationScope;
using sim::MemoryAccount;
using sim::MemoryRole;
using sim::Tensor;

TEST_CASE("memory account: bytes of elements, by the scope they were allocated in") {
  MemoryAccount account;
  Tensor outside({100}, fp16::binary32);
  {
    const AllocationScope scope(&account, MemoryRole::weights);
    const Tensor halves({10, 10}, fp16::binary16);
    CHECK(account.current_bytes(MemoryRole::weights) == 200);
    {
      const AllocationScope inner(&account, MemoryRole::buffers);
      const Tensor doubles({3}, fp16::binary64);
      CHECK(account.current_bytes(MemoryRole::buffers) == 24);
      CHECK(account.current_bytes() == 224);
      const AllocationScope uncounted(nullptr);
      const Tensor invisible({1000}, fp16::binary32);
      CHECK(account.current_bytes() == 224);
    }
    const Tensor floats({5}, fp16::binary32);
    CHECK(account.current_bytes(MemoryRole::weights) == 220);
  }
  CHECK(account.current_bytes() == 0);
  CHECK(account.peak_bytes() == 224);
  CHECK(account.peak_bytes(MemoryRole::weights) == 220);
  CHECK(account.peak_bytes(MemoryRole::buffers) == 24);
  const Tensor after(outside);
  CHECK(account.current_bytes() == 0);
}

TEST_CASE("memory account: moves keep the charge, copies are charged where they are made") {
  MemoryAccount account, other;
  Tensor kept;
  {
    const AllocationScope scope(&account, MemoryRole::activations);
    Tensor made({4}, fp16::binary32);
    kept = std::move(made);
  }
  CHECK(account.current_bytes(MemoryRole::activations) == 16);
  {
    const AllocationScope scope(&other, MemoryRole::gradients);
    const Tensor copy(kept);
    CHECK(other.current_bytes(MemoryRole::gradients) == 16);
    const Tensor moved(std::move(kept));
    CHECK(other.current_bytes() == 16);
  }
  CHECK(account.current_bytes() == 0);
  CHECK(other.current_bytes() == 0);
  {
    const AllocationScope scope(&account);
    kept = Tensor({4}, fp16::binary16);
  }
  kept.charge_to(MemoryRole::weights);
  CHECK(account.current_bytes(MemoryRole::temporaries) == 0);
  CHECK(account.current_bytes(MemoryRole::weights) == 8);
  CHECK(account.peak_bytes() == 16);
  kept = Tensor({1000}, fp16::binary32);  // outside of every scope
  kept.charge_to(MemoryRole::weights);
  CHECK(account.current_bytes() == 0);
}

TEST_CASE("memory account: an exception on the way gives everything back") {
  MemoryAccount account;
  try {
    const AllocationScope scope(&account);
    const Tensor tensor({7}, fp16::binary32);
    const Tensor impossible({7}, fp16::e4m3);
  } catch (const std::invalid_argument&) {
  }
  CHECK(account.current_bytes() == 0);
  CHECK(account.peak_bytes() == 28);
  const Tensor tensor({7}, fp16::binary32);
  CHECK(account.current_bytes() == 0);
}

TEST_CASE("memory account: moments in blocks take a byte a weight and four a block") {
  MemoryAccount account;
  const AllocationScope scope(&account, MemoryRole::optimizer_state);
  const sim::Moment blocks({.map = &sim::DynamicMap::with_sign()}, 1000);
  CHECK(account.current_bytes(MemoryRole::optimizer_state) == 1000 + 4 * 4);
  const sim::Moment floats({.format = fp16::binary32}, 1000);
  CHECK(account.current_bytes(MemoryRole::optimizer_state) == 5016);
}

TEST_CASE("memory account: every role has a name of its own") {
  std::vector<std::string_view> names;
  for (const MemoryRole role : sim::memory_roles) {
    CHECK(static_cast<std::size_t>(role) == names.size());
    CHECK(std::ranges::find(names, sim::name_of(role)) == names.end());
    names.push_back(sim::name_of(role));
  }
}

namespace {

using training_runs::run;
using training_runs::Run;
using training_runs::Setup;

std::vector<std::size_t> peaks_of(const MemoryAccount& account) {
  std::vector<std::size_t> peaks{account.peak_bytes()};
  for (const MemoryRole role : sim::memory_roles) peaks.push_back(account.peak_bytes(role));
  return peaks;
}

std::size_t parameters_of(const sim::Model& model) {
  std::size_t count = 0;
  for (const sim::ParameterSpec& spec : model.parameters()) count += sim::element_count(spec.shape);
  return count;
}

}  // namespace

TEST_CASE(
    "memory account: what a run keeps between steps is what its policy and optimizer say, per parameter") {
  struct Row {
    std::string policy, optimizer;
    std::size_t weights, masters, state;  // bytes per parameter
  };
  for (const Row& row :
       {Row{"fp32", "sgd", 4, 0, 0}, Row{"fp32", "momentum", 4, 0, 4}, Row{"amp", "adam", 4, 0, 8},
        Row{"O2", "adam", 2, 4, 8}, Row{"O3", "momentum", 2, 0, 2}, Row{"fp64", "adam", 8, 0, 16}}) {
    const Run r = run({.policy = row.policy, .optimizer = row.optimizer}, 2);
    const MemoryAccount& memory = r.trainer.memory();
    const std::size_t n = parameters_of(*r.model);
    INFO(row.policy, " ", row.optimizer);
    CHECK(memory.current_bytes(MemoryRole::weights) == n * row.weights);
    CHECK(memory.peak_bytes(MemoryRole::weights) == n * row.weights);
    CHECK(memory.current_bytes(MemoryRole::master_weights) == n * row.masters);
    CHECK(memory.current_bytes(MemoryRole::optimizer_state) == n * row.state);
    CHECK(memory.current_bytes() == n * (row.weights + row.masters + row.state));
  }
}

TEST_CASE("memory account: the step of an mlp, tensor by tensor") {
  constexpr std::size_t batch = 16, in = 784, h1 = 48, h2 = 32, out = 10;
  constexpr std::size_t parameters = (in + 1) * h1 + (h1 + 1) * h2 + (h2 + 1) * out;
  const auto memory_of = [](const std::string& policy) {
    Run r = run({.policy = policy, .scaler = "none", .optimizer = "sgd"}, 3);
    return peaks_of(r.trainer.memory());
  };
  const auto peak = [](const std::vector<std::size_t>& peaks, MemoryRole role) {
    return peaks[1 + static_cast<std::size_t>(role)];
  };
  SUBCASE("in FP32 and FP16 every element is one format's") {
    for (const auto& [policy, bytes] : {std::pair{"fp32", 4}, std::pair{"O3", 2}}) {
      const std::vector<std::size_t> peaks = memory_of(policy);
      // Inputs, linear maps and ReLUs; the FP32 loss reads FP32 logits and keeps probabilities.
      const std::size_t logits_of_loss = bytes == 4 ? 0 : batch * out * 4;
      CHECK(peak(peaks, MemoryRole::activations) ==
            batch * (in + 2 * h1 + 2 * h2 + out) * bytes + logits_of_loss + batch * out * 4 + 4);
      // Scaled gradients of parameters and layers' outputs, beside the unscaled ones of parameters.
      CHECK(peak(peaks, MemoryRole::gradients) == (2 * parameters + batch * (h1 + h2 + out)) * bytes);
    }
  }
  SUBCASE("autocast keeps FP16 casts of weights on the tape") {
    const std::vector<std::size_t> peaks = memory_of("amp");
    const std::size_t halves = batch * (in + 2 * h1 + 2 * h2 + out) + parameters;
    CHECK(peak(peaks, MemoryRole::activations) ==
          halves * 2 + batch * in * 4 + 2 * batch * out * 4 + 4);  // inputs, logits, probabilities, loss
    CHECK(peak(peaks, MemoryRole::gradients) == 2 * parameters * 4 + batch * (h1 + h2 + out) * 2);
    CHECK(peak(peaks, MemoryRole::weights) == parameters * 4);
  }
}

TEST_CASE("memory account: models with running statistics have them in buffers, and only they") {
  for (const sim::ModelRow& row : sim::models()) {
    const Run r = run({.model = training_runs::small_spec(row.name), .options = {.batch = 4, .seed = 3}}, 1);
    std::size_t bytes = 0;
    for (const sim::ParameterSpec& buffer : r.model->buffers()) bytes += sim::element_count(buffer.shape) * 4;
    INFO(row.name);
    CHECK(r.trainer.memory().current_bytes(MemoryRole::buffers) == bytes);
    CHECK(r.trainer.memory().current_bytes(MemoryRole::activations) == 0);
    CHECK(r.trainer.memory().current_bytes(MemoryRole::gradients) == 0);
    CHECK(r.trainer.memory().current_bytes(MemoryRole::temporaries) == 0);
  }
}

TEST_CASE("memory account: threads, runs beside and instruments change no number") {
  std::vector<std::string> models{"mlp"};  // large enough for threads
  for (const sim::ModelRow& row : sim::models()) models.push_back(training_runs::small_spec(row.name));
  for (const std::string& model : models) {
    const auto peaks = [&model](sim::TrainerOptions options) {
      options.batch = 8;
      options.seed = 3;
      const Setup setup{.model = model, .options = options};
      return peaks_of(run(setup, 3).trainer.memory());
    };
    const std::vector<std::size_t> alone = peaks({});
    INFO(model);
    CHECK(peaks({.threads = 2}) == alone);
    CHECK(peaks({.twin_every = 1, .statistics_every = 1, .record_skips = true}) == alone);
    std::vector<std::size_t> beside;
    std::thread other([&] { beside = peaks({}); });
    CHECK(peaks({}) == alone);
    other.join();
    CHECK(beside == alone);
  }
}
