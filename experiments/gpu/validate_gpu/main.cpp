/// Does half-precision arithmetic give the bits it should: the software half, NVIDIA's host functions, GPUs?
///
/// Every operation of cuda_fp16.h is a row for each subject that has it. The software half is held to double
/// arithmetic rounded once, NVIDIA's functions to the software half, recorded tensor-core steps to the model.
/// Inputs are counted: shards of a domain that is enumerated, sampled from its borders on, or whole. On a GPU the
/// device tries and judges the inputs itself: all 2^16 or 2^32 of most functions, 2^48 of the fused ones.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/gpu/validate_gpu/findings.h"
#include "experiments/gpu/validate_gpu/functions.h"
#include "experiments/gpu/validate_gpu/nan_census.h"
#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/sweep.h"
#include "experiments/gpu/validate_gpu/tensor_cores.h"
#include "experiments/gpu/vendor/gpu_information.h"
#include "experiments/training/laboratory.h"
#include "experiments/validation/numbers.h"
#include "experiments/validation/shards.h"
#include "fp16/cuda/device.h"

namespace experiments::validate_gpu {
namespace {

constexpr double census_s_beside_budget = 30;

struct Options {
  std::string operations = "all";
  std::string device = "auto";
  std::uint64_t samples = 1 << 22;
  std::uint64_t gpu_samples = std::uint64_t{1} << 38;
  std::optional<double> budget_s;
  bool all_triples = false;
  bool exhaustive = false;
  bool restart = false;
  std::string other_shards;
};

using Chosen = std::function<bool(std::string_view name)>;

/// Where rows run.
struct Devices {
  bool cpu = true;
  std::optional<fp16::cuda::Device> gpu;

