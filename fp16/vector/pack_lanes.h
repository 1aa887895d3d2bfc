#pragma once
/// Internal to bulk: packing over lanes of bytes, written once for all instruction sets. What is left of a vector goes
/// through the loops of pack_loops.h.

#include "fp16/vector/pack_loops.h"

namespace fp16::detail {
namespace {

/// `step(in, out)` for every `step_codes` codes, `rest(in, out, count)` for those that are left.
template <std::size_t step_codes, std::size_t step_in, std::size_t step_out, typename Step, typename Rest>
void for_each_step(const std::uint8_t* in, std::uint8_t* out, std::size_t count, Step step, Rest rest) {
#pragma GCC unroll 4
  for (; count >= step_codes; count -= step_codes, in += step_in, out += step_out) step(in, out);
  rest(in, out, count);
}

template <class Bytes>
void pack_4(const std::uint8_t* codes, std::uint8_t* packed, std::size_t count) {
  const auto bytes = [](const std::uint8_t* p) {
    return Bytes::template join_bytes<4>(Bytes::load(p) & Bytes::set(0x0f0f0f0f));
  };
  const auto step = [&](const std::uint8_t* from, std::uint8_t* to) {
    Bytes::store(to, Bytes::narrow(bytes(from), bytes(from + Bytes::width)));
  };
  for_each_step<2 * Bytes::width, 2 * Bytes::width, Bytes::width>(codes, packed, count, step, pack<4>);
}

template <class Bytes>
void unpack_4(const std::uint8_t* packed, std::uint8_t* codes, std::size_t count) {
  const auto step = [](const std::uint8_t* from, std::uint8_t* to) {
    const auto pairs = Bytes::load_as_words(from);
    Bytes::store(to, (pairs | Bytes::template shift_left<4>(pairs)) & Bytes::set(0x0f0f0f0f));
  };
  for_each_step<Bytes::width, Bytes::width / 2, Bytes::width>(packed, codes, count, step, unpack<4>);
}

template <class Bytes>
void pack_6(const std::uint8_t* codes, std::uint8_t* packed, std::size_t count) {
  const auto step = [](const std::uint8_t* from, std::uint8_t* to) {
    const auto pairs = Bytes::template join_bytes<6>(Bytes::load(from) & Bytes::set(0x3f3f3f3f));
    Bytes::store_triples(to, Bytes::template join_words<12>(pairs));
  };
  for_each_step<Bytes::width, Bytes::width, 3 * Bytes::width / 4>(codes, packed, count, step, pack<6>);
}

/// The lower two of three bytes that hold four codes have the first codes from bit 0, the upper two the others from
/// bit 4 on.
template <class Bytes>
void unpack_6(const std::uint8_t* packed, std::uint8_t* codes, std::size_t count) {
  const auto step = [](const std::uint8_t* from, std::uint8_t* to) {
    const auto both = Bytes::load_triples(from);
    const auto even =
        (both & Bytes::set(0x3f)) | (Bytes::template shift_right<4>(both) & Bytes::set(0x3f0000));
    const auto odd = (Bytes::template shift_left<2>(both) & Bytes::set(0x3f00)) |
                     (Bytes::template shift_right<2>(both) & Bytes::set(0x3f000000));
    Bytes::store(to, even | odd);
  };
  for_each_step<Bytes::width, 3 * Bytes::width / 4, Bytes::width>(packed, codes, count, step, unpack<6>);
}

}  // namespace
}  // namespace fp16::detail
