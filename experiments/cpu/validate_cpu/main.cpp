/// Do the half instructions of processors give the bits, and raise the exceptions, that they should?
///
/// Every instruction in every mode is a row, held to the software half and to what the processor's manual says
/// otherwise. Instructions are executed by a program for their processor: here, in an emulator, or elsewhere.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cpu/validate_cpu/processors.h"
#include "experiments/cpu/validate_cpu/sweep.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/experiment.h"
#include "experiments/frame/installation.h"
#include "experiments/training/families.h"
#include "experiments/training/laboratory.h"
#include "experiments/validation/findings.h"

namespace experiments::validate_cpu {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> families;
  std::string rows;
  std::string emulation = "auto";
  std::uint64_t samples = usual_samples;
  bool exhaustive = false;
  bool restart = false;
  std::string from;
};

std::vector<Variant> family_variants() {
  std::vector<Variant> variants;
  for (const Family& family : families())
    variants.push_back(
        {std::string(family.name), std::string(family.processor), std::string(family.meaning)});
  return variants;
}

std::vector<Variant> row_variants() {
  std::vector<Variant> variants;
  for (const Family& family : families()) {
    for (const Instruction& row : family.instructions())
      variants.push_back({row.name, std::string(family.name), std::string(row.group)});
  }
  return variants;
}

/// The laboratory with the families that this program chooses from beside the shared ones.
Laboratory laboratory() {
  static const std::vector<experiments::Family> all = [] {
    const Families shared = experiments::families();
    std::vector<experiments::Family> joined(shared.begin(), shared.end());
    joined.push_back({.name = "families", .variants = family_variants, .details = nullptr});
    joined.push_back({.name = "rows", .variants = row_variants, .details = nullptr});
    return joined;
  }();
  return {.families = all, .arithmetic = arithmetic_of_this_process};
}

Emulation emulation_called(const std::string& name) {
  if (name == "auto") return Emulation::where_needed;
  if (name == "always") return Emulation::always;
  if (name == "never") return Emulation::never;
  throw UsageError(fmt::format("--emulator: '{}' is not allowed; allowed: auto, always, never", name));
}

/// A file tells how far its rows were tried and by whom.
void require_nothing_beside_from(const Options& options) {
  constexpr const char* reason = "is of rows that are run, and --from takes what a program alone has found";
  if (emulation_called(options.emulation) != Emulation::where_needed)
    throw UsageError(fmt::format("--emulator: {}", reason));
  if (options.exhaustive) throw UsageError(fmt::format("--exhaustive: {}", reason));
  if (options.samples != usual_samples) throw UsageError(fmt::format("--samples, or --quick: {}", reason));
}

/// The processors of the chosen families in the file.
std::vector<Processor> processors_from(const Options& options) {
  std::vector<Processor> recorded = recorded_processors(options.from);
  if (recorded.empty()) throw std::runtime_error(fmt::format("file '{}' has no row", options.from));
  std::vector<std::string_view> names;
  for (const Processor& each : recorded) names.push_back(each.family->name);
  std::erase_if(recorded, [&](const Processor& each) {
    return std::ranges::find(options.families, each.family->name) == options.families.end();
  });
  if (recorded.empty())
    throw UsageError(fmt::format("--families: file '{}' has no row of {}; it has: {}", options.from,
                                 fmt::join(options.families, ", "), fmt::join(names, ", ")));
  return recorded;
}

std::vector<Processor> processors_of(const Options& options) {
  if (!options.from.empty()) {
    require_nothing_beside_from(options);
    return processors_from(options);
  }
  if (options.exhaustive && options.samples != usual_samples)
    throw UsageError("--samples, or --quick: is given with --exhaustive, which runs all; must be without");
  const fs::path programs = program_folder();
  const Emulation emulation = emulation_called(options.emulation);
  std::vector<Processor> processors;
  for (const std::string& name : options.families)
    processors.push_back(processor_for(*family_called(name), emulation, programs));
  return processors;
}

std::vector<std::size_t> chosen_rows(const std::vector<Row>& rows, const std::string& text) {
  std::vector<std::size_t> chosen;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const Instruction& instruction = rows[row].instruction();
    if (instruction.name.find(text) != std::string::npos ||
        instruction.group.find(text) != std::string_view::npos)
      chosen.push_back(row);
  }
  if (chosen.empty())
    throw UsageError(fmt::format(
        "--rows: '{}' is in no name of a row and of a group of rows; --list rows shows them", text));
  return chosen;
}

