/// What every function over arrays makes of arrays that are empty, of odd lengths, that begin anywhere, of an output
/// that is an input, and of one that overlaps an input. Under a sanitizer of addresses every array ends where its
/// allocation does.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "fp16/block_arrays.h"
#include "fp16/bulk.h"
#include "fp16/comparison.h"
#include "fp16/exact_sums.h"
#include "fp16/exponent_histogram.h"
#include "fp16/math.h"
#include "fp16/packed.h"
#include "tests/fp16/vector/operation_rows.h"

namespace fp16 {
namespace {

constexpr std::array<std::size_t, 14> lengths{0, 1, 2, 3, 7, 15, 17, 31, 33, 63, 65, 129, 2047, 2049};
constexpr std::size_t longest = 2049;

/// visit(path, size, offset) for all of them; an array of `size` elements begins `offset` elements into its allocation.
template <typename Visit>
void for_each_layout(Visit visit) {
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    for (const std::size_t size : lengths) {
      CAPTURE(size);
      for (const std::size_t offset : {0, 1, 3}) visit(path, size, offset);
    }
  }
}

/// A copy that begins `offset` elements into its allocation and ends with it.
template <typename T>
class Placed {
 public:
  Placed(std::span<const T> values, std::size_t offset) : all_(offset), offset_(offset) {
    all_.insert(all_.end(), values.begin(), values.end());
    all_.shrink_to_fit();
  }
  Placed(std::size_t size, std::size_t offset) : all_(offset + size), offset_(offset) {}
  std::span<T> span() { return std::span(all_).subspan(offset_); }
  std::vector<T> values() { return {span().begin(), span().end()}; }

