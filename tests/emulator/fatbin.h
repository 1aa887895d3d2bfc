#pragma once
/// The fat binaries that nvcc puts into programs.

#include <string_view>
#include <vector>

namespace emulator {

/// The PTX texts in what __cudaRegisterFatBinary is given, in their order. Throws Unsupported if there are
/// compressed ones or none.
std::vector<std::string_view> ptx_texts(const void* wrapper);

}  // namespace emulator
