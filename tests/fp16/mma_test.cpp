#include "fp16/mma.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iomanip>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tests/data_directory.h"
#include "tests/fp16/mma_mutants.h"
#include "tests/fp16/mma_oracle.h"
#include "tests/fp16/mma_probes.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/hard_cases.h"

namespace {

using fp16::TensorCore;
using oracle::mma::Model;
using oracle::mma::Mutation;
using oracle::mma::Output;
using oracle::mma::Probe;

constexpr std::array<std::uint16_t, 2> zeros{}, ones{0x3c00, 0x3c00};
static_assert(fp16::mma_step<fp16::binary32>(fp16::volta, ones, ones, 0x34c00000) == 0x40000001);
static_assert(fp16::mma_step<fp16::binary32>(fp16::hopper, zeros, ones, 0x00000001) == 0x00000001);
static_assert(fp16::mma_dot<fp16::binary16>(fp16::hopper, ones, ones, 0x7c01) == 0x7fff);

constexpr std::array outputs{Output::binary32, Output::binary16};

/// A GPU whose steps have been recorded, in the file <name>_dot<products of a step>.csv.
struct RecordedGpu {
  std::string_view name;
  const TensorCore& core;
  bool in_data = false;  ///< among the test data; other files are read where they are there

  std::string file() const {
    return std::string(name) + "_dot" + std::to_string(core.products_per_step) + ".csv";
  }
};
constexpr std::array recorded_gpus{
    RecordedGpu{"v100", fp16::volta, true},  RecordedGpu{"a100", fp16::ampere, true},
    RecordedGpu{"h100", fp16::hopper, true}, RecordedGpu{"a2", fp16::ampere},
    RecordedGpu{"ada", fp16::ada},           RecordedGpu{"l40s", fp16::ada},
    RecordedGpu{"h200", fp16::hopper},       RecordedGpu{"b200", fp16::blackwell}};
constexpr int recorded_steps = 5000;

/// The GPU's file; nothing where there is none.
std::optional<std::filesystem::path> vectors_of(const RecordedGpu& gpu) {
  const std::optional<std::filesystem::path> folder = test::data_directory();
  if (!folder || !std::filesystem::exists(*folder / "tensor-core" / gpu.file())) return std::nullopt;
  return *folder / "tensor-core" / gpu.file();
}

/// The vectors of every file that there is.
const std::vector<Probe>& all_gpu_vectors() {
  static const std::vector<Probe> vectors = [] {
    std::vector<Probe> read;
    for (const RecordedGpu& gpu : recorded_gpus) {
      if (const auto file = vectors_of(gpu))
        std::ranges::copy(oracle::mma::gpu_vectors(file->string(), gpu.core.name), std::back_inserter(read));
    }
    return read;
  }();
  return vectors;
}

const TensorCore& row(const std::string& name) {
  return *std::ranges::find(fp16::tensor_cores, name, &TensorCore::name);
}

std::uint32_t step(const TensorCore& core, Output output, std::span<const std::uint16_t> a,
                   std::span<const std::uint16_t> b, std::uint32_t c) {
  if (output == Output::binary32) return fp16::mma_step<fp16::binary32>(core, a, b, c);
  return fp16::mma_step<fp16::binary16>(core, a, b, static_cast<std::uint16_t>(c));
}

std::uint32_t dot(const TensorCore& core, Output output, std::span<const std::uint16_t> a,
                  std::span<const std::uint16_t> b, std::uint32_t c) {
  if (output == Output::binary32) return fp16::mma_dot<fp16::binary32>(core, a, b, c);
  return fp16::mma_dot<fp16::binary16>(core, a, b, static_cast<std::uint16_t>(c));
}

/// Rows with numbers of their own; the others repeat those of an earlier one.
std::vector<TensorCore> distinct_cores() {
  std::vector<TensorCore> distinct;
  for (const TensorCore& core : fp16::tensor_cores) {
    const bool known = std::ranges::any_of(distinct, [&](const TensorCore& other) {
      return core.products_per_step == other.products_per_step && core.fraction_bits == other.fraction_bits &&
             core.binary16_floor == other.binary16_floor;
    });
    if (!known) distinct.push_back(core);
  }
  return distinct;
}

Model model_of(const TensorCore& core) {
  Model model;
  model.products_per_step = core.products_per_step;
  model.fraction_bits = core.fraction_bits;
  model.binary32_floor = core.binary32_floor;
  model.binary16_floor = core.binary16_floor;
  return model;
}

bool kills(const Probe& probe, const Model& model) {
  return oracle::mma::dot(model, probe.output, probe.a, probe.b, probe.c) != probe.expected;
}

void hold_to(const std::vector<Probe>& probes, const std::string& name) {
  oracle::Comparison comparison(name);
  for (const Probe& probe : probes) {
    comparison.equal(std::uint64_t{dot(row(probe.core), probe.output, probe.a, probe.b, probe.c)},
                     std::uint64_t{probe.expected}, probe.core + ": " + probe.name, {});
  }
  comparison.finish(probes.size());
}

/// A step of boundary-weighted operands; the kinds reach what the others leave out.
class HardSteps {
 public:
  HardSteps(const TensorCore& core, Output output, std::uint64_t seed)
      : core_(core), output_(output), random_(seed), halves_(seed + 1), singles_(seed + 2) {}

