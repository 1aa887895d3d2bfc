#include "experiments/explain_gemm/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "experiments/frame/files.h"

namespace experiments::explain_gemm {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_alignment = 64;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& problem) {
  throw std::runtime_error(fmt::format("file '{}' {}", file.string(), problem));
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// The file's dictionary and the bytes after it.
struct Sections {
  std::string_view header;
  std::string_view data;
};

Sections split(const std::filesystem::path& file, std::string_view bytes) {
  if (!bytes.starts_with(magic)) refuse(file, "is not a .npy file: it does not begin with \\x93NUMPY");
  bytes.remove_prefix(magic.size());
  if (bytes.size() < 2) refuse(file, "is cut off in its header");
  const int major = bytes[0];
  if (major < 1 || major > 3) refuse(file, fmt::format("has version {}; allowed: 1.0, 2.0, 3.0", major));
  bytes.remove_prefix(2);
  const std::size_t width = major == 1 ? 2 : 4;
  if (bytes.size() < width) refuse(file, "is cut off in its header");
  const std::size_t length = little_endian(bytes.substr(0, width));
  bytes.remove_prefix(width);
  if (bytes.size() < length) refuse(file, "is cut off in its header");
  return {bytes.substr(0, length), bytes.substr(length)};
}

/// What `pattern` finds in the header; its first group.
std::string entry(const std::filesystem::path& file, const std::string& header, const char* key,
                  const char* pattern) {
  std::smatch found;
  const std::regex expression(fmt::format("['\"]{}['\"]\\s*:\\s*{}", key, pattern));
  if (!std::regex_search(header, found, expression))
    refuse(file, fmt::format("has a bad header: no valid entry '{}'", key));
  return found[1];
}

fp16::Format format_of(const std::filesystem::path& file, const std::string& type) {
  if (type == "<f2") return fp16::binary16;
  if (type == "<f4") return fp16::binary32;
  refuse(file, fmt::format("has elements of type '{}'; allowed: '<f2' (float16), '<f4' (float32)", type));
}

std::size_t dimension(const std::filesystem::path& file, const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > 0xffffffffu)
    refuse(file, fmt::format("has a dimension of {}; allowed: 1 to 2^32 - 1", text));
  return value;
}

}  // namespace

Matrix read_npy(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  const Sections sections = split(file, bytes);
  // The regular expressions need no more of it, and libstdc++'s recurse once for each character.
  if (sections.header.size() > 4096) refuse(file, "has a bad header: it is longer than 4096 bytes");
  const std::string header(sections.header);

  Matrix matrix{.format = format_of(file, entry(file, header, "descr", "['\"]([^'\"]*)['\"]")), .codes = {}};
  const bool columns_first = entry(file, header, "fortran_order", "(True|False)") == "True";
  const std::string shape = entry(file, header, "shape", "\\(([^()]*)\\)");
  std::smatch sizes;
  if (!std::regex_match(shape, sizes, std::regex("\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,?\\s*")))
    refuse(file, fmt::format("has the shape ({}); allowed: two dimensions", shape));
  matrix.rows = dimension(file, sizes[1]);
  matrix.columns = dimension(file, sizes[2]);

  const std::size_t width = static_cast<std::size_t>(matrix.format.width()) / 8;
  const std::size_t elements = sections.data.size() / width;
  if (elements / matrix.rows != matrix.columns ||
      matrix.rows * matrix.columns * width != sections.data.size())
    refuse(file, fmt::format("has {} bytes of data where its shape ({}) and type want {} x {} x {}",
                             sections.data.size(), shape, matrix.rows, matrix.columns, width));
  matrix.codes.reserve(elements);
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    for (std::size_t j = 0; j < matrix.columns; ++j) {
      const std::size_t index = columns_first ? j * matrix.rows + i : i * matrix.columns + j;
      matrix.codes.push_back(little_endian(sections.data.substr(index * width, width)));
    }
  }
  return matrix;
}

void write_npy(const std::filesystem::path& file, const Matrix& matrix) {
  const std::size_t width = static_cast<std::size_t>(matrix.format.width()) / 8;
  std::string header = fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': ({}, {}), }}", width,
                                   matrix.rows, matrix.columns);
  const std::size_t before = magic.size() + 4;  // version and length
  header.resize((before + header.size() + header_alignment) / header_alignment * header_alignment - before,
                ' ');
  header.back() = '\n';

  std::string bytes(magic);
  const auto append = [&](std::uint32_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> 8 * i));
  };
  append(1, 2);
  append(static_cast<std::uint32_t>(header.size()), 2);
  bytes += header;
  for (const std::uint32_t code : matrix.codes) append(code, width);
  write_contents(file, bytes);
}

}  // namespace experiments::explain_gemm
