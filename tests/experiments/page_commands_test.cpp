/// The commands and code of README.md and docs/: programs are run, --quick where they have it, Python too but for what needs
/// PyTorch, C++ is compiled, kernels are simulated; of ./lab, installation, mpirun and what needs a GPU the options are held to
/// what there is. Blocks of `console` are CI's to run.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/pages/links.h"
#include "experiments/pages/pages.h"
#include "fp16/half_text.h"
#include "fp16/math.h"
#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/shard.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
namespace pages = experiments::pages;
using programs::Outcome;
using programs::run_command;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;

const fs::path checkout = HALFLAB_SOURCE_DIRECTORY;
const fs::path binaries = HALFLAB_BINARY_DIRECTORY;

/// Whether tests/tools/python/torch/page_test.py runs the Python of a page, where there is PyTorch.
bool needs_torch(const fs::path& page) {
  return page.filename() == "pytorch.md";
}

std::vector<pages::CodeBlock> blocks_in(const std::string& language) {
  std::vector<pages::CodeBlock> blocks;
  for (const fs::path& page : pages::pages_of(checkout)) {
    if (language == "python" && needs_torch(page)) continue;
    for (pages::CodeBlock& block : pages::code_blocks(content_of(page))) {
      if (block.language == language) blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Every command of the pages once, without its remark.
std::set<std::string> commands() {
  std::set<std::string> commands;
  for (const pages::CodeBlock& block : blocks_in("")) {
    std::istringstream lines(block.text);
    for (std::string line; std::getline(lines, line);) {
      line = line.substr(0, line.find(" #"));
      line.erase(line.find_last_not_of(' ') + 1);
      // The folders of the tree in docs/extending.md are no commands.
      const bool is_command = !line.empty() && line.front() != ' ' && !words_of(line).front().ends_with('/');
      if (is_command) commands.insert(line);
    }
  }
  return commands;
}

/// The words of the usage of a command of ./lab.
std::set<std::string> usage_of(const std::string& lab_command) {
  static const std::string usage = run_command("'" + (checkout / "lab").string() + "' help").output;
  std::set<std::string> words;
  std::istringstream lines(usage);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  " + lab_command + " ")) continue;
    std::ranges::replace_if(
        line, [](char c) { return c == '[' || c == ']'; }, ' ');
    for (const std::string& word : words_of(line)) words.insert(word);
  }
  return words;
}

/// What ./lab bench alone builds: other builds hold the options of these programs to nothing.
bool is_of_bench(const std::string& program) {
  return program == "bench" || fs::exists(checkout / "tests" / "bench" / (program + ".cpp"));
}

void check_options(const std::string& program, const std::vector<std::string>& words) {
  if (!fs::exists(binaries / program)) {
    CHECK_MESSAGE(is_of_bench(program), "no such program");
    return;
  }
  const bool is_subcommand = program == "halflab" && words.size() > 1;
  const std::string help = programs::run(program + (is_subcommand ? " " + words[1] : "") + " --help").output;
  for (const std::string& word : words) {
    if (word.starts_with("--")) CHECK_MESSAGE(contains(help, word), word);
  }
}

/// What follows -- is a command of its own.
void check_lab(const std::vector<std::string>& words) {
  REQUIRE(words.size() > 1);
  const std::set<std::string> usage = usage_of(words[1]);
  CHECK_MESSAGE(!usage.empty(), "no such command of ./lab");
  const auto end = std::ranges::find(words, "--");
  for (const std::string& word : std::vector(words.begin(), end)) {
    if (word.starts_with("--")) CHECK_MESSAGE(usage.contains(word), word);
  }
  if (end == words.end()) return;
  REQUIRE(words.end() - end > 1);
  check_options(fs::path(end[1]).filename().string(), {end + 1, words.end()});
}

/// Commands of cmake and pip name variables that a CMakeLists.txt has, and what can be installed.
void check_installation(const std::vector<std::string>& words) {
  const std::string project = content_of(checkout / "CMakeLists.txt");
  for (const std::string& word : words) {
    if (word.starts_with("-D"))
      CHECK(contains(project, "option(" + word.substr(2, word.find('=') - 2) + " "));
  }
  if (words[0] == "pip") {
    CHECK(words == std::vector<std::string>{"pip", "install", "."});
    CHECK(fs::exists(checkout / "pyproject.toml"));
  }
}

bool needs_gpu(const std::string& program) {
  return program == "gpu_throughput";
}

/// The command with results in a folder of the test, few seeds and steps where it trains, and, without the real data that
/// it names, built-in ones. Figures are not drawn: figures_test.cpp draws them all.
std::string quick(const std::string& program, std::vector<std::string> words, const fs::path& folder) {
  const char* data = std::getenv("HALFLAB_DATA_DIR");
  std::string command =
      "cd '" + folder.string() + "' && PATH=/no/gnuplot '" + (binaries / program).string() + "'";
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--out") {
      ++i;
    } else if (words[i] == "--seeds" && i + 1 < words.size()) {
      ++i;
      command += " --seeds 1";
    } else if (words[i] == "--data" && i + 1 < words.size()) {
      ++i;
      for (const char* place : {"", "text"}) {
        const fs::path found = fs::path(data == nullptr ? "/nowhere" : data) / place / words[i];
        if (fs::exists(found)) command += " --data '" + found.string() + "'";
      }
    } else {
      command += " '" + words[i] + "'";
    }
  }
  if (contains(command, "'--model'") && !contains(command, "'--figure'")) command += " --steps 5";
  return command + (program == "halflab" ? " --out out" : " --quick --out out");
}

