/// Flags of arrays: the union of those of their elements, none missed and none made up.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "fp16/bulk.h"
#include "tests/fp16/vector/hard_operands.h"
#include "tests/fp16/vector/operation_rows.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

int pattern_of(Flags flags) {
  return flags.inexact | flags.underflow << 1 | flags.overflow << 2 | flags.divide_by_zero << 3 |
         flags.invalid << 4;
}

constexpr int all_flags = 31;

/// The flags of a result, and whether it is a NaN: of blocks without one less is looked at.
template <const Format& F>
int pattern_of(const Result<F>& result) {
  return pattern_of(result.flags) | is_nan<F>(result.bits) << 5;
}

using Indices = std::vector<std::size_t>;

/// Arrays made of the elements with known patterns. For each flag one of all elements that do not raise it; one of quiet
/// elements, which raise none and are no NaNs; and for each pattern quiet elements with one among them that has it.
std::vector<Indices> arrays_of(const std::vector<int>& patterns) {
  std::vector<Indices> arrays(6);
  std::map<int, Indices> by_pattern;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    for (int flag = 0; flag < 5; ++flag) {
      if ((patterns[i] >> flag & 1) == 0) arrays[static_cast<std::size_t>(flag)].push_back(i);
    }
    by_pattern[patterns[i]].push_back(i);
  }
  const Indices& quiet = by_pattern[0];
  arrays[5] = quiet;
  if (quiet.empty()) return arrays;
  oracle::RandomBits random(51);
  for (const auto& [pattern, indices] : by_pattern) {
    for (const std::size_t size : {1, 37, 2103}) {
      Indices& array = arrays.emplace_back(size);
      for (std::size_t& i : array)
        i = quiet[static_cast<std::size_t>(random.below(static_cast<int>(quiet.size())))];
      const auto one = static_cast<std::size_t>(random.below(static_cast<int>(indices.size())));
      array[static_cast<std::size_t>(random.below(static_cast<int>(size)))] = indices[one];
    }
  }
  return arrays;
}

/// `apply(array, options)` works on an array of elements.
void check_flags(const std::vector<int>& patterns,
                 const std::function<void(const Indices&, const ArrayOptions&)>& apply) {
  for (const Indices& array : arrays_of(patterns)) {
    int expected = 0;
    for (const std::size_t i : array) expected |= patterns[i] & all_flags;
    for (const VectorPath path : available_vector_paths()) {
      CAPTURE(name_of(path));
      CAPTURE(array.size());
      Flags flags;
      apply(array, {.path = path, .flags = &flags});
      CHECK(pattern_of(flags) == expected);
      Flags beside_counts{.inexact = true};
      RoundingCounts counts;
      apply(array, {.path = path, .threads = 2, .counts = &counts, .flags = &beside_counts});
      CHECK(pattern_of(beside_counts) == (expected | 1));
    }
  }
}

template <typename Value>
std::vector<Value> chosen(const std::vector<Value>& values, const Indices& indices) {
  std::vector<Value> elements;
  for (const std::size_t i : indices) elements.push_back(values[i]);
  return elements;
}

template <const Format& F>
void check_operation(const OperationRow<F>& row, const Operands<F>& in, const Attributes& attributes) {
  oracle::RandomBits random(52);
  std::vector<std::uint64_t> bits(in.a.size());
  std::vector<int> patterns(in.a.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = random.next();
    Attributes each = attributes;
    each.random_bits = bits[i];
    patterns[i] = pattern_of<F>(row.scalar(in.a[i], in.b[i], in.c[i], each));
  }
  check_flags(patterns, [&](const Indices& array, ArrayOptions options) {
    const Operands<F> operands{chosen(in.a, array), chosen(in.b, array), chosen(in.c, array)};
    const std::vector<std::uint64_t> drawn = chosen(bits, array);
    options.random_bits_64 = drawn;
    std::vector<Bits<F>> out(array.size());
    row.apply(operands, out, attributes, options);
  });
}

