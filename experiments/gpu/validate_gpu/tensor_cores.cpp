#include "experiments/gpu/validate_gpu/tensor_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <ranges>
#include <span>
#include <stdexcept>
#include <utility>

#include "experiments/frame/columns.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "fp16/codec.h"
#include "fp16/cuda/device.h"
#include "fp16/formats.h"

namespace experiments::validate_gpu {
namespace {

namespace cuda = fp16::cuda;

NumberType accumulator_of(const probes::TensorCoreInstruction& instruction) {
  return {.bits = instruction.accumulator == probes::AccumulatorFormat::binary32 ? 32 : 16};
}

Example example_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family,
                   const probes::DotCounterexample& found) {
  const NumberType accumulator = accumulator_of(instruction);
  Example example{.kind = "value", .bits = {}, .values = {}};
  const auto put = [&](std::size_t cell, NumberType type, std::uint32_t code) {
    const auto append = [](std::string& texts, const std::string& text) {
      if (!texts.empty()) texts += ' ';
      texts += text;
    };
    append(example.bits[cell], bits_text(type, code));
    append(example.values[cell], value_text(type, code));
  };
  const probes::DotProduct& product = found.product;
  for (int k = product.first; k < product.first + product.count; ++k) {
    put(0, half_number, product.a[k]);
    put(1, half_number, product.b[k]);
  }
  put(2, accumulator, product.c);
  put(3, accumulator, found.found);
  put(4, accumulator, found.expected);
  if (family.family == probes::DotFamily::open_questions) {
    const auto question = std::ranges::find(probes::open_questions(), instruction.accumulator,
                                            &probes::OpenQuestion::accumulator);
    example.kind = fmt::format("{}: {}", question->name,
                               found.found == question->other_answer ? question->other : "a third answer");
  }
  if (example.values[3] == "nan" && example.values[4] == "nan") example.kind = "NaN";
  if (!family.needs_model()) example.kind += fmt::format(", variant {}", found.variant);
  return example;
}

RowAnswer row_answer(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family,
                     const probes::TensorCoreResult& result) {
  RowAnswer row{.result = {.digest = result.digest,
                           .mismatches = result.mismatches,
                           .documented = 0,
                           .other_nans = result.nan_mismatches,
                           .misrounded = 0},
                .examples = {}};
  for (const probes::DotCounterexample& found : result.counterexamples)
    row.examples.push_back(example_of(instruction, family, found));
  return row;
}

DeviceAnswer answer_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family,
                       std::uint32_t shard) {
  const fp16::TensorCore& core = cuda::tensor_core_of(cuda::device().compute_capability);
  const probes::DotRange all = probes::shard_range(instruction, family, shard);
  const probes::TensorCoreResult result = probes::run(instruction, family, all, core);
  RowAnswer row = row_answer(instruction, family, result);
  prepend_value_examples(row, {.first = all.first, .count = all.count}, [&](probes::Range part) {
    const probes::DotRange numbers{.first = part.first, .count = part.count};
    return row_answer(instruction, family, probes::run(instruction, family, numbers, core));
  });
  return {.time_s = 1e-3 * result.milliseconds, .rows = {std::move(row)}};
}

/// Whether the row stands for all inputs that there are; of one product only where its accumulator has 16 bits.
bool is_enumerated(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  const bool all_triples = instruction.accumulator == probes::AccumulatorFormat::binary16;
  return family.is_enumerated() && (family.family != probes::DotFamily::one_product || all_triples);
}

/// Before all functions, but for wgmma (sweep.cpp says why).
bool is_asked_first(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  constexpr int warp = 32;
  return family.family == probes::DotFamily::open_questions && instruction.threads == warp;
}

