#pragma once
/// Which code shards are of.

#include <filesystem>
#include <string>

#include "experiments/frame/build_information.h"

namespace experiments::validate_gpu {

/// One word: the git revision where the source is that revision; where it was modified, or is no checkout, the
/// revision with the hash of the program's file, "<revision>+<16 hexadecimal digits>", which copies of the program
/// share and another build does not. Throws std::runtime_error, naming the file, where it cannot be read.
std::string code_identity(const BuildInformation& build, const std::filesystem::path& program);

}  // namespace experiments::validate_gpu
