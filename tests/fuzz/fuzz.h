#pragma once
/// What every fuzz target shares: a refusal is an answer, anything else that ends a call is a finding.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

namespace fuzz {

using Input = std::span<const std::byte>;

/// Calls `read`; errors of the kinds that readers document are caught.
template <class Read>
void allow_refusal(Read&& read) {
  try {
    read();
  } catch (const std::runtime_error&) {
  } catch (const std::invalid_argument&) {
  }
}

/// The input as a file, for readers that take a path.
inline const std::filesystem::path& as_file(Input input, const char* name) {
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() /
      (std::string("halflab-fuzz-") + std::to_string(::getpid()) + "-" + name);
  std::FILE* const stream = std::fopen(file.c_str(), "wb");
  std::fwrite(input.data(), 1, input.size(), stream);
  std::fclose(stream);
  return file;
}

}  // namespace fuzz

/// Defines what libFuzzer calls; `input` is a fuzz::Input.
#define HALFLAB_FUZZ(input)                                                           \
  static void fuzz_one(fuzz::Input input);                                            \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_one(std::as_bytes(std::span(data, size)));                                   \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_one(fuzz::Input input)
