#pragma once
/// Who executes the rows of a family: this processor, an emulator, one elsewhere that has left a file, or nobody.

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/result_file.h"
#include "experiments/cpu/validate_cpu/program.h"

namespace experiments::validate_cpu {

enum class Emulation : std::uint8_t { where_needed, always, never };

struct Processor {
  const Family* family;
  std::string subject;                ///< "aarch64 on QEMU 7.2.22, an emulator, not silicon"
  std::vector<std::string> command;   ///< that starts its program; none where nothing does
  std::string obstacle;               ///< why it executes nothing here; empty where it does
  std::set<std::string> lacking;      ///< needs that it does not have
  std::optional<ResultFile> results;  ///< what it has found already

  /// Why it does not execute the instruction; empty where it does.
  std::string obstacle_of(const Instruction& instruction) const;
};

/// The programs are looked for in the directory. Throws std::runtime_error for one of another version.
Processor processor_for(const Family& family, Emulation emulation, const std::filesystem::path& programs);

/// The processors of the families in a file that a program alone has written. Throws std::runtime_error, naming the file.
std::vector<Processor> recorded_processors(const std::filesystem::path& file);

}  // namespace experiments::validate_cpu
