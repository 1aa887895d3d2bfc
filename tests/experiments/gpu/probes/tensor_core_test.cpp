#include "experiments/gpu/probes/tensor_core.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iomanip>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/probes/tensor_core_inputs.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/mix.h"
#include "fp16/mma.h"
#include "tests/fp16/mma_mutants.h"

namespace cuda = fp16::cuda;
namespace probes = experiments::probes;

namespace {

using fp16::TensorCore;
using oracle::mma::Model;
using oracle::mma::Mutation;
using oracle::mma::Output;
using probes::AccumulatorFormat;
using probes::DotFamily;
using probes::DotProduct;
using probes::InputFamily;
using probes::TensorCoreInstruction;

/// One of each depth and accumulator: all that decides about the operands.
std::vector<TensorCoreInstruction> distinct_instructions() {
  std::vector<TensorCoreInstruction> distinct;
  for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    const bool known = std::ranges::any_of(distinct, [&](const TensorCoreInstruction& other) {
      return other.depth == instruction.depth && other.accumulator == instruction.accumulator;
    });
    if (!known) distinct.push_back(instruction);
  }
  return distinct;
}

/// Rows with numbers of their own.
const std::array distinct_cores{fp16::volta, fp16::ampere, fp16::hopper};

const InputFamily& family(DotFamily wanted) {
  return *std::ranges::find(probes::input_families(), wanted, &InputFamily::family);
}

/// The i-th of a sample of a family's numbers.
std::uint64_t sampled_number(const TensorCoreInstruction& instruction, DotFamily wanted, std::uint64_t i) {
  return cuda::mix(i + 1) % family(wanted).inputs(instruction);
}

bool is_nan(const TensorCoreInstruction& instruction, std::uint32_t code) {
  if (instruction.accumulator == AccumulatorFormat::binary32) return fp16::is_nan<fp16::binary32>(code);
  return fp16::is_nan<fp16::binary16>(static_cast<std::uint16_t>(code));
}

std::uint32_t whole_dot(const TensorCore& core, const TensorCoreInstruction& instruction,
                        const DotProduct& product) {
  const auto depth = static_cast<std::size_t>(instruction.depth);
  const auto a = std::span(product.a).first(depth), b = std::span(product.b).first(depth);
  if (instruction.accumulator == AccumulatorFormat::binary32)
    return fp16::mma_dot<fp16::binary32>(core, a, b, product.c);
  return fp16::mma_dot<fp16::binary16>(core, a, b, static_cast<std::uint16_t>(product.c));
}

}  // namespace

TEST_CASE("tensor-core inputs: the model of a dot product is mma_dot over the whole depth") {
  for (const TensorCoreInstruction& instruction : distinct_instructions()) {
    for (const InputFamily& inputs : probes::input_families()) {
      for (const TensorCore& core : distinct_cores) {
        for (std::uint64_t i = 0; i < 4000; ++i) {
          const DotProduct product =
              probes::dot_product(instruction, inputs.family, sampled_number(instruction, inputs.family, i));
          REQUIRE(probes::model_result(core, instruction, product) == whole_dot(core, instruction, product));
        }
      }
    }
  }
}

TEST_CASE("tensor-core inputs: the families hold what they say") {
  for (const TensorCoreInstruction& instruction : distinct_instructions()) {
    CAPTURE(instruction.name);
    // Every NaN in every slot of a and b, and in c.
    std::set<std::uint32_t> operand_nans, addend_nans;
    const InputFamily& specials = family(DotFamily::specials);
    for (std::uint64_t number = 0; number < specials.inputs(instruction); ++number) {
      const DotProduct product = probes::dot_product(instruction, DotFamily::specials, number);
      for (int k = 0; k < instruction.depth; ++k) {
        const auto slot = static_cast<std::uint32_t>(k) << 17;
        if (fp16::is_nan<fp16::binary16>(product.a[k])) operand_nans.insert(slot | product.a[k]);
        if (fp16::is_nan<fp16::binary16>(product.b[k])) operand_nans.insert(slot | 0x10000 | product.b[k]);
      }
      if (is_nan(instruction, product.c)) addend_nans.insert(product.c);
    }
    CHECK(operand_nans.size() == std::size_t{2046} * 2 * static_cast<std::size_t>(instruction.depth));
    CHECK(addend_nans.size() >= 2046);

    // Every gap, and every number of carries, of the structure: its lowest and its highest digit.
    const std::uint64_t inputs = family(DotFamily::structure).inputs(instruction);
    const auto terms = static_cast<std::uint64_t>(instruction.depth + 1);
    CHECK(inputs % (61 * terms * terms) == 0);
    for (std::uint64_t carries = 1; carries < terms; ++carries) {
      // At the largest gap from 2^30 the small term is 2^-30.
      const std::uint64_t number = inputs / 61 * 60 + carries - 1 + terms * (terms - 1);
      const DotProduct product = probes::dot_product(instruction, DotFamily::structure, number);
      const auto large = std::ranges::count(product.a, 0x7800);
      CHECK(static_cast<std::uint64_t>(large) == carries);
      CHECK(product.c == (instruction.accumulator == AccumulatorFormat::binary32 ? 0x30800000 : 0));
    }
  }
  const TensorCoreInstruction half = distinct_instructions()[1];
  REQUIRE(half.accumulator == AccumulatorFormat::binary16);
  const DotProduct product = probes::dot_product(half, DotFamily::one_product, 0x123456789abc);
  CHECK(std::ranges::count(product.a, 0x1234) == 1);
  CHECK(std::ranges::count(product.b, 0x5678) == 1);
  CHECK(product.c == 0x9abc);
}

