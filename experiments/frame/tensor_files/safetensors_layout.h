#pragma once
/// How a safetensors file is laid out: the length of its header in so many bytes, the header, the tensors' bytes.

#include <cstdint>

namespace experiments::tensor_files {

inline constexpr std::uint64_t length_size = 8, alignment = 8;
inline constexpr std::uint64_t longest_header = 100'000'000;  ///< as the reference implementation has it
inline constexpr const char* metadata_key = "__metadata__";

}  // namespace experiments::tensor_files
