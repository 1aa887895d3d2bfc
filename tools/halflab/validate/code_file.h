#pragma once
/// Files of operands and results: those of tensors, and codes as text for hardware.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/tensor_files/tensor_set.h"

namespace halflab::validate {

/// Whether a file holds codes in hexadecimal, one a line, as Verilog's $readmemh reads and $fdisplay writes them.
bool is_hex(std::string_view path);

/// Such lines, of codes of `width` bytes each.
std::string hex_lines(std::span<const std::byte> codes, std::size_t width);

/// The codes of so many bits in such lines, with or without 0x; blank lines, comments (//) and the address of the code that
/// follows anyhow (@, in small letters) are passed over. Throws std::runtime_error, naming file and line, where what stands
/// there is no code, and where no code has all its digits, as in a file of a narrower format.
std::vector<std::byte> codes_in(std::string_view text, const std::string& file, int bits);

/// The tensor that "FILE" holds or "FILE:NAME" names, unsigned integers being codes of the type in `raw`; or the codes of a
/// .hex file: of binary16 unless `raw` says otherwise.
class CodeFile {
 public:
  /// Throws std::runtime_error, naming the file, where it holds something else.
  CodeFile(const std::string& place, const experiments::tensor_files::RawLayout& raw);

  const experiments::tensor_files::StoredTensor& tensor() const { return file_ ? file_->tensor() : tensor_; }

 private:
  std::optional<experiments::tensor_files::NamedTensor> file_;
  std::vector<std::byte> codes_;
  experiments::tensor_files::StoredTensor tensor_;
};

}  // namespace halflab::validate
