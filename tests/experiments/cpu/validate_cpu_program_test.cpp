/// validate_cpu and its programs as their users run them.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "experiments/cpu/instructions/family.h"
#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using programs::Outcome;
using programs::run;
using programs::run_command;
using programs::summary_of;
using test::contains;
using test::content_of;
using test::contents_of;
using test::TemporaryDirectory;

/// In front of every command: what hangs is a failure.
const std::string limit = "timeout 300 ";

/// The program of this processor, with which most of these tests work.
std::string own_program() {
  return "validate_cpu_" + std::string(experiments::validate_cpu::this_processor());
}

const experiments::validate_cpu::Family* own_family() {
  for (const auto& family : experiments::validate_cpu::families()) {
    if (family.processor == experiments::validate_cpu::this_processor()) return &family;
  }
  return nullptr;
}

/// Options for rows that this processor executes itself; empty, with a message, where it has none.
std::string own_rows() {
  const auto* const family = own_family();
  if (family == nullptr || !family->has(family->instructions().front().needs)) {
    MESSAGE("skipped: this processor has none of the families");
    return "";
  }
  return " --families " + std::string(family->name) + " --rows conversion --quick";
}

std::map<std::string, std::string> lasting_contents(const fs::path& directory) {
  std::map<std::string, std::string> files = contents_of(directory);
  CHECK(files.erase("manifest.json") == 1);
  CHECK(files.erase("timing.csv") == 1);
  return files;
}

/// The family's first row that own_rows() chooses.
std::size_t first_conversion() {
  const auto& rows = own_family()->instructions();
  const auto found = std::ranges::find_if(
      rows, [](const auto& row) { return row.group.find("conversion") != std::string_view::npos; });
  REQUIRE(found != rows.end());
  return static_cast<std::size_t>(found - rows.begin());
}

/// Stands between a host and the program of a processor, and turns the lowest bit of one result of a row.
std::string wrong_processor(const std::string& real, const std::string& row_place) {
  return "#!/usr/bin/env python3\n"
         "import mmap, subprocess, sys\n"
         "fd = int(sys.argv[2])\n"
         "memory = mmap.mmap(fd, 0)\n"
         "real = subprocess.Popen(['" +
         real +
         "', '--serve', str(fd)], stdin=subprocess.PIPE,\n"
         "                        stdout=subprocess.PIPE, pass_fds=[fd], text=True, bufsize=1)\n"
         "line = ''\n"
         "while line != 'ready\\n':\n"
         "    line = real.stdout.readline()\n"
         "    print(line, end='', flush=True)\n"
         "for request in sys.stdin:\n"
         "    print(request, end='', file=real.stdin, flush=True)\n"
         "    answer = real.stdout.readline()\n"
         "    if request.split()[2] == '" +
         row_place +
         "':\n"
         "        memory[3 * 65536 * 8 + 4 * 1000] ^= 1\n"
         "    print(answer, end='', flush=True)\n";
}

}  // namespace

TEST_CASE("validate_cpu: the same bytes with 1 and 2 threads, and when it goes on with some of the rows") {
  const std::string options = own_rows();
  if (options.empty()) return;
  const TemporaryDirectory directory;
  const std::string one = directory / "one", two = directory / "two", on = directory / "on";
  const Outcome first = run("validate_cpu" + options + " --threads 1 --out " + one, limit);
  INFO(first.output);
  REQUIRE(first.exit_code == 0);
  CHECK(contains(first.output, "every result is the expected one, bit for bit"));
  CHECK(run("validate_cpu" + options + " --threads 2 --out " + two, limit).exit_code == 0);
  std::string some = options;
  some.replace(some.find("conversion"), 10,
               own_family()->instructions()[first_conversion()].name.substr(0, 5));
  CHECK(run("validate_cpu" + some + " --out " + on, limit).exit_code == 0);
  const Outcome continued = run("validate_cpu" + options + " --out " + on, limit);
  CHECK(continued.exit_code == 0);
  CHECK(contains(continued.output, "held already were not run again"));
  const auto files = lasting_contents(one);
  CHECK(files == lasting_contents(two));
  CHECK(files == lasting_contents(on));
  for (const char* file :
       {"verdicts.csv", "counterexamples.csv", "summary.json", "shards.bin", "verdict.txt"})
    CHECK(files.contains(file));
  CHECK(nlohmann::json::parse(files.at("summary.json")).at("mismatches") == 0);
}