std::string subject_sentence(const std::vector<Finding>& findings) {
  std::vector<std::string> subjects;
  for (const Finding& finding : findings) {
    if (finding.ran() && std::ranges::find(subjects, finding.subject) == subjects.end())
      subjects.push_back(finding.subject);
  }
  return subjects.empty() ? "" : fmt::format("Executed: {}.", fmt::join(subjects, "; "));
}

const SummaryOf<std::vector<Finding>> exception_summary{
    {{"rows_emulated", "of those run, by an emulator", [](auto& findings) {
        return std::ranges::count_if(findings, [](const Finding& each) {
          return each.ran() && each.subject.find("an emulator") != std::string::npos;
        });
      }}}};

void run(Run& run, const Options& options, std::string& for_screen) {
  const std::vector<Processor> processors = processors_of(options);
  const std::vector<Row> rows = rows_of(processors);
  const fs::path file = run.record().directory() / "shards.bin";
  const bool goes_on = options.from.empty() && !options.restart && fs::exists(file);
  ShardFile shards = goes_on ? ShardFile::read(file, shard_lines(rows), ShardFile::Use::go_on)
                             : ShardFile(shard_lines(rows));
  const SweepSettings settings{.rows = chosen_rows(rows, options.rows),
                               .samples = options.exhaustive ? std::uint64_t{1} << 48 : options.samples,
                               .file = file};
  std::vector<Finding> findings;
  for (const RowOutcome& outcome : sweep(rows, settings, shards, run))
    findings.push_back(finding_of(rows[outcome.row], outcome));
  write_tables(run.record(), findings);
  write_summary(run.record(), findings);
  exception_summary.write(run.record(), findings);
  write_verdict(run.record(), findings);
  if (const std::string sentence = subject_sentence(findings); !sentence.empty())
    run.record().verdict(sentence);
  if (const std::uint64_t wrong = mismatches(findings); wrong != 0)
    run.fail(fmt::format("{} results are not what is documented; see counterexamples.csv", wrong));
  for_screen = timing_text(findings);
  if (goes_on)
    for_screen +=
        fmt::format("\nShards that {} held already were not run again (--restart does).\n", file.string());
}

experiments::Program program() {
  std::string names;
  for (const Family& family : families())
    names += fmt::format("\n  {}: {}, {} rows; rules: {}", family.name, family.meaning,
                         family.instructions().size(), family.rules);
  return {.name = "validate_cpu",
          .question =
              "Do the half instructions of processors give the bits, and raise the exceptions, that they "
              "should?",
          .example = "validate_cpu --families f16c --rows vcvtps2ph --out results/f16c",
          .outputs = outputs_of(validation::finding_outputs(), exception_summary),
          .details = fmt::format(
              "A row is an instruction in one mode. Instructions are executed by the program "
              "validate_cpu_PROCESSOR "
              "beside this one: on this processor, in QEMU, or alone on another machine, whose file --from "
              "makes a "
              "record of.\nValues and exceptions are judged; lanes of a register raise their exceptions "
              "together, and "
              "beyond the first 2^22 inputs of a row values are judged alone.\nFinished shards are kept in "
              "shards.bin "
              "in --out, and a run goes on where an earlier one of the same revision stopped.\n\nFamilies:{}",
              names)};
}

void add_options(CommandLine& command_line, Options& options) {
  for (const Family& family : families()) options.families.emplace_back(family.name);
  command_line.add_choices("--families", options.families, "families", "families of instructions");
  command_line.add("--rows", options.rows, "only rows whose name or group holds this text", "TEXT");
  command_line.add("--emulator", options.emulation, "auto: for other processors than this one; always; never",
                   "WHEN");
  command_line.add("--samples", options.samples, "inputs of a row, rounded up to whole shards of 65,536",
                   {.minimum = 1, .maximum = most_samples, .quick = quick_samples});
  command_line.add_flag("--exhaustive", options.exhaustive, "every input of every domain");
  command_line.add_flag("--restart", options.restart, "does not go on from shards.bin");
  command_line.add("--from", options.from, "what a program alone has found, in the place of running any",
                   "FILE");
}

}  // namespace
}  // namespace experiments::validate_cpu

int main(int argc, char** argv) {
  using namespace experiments;
  validate_cpu::Options options;
  std::string for_screen;
  const int exit_code = experiments::run(
      argc, argv,
      {.program = validate_cpu::program(),
       .options = [&](CommandLine& command_line) { validate_cpu::add_options(command_line, options); },
       .body = [&](Run& r) { validate_cpu::run(r, options, for_screen); }},
      validate_cpu::laboratory());
  if (exit_code == 0 || exit_code == 1) std::cout << for_screen;
  return exit_code;
}
