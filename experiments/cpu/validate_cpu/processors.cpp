#include "experiments/cpu/validate_cpu/processors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "experiments/frame/build_information.h"

namespace experiments::validate_cpu {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// "QEMU 7.2.22, an emulator, not silicon", by what the emulator says itself.
std::string emulator_name(const std::string& emulator) {
  const std::string command = emulator + " --version 2>/dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> line{};
  const bool is_read = pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pipe != nullptr) ::pclose(pipe);
  std::string version = "of unknown version";
  const std::vector<std::string> words = words_of(is_read ? line.data() : "");
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "version") version = words[i + 1];
  }
  return emulator_called("QEMU " + version);
}

/// Throws std::runtime_error, which says what follows "file 'FILE' ", for rows, shards and inputs that this version has not.
void require_known(const ResultFile& results) {
  if (const std::string_view version = build_information().version; results.version != version)
    throw std::runtime_error(
        fmt::format("is of version '{}' of Halflab; allowed: {}", results.version, version));
  for (const auto& [place, row] : results.rows) {
    const auto& [family_name, name] = place;
    const Family* const family = family_called(family_name);
    const auto identity = results.families.find(family_name);
    if (family == nullptr || identity == results.families.end() || identity->second != list_identity(*family))
      throw std::runtime_error(fmt::format(
          "is of another list of the rows of '{}'; make it again by the program of this build", family_name));
    const auto instruction = std::ranges::find(family->instructions(), name, &Instruction::name);
    if (instruction == family->instructions().end())
      throw std::runtime_error(fmt::format("has a row '{}', which {} has not", name, family_name));
    const validation::Domain& domain = *instruction->domain;
    const auto require = [&](std::uint32_t shard, std::uint64_t index) {
      if (shard >= domain.shard_count || index >= domain.inputs_of(shard))
        throw std::runtime_error(
            fmt::format("has input {} of shard {} in row '{}', which ends before", index, shard, name));
    };
    for (const auto& [shard, result] : row.shards) require(shard, 0);
    for (const auto& [shard, difference] : row.differences) require(shard, difference.index);
  }
}

/// Starts the program once and takes down what it says of the processor.
void introduce(Processor& processor, const std::string& emulated) {
  const Family& family = *processor.family;
  const Introduction introduction = Program(processor.command).introduction();
  const auto identity = introduction.families.find(std::string(family.name));
  if (identity == introduction.families.end() || identity->second != list_identity(family))
    throw std::runtime_error(fmt::format("{}: is of another version, whose rows are others; build it again",
                                         processor.command.back()));
  for (const auto& [name, feature] : introduction.lacking) {
    if (name == family.name) processor.lacking.insert(feature);
  }
  processor.subject = fmt::format("{} on {}", family.name, emulated.empty() ? introduction.model : emulated);
}

}  // namespace

std::string Processor::obstacle_of(const Instruction& instruction) const {
  if (!obstacle.empty()) return obstacle;
  const std::string needs(instruction.needs);
  if (lacking.contains(needs)) return obstacle_text(needs);
  if (!results) return {};
  const auto row = results->rows.find({std::string(family->name), instruction.name});
  return row == results->rows.end() ? "not in the file" : row->second.obstacle;
}

Processor processor_for(const Family& family, Emulation emulation, const fs::path& programs) {
  Processor processor{.family = &family, .subject = std::string(family.name)};
  const bool is_native = family.processor == this_processor();
  const fs::path program = programs / fmt::format("validate_cpu_{}", family.processor);
  std::string emulated;
  if (!is_native || emulation == Emulation::always) {
    processor.command = words_of(family.emulator);
    const bool can =
        emulation != Emulation::never && !processor.command.empty() && is_on_path(processor.command.front());
    if (!can) {
      processor.obstacle = fmt::format("needs the processor {}", family.processor);
      if (emulation != Emulation::never && !processor.command.empty())
        processor.obstacle += fmt::format(" or {}", processor.command.front());
      processor.command.clear();
      return processor;
    }
    emulated = emulator_name(processor.command.front());
  }
  if (!fs::exists(program)) {
    processor.obstacle = fmt::format("needs the program {}", program.filename().string());
    processor.command.clear();
    return processor;
  }
  processor.command.push_back(program.string());
  introduce(processor, emulated);
  return processor;
}

std::vector<Processor> recorded_processors(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error(fmt::format("file '{}' cannot be read", file.string()));
  ResultFile results;
  try {
    results = read_results(stream);
    require_known(results);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("file '{}' {}", file.string(), error.what()));
  }
  std::vector<Processor> processors;
  for (const Family& family : families()) {
    const bool has_rows =
        std::ranges::any_of(results.rows, [&](const auto& row) { return row.first.first == family.name; });
    if (!has_rows) continue;
    processors.push_back({.family = &family,
                          .subject = fmt::format("{} on {}", family.name, results.model),
                          .results = results});
  }
  return processors;
}

}  // namespace experiments::validate_cpu