  struct Step {
    std::vector<std::uint16_t> a, b;
    std::uint32_t c;
  };

  Step next() {
    const int kind = random_.below(8);
    const int count =
        random_.below(4) == 0 ? random_.below(core_.products_per_step) : core_.products_per_step;
    Step step{.a = {}, .b = {}, .c = addend(kind)};
    for (int k = 0; k < count; ++k) {
      const bool opposite = kind >= 4 && k % 2 == 1 && random_.below(4) != 0;
      step.a.push_back(opposite ? static_cast<std::uint16_t>(step.a.back() ^ 0x8000) : factor(kind));
      step.b.push_back(opposite ? step.b.back() : factor(kind));
    }
    return step;
  }

 private:
  std::uint16_t factor(int kind) {
    const auto uniform = static_cast<std::uint16_t>(random_.next());
    switch (kind) {
      case 0:  // anything, specials too
        return halves_.next();
      case 1:  // any finite number
      case 4:
        return (uniform & 0x7c00) == 0x7c00 ? static_cast<std::uint16_t>(uniform & 0x83ff) : uniform;
      case 2:  // powers of two: sums of single bits anywhere, ties and bits next to the quantum
      case 5:
        return static_cast<std::uint16_t>((uniform & 0x8000) | power(random_.below(40) - 24));
      case 3:  // powers of two that make products below the floor
        return static_cast<std::uint16_t>((uniform & 0x8000) | power(random_.below(16) - 24));
      case 6:  // subnormal
        return static_cast<std::uint16_t>(uniform & 0x83ff);
      default:  // near 1
        return static_cast<std::uint16_t>((uniform & 0x87ff) | 0x3800);
    }
  }

  std::uint32_t addend(int kind) {
    const int choice = random_.below(4);
    if (choice == 0) return 0;
    const auto sign = static_cast<std::uint32_t>(random_.next());
    const auto half = static_cast<std::uint16_t>(kind == 0 ? halves_.next() : factor(kind));
    if (output_ == Output::binary16) return half;
    if (choice == 1) return kind == 0 ? singles_.next() : (sign & 0x80000000) | single_near_one();
    const auto widened = static_cast<float>(oracle::mma::value_of(Output::binary16, half));
    return std::bit_cast<std::uint32_t>(widened) + static_cast<std::uint32_t>(random_.below(3));
  }

  std::uint32_t single_near_one() {
    const int exponent = 127 + random_.below(60) - 30;
    return static_cast<std::uint32_t>(exponent) << 23 | static_cast<std::uint32_t>(random_.next() & 0x7fffff);
  }

  static int power(int exponent) {
    return exponent >= -14 ? (std::min(exponent, 15) + 15) << 10 : 1 << (exponent + 24);
  }

