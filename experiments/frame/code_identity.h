#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "experiments/frame/build_information.h"

namespace experiments {

/// Which code results are of, in one word: the git revision where the source is that revision; where it was modified, or is no
/// checkout, the revision with the CRC-32 of the files that hold the program's code, one after the other, "<revision>+<8
/// hexadecimal digits>", which copies of the program share and another build does not. Throws std::runtime_error, naming the
/// file, where one cannot be read.
std::string code_identity(const BuildInformation& build, std::span<const std::filesystem::path> files);

/// The running program's: its own file, and the library that holds the code which programs have in common, in a package.
const std::string& code_identity();

}  // namespace experiments