TEST_CASE("tensor-core inputs: an open question has one answer of the model, and another one") {
  for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    const auto question = std::ranges::find(probes::open_questions(), instruction.accumulator,
                                            &probes::OpenQuestion::accumulator);
    REQUIRE(question != probes::open_questions().end());
    REQUIRE(family(DotFamily::open_questions).inputs(instruction) == 1);
    const DotProduct product = probes::dot_product(instruction, DotFamily::open_questions, 0);
    for (const TensorCore& core : fp16::tensor_cores)
      CHECK(probes::model_result(core, instruction, product) == question->model_answer);
    CHECK(question->other_answer != question->model_answer);
  }
}

TEST_CASE("tensor-core inputs: a number is the same dot product everywhere") {
  // Digests of results can be compared between machines only if compilers agree on this.
  const TensorCoreInstruction instruction = distinct_instructions()[2];
  REQUIRE(instruction.depth == 16);
  std::uint64_t digest = 0;
  for (const InputFamily& inputs : probes::input_families()) {
    if (inputs.family == DotFamily::open_questions) continue;  // has one number
    for (std::uint64_t number = 1000; number < 3000; ++number) {
      const DotProduct product = probes::dot_product(instruction, inputs.family, number);
      for (int k = 0; k < instruction.depth; ++k)
        digest = probes::digest_of(digest, product.a[k], product.b[k]);
      digest = probes::digest_of(digest, product.c, 0);
    }
  }
  CHECK(digest == 11148020264913607243u);
}

TEST_CASE("tensor-core inputs: shards are the numbers without a gap") {
  for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    for (const InputFamily& inputs : probes::input_families()) {
      const std::uint32_t shards = inputs.shards(instruction);
      std::uint64_t next = 0;
      for (std::uint32_t shard = 0; shard < shards; ++shard) {
        const probes::DotRange range = probes::shard_range(instruction, inputs, shard);
        REQUIRE(range.first == next);
        next += range.count;
      }
      CHECK(next == inputs.inputs(instruction));
      CHECK_THROWS_AS(probes::shard_range(instruction, inputs, shards), std::invalid_argument);
    }
  }
  CHECK(family(DotFamily::random).inputs(probes::tensor_core_instructions()[0]) >= 10'000'000'000);
}

TEST_CASE("tensor-core inputs: the model of a device") {
  CHECK(cuda::tensor_core_of(70).name == "volta");
  CHECK(cuda::tensor_core_of(75).name == "turing");
  CHECK(cuda::tensor_core_of(80).name == "ampere");
  CHECK(cuda::tensor_core_of(86).name == "ampere");
  CHECK(cuda::tensor_core_of(89).name == "ada");
  CHECK(cuda::tensor_core_of(90).name == "hopper");
  CHECK(cuda::tensor_core_of(100).name == "blackwell");
  CHECK(cuda::tensor_core_of(120).name == "blackwell");
}

namespace {

constexpr std::array model_families{DotFamily::random, DotFamily::structure, DotFamily::specials,
                                    DotFamily::one_product};

/// A dot product and the model's result.
struct Judged {
  DotProduct product;
  std::uint32_t expected;
};

std::vector<Judged> judged_sample(const TensorCore& core, const TensorCoreInstruction& instruction,
                                  DotFamily wanted, int count) {
  std::vector<Judged> sample;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t number = sampled_number(instruction, wanted, static_cast<std::uint64_t>(i));
    const DotProduct product = probes::dot_product(instruction, wanted, number);
    sample.push_back({product, probes::model_result(core, instruction, product)});
  }
  return sample;
}