  const TensorCore& core_;
  Output output_;
  oracle::RandomBits random_;
  oracle::HardHalves halves_;
  oracle::HardFloats singles_;
};

}  // namespace

TEST_CASE("tensor cores: hand-derived results, every row and both accumulators") {
  hold_to(oracle::mma::literal_probes(), "literal");
}

TEST_CASE("tensor cores: bit-equal to the GPU vectors") {
  const auto data = test::data_directory();
  if (!data || !std::filesystem::is_directory(*data / "tensor-core")) {
    MESSAGE("skipped: HALFLAB_DATA_DIR leads to no folder tensor-core");
    return;
  }
  std::string missing;
  std::size_t files = 0;
  for (const RecordedGpu& gpu : recorded_gpus) {
    if (vectors_of(gpu)) {
      ++files;
    } else {
      CHECK_MESSAGE(!gpu.in_data, gpu.file(), " is not in HALFLAB_DATA_DIR, in its folder tensor-core");
      missing += ' ' + gpu.file();
    }
  }
  if (!missing.empty()) MESSAGE("GPU vectors not in HALFLAB_DATA_DIR, in its folder tensor-core:" << missing);
  CHECK(all_gpu_vectors().size() == files * 2 * recorded_steps);
  hold_to(all_gpu_vectors(), "GPU vector");
}

TEST_CASE("tensor cores: a row claims the GPU vectors that there are, and whether they are test data") {
  for (const TensorCore& core : fp16::tensor_cores) {
    bool recorded = false, in_data = false;
    for (const RecordedGpu& gpu : recorded_gpus) {
      if (gpu.core.name != core.name) continue;
      recorded = true;
      in_data |= gpu.in_data;
    }
    CHECK_MESSAGE((core.evidence != fp16::Evidence::literature) == recorded, core.name);
    CHECK_MESSAGE((core.evidence == fp16::Evidence::gpu_vectors) == in_data, core.name);
  }
}

TEST_CASE("tensor cores: the step against its definition in fixed point, in any order of the products") {
  constexpr int steps = 200'000;
  for (const TensorCore& core : distinct_cores()) {
    for (const Output output : outputs) {
      const oracle::mma::Parameters parameters{
          .products_per_step = core.products_per_step,
          .fraction_bits = core.fraction_bits,
          .alignment_floor = output == Output::binary32 ? core.binary32_floor : core.binary16_floor};
      HardSteps hard_steps(core, output, 1 + static_cast<std::uint64_t>(core.fraction_bits));
      oracle::Comparison forward(std::string(core.name)), backward(std::string(core.name) + " reversed");
      for (int i = 0; i < steps; ++i) {
        auto [a, b, c] = hard_steps.next();
        const std::uint64_t expected = oracle::mma::step(parameters, output, a, b, c);
        forward.equal(std::uint64_t{step(core, output, a, b, c)}, expected, "step", {c});
        std::ranges::reverse(a);
        std::ranges::reverse(b);
        backward.equal(std::uint64_t{step(core, output, a, b, c)}, expected, "step", {c});
      }
      forward.finish(steps);
      backward.finish(steps);
    }
  }
}

TEST_CASE("tensor cores: a dot product is the chain of its steps, the last one filled up with zeros") {
  for (const TensorCore& core : fp16::tensor_cores) {
    const auto length = static_cast<std::size_t>(core.products_per_step);
    for (const Output output : outputs) {
      HardSteps hard_steps(core, output, 7);
      for (int i = 0; i < 2000; ++i) {
        HardSteps::Step first = hard_steps.next(), second = hard_steps.next();
        for (std::vector<std::uint16_t>* operands : {&first.a, &first.b}) operands->resize(length, 0x8000);
        HardSteps::Step whole = first;
        std::ranges::copy(second.a, std::back_inserter(whole.a));
        std::ranges::copy(second.b, std::back_inserter(whole.b));

        std::uint32_t expected = step(core, output, first.a, first.b, first.c);
        if (!second.a.empty()) {
          for (std::vector<std::uint16_t>* operands : {&second.a, &second.b}) operands->resize(length, 0);
          expected = step(core, output, second.a, second.b, expected);
        }
        REQUIRE(dot(core, output, whole.a, whole.b, whole.c) == expected);
      }
    }
  }
}

