#include "tools/halflab/selftest/selftest.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "experiments/frame/build_information.h"
#include "experiments/frame/files.h"
#include "experiments/frame/whole_file.h"
#include "tools/halflab/command.h"
#include "tools/halflab/selftest/findings.h"

namespace halflab::selftest {
namespace {

namespace fs = std::filesystem;

struct Options {
  bool numbers = false;
  std::string against, write;
};

void bind(experiments::CommandLine& command_line, Options& options) {
  command_line.add_flag("--numbers", options.numbers,
                        "the numbers alone: no trainings, and no other program is run");
  command_line.add("--against", options.against,
                   "compare with the hashes of another release or machine, in the place of this release's",
                   "FILE");
  command_line.add("--write", options.write, "write the hashes there, in the place of comparing them",
                   "FILE");
}

void write(const std::string& file, const std::vector<HashRow>& rows, experiments::Run& run) {
  HashTable table{.version = std::string(experiments::build_information().version), .entries = {}};
  for (const HashRow& row : rows) {
    if (!row.hash)
      throw std::invalid_argument(
          fmt::format("--write: {}; allowed: where all is run, or --numbers", row.obstacle));
    table.entries.push_back({row.group, row.name, *row.hash});
  }
  experiments::write_file(file, text_of(table));
  run.record().verdict(fmt::format("{} hashes are written to {}.", rows.size(), file));
}

HashTable hashes_in(const std::string& file) {
  constexpr std::uint64_t most_bytes = 16 << 20;
  return parse_hashes(experiments::read_file(file, most_bytes), fmt::format("file '{}'", file));
}

void run_body(experiments::Run& run, const Options& options) {
  if (!options.write.empty() && !options.against.empty())
    throw experiments::UsageError("--write: is given with --against; must be one of them");
  if (!options.write.empty() && !fs::is_directory(fs::absolute(options.write).parent_path()))
    throw experiments::UsageError(fmt::format("--write: '{}' is in no folder that there is", options.write));
  const HashTable table = options.against.empty() ? released_hashes() : hashes_in(options.against);
  std::vector<HashRow> rows = measure(options.numbers, run);
  if (!options.write.empty()) return write(options.write, rows, run);
  const std::string release = fmt::format("Halflab {}", table.version);
  const Findings found =
      compare(std::move(rows), table,
              options.against.empty() ? release : fmt::format("{}, of {}", options.against, release));
  report(run, found);
  if (!found.holds())
    run.fail(found.compared() == 0 ? "nothing was compared"
                                   : fmt::format("different: {}, missing: {}", found.count(State::different),
                                                 found.count(State::missing)));
}

}  // namespace

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program =
           {.name = "halflab selftest",
            .question = "Does this build have the bits of the release?",
            .example = "halflab selftest --numbers",
            .outputs = outputs(),
            .details =
                "Each format, operation, rounding and function, sums, products, blocks and text have a hash, "
                "as have three trainings and the summaries of the demo's programs, where these are "
                "installed. The hashes are FNV-1a of 64 bits over the bytes of results, flags and counts, "
                "least significant byte first. The vector path is the fastest one, or HALFLAB_VECTOR_PATH. "
                "What a release promises is in docs/stability.md. Exit code 0: equal; 1: a hash differs or "
                "is missing; 2: bad usage or input."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body = [&](experiments::Run& run) { run_body(run, options); }},
      streams);
}

}  // namespace halflab::selftest