TEST_CASE(
    "flags of array operations: the union of the scalar flags, whatever the format, attributes and path") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.has_arithmetic() && F.precision <= 11) {
      CAPTURE(name_of(F));
      const Operands<F> in = hard_operands<F>(F == binary16 ? 6'000 : 1'500);
      for (const OperationRow<F>& row : operation_rows<F>) {
        CAPTURE(row.name);
        for (const Rounding rounding : every_rounding) {
          CAPTURE(static_cast<int>(rounding));
          for (Attributes attributes : border_attributes) {
            attributes.rounding = rounding;
            check_operation(row, in, attributes);
          }
          check_operation(row, in, {.rounding = rounding, .tininess = Tininess::before_rounding});
        }
      }
    }
  });
}

/// Floats of every class, most about the numbers of F and what lies halfway between them.
template <const Format& F>
std::vector<float> hard_floats(std::size_t count) {
  std::vector<float> floats;
  oracle::HardFloats cases(53);
  oracle::RandomBits random(54);
  while (floats.size() < count) {
    floats.push_back(std::bit_cast<float>(cases.next()));
    const auto code = static_cast<float>(decode<F>(hard_code<F>(random)));
    const auto next = static_cast<float>(decode<F>(hard_code<F>(random)));
    floats.insert(floats.end(),
                  {code, std::nextafter(code, 0.0f), std::nextafter(code, next), (code + next) / 2});
    floats.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(code) ^
                                          1u << (binary32.trailing_bits() - F.trailing_bits() - 1)));
  }
  return floats;
}

template <const Format& F>
void check_encoding(const std::vector<float>& in, const Attributes& attributes) {
  oracle::RandomBits random(55);
  std::vector<std::uint32_t> bits(in.size());
  std::vector<int> patterns(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    bits[i] = static_cast<std::uint32_t>(random.next());
    Attributes each = attributes;
    each.random_bits = bits[i];
    patterns[i] = pattern_of<F>(encode<F>(in[i], each));
  }
  check_flags(patterns, [&](const Indices& array, ArrayOptions options) {
    const std::vector<std::uint32_t> drawn = chosen(bits, array);
    options.random_bits_32 = drawn;
    std::vector<Bits<F>> out(array.size());
    encode<F>(chosen(in, array), out, attributes, options);
  });
}

TEST_CASE(
    "flags of encoded arrays: the union of the scalar flags, whatever the format, attributes and path") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() < 32) {
      CAPTURE(name_of(F));
      const std::vector<float> in = hard_floats<F>(3'000);
      for (const Rounding rounding : every_rounding) {
        CAPTURE(static_cast<int>(rounding));
        for (Attributes attributes : border_attributes) {
          attributes.rounding = rounding;
          check_encoding<F>(in, attributes);
        }
        check_encoding<F>(in, {.rounding = rounding, .tininess = Tininess::before_rounding});
      }
    }
  });
}

template <const Format& To, const Format& From>
void check_conversion(const Attributes& attributes) {
  std::vector<Bits<From>> in;
  std::vector<int> patterns;
  oracle::RandomBits random(56);
  const std::size_t all = From.width() <= 8 ? std::size_t{1} << From.width() : 1'000;
  for (std::size_t i = 0; i < all; ++i) {
    in.push_back(From.width() <= 8 ? static_cast<Bits<From>>(i) : hard_code<From>(random));
    patterns.push_back(pattern_of<To>(convert<To, From>(in[i], attributes)));
  }
  check_flags(patterns, [&](const Indices& array, const ArrayOptions& options) {
    std::vector<Bits<From>> codes = chosen(in, array);
    if constexpr (sizeof(Bits<To>) == sizeof(Bits<From>)) {
      convert<To, From>(codes, codes, attributes, options);  // in place
    } else {
      std::vector<Bits<To>> out(array.size());
      convert<To, From>(codes, out, attributes, options);
    }
  });
}

TEST_CASE("flags of arrays converted between any two formats") {
  for_each_format([]<const Format & From>() {
    for_each_format([]<const Format & To>() {
      if constexpr (From.width() <= 32) {
        CAPTURE(name_of(From));
        CAPTURE(name_of(To));
        check_conversion<To, From>({});
        check_conversion<To, From>({.rounding = Rounding::toward_positive, .saturate = true});
        check_conversion<To, From>({.flush_to_zero = true, .denormals_are_zero = true});
      }
    });
  });
}

}  // namespace
}  // namespace fp16
