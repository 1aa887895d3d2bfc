#pragma once

#include <filesystem>
#include <string>

#include "experiments/frame/build_information.h"

namespace experiments {

/// Which code results are of, in one word: the git revision where the source is that revision; where it was modified, or is no
/// checkout, the revision with the CRC-32 of the program's file, "<revision>+<8 hexadecimal digits>", which copies of the program
/// share and another build does not. Throws std::runtime_error, naming the file, where it cannot be read.
std::string code_identity(const BuildInformation& build, const std::filesystem::path& program);

/// The running program's.
const std::string& code_identity();

}  // namespace experiments
