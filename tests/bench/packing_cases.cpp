#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "fp16/packed.h"
#include "tests/bench/case.h"

namespace bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Held against copying the floats.
template <const fp16::Format& F>
void add_decoders(std::vector<Case>& cases, const std::shared_ptr<std::vector<float>>& floats) {
  const auto codes = std::make_shared<std::vector<fp16::Bits<F>>>(array_size);
  const auto values = std::make_shared<std::vector<float>>(array_size);
  fp16::encode<F>(*floats, *codes, {.saturate = true});
  const auto add = [&](const std::string& name, double code_bytes, const std::function<void()>& work) {
    work();
    for (std::size_t i = 0; i < array_size; i += 101)
      require(
          std::bit_cast<std::uint32_t>((*values)[i]) == fp16::convert<fp16::binary32, F>((*codes)[i]).bits,
          name);
    cases.push_back(Case{name, array_size, work, {"copy_floats"}}.moving(code_bytes + sizeof(float)));
  };
  add(fmt::format("decode_{}", name_of(F)), sizeof(fp16::Bits<F>), [=] { fp16::decode<F>(*codes, *values); });
  if constexpr (F.width() < 8) {
    const auto packed = std::make_shared<Bytes>(fp16::packed_bytes(array_size, F.width()));
    fp16::pack(*codes, *packed, F.width());
    add(fmt::format("decode_packed_{}", name_of(F)), F.width() / 8.0,
        [=] { fp16::decode_packed<F>(*packed, *values); });
  }
}

/// Held against encoding to a byte a code.
template <const fp16::Format& F>
void add_encoder(std::vector<Case>& cases, const std::shared_ptr<std::vector<float>>& floats) {
  const auto packed = std::make_shared<Bytes>(fp16::packed_bytes(array_size, F.width()));
  const std::string name = fmt::format("encode_packed_{}", name_of(F));
  const auto work = [=] { fp16::encode_packed<F>(*floats, *packed, {.saturate = true}); };
  work();
  Bytes codes(array_size);
  fp16::unpack(*packed, codes, F.width());
  for (std::size_t i = 0; i < array_size; i += 101)
    require(codes[i] == fp16::encode<F>((*floats)[i], {.saturate = true}).bits, name);
  cases.push_back(Case{name, array_size, work, {fmt::format("encode_{}", name_of(F))}}.moving(
      sizeof(float) + F.width() / 8.0));
}

/// Held against copying a byte a code.
void add_packing(std::vector<Case>& cases, int bits) {
  const auto codes = std::make_shared<Bytes>(array_size), back = std::make_shared<Bytes>(array_size);
  for (std::size_t i = 0; i < array_size; ++i)
    (*codes)[i] = static_cast<std::uint8_t>(i * 37 % (std::size_t{1} << bits));
  const auto packed = std::make_shared<Bytes>(fp16::packed_bytes(array_size, bits));
  const auto pack = [=] { fp16::pack(*codes, *packed, bits); };
  const auto unpack = [=] { fp16::unpack(*packed, *back, bits); };
  pack();
  unpack();
  require(*back == *codes, "packing");
  const double bytes = 1 + bits / 8.0;
  cases.push_back(Case{fmt::format("pack_fp{}", bits), array_size, pack, {"copy_codes"}}.moving(bytes));
  cases.push_back(Case{fmt::format("unpack_fp{}", bits), array_size, unpack, {"copy_codes"}}.moving(bytes));
}

}  // namespace

void add_packing_cases(std::vector<Case>& cases) {
  const auto floats = std::make_shared<std::vector<float>>(normal_values(array_size, "floats"));
  const auto add_copy = [&](const std::string& name, std::size_t bytes) {
    const auto from = std::make_shared<Bytes>(bytes, 1), to = std::make_shared<Bytes>(bytes);
    cases.push_back({name, array_size, [=] { std::memcpy(to->data(), from->data(), bytes); }, {}, true});
  };
  add_copy("copy_floats", array_size * sizeof(float));
  add_copy("copy_codes", array_size);
  fp16::for_each_format([&]<const fp16::Format & F>() {
    if constexpr (F.width() < 32 && F != fp16::binary16) add_decoders<F>(cases, floats);
    if constexpr (F.width() < 8) add_encoder<F>(cases, floats);
  });
  add_packing(cases, 4);
  add_packing(cases, 6);
}

}  // namespace bench