Driver driver_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  const std::string name = tensor_core_operation(instruction, family);
  const Operation& operation = *std::ranges::find(operations(), name, &Operation::name);
  const Domain domain{.name = family.name,
                      .meaning = family.what,
                      .is_complete = is_enumerated(instruction, family),
                      .operand_count = 3,
                      .shard_count = family.shards(instruction),
                      .shard_size = family.shard_inputs(),
                      .at = nullptr,
                      .boundary_shards = borders::none,
                      .inputs = family.inputs(instruction)};
  return {.functions = {},
          .rows = {row_id(operation, Subject::gpu)},
          .domain = domain,
          .cost = is_asked_first(instruction, family) ? 1u : 16u,
          .run = [&](std::uint32_t shard) { return answer_of(instruction, family, shard); },
          .obstacle = [&] { return probes::unavailable_reason(instruction); }};
}

std::size_t row_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  const std::string operation = tensor_core_operation(instruction, family);
  const auto row = std::ranges::find(rows(), operation, [](const Row& each) { return each.operation->name; });
  return static_cast<std::size_t>(row - rows().begin());
}

bool take_the_same_products(const probes::TensorCoreInstruction& a, const probes::TensorCoreInstruction& b) {
  return a.depth == b.depth && a.accumulator == b.accumulator;
}

constexpr std::size_t most_counterexamples = 8;

/// The factors of so many products, c, d of 32 and d of 16 bits.
std::vector<std::uint32_t> parse_row(std::string_view line, std::size_t products, const std::string& place) {
  const std::size_t columns = 2 * products + 3;
  std::vector<std::uint32_t> values;
  for (const auto& cell : std::views::split(line, ',')) {
    const std::string_view text(cell.begin(), cell.end());
    std::uint32_t value = 0;
    const std::size_t column = values.size();
    const int bits = column == 2 * products || column == 2 * products + 1 ? 32 : 16;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size() || std::uint64_t{value} >> bits != 0)
      throw std::runtime_error(
          fmt::format("{}: '{}' is not a hexadecimal number of {} bits", place, text, bits));
    values.push_back(value);
  }
  if (values.size() != columns)
    throw std::runtime_error(fmt::format("{}: {} cells; the header has {}", place, values.size(), columns));
  return values;
}

void enter(VectorOutcome& outcome, const VectorMismatch& found) {
  ++outcome.steps;
  if (found.result == found.expected) return;
  ++outcome.mismatches;
  if (outcome.counterexamples.size() < most_counterexamples) outcome.counterexamples.push_back(found);
}

const SummaryOf<ShardComparison> agreement_summary{
    {{"instruction_shards_compared", "shards of the same dot products, by two tensor-core instructions",
      &ShardComparison::shards_in_both, "a GPU"},
     {"instruction_shards_differing", "of these, by their digests", &ShardComparison::shards_differing,
      "a GPU"}}};

}  // namespace

void append_tensor_core_drivers(std::vector<Driver>& drivers) {
  for (const probes::TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    for (const probes::InputFamily& family : probes::input_families())
      drivers.push_back(driver_of(instruction, family));
  }
}

ShardComparison compare_instructions(const ShardFile& shards) {
  ShardComparison sum;
  const auto& instructions = probes::tensor_core_instructions();
  for (const probes::TensorCoreInstruction& instruction : instructions) {
    const auto& first = *std::ranges::find_if(
        instructions, [&](const auto& other) { return take_the_same_products(other, instruction); });
    if (&first == &instruction) continue;
    for (const probes::InputFamily& family : probes::input_families()) {
      if (!family.needs_model()) continue;
      const std::size_t row = row_of(instruction, family);
      add(sum, compare(shards.finished(row), shards.finished(row_of(first, family)), rows()[row].id()));
    }
  }
  return sum;
}

Outputs agreement_outputs() {
  return outputs_of(agreement_summary);
}

void write_agreement(Run& run, const ShardFile& shards) {
  const ShardComparison agreement = compare_instructions(shards);
  agreement_summary.write(run.record(), agreement);
  if (agreement.shards_differing != 0) {
    const std::string text =
        fmt::format("tensor-core instructions differ on the same dot products in {} of {} shards, first {}",
                    agreement.shards_differing, agreement.shards_in_both, agreement.first_difference);
    run.record().verdict(fmt::format("Among each other, {}.", text));
    run.fail(text);
  } else if (agreement.shards_in_both != 0) {
    run.record().verdict(fmt::format(
        "Tensor-core instructions of one depth and accumulator gave the same bits among each other in all {} "
        "shards of the same dot products.",
        agreement.shards_in_both));
  }
}

