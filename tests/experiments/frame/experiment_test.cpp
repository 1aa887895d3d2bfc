#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/parallel.h"
#include "experiments/frame/tensor_files/mapped_file.h"
#include "experiments/training/laboratory.h"
#include "fp16/vector_path.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;

namespace {

using test::content_of;
using test::TemporaryDirectory;

struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

/// Runs a tiny experiment whose results must not depend on the threads.
Result run_probe(std::vector<std::string> words, const std::function<void(experiments::Run&)>& also = {}) {
  int steps = 10;
  std::uint64_t seed = 5;
  std::vector<const char*> arguments{"probe"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = experiments::run(
      static_cast<int>(arguments.size()), arguments.data(),
      {.program =
           {.name = "probe",
            .question = "What?",
            .example = "probe",
            .outputs = {.tables = {{.name = "squares", .rows = "each step", .columns = {}, .when = ""}},
                        .summary_keys = {}}},
       .options =
           [&](experiments::CommandLine& command_line) {
             command_line.add_steps(steps, 3);
             command_line.add_seed(seed);
           },
       .body =
           [&](experiments::Run& run) {
             experiments::Progress progress = run.progress("squares", static_cast<std::size_t>(steps));
             std::vector<int> squares(static_cast<std::size_t>(steps));
             experiments::parallel_for_each(squares.size(), run.threads(), [&](std::size_t index) {
               squares[index] = static_cast<int>(index * index);
               progress.tick();
             });
             experiments::Table& table = run.record().table("squares", {"square"});
             for (const int square : squares) table.row({square});
             run.record().summary("largest", squares.back());
             run.record().verdict("Squares grow.");
             if (also) also(run);
           }},
      {.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

}  // namespace

TEST_CASE("a run prints its verdict and exits with 0") {
  const TemporaryDirectory directory;
  const Result result = run_probe({"--out", directory / "run", "--quick"});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "Squares grow.\n");
  CHECK(result.err == "");
  CHECK(content_of(directory / "run/squares.csv") == "square\n0\n1\n4\n");
  CHECK(content_of(directory / "run/verdict.txt") == result.out);
  const auto manifest = nlohmann::json::parse(content_of(directory / "run/manifest.json"));
  CHECK(manifest["experiment"] == "probe");
  CHECK(manifest["seed"] == 5);
  CHECK(manifest["options"]["steps"] == 3);
  CHECK(manifest["threads"] == manifest["options"]["threads"]);
  CHECK(manifest["vector_path"] == std::string(fp16::name_of(fp16::active_vector_path())));
}

TEST_CASE("results of another program are refused, and those of other options replaced with a line") {
  const TemporaryDirectory directory;
  const std::string out = directory / "run";
  run_probe({"--out", out, "--steps", "3"});
  CHECK(run_probe({"--out", out, "--steps", "3", "--threads", "2"}).err == "");
  const Result other = run_probe({"--out", out, "--steps", "4"});
  CHECK(other.exit_code == 0);
  CHECK(other.err == "warning: the results of another run in '" + out + "', with --steps 3, are replaced\n");
  std::string manifest = content_of(directory / "run/manifest.json");
  manifest.replace(manifest.find("\"probe\""), 7, "\"drill\"");
  std::ofstream(directory / "run/manifest.json") << manifest;
  const Result foreign = run_probe({"--out", out});
  CHECK(foreign.exit_code == 2);
  CHECK(foreign.err == "probe: --out: '" + out +
                           "' holds results of drill; allowed: another directory, or to remove these\n");
  CHECK(content_of(directory / "run/manifest.json") == manifest);
}

TEST_CASE("files that no run wrote are not replaced") {
  const TemporaryDirectory directory;
  const std::string out = directory / "run";
  std::filesystem::create_directory(out);
  for (const char* name : {"summary.json", "squares.csv"}) {
    std::ofstream(directory / "run" / name) << "mine";
    const Result refused = run_probe({"--out", out});
    CHECK(refused.exit_code == 2);
    CHECK(refused.err ==
          fmt::format("probe: --out: '{}' in '{}' is of no run; allowed: another directory, or to "
                      "move it away\n",
                      name, out));
    CHECK(content_of(directory / "run" / name) == "mine");
    std::filesystem::remove(directory / "run" / name);
  }
  std::ofstream(directory / "run/notes.txt") << "mine";
  CHECK(run_probe({"--out", out}).exit_code == 0);
  CHECK(content_of(directory / "run/notes.txt") == "mine");
}

TEST_CASE("results do not depend on the number of threads") {
  const TemporaryDirectory directory;
  run_probe({"--out", directory / "one", "--threads", "1", "--steps", "1000"});
  run_probe({"--out", directory / "many", "--threads", "7", "--steps", "1000"});
  for (const char* file : {"squares.csv", "summary.json", "verdict.txt"}) {
    CHECK(content_of(directory / "one" / file) == content_of(directory / "many" / file));
  }
}

TEST_CASE("bad usage and bad input are one line and exit code 2, and nothing is written") {
  const TemporaryDirectory directory;
  const std::string out = directory / "new" / "run";
  const auto fail = [](experiments::Run&) { throw std::runtime_error("file 'x': two\nlines"); };
  const std::vector<std::pair<Result, std::string>> cases{
      {run_probe({"--out", out, "--steps", "-3"}),
       "probe: --steps: '-3' is not allowed; must be an integer from 1 to 1000000\n"},
      {run_probe({"--out", out, "--stpes", "3"}), "probe: unknown option --stpes; did you mean --steps?\n"},
      {run_probe({"--out", out}, fail), "probe: file 'x': two lines\n"},
      {run_probe({"--out", ""}), "probe: --out: '' is not allowed; must be given as --out DIR\n"},
      {run_probe({"--out", "/proc/halflab"}),
       "probe: output directory '/proc/halflab' cannot be used (No such file or directory); must be a "
       "directory that "
       "can be written\n"},
  };
  for (const auto& [result, err] : cases) {
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    CHECK(result.err == err);
  }
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("a failed check is one line and exit code 1, with the results written") {
  const TemporaryDirectory directory;
  const Result result =
      run_probe({"--out", directory / "run"}, [](experiments::Run& run) { run.fail("the bits differ"); });
  CHECK(result.exit_code == 1);
  CHECK(result.out == "Squares grow.\n");
  CHECK(result.err == "probe: check failed: the bits differ\n");
  CHECK(fs::exists(directory / "run/manifest.json"));
}

TEST_CASE("Ctrl-C ends the run with 130 and leaves the directory as it was") {
  const TemporaryDirectory directory;
  REQUIRE(run_probe({"--out", directory / "run", "--quick"}).exit_code == 0);
  const std::string before = content_of(directory / "run/manifest.json");
  for (const int signal : {SIGINT, SIGTERM}) {
    const Result result = run_probe({"--out", directory / "run"}, [signal](experiments::Run& run) {
      ::raise(signal);
      run.progress("more", 1).tick();
    });
    CHECK(result.exit_code == 130);
    CHECK(result.err == "probe: interrupted; nothing was written\n");
    CHECK(content_of(directory / "run/manifest.json") == before);
    CHECK_FALSE(fs::exists(directory / "run/.partial"));
  }
  CHECK(run_probe({"--out", directory / "run", "--quick"}).exit_code == 0);
}

TEST_CASE("a mapped file that becomes shorter while it is read ends the process with a line and 2") {
  const TemporaryDirectory directory;
  const fs::path file = directory / "tensor", said = directory / "said";
  std::ofstream(file) << std::string(10'000, 'x');
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(said.c_str(), "w", stderr) == nullptr) ::_exit(3);
    ::_exit(experiments::guarded("probe", std::cerr, [&] {
      const experiments::tensor_files::MappedFile mapped(file);
      fs::resize_file(file, 0);
      return static_cast<int>(mapped.bytes().back());
    }));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
  CHECK(content_of(said) == "probe: a file became shorter, or its disk failed, while it was read\n");
}