namespace {

std::vector<Probe> probes_for(const std::vector<Probe>& probes, const TensorCore& core, Output output) {
  std::vector<Probe> chosen;
  std::ranges::copy_if(probes, std::back_inserter(chosen),
                       [&](const Probe& probe) { return probe.core == core.name && probe.output == output; });
  return chosen;
}

struct Verdict {
  std::string killer;  ///< the first literal that tells the model from the definition; empty if none does
  std::size_t killing_literals = 0;
  std::size_t killing_vectors = 0;
};

/// One core and one accumulator, with the probes that concern them.
struct Bench {
  TensorCore core;
  Output output;
  std::vector<Probe> literals, vectors;

  Verdict judge(const Mutation& mutation) const {
    Model model = model_of(core);
    mutation.apply(model);
    Verdict verdict;
    for (const Probe& probe : literals) {
      if (!kills(probe, model)) continue;
      if (verdict.killing_literals++ == 0) verdict.killer = probe.name;
    }
    verdict.killing_vectors = static_cast<std::size_t>(
        std::ranges::count_if(vectors, [&](const Probe& probe) { return kills(probe, model); }));
    return verdict;
  }
  bool concerns(const Mutation& mutation) const {
    return std::ranges::find(mutation.outputs, output) != mutation.outputs.end();
  }
};

std::vector<Bench> benches() {
  std::vector<Bench> all;
  const std::vector<Probe> literals = oracle::mma::literal_probes();
  for (const Output output : outputs) {
    for (const TensorCore& core : {fp16::volta, fp16::ampere, fp16::hopper})
      all.push_back(
          {core, output, probes_for(literals, core, output), probes_for(all_gpu_vectors(), core, output)});
  }
  return all;
}

}  // namespace

TEST_CASE("tensor cores: the literals alone kill every wrong model, on every core with every accumulator") {
  std::ostringstream table;
  table << "how many literals and GPU vectors kill a wrong model, and the first literal on hopper\n"
        << std::left << std::setw(54) << ""
        << "    volta   ampere   hopper";
  const std::vector<Bench> all = benches();
  for (const Mutation& mutation : oracle::mma::mutants) {
    for (const Output output : mutation.outputs) {
      std::ostringstream counts;
      std::string killer;
      for (const Bench& bench : all) {
        if (bench.output != output) continue;
        const Verdict verdict = bench.judge(mutation);
        CHECK_MESSAGE(verdict.killing_literals > 0, mutation.name, " survives on ", bench.core.name);
        counts << std::setw(4) << verdict.killing_literals << std::setw(5);
        bench.vectors.empty() ? counts << "-" : counts << verdict.killing_vectors;
        killer = verdict.killer;
      }
      table << '\n'
            << std::left << std::setw(54) << mutation.name << std::right << counts.str() << "  " << killer;
    }
  }
  MESSAGE(table.str());
}

TEST_CASE("tensor cores: nothing tells the equivalent models from the definition") {
  const Mutation unchanged{"the definition", {Output::binary32, Output::binary16}, [](Model&) {}};
  std::vector<Mutation> models = oracle::mma::equivalent_models;
  models.push_back(unchanged);
  for (const Bench& bench : benches()) {
    for (const Mutation& mutation : models) {
      if (!bench.concerns(mutation)) continue;
      const Verdict verdict = bench.judge(mutation);
      CHECK_MESSAGE(verdict.killing_literals + verdict.killing_vectors == 0, mutation.name, " is killed on ",
                    bench.core.name, " by ", verdict.killer);
      Model model = model_of(bench.core);
      mutation.apply(model);
      HardSteps hard_steps(bench.core, bench.output, 3);
      for (int i = 0; i < 5000; ++i) {
        const auto [a, b, c] = hard_steps.next();
        REQUIRE(oracle::mma::dot(model, bench.output, a, b, c) == dot(bench.core, bench.output, a, b, c));
      }
    }
  }
}