void check_program(const std::string& program, const std::vector<std::string>& words,
                   const fs::path& folder) {
  if (!fs::exists(binaries / program) || needs_gpu(program)) return check_options(program, words);
  const bool has_options = words.size() > 1 && !(words.size() == 3 && words[1] == "--out");
  if (!has_options) return;  // programs_test.cpp runs each experiment so
  fs::remove_all(folder / "out");
  const Outcome outcome = run_command(quick(program, words, folder));
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
}

#ifdef HALFLAB_PYTHON
/// All blocks of Python of the pages, page by page, in one folder.
Outcome run_python(const fs::path& folder) {
  std::string script;
  for (const pages::CodeBlock& block : blocks_in("python")) script += block.text;
  std::ofstream(folder / "blocks.py") << script;
  return run_command("cd '" + folder.string() +
                     "' && PYTHONPATH='" HALFLAB_PYTHON_DIRECTORY
                     "' PYTHONDONTWRITEBYTECODE=1 HALFLAB_BIN_DIR='" +
                     binaries.string() + "' '" HALFLAB_PYTHON "' blocks.py");
}
#endif

/// The commands of docs/validate.md for a file of docs/kernels, and the lines that it quotes of their output.
struct KernelExample {
  std::string commands, answer;

  explicit KernelExample(const std::string& kernel) {
    const std::vector<pages::CodeBlock> blocks =
        pages::code_blocks(content_of(checkout / "docs" / "validate.md"));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].language != "sh" || !contains(blocks[i].text, kernel)) continue;
      commands = blocks[i].text;
      if (i + 1 < blocks.size() && blocks[i + 1].language == "text") answer = blocks[i + 1].text;
    }
    REQUIRE(!commands.empty());
  }

  /// Runs the commands in the folder, beside the kernels; programs of the folder go before installed ones. All but the last
  /// must do what they say, and the last must find the answer.
  void check(const TemporaryDirectory& folder) const {
    for (const fs::directory_entry& kernel : fs::directory_iterator(checkout / "docs" / "kernels"))
      fs::copy_file(kernel.path(), folder / kernel.path().filename());
    const std::string place = folder.path().string();
    std::ofstream(folder / "commands.sh") << commands;
    const Outcome outcome = run_command("cd '" + place + "' && PATH='" + place + "':'" + binaries.string() +
                                        "':\"$PATH\" sh -e commands.sh");
    INFO(outcome.output);
    CHECK(!answer.empty());
    std::istringstream lines(answer);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(contains(outcome.output, line), line);
  }
};

}  // namespace

