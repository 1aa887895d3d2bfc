#pragma once
/// Kernels that somebody wrote, on trial: the operands of halflab inputs, files of results, what halflab validate says of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/validate/functions.h"

namespace test {

using Codes = std::vector<std::uint16_t>;

inline constexpr std::size_t header_bytes = 128;  // of numpy.save's files of vectors

template <class Number = std::uint16_t>
std::vector<Number> read(const std::filesystem::path& file) {
  const std::string bytes = test::content_of(file);
  std::vector<Number> numbers((bytes.size() - header_bytes) / sizeof(Number));
  std::copy_n(bytes.data() + header_bytes, numbers.size() * sizeof(Number),
              reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

inline void write(const std::filesystem::path& file, const Codes& codes, const std::string& type = "<f2") {
  std::ofstream(file, std::ios::binary) << test::npy_file(
      test::npy_dictionary(type, "False", "(" + std::to_string(codes.size()) + ",)"), test::bytes_of(codes));
}

inline float as_float(std::uint16_t code) {
  return fp16::half_bits_to_float(code);
}

inline std::uint16_t as_half(float value) {
  return fp16::float_to_half_bits(value);
}

/// A kernel that somebody wrote: what it makes of the operands that halflab inputs writes.
class Trial {
 public:
  Trial(const std::string& operation, const std::vector<std::string>& options = {}) : operation_(operation) {
    const int arity = halflab::validate::find_function(operation).arity;
    std::string to;
    for (int i = 0; i < arity; ++i) {
      files_.push_back(directory_ / (std::string(1, static_cast<char>('a' + i)) + ".npy"));
      to += (i == 0 ? "" : ",") + files_.back();
    }
    std::vector<std::string> words{"inputs", operation, "--to", to};
    words.insert(words.end(), options.begin(), options.end());
    const CommandRun run = run_halflab(words);
    REQUIRE(run.err == "");
    REQUIRE(run.exit_code == 0);
    for (const std::string& file : files_) operands_.push_back(read(file));
  }

  const Codes& operand(std::size_t i) const { return operands_[i]; }

  /// The summary of its validation.
  experiments::Json validate(const std::function<std::uint16_t(const std::vector<std::uint16_t>&)>& kernel,
                             const std::vector<std::string>& options = {}) {
    Codes results;
    for (std::size_t i = 0; i < operands_[0].size(); ++i) {
      std::vector<std::uint16_t> codes;
      for (const Codes& operand : operands_) codes.push_back(operand[i]);
      results.push_back(kernel(codes));
    }
    write(directory_ / "y.npy", results);
    std::vector<std::string> words{"validate", operation_};
    words.insert(words.end(), files_.begin(), files_.end());
    words.push_back(directory_ / "y.npy");
    words.insert(words.end(), options.begin(), options.end());
    const CommandRun run = run_halflab(words);
    words.push_back("--json");
    const experiments::Json summary = run_halflab(words).json().at("summary");
    const std::string found = summary.at("class").string();
    CHECK(run.out.starts_with(found + ":"));
    CHECK(run.exit_code == (found == "different" ? 1 : 0));
    text_ = run.out;
    return summary;
  }

  /// What a person reads of it.
  std::string text(const std::function<std::uint16_t(const std::vector<std::uint16_t>&)>& kernel,
                   const std::vector<std::string>& options = {}) {
    validate(kernel, options);
    return text_;
  }

  std::string explanation(const std::function<std::uint16_t(const std::vector<std::uint16_t>&)>& kernel,
                          const std::vector<std::string>& options = {}) {
    const experiments::Json summary = validate(kernel, options);
    CHECK(summary.at("class").string() == "different");
    return summary.at("explanation").string();
  }

 private:
  std::string operation_;
  TemporaryDirectory directory_;
  std::vector<std::string> files_;
  std::vector<Codes> operands_;
  std::string text_;
};

inline bool is_subnormal(std::uint16_t code) {
  return (code & 0x7c00) == 0 && (code & 0x3ff) != 0;
}

inline bool is_nan(std::uint16_t code) {
  return (code & 0x7fff) > 0x7c00;
}

using Operands = std::vector<std::uint16_t>;

}  // namespace test