const std::vector<VectorFile>& vector_files() {
  static const std::vector<VectorFile> files{
      {"v100_dot4.csv", fp16::volta}, {"a100_dot8.csv", fp16::ampere}, {"h100_dot16.csv", fp16::hopper}};
  return files;
}

std::optional<std::filesystem::path> vector_folder() {
  const char* const data = std::getenv("HALFLAB_DATA_DIR");
  if (data == nullptr || *data == '\0') return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(data) / "tensor-core";
  return std::filesystem::is_directory(folder) ? std::optional(folder) : std::nullopt;
}

std::vector<VectorOutcome> check_vectors(const std::filesystem::path& folder, const VectorFile& file) {
  const std::string path = (folder / file.name).string();
  std::ifstream stream(path);
  std::string line;
  if (!std::getline(stream, line)) throw std::runtime_error(path + ": cannot be read");
  const auto products = static_cast<std::size_t>(file.core.products_per_step);
  const std::size_t columns = 2 * products + 3;
  if (!line.ends_with(",c_f32,d_f32,d_f16") ||
      static_cast<std::size_t>(std::ranges::count(line, ',')) + 1 != columns)
    throw std::runtime_error(
        fmt::format("{}: the header must be a0..,b0..,c_f32,d_f32,d_f16 with {} products", path, products));

  VectorOutcome wide{.accumulator = "f32"}, narrow{.accumulator = "f16"};
  for (int number = 2; std::getline(stream, line); ++number) {
    const std::vector<std::uint32_t> values =
        parse_row(line, products, fmt::format("{}, line {}", path, number));
    std::vector<std::uint16_t> factors(2 * products);
    std::ranges::transform(values | std::views::take(2 * products), factors.begin(),
                           [](std::uint32_t value) { return static_cast<std::uint16_t>(value); });
    const std::span<const std::uint16_t> a(factors.data(), products), b(factors.data() + products, products);
    const std::uint32_t c = values[2 * products];
    const std::uint16_t narrow_c = fp16::convert<fp16::binary16, fp16::binary32>(c).bits;
    enter(wide, {.line = number,
                 .result = values[2 * products + 1],
                 .expected = fp16::mma_step<fp16::binary32>(file.core, a, b, c)});
    enter(narrow, {.line = number,
                   .result = values[2 * products + 2],
                   .expected = fp16::mma_step<fp16::binary16>(file.core, a, b, narrow_c)});
  }
  return {wide, narrow};
}

std::vector<Finding> vector_findings(const std::optional<std::filesystem::path>& folder,
                                     const VectorFile& file) {
  std::vector<VectorOutcome> outcomes{{.accumulator = "f32"}, {.accumulator = "f16"}};
  if (folder) outcomes = check_vectors(*folder, file);
  std::vector<Finding> findings;
  for (const VectorOutcome& outcome : outcomes) {
    Finding finding{.operation = fmt::format("step_{}_{}", file.core.name, outcome.accumulator),
                    .family = "tensor core",
                    .subject = "recorded steps",
                    .reference = "tensor-core model",
                    .domain = std::string(file.name),
                    .pipe = "tensor core",
                    .obstacle = folder ? "" : "needs HALFLAB_DATA_DIR",
                    .is_complete_domain = false,
                    .inputs_possible = outcome.steps,
                    .inputs = outcome.steps,
                    .inputs_now = outcome.steps,
                    .mismatches = outcome.mismatches,
                    .deviation = {},
                    .examples = {}};
    const NumberType accumulator{.bits = outcome.accumulator == "f32" ? 32 : 16};
    for (const VectorMismatch& found : outcome.counterexamples) {
      Example example{.kind = "value", .bits = {}, .values = {}};
      append_lane(example, {.operand = {}, .result = accumulator, .operand_count = 0},
                  {.operands = {}, .result = found.result, .expected = found.expected});
      example.bits[0] = fmt::format("line {}", found.line);
      finding.examples.push_back(std::move(example));
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace experiments::validate_gpu
