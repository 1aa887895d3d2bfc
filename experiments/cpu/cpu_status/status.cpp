#include "experiments/cpu/cpu_status/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/validation/proofs.h"
#include "experiments/validation/record_files.h"

namespace experiments::cpu_status {
namespace {

namespace fs = std::filesystem;
using validate_cpu::Family;
using validate_cpu::Instruction;

/// A record of validate_cpu.
struct Record {
  std::string where;  ///< the day and the revision
  std::map<std::string, validation::RowProof> rows;
};

std::vector<Record> read_records(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) folders.push_back(entry.path());
  if (error)
    throw std::runtime_error(
        fmt::format("folder '{}' cannot be read ({})", folder.string(), error.message()));
  std::ranges::sort(folders);
  std::vector<Record> records;
  for (const fs::path& each : folders) {
    const fs::path manifest = each / "manifest.json";
    if (validation::read_object(manifest).value("experiment") != "validate_cpu") continue;
    records.push_back({.where = validation::day_and_revision(manifest),
                       .rows = validation::row_proofs(each / "verdicts.csv")});
  }
  return records;
}

/// The names of a family's rows by their groups, in the order of its list.
std::vector<std::pair<std::string_view, std::vector<std::string>>> groups_of(const Family& family) {
  std::vector<std::pair<std::string_view, std::vector<std::string>>> groups;
  for (const Instruction& row : family.instructions()) {
    auto group = std::ranges::find(groups, row.group, [](const auto& each) { return each.first; });
    if (group == groups.end()) group = groups.insert(group, {row.group, {}});
    group->second.push_back(row.name);
  }
  return groups;
}

/// Who executed rows of the family: "QEMU 7.2.22, an emulator, not silicon" where the subject is "aarch64 on" that.
std::set<std::string> processors_of(const Family& family, const std::vector<Record>& records) {
  const std::string before = fmt::format(", {} on ", family.name);
  std::set<std::string> processors;
  for (const Record& record : records) {
    for (const auto& [id, proof] : record.rows) {
      if (const std::size_t place = id.rfind(before); place != std::string::npos)
        processors.insert(id.substr(place + before.size()));
    }
  }
  return processors;
}

std::string lines_of(const Family& family, const std::vector<Record>& records) {
  std::string lines;
  const std::set<std::string> processors = processors_of(family, records);
  for (const auto& [group, names] : groups_of(family)) {
    const std::string first = fmt::format("| {} | {} | {} |", family.meaning, group, names.size());
    bool has_run = false;
    for (const std::string& processor : processors) {
      std::vector<std::string> ids;
      for (const std::string& name : names)
        ids.push_back(fmt::format("{}, {} on {}", name, family.name, processor));
      const validation::FamilyProof proof = validation::proof_of(ids, records);
      if (proof.run == 0) continue;
      has_run = true;
      lines += fmt::format("{} {} | {} | {}, {} |\n", first, validation::result_text(proof, names.size()),
                           validation::power_text(proof.inputs), processor, fmt::join(proof.where, "; "));
    }
    if (!has_run) lines += first + " not yet run |  |  |\n";
  }
  return lines;
}

}  // namespace

std::string status_table(const fs::path& records) {
  const std::vector<Record> all = read_records(records);
  std::string table = "| instructions | what | rows | result | inputs | where |\n|---|---|---|---|---|---|\n";
  for (const Family& family : validate_cpu::families()) table += lines_of(family, all);
  return table;
}

std::string with_table(const std::string& text, const std::string& table) {
  return validation::with_table(text, "cpu-status", table);
}

}  // namespace experiments::cpu_status
