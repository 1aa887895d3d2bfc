#pragma once
/// Internal to bulk: codes of a few bits, one a byte, to codes without gaps and back, eight at a time in an integer.
/// One instance per translation unit, compiled for its instruction set.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fp16::detail {
namespace {

/// Up to eight bytes, the first in the lowest bits.
inline std::uint64_t load_bytes(const std::uint8_t* p, std::size_t count) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes |= std::uint64_t{p[i]} << (8 * i);
  return bytes;
}

inline void store_bytes(std::uint8_t* p, std::uint64_t bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) p[i] = static_cast<std::uint8_t>(bytes >> (8 * i));
}

template <typename Word>
std::uint64_t load_word(const std::uint8_t* p) {
  if constexpr (std::endian::native != std::endian::little) return load_bytes(p, sizeof(Word));
  Word word;
  std::memcpy(&word, p, sizeof(Word));
  return word;
}

template <typename Word>
void store_word(std::uint8_t* p, std::uint64_t bytes) {
  if constexpr (std::endian::native != std::endian::little) return store_bytes(p, bytes, sizeof(Word));
  const auto word = static_cast<Word>(bytes);
  std::memcpy(p, &word, sizeof(Word));
}

/// Eight codes without gaps, 4 or 6 bytes.
template <int bits>
std::uint64_t load_packed(const std::uint8_t* p) {
  const std::uint64_t first = load_word<std::uint32_t>(p);
  return bits == 4 ? first : first | load_word<std::uint16_t>(p + 4) << 32;
}

template <int bits>
void store_packed(std::uint8_t* p, std::uint64_t packed) {
  store_word<std::uint32_t>(p, packed);
  if (bits == 6) store_word<std::uint16_t>(p + 4, packed >> 32);
}

/// `mask` in every part of an integer that has `part_bits`.
constexpr std::uint64_t repeated(std::uint64_t mask, int part_bits) {
  for (; part_bits < 64; part_bits *= 2) mask |= mask << part_bits;
  return mask;
}

/// The lowest `bits` of each of eight bytes, without gaps: in pairs, then in pairs of these, then all.
template <int bits>
constexpr std::uint64_t squeezed(std::uint64_t bytes) {
  constexpr std::uint64_t one = repeated((1u << bits) - 1, 16), two = repeated((1u << 2 * bits) - 1, 32);
  constexpr std::uint64_t four = (std::uint64_t{1} << 4 * bits) - 1;
  const std::uint64_t pairs = (bytes & one) | (bytes >> (8 - bits) & one << bits);
  const std::uint64_t fours = (pairs & two) | (pairs >> 2 * (8 - bits) & two << 2 * bits);
  return (fours & four) | (fours >> 4 * (8 - bits) & four << 4 * bits);
}

/// The inverse of `squeezed`; bits beyond those of eight codes have no say.
template <int bits>
constexpr std::uint64_t spread(std::uint64_t packed) {
  constexpr std::uint64_t one = repeated((1u << bits) - 1, 16), two = repeated((1u << 2 * bits) - 1, 32);
  constexpr std::uint64_t four = (std::uint64_t{1} << 4 * bits) - 1;
  const std::uint64_t fours = (packed & four) | (packed & four << 4 * bits) << 4 * (8 - bits);
  const std::uint64_t pairs = (fours & two) | (fours & two << 2 * bits) << 2 * (8 - bits);
  return (pairs & one) | (pairs & one << bits) << (8 - bits);
}

template <int bits>
void pack(const std::uint8_t* codes, std::uint8_t* packed, std::size_t count) {
  for (; count >= 8; count -= 8, codes += 8, packed += bits)
    store_packed<bits>(packed, squeezed<bits>(load_word<std::uint64_t>(codes)));
  store_bytes(packed, squeezed<bits>(load_bytes(codes, count)), (count * bits + 7) / 8);
}

template <int bits>
void unpack(const std::uint8_t* packed, std::uint8_t* codes, std::size_t count) {
  for (; count >= 8; count -= 8, codes += 8, packed += bits)
    store_word<std::uint64_t>(codes, spread<bits>(load_packed<bits>(packed)));
  store_bytes(codes, spread<bits>(load_bytes(packed, (count * bits + 7) / 8)), count);
}

}  // namespace
}  // namespace fp16::detail
