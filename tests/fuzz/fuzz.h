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

/// A folder of this process that goes with it, for readers that take a path.
inline std::filesystem::path folder(const std::string& name) {
  struct Folder {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("halflab-fuzz-" + std::to_string(::getpid()));
    ~Folder() {
      std::error_code left;
      std::filesystem::remove_all(path, left);
    }
  };
  static const Folder own;
  std::filesystem::create_directories(own.path / name);
  return own.path / name;
}

/// The input as a file.
inline const std::filesystem::path& as_file(Input input, const char* name) {
  static const std::filesystem::path file = folder(".") / name;
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