TEST_CASE(
    "validate_cpu: a processor with one wrong bit ends with exit code 1, and the operands stand in the "
    "table") {
  const std::string options = own_rows();
  if (options.empty()) return;
  if (run_command("command -v python3").exit_code != 0) {
    MESSAGE("skipped: needs python3");
    return;
  }
  const TemporaryDirectory directory;
  fs::copy_file(HALFLAB_BINARY_DIRECTORY "/validate_cpu", directory / "validate_cpu");
  const fs::path planted = directory / own_program();
  std::ofstream(planted) << wrong_processor(HALFLAB_BINARY_DIRECTORY "/" + own_program(),
                                            std::to_string(first_conversion()));
  fs::permissions(planted, fs::perms::owner_all);
  const fs::path out = directory / "out";
  const Outcome outcome =
      run_command(limit + (directory / "validate_cpu").string() + options + " --out " + out.string());
  INFO(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.output, "1 results in 1 of these rows are not the expected ones"));
  CHECK(contains(outcome.output, "1 results are not what is documented; see counterexamples.csv"));
  CHECK(summary_of(out).at("rows_failed") == 1);
  const std::string table = content_of(out / "counterexamples.csv");
  CHECK(contains(table, own_family()->instructions()[first_conversion()].name));
  CHECK(contains(table, ",value,0x"));
}

TEST_CASE("validate_cpu: a program alone gives the same verdict, and --from makes the same record of it") {
  const std::string options = own_rows();
  if (options.empty()) return;
  const TemporaryDirectory directory;
  const std::string file = directory / "alone.txt", from = directory / "from", here = directory / "here";
  const Outcome alone = run(own_program() + " --rows conversion --quick --threads 2 --out " + file, limit);
  INFO(alone.output);
  CHECK(alone.exit_code == 0);
  CHECK(contains(alone.output, " s with 2 threads.\n"));
  CHECK(contains(alone.output, "every result and every exception is the expected one"));
  const std::string rows = options.substr(0, options.find(" --quick"));
  const Outcome recorded = run("validate_cpu" + rows + " --from " + file + " --out " + from, limit);
  INFO(recorded.output);
  CHECK(recorded.exit_code == 0);
  REQUIRE(run("validate_cpu" + options + " --out " + here, limit).exit_code == 0);
  CHECK(content_of(fs::path(from) / "verdicts.csv") == content_of(fs::path(here) / "verdicts.csv"));
  CHECK(content_of(fs::path(from) / "summary.json") == content_of(fs::path(here) / "summary.json"));
}

TEST_CASE(
    "validate_cpu: --from takes rows, shards and inputs that there are alone, and --out is tried before the "
    "work") {
  if (own_rows().empty()) return;
  const TemporaryDirectory directory;
  const std::string file = directory / "alone.txt";
  const std::string command = own_program() + " --rows conversion --quick --out ";
  REQUIRE(run(command + file, limit).exit_code == 0);
  const std::string content = content_of(file), family(own_family()->name);
  const auto refused = [&](const std::string& place, const std::string& text, const std::string& reason) {
    std::string changed = content;
    changed.replace(changed.find(place), place.size(), text);
    std::ofstream(file) << changed;
    const Outcome outcome =
        run("validate_cpu --from " + file + " --out " + (directory / "out").string(), limit);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, reason));
    CHECK_FALSE(fs::exists(directory / "out"));
  };
  refused("\nfamily " + family + " ", "\nfamily " + family + " 0",
          "is of another list of the rows of '" + family);
  refused("\nrow " + family + " ", "\nrow " + family + " no_", "has a row 'no_");
  refused("\nshard ", "\nshard 4000", "which ends before");
  refused("\nshard ", "\ndifference 0 4000000000 0 0 0 0\nshard ", "has input 4000000000 of shard 0");

  std::ofstream(file) << content;
  const auto refuses = [&](const std::string& more, const std::string& reason) {
    const Outcome outcome =
        run("validate_cpu --from " + file + more + " --out " + (directory / "out").string(), limit);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, reason));
  };
  const std::string reason = ": is of rows that are run";
  refuses(" --emulator never", "--emulator" + reason);
  refuses(" --exhaustive", "--exhaustive" + reason);
  for (const char* const option : {" --samples 65537", " --quick"})
    refuses(option, "--samples, or --quick" + reason);
  const std::string other = family == "riscv64" ? "aarch64" : "riscv64";
  refuses(" --families " + other, "file '" + file + "' has no row of " + other + "; it has: " + family);
  std::ofstream(file) << content.substr(0, content.find("\nfamily ")) << "\nend\n";
  refuses("", "file '" + file + "' has no row");

  const Outcome nowhere = run(command + "/nonexistent/x.txt --samples 4294967296", "timeout 60 ");
  CHECK(nowhere.exit_code == 2);
  CHECK(contains(nowhere.output, "--out: file '/nonexistent/x.txt' cannot be written"));
  CHECK(run(command + "/dev/null", limit).exit_code == 0);
  CHECK_FALSE(fs::is_regular_file("/dev/null"));
}

