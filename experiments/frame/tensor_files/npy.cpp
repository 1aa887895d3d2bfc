#include "experiments/frame/tensor_files/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "experiments/frame/printable.h"

namespace experiments::tensor_files {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_alignment = 64;
constexpr std::size_t longest_header = 1 << 16;  // NumPy itself reads 10,000 bytes

/// Walks through the header's Python dictionary of texts, True, False and tuples of integers.
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::filesystem::path& file) : rest_(text), file_(file) {}

  /// Calls `entry` with each key; it must take the value.
  template <class Entry>
  void read(Entry&& entry) {
    expect('{');
    while (!take('}')) {
      const std::string_view key = text();
      expect(':');
      entry(key);
      if (!take(',')) {
        expect('}');
        return;
      }
    }
  }

  std::string_view text() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') bad("a text in quotes is missing");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) bad("a text in quotes has no end");
    const std::string_view found = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return found;
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    bad("neither True nor False");
  }

  Shape tuple() {
    expect('(');
    Shape shape;
    while (!take(')')) {
      shape.push_back(natural());
      take('L');  // Python 2 wrote long integers so
      if (!take(',')) {
        expect(')');
        return shape;
      }
    }
    return shape;
  }

  [[noreturn]] void bad(std::string_view problem) const {
    refuse(file_, fmt::format("has a bad header: {}, at '{}'", problem, one_line(rest_.substr(0, 40))));
  }
  bool at_list() {
    skip_blanks();
    return rest_.starts_with('[');
  }

 private:
  std::uint64_t natural() {
    skip_blanks();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) bad("a dimension is no integer from 0 to 2^64 - 1");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  void skip_blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }
  bool take(char character) {
    skip_blanks();
    if (!rest_.starts_with(character)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char character) {
    if (!take(character)) bad(fmt::format("'{}' is missing", character));
  }

  std::string_view rest_;
  const std::filesystem::path& file_;
};

/// The element type of a descr such as '<f2'.
const ElementType* type_of(std::string_view descr, bool& big_endian, const std::filesystem::path& file,
                           const RawLayout& raw) {
  const std::string_view kind = descr.substr(std::min<std::size_t>(descr.size(), 1));
  big_endian = descr.starts_with('>');
  if (kind.starts_with('O') || descr.starts_with('O'))
    refuse(
        file,
        "holds Python objects (a pickle), which can run code and are not read; allowed: arrays of numbers");
  if (const ElementType* const type = type_of_npy(kind)) return type;
  if (kind == "V1" || kind == "V2" || kind == "f1") {  // f1 is what ml_dtypes makes of float8_e5m2
    if (raw.type != nullptr && (raw.type->bits + 7) / 8 == kind[1] - '0') return raw.type;
    refuse(file, fmt::format("has elements of {} that name no type, as ml_dtypes' arrays are saved; halflab "
                             "reads them with --dtype",
                             kind == "V2" ? "two bytes" : "one byte"));
  }
  refuse(file, fmt::format("has elements of type '{}'; allowed: f2, f4, f8 (float16, float32, float64), and "
                           "V1 or V2 with --dtype",
                           one_line(descr)));
}

}  // namespace

NpyHeader read_npy_header(const std::function<std::string(std::size_t)>& read,
                          const std::filesystem::path& file, const RawLayout& raw) {
  const auto read_all = [&](std::size_t count) {
    std::string bytes = read(count);
    if (bytes.size() < count) refuse(file, "is cut off in its header");
    return bytes;
  };
  const std::string begin = read(magic.size() + 2);
  if (!begin.starts_with(magic)) refuse(file, "is not a .npy file: it does not begin with \\x93NUMPY");
  if (begin.size() < magic.size() + 2) refuse(file, "is cut off in its header");
  const int major = begin[magic.size()];
  if (major < 1 || major > 3) refuse(file, fmt::format("has version {}; allowed: 1.0, 2.0, 3.0", major));
  const std::string length_bytes = read_all(major == 1 ? 2 : 4);
  std::size_t length = 0;
  for (std::size_t i = length_bytes.size(); i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(length_bytes[i]);
  if (length > longest_header)
    refuse(file, fmt::format("has a header of {} bytes; at most {} are allowed", length, longest_header));
  const std::string text = read_all(length);

  NpyHeader header{.bytes = begin.size() + length_bytes.size() + length};
  bool has_shape = false, has_order = false;
  Dictionary dictionary(text, file);
  dictionary.read([&](std::string_view key) {
    if (key == "descr") {
      if (dictionary.at_list()) refuse(file, "has elements of several fields; allowed: one number each");
      header.type = type_of(dictionary.text(), header.big_endian, file, raw);
    } else if (key == "fortran_order") {
      header.columns_first = dictionary.boolean();
      has_order = true;
    } else if (key == "shape") {
      header.shape = dictionary.tuple();
      has_shape = true;
    } else {
      dictionary.bad(fmt::format("the key '{}' is none of descr, fortran_order, shape", one_line(key)));
    }
  });
  if (header.type == nullptr || !has_shape || !has_order)
    refuse(file, "has a bad header: it needs descr, fortran_order and shape");
  return header;
}

Contents parse_npy(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw) {
  std::size_t position = 0;
  const auto read = [&](std::size_t count) {
    const Bytes part = bytes.subspan(position, std::min(count, bytes.size() - position));
    position += part.size();
    return std::string(reinterpret_cast<const char*>(part.data()), part.size());
  };
  const NpyHeader header = read_npy_header(read, file, raw);
  StoredTensor tensor{.name = one_line(file.stem().string()),
                      .shape = header.shape,
                      .type = header.type,
                      .columns_first = header.columns_first,
                      .big_endian = header.big_endian,
                      .byte_each = header.type->bits < 8,
                      .file = file,
                      .offset = header.bytes};
  tensor.elements = element_count(tensor.shape, fmt::format("file '{}'", file.string()));
  tensor.data = bytes.subspan(header.bytes);
  if (tensor.data.size() != tensor.stored_bytes())
    refuse(file, fmt::format("has {} bytes of data where its shape {} and type want {}", tensor.data.size(),
                             text_of(tensor.shape), tensor.stored_bytes()));
  return {.tensors = {std::move(tensor)}, .metadata = {}};
}

std::string npy_header(const ElementType& type, const Shape& shape) {
  std::string header =
      fmt::format("{{'descr': '<{}', 'fortran_order': False, 'shape': {}, }}", type.npy, text_of(shape));
  const std::size_t before = magic.size() + 4;  // version and length
  header.resize((before + header.size() + header_alignment) / header_alignment * header_alignment - before,
                ' ');
  header.back() = '\n';
  std::string bytes(magic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, header.size() & 0xff, header.size() >> 8})
    bytes.push_back(static_cast<char>(byte));
  return bytes + header;
}

}  // namespace experiments::tensor_files