  std::string_view name() const { return !gpu ? "cpu" : cpu ? "all" : "cuda"; }
};

const SummaryOf<Devices> device_summary{{{"device", "cpu, cuda (the GPU alone) or all", &Devices::name}}};

/// Throws std::invalid_argument for another name, std::runtime_error where there is no device but one is asked for.
Devices devices_called(const std::string& name) {
  if (name == "cpu") return {};
  if (name == "auto" && !fp16::cuda::available()) return {};
  if (name == "auto") return {.cpu = true, .gpu = fp16::cuda::device()};
  if (name != "cuda" && name != "all")
    throw std::invalid_argument(
        fmt::format("--device: '{}' is not allowed; allowed: auto, cpu, cuda, all", name));
  if (const std::string reason = fp16::cuda::unavailable_reason(); !reason.empty())
    throw std::runtime_error(fmt::format("--device {}: {}", name, reason));
  return {.cpu = name == "all", .gpu = fp16::cuda::device()};
}

void note_gpu(RunRecord& record, const fp16::cuda::Device& device, ShardFile& shards) {
  record.gpu(gpu_information(device));
  record.setting("cuda_runtime", cuda_version_text(device.runtime));
  shards.set_gpu(device.name);
}

/// The rows that the run is about, and how far.
SweepSettings settings_of(const Options& options, const Devices& devices, const Chosen& is_chosen) {
  constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  SweepSettings settings{.rows = {},
                         .file = {},
                         .on_cpu = devices.cpu,
                         .on_gpu = devices.gpu.has_value(),
                         .samples = options.exhaustive ? all : options.samples,
                         .gpu_samples = options.exhaustive ? all : options.gpu_samples,
                         .all_triples = options.all_triples,
                         .budget_s = options.budget_s};
  for (std::size_t row = 0; row < rows().size(); ++row) {
    if (is_chosen(rows()[row].operation->name)) settings.rows.push_back(row);
  }
  return settings;
}

void require_triples(const SweepSettings& settings) {
  const bool has_any = std::ranges::any_of(settings.rows, [](std::size_t row) {
    return rows()[row].is_on_gpu() && rows()[row].operation->family == fused_family;
  });
  if (!settings.all_triples || (settings.on_gpu && has_any)) return;
  throw std::invalid_argument(
      settings.on_gpu
          ? fmt::format("--fma48: is of the family {}, of which --op chooses no operation", fused_family)
          : "--fma48: is of rows on a GPU, and none run on one (--device)");
}

/// The findings of the rows, then those of the recorded steps.
std::vector<Finding> findings_of(const std::vector<RowOutcome>& outcomes, const DeviceFailures& failures,
                                 const Chosen& is_chosen) {
  std::vector<Finding> findings;
  for (const RowOutcome& outcome : outcomes) findings.push_back(finding_of(outcome, failures));
  if (!is_chosen(recorded_steps)) return findings;
  for (const VectorFile& vectors : vector_files())
    std::ranges::move(vector_findings(vector_folder(), vectors), std::back_inserter(findings));
  return findings;
}

const SummaryOf<ShardComparison> comparison_summary{
    {{"shards_compared", "finished both here and in the given file", &ShardComparison::shards_in_both,
      "--compare"},
     {"shards_differing", "of these, by their digests", &ShardComparison::shards_differing, "--compare"}}};

void write_comparison(Run& run, const ShardFile& ours, const ShardFile& theirs, const std::string& name) {
  const ShardComparison comparison = compare(ours, theirs);
  comparison_summary.write(run.record(), comparison);
  if (comparison.shards_in_both == 0) {
    run.record().verdict(fmt::format("No shard is finished both here and in {}: nothing is compared.", name));
  } else if (comparison.shards_differing == 0) {
    run.record().verdict(
        fmt::format("All {} shards that are finished both here and in {} have the same results.",
                    comparison.shards_in_both, name));
  } else {
    const std::string text =
        fmt::format("{} of {} shards differ from {}, first {}", comparison.shards_differing,
                    comparison.shards_in_both, name, comparison.first_difference);
    run.record().verdict(text + '.');
    run.fail(text);
  }
}

std::string cpu_sentence(const Options& options) {
  const std::string header = cuda_header_version().empty()
                                 ? "built without cuda_fp16.h"
                                 : fmt::format("cuda_fp16.h of {}", cuda_header_version());
  const std::string inputs = options.exhaustive
                                 ? "whole domains"
                                 : fmt::format("at least {} inputs of each larger domain, its borders first",
                                               long_number(options.samples));
  return fmt::format("On the CPU, {}: {}.", header, inputs);
}

std::string gpu_sentence(const fp16::cuda::Device& device) {
  return fmt::format("On {} (compute capability {}.{}, CUDA {} of {}).", device.name,
                     device.compute_capability / 10, device.compute_capability % 10,
                     cuda_version_text(device.runtime), cuda_version_text(device.driver));
}

/// Where the rows ran, and why those on a GPU did not.
void write_setting(RunRecord& record, const Options& options, const Devices& devices,
                   const std::vector<RowOutcome>& outcomes) {
  const auto is_on_gpu = [](const RowOutcome& outcome) { return rows()[outcome.row].is_on_gpu(); };
  const bool ran_on_cpu = std::ranges::any_of(
      outcomes, [&](const RowOutcome& outcome) { return !is_on_gpu(outcome) && outcome.inputs != 0; });
  std::vector<std::string> sentences;
  if (ran_on_cpu) sentences.push_back(cpu_sentence(options));
  if (std::ranges::any_of(outcomes, is_on_gpu)) {
    if (devices.gpu)
      sentences.push_back(gpu_sentence(*devices.gpu));
    else if (options.device == "auto")
      sentences.push_back(fmt::format("Rows on a GPU did not run: {}.", fp16::cuda::unavailable_reason()));
  }
  if (!sentences.empty()) record.verdict(fmt::format("{}", fmt::join(sentences, " ")));
}

void run(Run& run, const Options& options, std::string& for_screen) {
  const Devices devices = devices_called(options.device);
  const std::filesystem::path file = run.record().directory() / "shards.bin";
  const bool goes_on = !options.restart && std::filesystem::exists(file);
  ShardFile shards =
      goes_on ? ShardFile::read(file, shard_lines(), ShardFile::Use::go_on) : ShardFile(shard_lines());
  const auto others =
      options.other_shards.empty() ? std::nullopt : std::optional(from_option("--compare", [&] {
        return ShardFile::read(options.other_shards, shard_lines(), ShardFile::Use::compare);
      }));
  const std::vector<std::string> names =
      from_option("--op", [&] { return chosen_names(options.operations); });
  const Chosen is_chosen = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (devices.gpu) note_gpu(run.record(), *devices.gpu, shards);

  SweepSettings settings = settings_of(options, devices, is_chosen);
  require_triples(settings);
  settings.file = file;
  DeviceFailures failures;
  const std::vector<RowOutcome> outcomes = sweep(settings, shards, run, failures);
  const std::vector<FunctionErrors> errors =
      function_errors(is_chosen, devices.cpu, devices.gpu ? probes::tabulate : Tabulate(), failures);
  const std::size_t left_out =
      write_nan_census(run.record(), settings.rows,
                       {.on_cpu = devices.cpu,
                        .drivers = devices.gpu ? &device_drivers() : nullptr,
                        .device_s = options.budget_s ? std::optional(census_s_beside_budget) : std::nullopt},
                       failures);
  const std::vector<Finding> findings = findings_of(outcomes, failures, is_chosen);
  write_tables(run.record(), findings);
  device_summary.write(run.record(), devices);
  write_summary(run.record(), findings);
  write_header_summary(run.record());
  write_verdict(run.record(), findings, failures);
  write_functions(run, errors);
  if (left_out != 0)
    run.record().verdict(
        fmt::format("{} rows on the GPU are not in nan_census.csv: a run with a budget ends it after {} s.",
                    left_out, census_s_beside_budget));
  if (const std::uint64_t wrong = mismatches(findings); wrong != 0)
    run.fail(fmt::format("{} results are not what is documented; see counterexamples.csv", wrong));
  if (!failures.all().empty()) run.fail("the device failed at " + failures.all().front().text);
  if (devices.gpu) write_agreement(run, shards);
  if (others) write_comparison(run, shards, *others, options.other_shards);
  write_setting(run.record(), options, devices, outcomes);
  for_screen = timing_text(findings);
  if (goes_on)
    for_screen +=
        fmt::format("\nShards that {} held already were not run again (--restart does).\n", file.string());
}

Program program() {
  return {.name = "validate_gpu",
          .question =
              "Does half-precision arithmetic give the bits it should: the software half, NVIDIA's "
              "host functions, GPUs?",
          .example = "validate_gpu --op hadd,hfma --samples 100000000 --out results/bits",
          .outputs = outputs_of(device_summary, finding_outputs(), header_outputs(), function_outputs(),
                                census_outputs(), agreement_outputs(), comparison_summary),
          .details =
              "Finished shards are kept in shards.bin in --out, and a run goes on where an "
              "earlier one of the same revision stopped (where the source was modified, of the "
              "same build), on a GPU of the same name.\nTime and rate stand on the screen and "
              "in timing.csv alone; errors of functions in functions.csv, NaNs by NaNs in "
              "nan_census.csv.\n--device auto is all with a CUDA device, else cpu. A GPU takes "
              "whole domains of up to 2^32 inputs; of the 2^48 of a fused multiply-add 64 of "
              "the 65,536 shards, of a tensor core up to 2^34 steps."};
}

void add_options(CommandLine& command_line, Options& options) {
  command_line.add("--op", options.operations,
                   fmt::format("operations (--list operations) or families, separated by commas, or all. "
                               "Families: {}",
                               families_text()),
                   "NAMES");
  command_line.add("--device", options.device, "where the rows run: auto, cpu, cuda, all", "DEVICE");
  command_line.add("--samples", options.samples, "inputs of a row on the CPU, rounded up to whole shards",
                   {.minimum = 1, .maximum = std::uint64_t{1} << 48, .quick = 1 << 20});
  command_line.add("--gpu-samples", options.gpu_samples,
                   "inputs of a row on a GPU, rounded up to whole shards of up to 2^32; of tensor cores a "
                   "sixteenth",
                   {.minimum = 1, .maximum = std::uint64_t{1} << 48, .quick = std::uint64_t{1} << 34});
  command_line.add("--budget", options.budget_s,
                   "seconds after which no shard is begun; the next run goes on. The census of "
                   "NaNs on a GPU has 30 more",
                   {.minimum = 0});
  command_line.add_flag("--fma48", options.all_triples,
                        "on a GPU all 2^48 operands of the fused multiply-adds");
  command_line.add_flag("--exhaustive", options.exhaustive, "every input of every domain");
  command_line.add_flag("--restart", options.restart, "does not go on from shards.bin");
  command_line.add("--compare", options.other_shards, "shards.bin of another machine", "FILE");
}

}  // namespace
}  // namespace experiments::validate_gpu

int main(int argc, char** argv) {
  using namespace experiments;
  validate_gpu::Options options;
  std::string for_screen;
  const int exit_code =
      run(argc, argv,
          {.program = validate_gpu::program(),
           .options = [&](CommandLine& command_line) { validate_gpu::add_options(command_line, options); },
           .body = [&](Run& r) { validate_gpu::run(r, options, for_screen); }},
          {.families = validate_gpu::operation_family(), .arithmetic = arithmetic_of_this_process});
  if (exit_code == 0 || exit_code == 1) std::cout << for_screen;
  return exit_code;
}
