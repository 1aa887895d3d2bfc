/// Does half-precision arithmetic give the bits it should: the software half, NVIDIA's host functions, GPUs?
///
/// Every operation of cuda_fp16.h is a row for each subject that has it. The software half is held to double
/// arithmetic rounded once, NVIDIA's functions to the software half, recorded tensor-core steps to the model.
/// Inputs are counted: shards of a domain that is enumerated, sampled from its borders on, or whole.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <limits>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/validate_gpu/cuda_header.h"
#include "experiments/validate_gpu/findings.h"
#include "experiments/validate_gpu/rows.h"
#include "experiments/validate_gpu/shard_file.h"
#include "experiments/validate_gpu/stored_vectors.h"
#include "experiments/validate_gpu/sweep.h"
#include "sim/registry.h"

namespace experiments::validate_gpu {
namespace {

constexpr std::string_view recorded_steps = "recorded_steps";

struct Options {
  std::string operations = "all";
  std::string device = "cpu";
  std::uint64_t samples = 1 << 22;
  bool exhaustive = false;
  bool restart = false;
  std::string other_shards;
};

std::vector<std::string> operation_names() {
  std::vector<std::string> names = sim::names_of(operations());
  names.emplace_back(recorded_steps);
  return names;
}

/// Throws std::invalid_argument, naming the nearest one, for a name that is none.
std::vector<std::string> chosen_names(const std::string& text) {
  const std::vector<std::string> allowed = operation_names();
  if (text == "all") return allowed;
  std::vector<std::string> names;
  for (const auto& part : std::views::split(text, ',')) {
    const std::string name(part.begin(), part.end());
    if (std::ranges::find(allowed, name) == allowed.end()) {
      const auto nearest = sim::nearest_name(name, allowed);
      throw std::invalid_argument(
          fmt::format("unknown operation '{}'; {}allowed: all, or names that --help lists", name,
                      nearest ? "did you mean '" + *nearest + "'? " : ""));
    }
    names.push_back(name);
  }
  return names;
}

void require_device(const std::string& device) {
  if (device == "cpu") return;
  if (device == "cuda")
    throw std::invalid_argument(
        "--device: 'cuda' needs a program built with CUDA kernels, and this one has "
        "none; allowed: cpu");
  throw std::invalid_argument(fmt::format("--device: '{}' is not allowed; allowed: cpu, cuda", device));
}

std::vector<Finding> find_all(const Options& options, ShardFile& shards, const std::filesystem::path& file,
                              Run& run) {
  const std::vector<std::string> names =
      from_option("--op", [&] { return chosen_names(options.operations); });
  const auto is_chosen = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  SweepSettings settings{
      .rows = {},
      .samples = options.exhaustive ? std::numeric_limits<std::uint64_t>::max() : options.samples,
      .file = file};
  for (std::size_t row = 0; row < rows().size(); ++row) {
    if (is_chosen(rows()[row].operation->name)) settings.rows.push_back(row);
  }
  std::vector<Finding> findings;
  for (const RowOutcome& outcome : sweep(settings, shards, run)) findings.push_back(finding_of(outcome));
  if (!is_chosen(recorded_steps)) return findings;
  for (const VectorFile& vectors : vector_files())
    std::ranges::move(vector_findings(vector_folder(), vectors), std::back_inserter(findings));
  return findings;
}

void write_comparison(Run& run, const ShardFile& ours, const ShardFile& theirs, const std::string& name) {
  const ShardComparison comparison = compare(ours, theirs);
  run.record().summary("shards_compared", comparison.shards_in_both);
  run.record().summary("shards_differing", comparison.shards_differing);
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

std::string setting_text(const Options& options) {
  const std::string header = cuda_header_version().empty()
                                 ? "built without cuda_fp16.h"
                                 : fmt::format("cuda_fp16.h of {}", cuda_header_version());
  const std::string inputs =
      options.exhaustive
          ? "whole domains"
          : fmt::format("at least {} inputs of each larger domain, its borders first", options.samples);
  return fmt::format(
      "On the CPU, {}; {}. No figure of errors in ulp is drawn: the functions that it is about "
      "exist on GPUs alone.",
      header, inputs);
}

void run(Run& run, const Options& options, std::string& for_screen) {
  require_device(options.device);
  const std::filesystem::path file = run.record().directory() / "shards.bin";
  const bool goes_on = !options.restart && std::filesystem::exists(file);
  ShardFile shards =
      goes_on ? ShardFile::read(file, shard_lines(), ShardFile::Use::go_on) : ShardFile(shard_lines());
  const auto others =
      options.other_shards.empty() ? std::nullopt : std::optional(from_option("--compare", [&] {
        return ShardFile::read(options.other_shards, shard_lines(), ShardFile::Use::compare);
      }));

  const std::vector<Finding> findings = find_all(options, shards, file, run);
  write_tables(run.record(), findings);
  write_summary(run.record(), findings);
  write_verdict(run.record(), findings);
  if (const std::uint64_t wrong = mismatches(findings); wrong != 0)
    run.fail(fmt::format("{} results are not what is documented; see counterexamples.csv", wrong));
  if (others) write_comparison(run, shards, *others, options.other_shards);
  run.record().verdict(setting_text(options));
  for_screen = timing_text(findings);
  if (goes_on)
    for_screen +=
        fmt::format("\nShards that {} held already were not run again (--restart does).\n", file.string());
}

}  // namespace
}  // namespace experiments::validate_gpu

int main(int argc, char** argv) {
  using namespace experiments;
  validate_gpu::Options options;
  std::string for_screen;
  const int exit_code = run(
      argc, argv,
      {.program = {.name = "validate_gpu",
                   .question =
                       "Does half-precision arithmetic give the bits it should: the software half, NVIDIA's "
                       "host functions, GPUs?",
                   .example = "validate_gpu --op hadd,hfma --samples 100000000 --out results/bits",
                   .summary_keys =
                       {{"device", "cpu"},
                        {"rows, rows_run, rows_not_run",
                         "operations by subjects; not run: what they need is missing"},
                        {"rows_failed", "with a mismatch that is not documented"},
                        {"rows_exhaustive", "of those run, on every input of their domain"},
                        {"inputs", "of all rows"},
                        {"mismatches", "results that are not the expected bits"},
                        {"documented_deviations", "results that differ from the software half as documented"},
                        {"cuda_fp16.h", "CUDA version of NVIDIA's header, or \"none\""},
                        {"shards_compared, shards_differing", "with --compare: by their digests"}},
                   .details = fmt::format("Finished shards are kept in shards.bin in --out, and a run goes "
                                          "on where an earlier one of the "
                                          "same revision stopped.\nTime and rate stand on the screen and in "
                                          "timing.csv alone.\n\nOperations: {}",
                                          fmt::join(validate_gpu::operation_names(), ", "))},
       .options =
           [&](CommandLine& command_line) {
             command_line.add("--op", options.operations, "operations, separated by commas, or all", "NAMES");
             command_line.add("--device", options.device, "where the rows run: cpu", "DEVICE");
             command_line.add("--samples", options.samples, "inputs of a row, rounded up to whole shards",
                              {.minimum = 1, .maximum = std::uint64_t{1} << 48, .quick = 1 << 20});
             command_line.add_flag("--exhaustive", options.exhaustive, "every input of every domain");
             command_line.add_flag("--restart", options.restart, "does not go on from shards.bin");
             command_line.add("--compare", options.other_shards, "shards.bin of another machine", "FILE");
           },
       .body = [&](Run& r) { validate_gpu::run(r, options, for_screen); }});
  if (exit_code == 0 || exit_code == 1) std::cout << for_screen;
  return exit_code;
}