 private:
  std::vector<T> all_;
  std::size_t offset_;
};

template <typename T>
bool have_same_bits(std::span<const T> a, std::span<const T> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

/// call(out, in) must refuse arrays of which one begins within the other, before it writes anything.
template <typename Out, typename In, typename Call>
void require_refused(std::size_t out_size, std::size_t in_size, Call call) {
  std::vector<std::uint64_t> buffer(2 * longest, 0x0101010101010101);
  const std::vector<std::uint64_t> before = buffer;
  auto* const bytes = reinterpret_cast<std::byte*>(buffer.data());
  const auto array = [&]<typename T>(T*, std::size_t begin, std::size_t size) {
    return std::span(reinterpret_cast<T*>(bytes + begin), size);
  };
  const auto refuse = [&](std::size_t out_begin, std::size_t in_begin) {
    REQUIRE_THROWS_AS(call(array(static_cast<Out*>(nullptr), out_begin, out_size),
                           std::span<const In>(array(static_cast<In*>(nullptr), in_begin, in_size))),
                      std::invalid_argument);
    REQUIRE(buffer == before);
  };
  constexpr std::size_t step = std::max(sizeof(Out), sizeof(In));
  refuse(step, 0);
  refuse(0, step);
  refuse((in_size * sizeof(In) - 1) / sizeof(Out) * sizeof(Out), 0);
  refuse(0, (out_size * sizeof(Out) - 1) / sizeof(In) * sizeof(In));
  if (sizeof(Out) != sizeof(In)) refuse(0, 0);
}

/// By the function that goes through arrays one element at a time.
template <const Format& F>
const OperationRow<F> scalar_add{{"transform", 2,
                                  [](auto& x, auto out, auto& at, auto& o) {
                                    const auto sum = [](Bits<F> a, Bits<F> b, const Attributes& each) {
                                      return add<F>(a, b, each);
                                    };
                                    transform<F>(sum, out, at, o, x.a, x.b);
                                  }},
                                 [](auto a, auto b, auto, auto& at) { return add<F>(a, b, at); },
                                 nullptr};

/// Under which operations redo elements from their operands, and under which they do not.
constexpr std::array operation_attributes{
    Attributes{}, Attributes{Rounding::stochastic},
    Attributes{.flush_to_zero = true, .denormals_are_zero = true},
    Attributes{.rounding = Rounding::toward_negative, .nan_policy = NanPolicy::canonical_riscv}};

template <const Format& F>
class OperationCheck {
 public:
  OperationCheck() : operands_(hard_operands<F>(longest + 5)), random_(longest + 5) {
    oracle::RandomBits random(71);
    for (std::uint64_t& bits : random_) bits = random.next();
  }

  void run(const OperationRow<F>& row, const Attributes& attributes, VectorPath path, std::size_t size,
           std::size_t offset) const {
    const std::array<std::vector<Bits<F>>, 3> in{part(operands_.a, size), part(operands_.b, size),
                                                 part(operands_.c, size)};
    const Placed<std::uint64_t> random(part(random_, size), offset);
    ArrayOptions options{.path = path, .threads = size > 1000 ? 2 : 1};
    Placed<std::uint64_t> bits = random;
    if (attributes.rounding == Rounding::stochastic) options.random_bits_64 = bits.span();
    std::vector<Bits<F>> expected(size);
    RoundingCounts expected_counts;
    Flags expected_flags;
    for (std::size_t i = 0; i < size; ++i) {
      Attributes each = attributes;
      each.random_bits = bits.span()[i];
      const Result<F> result = row.scalar(in[0][i], in[1][i], in[2][i], each);
      expected[i] = result.bits;
      expected_counts += detail::counts_of<F>(result);
      expected_flags |= result.flags;
    }
    // To an array of its own, then to that of each operand.
    for (int target = -1; target < static_cast<int>(row.operands); ++target) {
      std::array<Placed<Bits<F>>, 3> placed{Placed<Bits<F>>(in[0], offset), {in[1], offset + 1}, {in[2], 0}};
      Placed<Bits<F>> apart(size, offset + 2);
      const std::span<Bits<F>> out =
          target < 0 ? apart.span() : placed[static_cast<std::size_t>(target)].span();
      RoundingCounts counts;
      Flags flags;
      options.counts = target % 2 == 0 ? &counts : nullptr;
      options.flags = target % 2 == 0 ? &flags : nullptr;
      row.apply({placed[0].span(), placed[1].span(), placed[2].span()}, out, attributes, options);
      REQUIRE(std::ranges::equal(out, expected));
      if (target % 2 != 0) continue;
      REQUIRE(counts == expected_counts);
      REQUIRE(flags == expected_flags);
    }
  }

  void refuse(const OperationRow<F>& row) const {
    const std::vector<Bits<F>> other(16);
    require_refused<Bits<F>, Bits<F>>(16, 16, [&](auto out, auto in) {
      row.apply({in, other, other}, out, {}, {});
    });
    if (row.operands > 1)
      require_refused<Bits<F>, Bits<F>>(16, 16, [&](auto out, auto in) {
        row.apply({other, in, other}, out, {}, {});
      });
    require_refused<Bits<F>, std::uint64_t>(16, 16, [&](auto out, auto random) {
      row.apply({other, other, other}, out, {Rounding::stochastic}, {.random_bits_64 = random});
    });
  }

 private:
  template <typename T>
  static std::vector<T> part(const std::vector<T>& values, std::size_t size) {
    return {values.begin() + 5, values.begin() + 5 + static_cast<std::ptrdiff_t>(size)};
  }

  Operands<F> operands_;
  std::vector<std::uint64_t> random_;
};

template <const Format& F>
void check_operations() {
  CAPTURE(name_of(F));
  const OperationCheck<F> check;
  const auto check_row = [&](const OperationRow<F>& row) {
    CAPTURE(row.name);
    for (const Attributes& attributes : operation_attributes) {
      for_each_layout([&](VectorPath path, std::size_t size, std::size_t offset) {
        check.run(row, attributes, path, size, offset);
      });
    }
    check.refuse(row);
  };
  for (const OperationRow<F>& row : operation_rows<F>) check_row(row);
  check_row(scalar_add<F>);
}

TEST_CASE(
    "operations: arrays of any length and place, an output that is an operand, overlapping ones are "
    "refused") {
  check_operations<binary16>();
  check_operations<bfloat16>();
  check_operations<e4m3>();
  check_operations<e2m1>();
}

template <const Format& F>
std::vector<float> floats_near() {
  std::vector<float> floats;
  for (const Bits<F> code : hard_operands<F>(longest).a)
    floats.push_back(std::bit_cast<float>(convert<binary32, F>(code).bits +
                                          static_cast<std::uint32_t>(floats.size() % 3)));
  return floats;
}

template <const Format& F>
void check_conversions() {
  CAPTURE(name_of(F));
  const std::vector<float> values = floats_near<F>();
  const std::vector<Bits<F>> codes = hard_operands<F>(longest).a;
  for_each_layout([&](VectorPath path, std::size_t size, std::size_t offset) {
    const auto floats = std::span(values).first(size);
    Placed<float> in(floats, offset), back(size, offset + 1);
    Placed<Bits<F>> out(size, offset + 2);
    encode<F>(in.span(), out.span(), {}, {.path = path});
    for (std::size_t i = 0; i < size; ++i) REQUIRE(out.span()[i] == encode<F>(floats[i]).bits);
    Placed<Bits<F>> from{std::span(codes).first(size), offset};
    decode<F>(from.span(), back.span(), {.path = path});
    for (std::size_t i = 0; i < size; ++i)
      REQUIRE(std::bit_cast<std::uint32_t>(back.span()[i]) == convert<binary32, F>(codes[i]).bits);
    convert<F, F>(from.span(), from.span(), {.denormals_are_zero = true}, {.path = path});
    for (std::size_t i = 0; i < size; ++i)
      REQUIRE(from.span()[i] == (convert<F, F>(codes[i], {.denormals_are_zero = true}).bits));
  });
  require_refused<Bits<F>, float>(16, 16, [](auto out, auto in) { encode<F>(in, out); });
  require_refused<float, Bits<F>>(16, 16, [](auto out, auto in) { decode<F>(in, out); });
  require_refused<Bits<F>, Bits<F>>(16, 16, [](auto out, auto in) { convert<F, F>(in, out); });
  require_refused<Bits<F>, std::uint32_t>(16, 16, [](auto out, auto random) {
    encode<F>(std::vector<float>(16), out, {Rounding::stochastic}, {.random_bits_32 = random});
  });
}

TEST_CASE("conversions: arrays of any length and place, and overlapping ones are refused") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.has_arithmetic() && F.width() < 32) check_conversions<F>();
  });
}