Output output_of(const TensorCoreInstruction& instruction) {
  return instruction.accumulator == AccumulatorFormat::binary32 ? Output::binary32 : Output::binary16;
}

Model definition_of(const TensorCore& core) {
  Model model;
  model.products_per_step = core.products_per_step;
  model.fraction_bits = core.fraction_bits;
  model.binary32_floor = core.binary32_floor;
  model.binary16_floor = core.binary16_floor;
  return model;
}

std::uint32_t result_of(const Model& model, const TensorCoreInstruction& instruction,
                        const DotProduct& product) {
  const auto depth = static_cast<std::size_t>(instruction.depth);
  return oracle::mma::dot(model, output_of(instruction), std::span(product.a).first(depth),
                          std::span(product.b).first(depth), product.c);
}

/// Judges wrong models by what a core computes with one depth and accumulator.
class Jury {
 public:
  static constexpr int sample_size = 500;
  static constexpr int most_random =
      60'000;  ///< looked at until the first one kills, when the samples do not

  Jury(const TensorCore& core, const TensorCoreInstruction& instruction)
      : instruction_(instruction), definition_(definition_of(core)) {
    random_ = judged_sample(core, instruction, DotFamily::random, most_random);
    for (const DotFamily wanted : model_families)
      samples_.push_back(judged_sample(core, instruction, wanted, sample_size));
  }

  /// Whether dot products of this depth can show the mistake at all.
  bool concerns(const Mutation& mutation) const {
    if (std::ranges::find(mutation.outputs, output_of(instruction_)) == mutation.outputs.end()) return false;
    const Model wrong = mutated(mutation);
    const int depth = instruction_.depth, length = definition_.products_per_step;
    if (wrong.products_per_step != length) return steps(wrong) != steps(definition_);
    if (wrong.descending_steps) return depth > length;
    if (wrong.drop_incomplete_step) return depth > length && depth % length != 0;
    return true;
  }

  /// How many of each family's sample kill the wrong model.
  std::vector<int> kills(const Mutation& mutation) const {
    const Model wrong = mutated(mutation);
    std::vector<int> counts;
    for (const std::vector<Judged>& sample : samples_)
      counts.push_back(static_cast<int>(
          std::ranges::count_if(sample, [&](const Judged& judged) { return kills(judged, wrong); })));
    return counts;
  }

  /// The place in the random numbers of the first one that kills it; `most_random` if none does.
  std::ptrdiff_t first_random_kill(const Mutation& mutation) const {
    const Model wrong = mutated(mutation);
    return std::ranges::find_if(random_, [&](const Judged& judged) { return kills(judged, wrong); }) -
           random_.begin();
  }

 private:
  int steps(const Model& model) const {
    return (instruction_.depth + model.products_per_step - 1) / model.products_per_step;
  }
  Model mutated(const Mutation& mutation) const {
    Model wrong = definition_;
    mutation.apply(wrong);
    return wrong;
  }
  bool kills(const Judged& judged, const Model& wrong) const {
    return result_of(wrong, instruction_, judged.product) != judged.expected;
  }

  TensorCoreInstruction instruction_;
  Model definition_;
  std::vector<Judged> random_;
  std::vector<std::vector<Judged>> samples_;
};

}  // namespace

TEST_CASE("tensor-core inputs: the families kill every wrong model, on every core with every accumulator") {
  std::ostringstream table;
  table << "wrong models killed by " << Jury::sample_size
        << " numbers of random, structure, specials and one product, or else by the n-th random number";
  for (const TensorCoreInstruction& instruction : distinct_instructions()) {
    for (const TensorCore& core : distinct_cores) {
      const Jury jury(core, instruction);
      table << "\ndepth " << instruction.depth << ", " << probes::name_of(instruction.accumulator) << ", "
            << core.name;
      for (const Mutation& mutation : oracle::mma::mutants) {
        if (!jury.concerns(mutation)) continue;
        const std::vector<int> kills = jury.kills(mutation);
        table << "\n  " << std::left << std::setw(54) << mutation.name << std::right;
        for (const int count : kills) table << std::setw(5) << count;
        if (std::ranges::any_of(kills, [](int count) { return count > 0; })) continue;
        const std::ptrdiff_t number = jury.first_random_kill(mutation);
        table << "  number " << number;
        CHECK_MESSAGE(number < Jury::most_random, mutation.name, " survives: depth ", instruction.depth, ", ",
                      probes::name_of(instruction.accumulator), ", ", core.name);
      }
    }
  }
  MESSAGE(table.str());
}

