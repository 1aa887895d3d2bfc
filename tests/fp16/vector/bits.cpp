/// Prints "what checksum" of all that the active path of this processor computes, and of the operations on numbers: bits,
/// flags and counts. Two processors, or paths (HALFLAB_VECTOR_PATH), agree where they print the same.

#include <array>
#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "fp16/block.h"
#include "fp16/block_arrays.h"
#include "fp16/bulk.h"
#include "fp16/gemm.h"
#include "fp16/math.h"
#include "fp16/operations.h"
#include "fp16/rounding_names.h"
#include "tests/fp16/vector/gemm_matrix.h"
#include "tests/fp16/vector/operation_rows.h"
#include "tests/oracle/fnv_hash.h"

namespace fp16 {
namespace {

void print(const std::string& what, const oracle::FnvHash& hash) {
  std::printf("%s %016" PRIx64 "\n", what.c_str(), hash.value());
}

template <typename Code>
void add(oracle::FnvHash& hash, const std::vector<Code>& codes) {
  for (const Code code : codes) hash.add(code);
}

void add(oracle::FnvHash& hash, const std::vector<float>& values) {
  for (const float value : values) hash.add(std::bit_cast<std::uint32_t>(value));
}

void add(oracle::FnvHash& hash, const Flags& flags) {
  hash.add(flags.inexact | flags.underflow << 1 | flags.overflow << 2 | flags.divide_by_zero << 3 |
           flags.invalid << 4);
}

void add(oracle::FnvHash& hash, const RoundingCounts& counts) {
  for (const std::uint64_t count :
       {counts.exact, counts.inexact, counts.subnormal, counts.flushed, counts.overflowed})
    hash.add(count);
}

std::vector<std::uint32_t> random_words(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  fill_bits({.key = 7, .stream = 9}, 5, words);
  return words;
}

/// One call without outcomes, one with flags and one with counts, which take different ways.
template <typename Code, typename Call>
void add_call(oracle::FnvHash& hash, std::size_t size, std::span<const std::uint32_t> random, Call call) {
  std::vector<Code> out(size);
  call(out, {.random_bits_32 = random});
  add(hash, out);
  Flags flags;
  call(out, {.flags = &flags, .random_bits_32 = random});
  add(hash, out);
  add(hash, flags);
  RoundingCounts counts;
  call(out, {.counts = &counts, .random_bits_32 = random});
  add(hash, out);
  add(hash, counts);
}

template <typename Visit>
void for_all_attributes(Visit visit) {
  for (const Rounding rounding : every_rounding) {
    for (Attributes attributes : border_attributes) {
      attributes.rounding = rounding;
      visit(attributes);
    }
  }
}

template <const Format& F>
void print_operations() {
  const Operands<F> in = hard_operands<F>(4'099);
  const std::vector<std::uint32_t> random = random_words(in.a.size());
  for (const OperationRow<F>& row : operation_rows<F>) {
    oracle::FnvHash hash;
    for_all_attributes([&](const Attributes& attributes) {
      const bool draws = attributes.rounding == Rounding::stochastic;
      add_call<Bits<F>>(hash, in.a.size(), draws ? random : std::span<const std::uint32_t>(),
                        [&](std::vector<Bits<F>>& out, const ArrayOptions& options) {
                          row.array(in, out, attributes, options);
                        });
    });
    print(std::string(name_of(F)) + " " + std::string(row.name), hash);
  }
}

/// Every 65537th float, and those halfway between halves with their neighbours.
std::vector<float> hard_floats() {
  std::vector<float> floats;
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += 65537)
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (std::uint32_t code = 0; code < 0x10000; code += 7) {
    const std::uint32_t bits =
        std::bit_cast<std::uint32_t>(half_bits_to_float(static_cast<std::uint16_t>(code)));
    for (const std::uint32_t beyond : {0x0fffu, 0x1000u, 0x1001u})
      floats.push_back(std::bit_cast<float>(bits + beyond));
  }
  return floats;
}

template <const Format& F>
void print_conversions(const std::vector<float>& floats) {
  const std::vector<std::uint32_t> random = random_words(floats.size());
  oracle::FnvHash hash;
  for_all_attributes([&](const Attributes& attributes) {
    const bool draws = attributes.rounding == Rounding::stochastic;
    add_call<Bits<F>>(hash, floats.size(), draws ? random : std::span<const std::uint32_t>(),
                      [&](std::vector<Bits<F>>& out, const ArrayOptions& options) {
                        encode<F>(std::span(floats), std::span(out), attributes, options);
                      });
  });
  if constexpr (contains(binary32, F)) {
    std::vector<Bits<F>> codes;
    for (std::uint64_t i = 0; i < 0x10000; ++i)
      codes.push_back(
          static_cast<Bits<F>>(i * (F.width() > 16 ? 0x10001 : 1) & ((std::uint64_t{1} << F.width()) - 1)));
    std::vector<float> values(codes.size());
    decode<F>(std::span<const Bits<F>>(codes), std::span(values));
    add(hash, values);
  }
  print(std::string(name_of(F)) + " conversions", hash);
}

void print_numbers() {
  for (const Operation& operation : operations()) {
    oracle::FnvHash hash;
    oracle::RandomBits random(46);
    for (std::uint64_t i = 0; i < 0x10000; ++i) {
      const std::uint64_t first = operation.arity == 1 && operation.operand_bits[0] <= 16 ? i : random.next();
      OperandCodes codes{first, hard_code<binary16>(random), hard_code<binary16>(random)};
      for (std::size_t k = 0; k < codes.size(); ++k) {
        const int bits = operation.operand_bits[k];
        codes[k] = bits == 0 ? 0 : codes[k] & (~std::uint64_t{0} >> (64 - bits));
      }
      hash.add(operation.apply(codes));
    }
    print("number " + operation.name, hash);
  }
}

void print_functions() {
  std::vector<std::uint16_t> all(0x10000), out(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const math::UnaryFunction* function : math::unary_functions()) {
    oracle::FnvHash hash;
    for (const Rounding rounding : every_rounding) {
      if (rounding == Rounding::stochastic) continue;
      math::apply(*function, all, out, {.rounding = rounding});
      add(hash, out);
    }
    print("function " + std::string(function->name()), hash);
  }
}

/// Halves of a few scales, now and then an infinity, a NaN or a subnormal.
std::uint16_t matrix_element(oracle::RandomBits& random, bool specials) {
  if (specials && random.below(400) == 0) return hard_code<binary16>(random);
  return static_cast<std::uint16_t>((random.next() & 0x83ff) | 0x2c00 | random.below(5) << 10);
}

template <typename Multiply>
void print_products(const std::string& name, Multiply multiply) {
  oracle::FnvHash hash;
  oracle::RandomBits random(48);
  for (const bool specials : {false, true}) {
    for (const auto& [m, k, n] : {test::Sizes{37, 41, 43}, test::Sizes{16, 515, 64}}) {
      const auto next = [&, specials = specials] { return matrix_element(random, specials); };
      const test::Matrix a(m, k, next), b(k, n, next);
      add(hash, multiply(a.operand(specials), b.operand(!specials)));
    }
  }
  print("product " + name, hash);
}

void print_products() {
  const auto floats = [](const auto& accumulation) {
    return [accumulation](const MatrixOperand& a, const MatrixOperand& b) {
      std::vector<float> c(a.rows * b.columns);
      gemm(a, b, c.data(), b.columns, accumulation);
      return c;
    };
  };
  for (const Accumulation accumulation :
       {Accumulation::fp32_fma_chain, Accumulation::fp16_fma_chain, Accumulation::fp16_mul_add_chain})
    print_products(std::string(name_of(accumulation)), floats(accumulation));
  print_products("fp64_fma_chain", [](const MatrixOperand& a, const MatrixOperand& b) {
    std::vector<double> c(a.rows * b.columns);
    gemm(a, b, c.data(), b.columns);
    std::vector<std::uint64_t> codes;
    for (const double value : c) codes.push_back(std::bit_cast<std::uint64_t>(value));
    return codes;
  });
  for (const TensorCore& core : tensor_cores) {
    for (const Format& accumulator : {binary16, binary32}) {
      const TensorCoreAccumulation accumulation{core, accumulator};
      print_products(name_of(accumulation), floats(accumulation));
    }
  }
}

void print_blocks(const std::vector<float>& floats) {
  const std::vector<std::uint32_t> random = random_words(floats.size());
  for (const BlockFormat* format : block_formats) {
    oracle::FnvHash hash;
    for (const bool draws : {false, true}) {
      std::vector<float> values = floats;
      round_to_blocks(*format, values, {.length = values.size()},
                      {.random_bits = draws ? random : std::span<const std::uint32_t>()});
      add(hash, values);
    }
    print("block " + std::string(format->name), hash);
  }
}

void print_all() {
  const std::vector<float> floats = hard_floats();
  for_each_format([&]<const Format & F>() {
    print_conversions<F>(floats);
    if constexpr (F.has_arithmetic()) print_operations<F>();
  });
  print_numbers();
  print_functions();
  print_products();
  print_blocks(floats);
  oracle::FnvHash hash;
  add(hash, random_words(100'003));
  print("philox", hash);
}

}  // namespace
}  // namespace fp16

int main() {
  fp16::print_all();
}