TEST_CASE("page commands: every command of the pages does what it says, or has its options") {
  const TemporaryDirectory folder;
  bool has_matrices = false;  // a.npy, b.npy and d.npy, which docs/gpu.md makes in Python
#ifdef HALFLAB_PYTHON
  const Outcome python = run_python(folder.path());
  INFO(python.output);
  REQUIRE(python.exit_code == 0);
  has_matrices = fs::exists(folder / "d.npy");
  CHECK(has_matrices);
#else
  MESSAGE("skipped: Python's blocks, since the module is not built");
#endif
  const std::set<std::string> all = commands();
  CHECK(all.size() > 20);
  for (std::size_t i = 0; const std::string& command : all) {
    if (!test::is_in_shard(i++)) continue;
    INFO(command);
    const std::vector<std::string> words = words_of(command);
    const std::string program = fs::path(words[0]).filename().string();
    if (words[0] == "./lab") {
      check_lab(words);
    } else if (words[0] == "mpirun") {
      // mpirun -np N PROGRAM OPTIONS; tests of label mpi start such programs
      REQUIRE(words.size() > 3);
      check_options(fs::path(words[3]).filename().string(), {words.begin() + 4, words.end()});
    } else if (program == "cmake" || program == "pip") {
      check_installation(words);
    } else if ((contains(command, ".npy") || program == "halflab") && !has_matrices) {
      check_options(program, words);
    } else {
      check_program(program, words, folder.path());
    }
  }
}

namespace {

/// What a section of docs/scale_out.md shows.
std::vector<pages::CodeBlock> blocks_of_section(const std::string& title) {
  const std::string page = content_of(checkout / "docs" / "scale_out.md"), heading = "\n## " + title + "\n";
  const std::size_t begin = page.find(heading);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("\n## ", begin + 1);
  return pages::code_blocks(page.substr(begin + 1, end == std::string::npos ? end : end - begin));
}

/// Does what a section says, block after block, in one folder with the programs; the verdict of its merged sweep.
std::string verdict_of_section(const std::string& title, const fs::path& merged) {
  const TemporaryDirectory folder;
  fs::create_directory(folder / "build");
  fs::create_directory_symlink(binaries, folder / "build" / "bin");
  for (const pages::CodeBlock& block : blocks_of_section(title)) {
    if (block.language == "snakemake") std::ofstream(folder / "Snakefile") << block.text;
    if (block.language != "sh") continue;
    std::ofstream(folder / "block.sh") << block.text;
    const Outcome outcome = run_command("cd '" + folder.path().string() + "' && timeout 300 sh -e block.sh");
    INFO(block.text);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
  }
  REQUIRE(fs::exists(folder / merged / "verdict.txt"));
  return content_of(folder / merged / "verdict.txt");
}

std::string verdict_of_shards() {
  return verdict_of_section("Shards of a sweep", "results/merged");
}

bool is_missing(const std::string& program) {
  if (run_command("command -v " + program).exit_code == 0) return false;
  MESSAGE("skipped: ", program, " is not installed");
  return true;
}

}  // namespace

TEST_CASE("page commands: shards of a sweep are made and merged as their page says") {
  CHECK(contains(verdict_of_shards(), "policy"));
}

TEST_CASE("page commands: a sweep by GNU parallel is made as its page says, with the verdict of shards") {
  if (is_missing("parallel")) return;
  CHECK(verdict_of_section("With GNU parallel", "results/parallel") == verdict_of_shards());
}

TEST_CASE("page commands: a sweep by Snakemake is made as its page says, with the verdict of shards") {
  if (is_missing("snakemake")) return;
  CHECK(verdict_of_section("With Snakemake", "results/snakemake/merged") == verdict_of_shards());
}