TEST_CASE("tensor-core inputs: no family tells the equivalent models from the definition") {
  const Mutation unchanged{"the definition", {Output::binary32, Output::binary16}, [](Model&) {}};
  std::vector<Mutation> models = oracle::mma::equivalent_models;
  models.push_back(unchanged);
  for (const TensorCoreInstruction& instruction : distinct_instructions()) {
    for (const TensorCore& core : distinct_cores) {
      const Jury jury(core, instruction);
      for (const Mutation& mutation : models) {
        if (!jury.concerns(mutation)) continue;
        for (const int count : jury.kills(mutation))
          CHECK_MESSAGE(count == 0, mutation.name, " on ", core.name);
      }
    }
  }
}

namespace {

/// Inputs of a family without model that hold for the model itself, or for what `result_of` says instead of it.
template <const fp16::Format& Accumulator, typename ResultOf>
int broken_relations(DotFamily wanted, const TensorCore& core, const TensorCoreInstruction& instruction,
                     ResultOf result_of) {
  using Code = fp16::Bits<Accumulator>;
  const int step = std::min(core.products_per_step, instruction.depth);
  int broken = 0;
  for (std::uint64_t number = 0; number < 2048; ++number) {
    const DotProduct product = probes::dot_product(instruction, wanted, number);
    const auto result = static_cast<Code>(result_of(product));
    // The model knows no places: one stands for all.
    for (int variant = 0; variant < probes::inputs::variants(wanted, step, 1); ++variant) {
      const DotProduct derived =
          probes::inputs::derived_product<Accumulator>(wanted, variant, number, instruction.depth, product);
      const auto found = static_cast<Code>(result_of(derived));
      broken += found != probes::inputs::derived_result<Accumulator>(wanted, variant, result, found);
    }
  }
  return broken;
}

template <typename ResultOf>
int broken_relations(DotFamily wanted, const TensorCore& core, const TensorCoreInstruction& instruction,
                     ResultOf result_of) {
  if (instruction.accumulator == AccumulatorFormat::binary32)
    return broken_relations<fp16::binary32>(wanted, core, instruction, result_of);
  return broken_relations<fp16::binary16>(wanted, core, instruction, result_of);
}

}  // namespace

TEST_CASE("tensor-core inputs: the relations between results hold for every model, and not for a wrong one") {
  for (const TensorCoreInstruction& instruction : distinct_instructions()) {
    for (const TensorCore& core : distinct_cores) {
      for (const InputFamily& inputs : probes::input_families()) {
        if (inputs.needs_model()) continue;
        CAPTURE(inputs.name);
        CAPTURE(core.name);
        const auto model = [&](const DotProduct& product) {
          return probes::model_result(core, instruction, product);
        };
        CHECK(broken_relations(inputs.family, core, instruction, model) == 0);
        // One that hears everything, each code by its place, and how often it was asked.
        std::uint32_t calls = 0;
        const auto wrong = [&](const DotProduct& product) {
          std::uint32_t sum = product.c + ++calls;
          for (int k = 0; k < instruction.depth; ++k) sum = sum * 3 + product.a[k] + 5u * product.b[k];
          return instruction.accumulator == AccumulatorFormat::binary32 ? sum & 0x7f7fffff : sum & 0x7bff;
        };
        CHECK(broken_relations(inputs.family, core, instruction, wrong) > 0);
      }
    }
  }
}

TEST_CASE("tensor-core inputs: the relations between results kill wrong models without the right one") {
  struct Kill {
    DotFamily relation;
    std::string_view mutation;
  };
  constexpr std::array kills{
      Kill{DotFamily::permutation, "alignment runs along with the sum"},
      Kill{DotFamily::permutation, "chain of fused multiply-adds, rounded as the output"},
      Kill{DotFamily::permutation, "pairwise tree, rounded as the output"},
      Kill{DotFamily::permutation, "steps half as long"},
      Kill{DotFamily::negation, "terms rounded toward -infinity"},
      Kill{DotFamily::zero_padding, "products of zero take part in the alignment"},
      Kill{DotFamily::zero_padding, "-0 added to -0 gives -0"}};
  for (const TensorCoreInstruction& instruction : distinct_instructions()) {
    if (instruction.depth != 16) continue;
    for (const Kill& kill : kills) {
      CAPTURE(kill.mutation);
      Model wrong = definition_of(fp16::hopper);
      std::ranges::find(oracle::mma::mutants, kill.mutation, &Mutation::name)->apply(wrong);
      CHECK(broken_relations(kill.relation, fp16::hopper, instruction, [&](const DotProduct& product) {
              return result_of(wrong, instruction, product);
            }) > 0);
    }
  }
}
