#include "tests/emulator/fatbin.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/emulator/types.h"

namespace emulator {

namespace {

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const std::byte* binary;
  const void* unused;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  ///< of all entries
};
struct Entry {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t size;
};

constexpr std::uint32_t wrapper_magic = 0x466243b1, header_magic = 0xba55ed50;
constexpr std::uint16_t ptx_kind = 1;

template <typename Value>
Value read(const std::byte* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool is_ptx(std::string_view text) {
  return text.find(".version") != std::string_view::npos && text.find(".target") != std::string_view::npos;
}

}  // namespace

std::vector<std::string_view> ptx_texts(const void* fat_binary) {
  const auto wrapper = read<Wrapper>(static_cast<const std::byte*>(fat_binary));
  if (wrapper.magic != wrapper_magic) throw Unsupported("not a fat binary");
  const auto header = read<Header>(wrapper.binary);
  if (header.magic != header_magic) throw Unsupported("not a fat binary");
  std::vector<std::string_view> texts;
  const std::byte* const end = wrapper.binary + header.header_size + header.size;
  for (const std::byte* at = wrapper.binary + header.header_size; at < end;) {
    const auto entry = read<Entry>(at);
    if (entry.kind == ptx_kind) {
      std::string_view text(reinterpret_cast<const char*>(at + entry.header_size), entry.size);
      text = text.substr(0, text.find('\0'));
      if (!is_ptx(text))
        throw Unsupported(
            "the emulator cannot read compressed PTX: compile with nvcc's option --no-compress");
      texts.push_back(text);
    }
    at += entry.header_size + entry.size;
  }
  if (texts.empty())
    throw Unsupported(
        "the emulator needs PTX, and the program has only machine code: compile for compute_90, too");
  return texts;
}

}  // namespace emulator