TEST_CASE("page commands: every block of TOML is a network that memory_anatomy takes") {
  const TemporaryDirectory folder;
  const std::vector<pages::CodeBlock> blocks = blocks_in("toml");
  CHECK(!blocks.empty());
  for (const pages::CodeBlock& block : blocks) {
    std::ofstream(folder / "mine.toml") << block.text;
    const Outcome outcome = programs::run("memory_anatomy --network '" + (folder / "mine.toml").string() +
                                          "' --out '" + (folder / "out").string() + "'");
    INFO(block.text);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("page commands: every block of C++ compiles") {
  const TemporaryDirectory folder;
  const std::vector<pages::CodeBlock> blocks = blocks_in("cpp");
  CHECK(blocks.size() >= 3);
  for (const pages::CodeBlock& block : blocks) {
    std::ofstream(folder / "block.cpp")
        << (block.text.starts_with("#pragma once") ? block.text.substr(13) : block.text);
    const Outcome outcome = run_command(
        HALFLAB_COMPILER " -std=c++20 -fsyntax-only -ffp-contract=off -I'" HALFLAB_INCLUDE_DIRECTORY "' -I'" +
        checkout.string() + "' '" + (folder / "block.cpp").string() + "'");
    INFO(block.text);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
  }
}

TEST_CASE("page commands: a kernel in Verilog is validated as its page says, where iverilog is installed") {
  const KernelExample example("multiply_half.v");
  if (std::system("iverilog -V > /dev/null 2>&1") != 0) {
    MESSAGE("skipped: iverilog is not installed");
    return;
  }
  example.check(TemporaryDirectory());
}

TEST_CASE("page commands: a kernel in CUDA is validated as its page says, on the emulated device") {
  const KernelExample example("multiply_add.cu");
#ifdef HALFLAB_EMULATED_KERNEL
  const TemporaryDirectory folder;
  // What nvcc made of the kernel, linked with the emulator.
  std::ofstream(folder / "nvcc") << "#!/bin/sh\ncp '" HALFLAB_EMULATED_KERNEL "' multiply_add\n";
  fs::permissions(folder / "nvcc", fs::perms::owner_all);
  example.check(folder);
#else
  MESSAGE("skipped: the build is one without CUDA");
#endif
}

#ifdef HALFLAB_PYTHON
TEST_CASE("page commands: the kernel in Triton, which is not run, is Python") {
  const KernelExample example("sigmoid_triton.py");
  const Outcome outcome =
      run_command("'" HALFLAB_PYTHON "' -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' '" +
                  (checkout / "docs" / "kernels" / "sigmoid_triton.py").string() + "'");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
}
#endif

TEST_CASE("page commands: what is said of calls beside them is so") {
  using namespace fp16;
  CHECK(add<binary16>(0x3c00, 0x0001, {Rounding::toward_positive}).bits == 0x3c01);
  CHECK(add<binary16>(0x3c00, 0x0001, {Rounding::toward_positive}).flags == Flags{.inexact = true});
  CHECK(encode<e4m3>(500.0f, {.saturate = true}).bits == 0x7e);
  CHECK(encode<e4m3>(500.0f, {.saturate = true}).flags == Flags{.inexact = true, .overflow = true});
  CHECK(float(tanh(parse_half("0.1"))) == doctest::Approx(0.0997).epsilon(0.0005));
  CHECK(math::tanh(0x4d00, {Rounding::toward_zero}).bits == 0x3bff);
  std::string code;
  for (const pages::CodeBlock& block : blocks_in("cpp")) code += block.text;
  for (const char* line :
       {"add<binary16>(0x3c00, 0x0001, {Rounding::toward_positive});   // {0x3c01, inexact}",
        "encode<e4m3>(500.0f, {.saturate = true});               // {0x7e, inexact, overflow}",
        "tanh(parse_half(\"0.1\"));                                        // 0.0997, correctly",
        "math::tanh(0x4d00, {Rounding::toward_zero});                // {0x3bff, inexact}"}) {
    INFO(line);
    CHECK(contains(code, line));
  }
}

TEST_CASE("page commands: what is linked by CMake is what the installed package is tested with") {
  std::string consumer = content_of(checkout / "tests" / "install" / "consumer" / "CMakeLists.txt");
  for (const pages::CodeBlock& block : blocks_in("cmake")) {
    for (const std::string& word : words_of(block.text)) {
      if (word.starts_with("halflab::")) CHECK(contains(consumer, word.substr(0, word.find(')'))));
      if (word.starts_with("find_package(")) CHECK(contains(consumer, word));
    }
  }
}