TEST_CASE("between formats of one size the output may be the input") {
  const std::vector<std::uint16_t> halves = hard_operands<binary16>(longest).a;
  for_each_layout([&](VectorPath path, std::size_t size, std::size_t offset) {
    Placed<std::uint16_t> codes{std::span(halves).first(size), offset};
    RoundingCounts counts;
    convert<bfloat16, binary16>(codes.span(), codes.span(), {Rounding::stochastic},
                                {.path = path, .counts = &counts, .random = PhiloxSequence{}});
    for (std::size_t i = 0; i < size; ++i) {
      const Attributes attributes{.rounding = Rounding::stochastic, .random_bits = Philox{}.bits(i)};
      REQUIRE(codes.span()[i] == (convert<bfloat16, binary16>(halves[i], attributes).bits));
    }
    REQUIRE(counts.exact + counts.inexact + counts.overflowed == size);
  });
}

TEST_CASE("functions and predicates: arrays of any length and place, and overlapping ones are refused") {
  const std::vector<std::uint16_t> halves = hard_operands<binary16>(longest).a;
  const auto is_nan = [](std::uint16_t a, const Attributes& attributes) {
    return compare_quiet<binary16>(a, Predicate::not_equal, a, attributes);
  };
  for_each_layout([&](VectorPath path, std::size_t size, std::size_t offset) {
    Placed<std::uint16_t> codes{std::span(halves).first(size), offset};
    Placed<std::uint8_t> answers(size, offset);
    transform_values(is_nan, answers.span(), {}, {.path = path},
                     std::span<const std::uint16_t>(codes.span()));
    for (std::size_t i = 0; i < size; ++i) REQUIRE(answers.span()[i] == (fp16::is_nan<binary16>(halves[i])));
    math::apply(math::tanh, codes.span(), codes.span(), {}, {.path = path});
    for (std::size_t i = 0; i < size; ++i) REQUIRE(codes.span()[i] == math::tanh(halves[i]).bits);
  });
  using Half = std::uint16_t;
  require_refused<Half, Half>(16, 16, [](auto out, auto in) { math::apply(math::tanh, in, out); });
  require_refused<Half, Half>(16, 16, [](auto out, auto in) { math::apply(math::pow, in, in, out); });
  require_refused<std::uint8_t, Half>(16, 16,
                                      [&](auto out, auto in) { transform_values(is_nan, out, {}, {}, in); });
}

TEST_CASE("packed codes: overlapping arrays are refused") {
  using Byte = std::uint8_t;
  for (const int bits : {4, 6}) {
    const std::size_t packed = packed_bytes(32, bits);
    require_refused<Byte, Byte>(packed, 32, [&](auto out, auto in) { pack(in, out, bits); });
    require_refused<Byte, Byte>(32, packed, [&](auto out, auto in) { unpack(in, out, bits); });
  }
  require_refused<Byte, float>(8, 16, [](auto out, auto in) { encode_packed<e2m1>(in, out); });
  require_refused<Byte, float>(12, 16, [](auto out, auto in) {
    encode_packed<e2m3>(in, out, {Rounding::stochastic}, {.random = PhiloxSequence{}});
  });
  require_refused<Byte, std::uint32_t>(12, 16, [](auto out, auto random) {
    encode_packed<e3m2>(std::vector<float>(16), out, {Rounding::stochastic}, {.random_bits_32 = random});
  });
  require_refused<float, Byte>(16, 32, [](auto out, auto in) { decode_packed<bfloat16>(in, out); });
}