TEST_CASE("validate_cpu: the programs hold all that they need, in at most 5 MB") {
#ifndef HALFLAB_STATIC_PROGRAMS
  MESSAGE("skipped: this build has no static C library, or sanitizers");
  return;
#endif
  for (const fs::directory_entry& entry : fs::directory_iterator(HALFLAB_BINARY_DIRECTORY)) {
    if (!entry.path().filename().string().starts_with("validate_cpu_")) continue;
    INFO(entry.path().string());
    CHECK(entry.file_size() <= 5'000'000);
    CHECK_FALSE(contains(content_of(entry.path()), "/ld-linux"));  // no interpreter: a static program
  }
}

TEST_CASE("validate_cpu: every row of a program in an emulator that calls itself a processor says so") {
  if (own_rows().empty()) return;
  const TemporaryDirectory directory;
  const std::string file = directory / "alone.txt", out = directory / "out";
  const std::string told = "Bochs 3.0, an emulator, not silicon";
  const Outcome alone =
      run(own_program() + " --rows conversion --quick --emulated-by 'Bochs 3.0' --out " + file, limit);
  INFO(alone.output);
  CHECK(alone.exit_code == 0);
  CHECK(contains(alone.output, " on " + told));
  const Outcome from = run("validate_cpu --from " + file + " --out " + out, limit);
  CHECK(from.exit_code == 0);
  const std::string verdicts = content_of(fs::path(out) / "verdicts.csv");
  CHECK(contains(verdicts, " on " + told));
  CHECK_FALSE(contains(verdicts, " on " + experiments::validate_cpu::processor_model()));
}

TEST_CASE("validate_cpu: what cannot run is not run, and says what it needs") {
  const TemporaryDirectory directory;
  for (const auto& family : experiments::validate_cpu::families()) {
    if (family.processor == experiments::validate_cpu::this_processor()) continue;
    const std::string out = directory / std::string(family.name);
    const Outcome outcome =
        run("validate_cpu --quick --emulator never --families " + std::string(family.name) + " --out " + out,
            limit);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.output, "Nothing of this runs here. Rows not run: needs the processor " +
                                       std::string(family.processor)));
    CHECK(summary_of(out).at("rows_run") == 0);
  }
}

TEST_CASE("validate_cpu: bad usage is one line, and exit code 2") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "damaged.txt") << "halflab cpu 1\nversion 0.1.0\nmodel x\n";
  std::ofstream(directory / "old.txt") << "halflab cpu 1\nversion 0.0.1\nmodel x\nend\n";
  const struct {
    std::string arguments, reason;
  } wrong[] = {
      {"validate_cpu --families sparc", "--families: 'sparc' is not allowed"},
      {"validate_cpu --rows fsine", "--rows: 'fsine' is in no name of a row"},
      {"validate_cpu --emulator bochs", "--emulator: 'bochs' is not allowed; allowed: auto, always, never"},
      {"validate_cpu --samples 0", "--samples"},
      {"validate_cpu --from /nowhere", "file '/nowhere' cannot be read"},
      {"validate_cpu --from " + (directory / "damaged.txt").string(), "is cut off"},
      {"validate_cpu --from " + (directory / "old.txt").string(), "is of version '0.0.1'"},
      {own_program() + " --rows fsine", "--rows: 'fsine' is in no row"},
      {own_program() + " --samples many", "--samples: 'many' is not allowed; allowed: 1 to 4294967296"},
      {own_program() + " --speed", "--speed: is no option"},
      {own_program() + " --out", "--out: needs a value"}};
  for (const auto& [arguments, reason] : wrong) {
    const bool is_host = arguments.starts_with("validate_cpu ");
    const Outcome outcome = run(arguments + (is_host ? " --out " + (directory / "out").string() : ""), limit);
    INFO(arguments, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, reason));
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(directory / "out"));
  }
}