TEST_CASE("block formats: arrays of any length and place, and overlapping ones are refused") {
  const std::vector<float> values = floats_near<binary16>();
  for_each_block_format([&]<const BlockFormat & B>() {
    CAPTURE(B.name);
    for (const std::size_t size : lengths) {
      CAPTURE(size);
      for (const std::size_t offset : {0, 1, 3}) {
        const auto floats = std::span(values).first(size);
        const std::size_t blocks = B.block_count(size);
        std::vector<ScaleBits<B>> scales(blocks);
        std::vector<ElementBits<B>> elements(size);
        encode_blocks<B>(floats, scales, elements);
        Placed<float> in(floats, offset);
        Placed<std::uint8_t> out_scales(blocks, offset + 1), out_elements(size, offset + 2);
        encode_blocks(B, in.span(), {.length = size}, out_scales.span(), out_elements.span());
        REQUIRE(std::ranges::equal(out_scales.span(), scales));
        REQUIRE(std::ranges::equal(out_elements.span(), elements));
        std::vector<float> expected(size);
        decode_blocks<B>(elements, scales, expected);
        round_to_blocks(B, in.span(), {.length = size});
        REQUIRE(have_same_bits<float>(in.span(), expected));
      }
    }
  });
  using Byte = std::uint8_t;
  const BlockAxis axis{.length = 512};
  const std::vector<float> zeros(512);
  Placed<Byte> scales(16, 0), elements(512, 0);
  require_refused<Byte, float>(
      64, 64, [&](auto out, auto in) { encode_blocks(mxfp4, in, axis, scales.span(), out); });
  require_refused<Byte, float>(
      2, 64, [&](auto out, auto in) { encode_blocks(mxfp4, in, axis, out, elements.span()); });
  require_refused<Byte, std::uint32_t>(512, 512, [&](auto out, auto random) {
    encode_blocks(mxfp4, zeros, axis, scales.span(), out, {.random_bits = random});
  });
  require_refused<float, std::uint32_t>(512, 512, [&](auto out, auto random) {
    const std::span<float> apart = out;
    round_to_blocks(mxfp4, apart, axis, {.random_bits = random});
  });
  CHECK_THROWS_AS(encode_blocks(mxfp4, zeros, axis, elements.span().subspan(10, 16), elements.span()),
                  std::invalid_argument);
}

TEST_CASE("sums, histograms and random bits: arrays of any length and place, two that are one") {
  const std::vector<std::uint16_t> halves = hard_operands<binary16>(longest).a;
  const std::vector<float> values = floats_near<binary16>();
  const Philox philox{.key = 9};
  for_each_layout([&](VectorPath path, std::size_t size, std::size_t offset) {
    Placed<std::uint32_t> bits(size, offset);
    fill_bits(philox, 5, bits.span(), path);
    for (std::size_t i = 0; i < size; ++i) REQUIRE(bits.span()[i] == philox.bits(5 + i));

    Placed<std::uint16_t> codes{std::span(halves).first(size), offset};
    Placed<float> floats{std::span(values).first(size), offset};
    ExponentHistogram of_codes, of_floats, of_doubles, one_by_one;
    of_codes.add(codes.span());
    of_floats.add(floats.span());
    std::vector<double> doubles(floats.span().begin(), floats.span().end());
    of_doubles.add(doubles);
    for (const std::uint16_t code : codes.span()) one_by_one.add(std::span(&code, 1));
    REQUIRE(of_codes == one_by_one);
    REQUIRE(of_floats == of_doubles);

    ExactAccumulator<binary16> sum, expected;
    add_values(sum, codes.span());
    add_products(sum, codes.span(), codes.span());
    if (size > 1) add_products(sum, codes.span().first(size - 1), codes.span().subspan(1));
    for (std::size_t i = 0; i < size; ++i) {
      expected.add(halves[i]);
      expected.add_product(halves[i], halves[i]);
      if (i + 1 < size) expected.add_product(halves[i], halves[i + 1]);
    }
    REQUIRE(sum.rounded<binary64>().bits == expected.rounded<binary64>().bits);
  });
}

}  // namespace
}  // namespace fp16
