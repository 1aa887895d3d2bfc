#pragma once
/// Kernels of arrays over lanes, written once for all instruction sets. `Halves` is what one offers for a vector of
/// codes; tails go through padded copies. What a kernel of binary16 raises in the processor is what IEEE 754 wants.

#include <type_traits>

#include "fp16/vector/bulk_loops.h"
#include "fp16/vector/pack_lanes.h"

namespace fp16::detail {
namespace {

/// Lanes::store(out + i, compute(inputs, i)) for every Lanes::width elements from i on, for all of them. Several are computed
/// before they are stored, as in and out may be one array, which would keep the compiler from joining loads.
template <class Lanes, std::size_t inputs, typename In, typename Out, typename Compute>
void for_each_vector(const In* const (&in)[inputs], Out* out, std::size_t count, Compute compute) {
  constexpr std::size_t width = Lanes::width, at_a_time = 4;
  const std::size_t whole = count / width * width;
  std::size_t i = 0;
  for (; i + at_a_time * width <= whole; i += at_a_time * width) {
    const In* from[inputs];
    for (std::size_t k = 0; k < inputs; ++k) from[k] = in[k] + i;
    decltype(compute(in, i)) results[at_a_time];
    for (std::size_t v = 0; v < at_a_time; ++v) results[v] = compute(from, v * width);
    for (std::size_t v = 0; v < at_a_time; ++v) Lanes::store(out + i + v * width, results[v]);
  }
  for (; i < whole; i += width) Lanes::store(out + i, compute(in, i));
  if (whole == count) return;

  In padded[inputs][width];
  const In* padded_in[inputs];
  Out padded_out[width];
  for (std::size_t k = 0; k < inputs; ++k) {
    // The last one repeated: it raises no flag that was not raised.
    for (std::size_t j = 0; j < width; ++j) padded[k][j] = in[k][whole + j < count ? whole + j : count - 1];
    padded_in[k] = padded[k];
  }
  Lanes::store(padded_out, compute(padded_in, 0));
  for (std::size_t j = whole; j < count; ++j) out[j] = padded_out[j - whole];
}

template <class Halves>
void half_to_float(const std::uint16_t* in, float* out, std::size_t count) {
  for_each_vector<Halves>({in}, out, count, [](const std::uint16_t* const* from, std::size_t i) {
    return Halves::load(from[0] + i);
  });
}

/// By way of binary16, which the processor widens. All steps are exact.
template <class Halves>
bool decode_small(const SmallSource& source, const std::uint8_t* in, float* out, std::size_t count) {
  using Words = typename Halves::Words;
  const auto to_magnitude = Words::set(source.to_magnitude), to_sign = Words::set(source.to_sign);
  const auto magnitude_mask = Words::set(source.magnitude_mask), sign_mask = Words::set(0x8000);
  const auto nan = Words::set(source.nan);
  auto largest = Words::set(0), found = Words::set(0);
  const auto decode = [&](const std::uint8_t* const* from, std::size_t i) {
    const auto codes = Words::load_widened(from[0] + i);
    const auto magnitudes = Words::multiply(codes, to_magnitude) & magnitude_mask;
    largest = Words::max(largest, magnitudes);
    found = found | Words::equal(codes, nan);
    const auto halves = magnitudes | (Words::multiply(codes, to_sign) & sign_mask);
    return Halves::scale(Halves::values_of(halves), source.scale);
  };
  for_each_vector<Halves>({in}, out, count, decode);
  return Words::any(found | Words::equal(Words::max(largest, Words::set(source.special)), largest));
}

template <class Halves, Rounding direction>
void float_to_half(const float* in, std::uint16_t* out, std::size_t count) {
  [[maybe_unused]] const typename Halves::template Direction<direction> environment;
  for_each_vector<Halves>({in}, out, count, [](const float* const* from, std::size_t i) {
    return Halves::template round<direction>(Halves::load(from[0] + i));
  });
}

template <class Halves>
void float_to_half_odd(const float* in, std::uint16_t* out, std::size_t count) {
  [[maybe_unused]] const typename Halves::template Direction<Rounding::toward_zero> environment;
  for_each_vector<Halves>({in}, out, count, [](const float* const* from, std::size_t i) {
    return Halves::round_to_odd(Halves::load(from[0] + i));
  });
}

/// x rounded to a value of binary16; infinities and NaNs as they are. In normal results 13 bits are dropped: adding
/// 2^13 - 1 - (random >> 19) to the bits of the float carries into the kept ones iff the dropped ones exceed
/// random >> 19. Subnormal results are rare or all there is, so they are worked out only where there are some.
template <class Floats>
typename Floats::Vector round_stochastically(typename Floats::Vector x, typename Floats::Ints random) {
  constexpr std::int32_t half_min_normal = 0x38800000;  // 2^-14 as a float
  const auto bits = Floats::bits_of(x);
  const auto magnitude = bits & Floats::set(0x7fffffff);
  const auto addend = Floats::subtract(Floats::set(0x1fff), Floats::template shift_right<19>(random));
  auto result = Floats::floats_of(Floats::add(magnitude, addend) & Floats::set(~0x1fff));
  const auto subnormal = Floats::greater(Floats::set(half_min_normal), magnitude);
  if (Floats::any(subnormal))
    result = Floats::select(subnormal, Floats::round_subnormal_stochastically(magnitude, random), result);
  result = Floats::select(Floats::unordered(x), Floats::floats_of(magnitude), result);
  return Floats::floats_of(Floats::bits_of(result) | (bits ^ magnitude));
}

template <class Halves>
typename Halves::Codes stochastic_codes(const float* in, const std::uint32_t* random) {
  const auto rounded = Halves::map(Halves::load(in), random, [](auto x, auto drawn) {
    return round_stochastically<typename Halves::Floats>(x, drawn);
  });
  return Halves::template round<Rounding::nearest_even>(rounded);
}

template <class Halves>
void float_to_half_stochastic(const float* in, const std::uint32_t* random, std::uint16_t* out,
                              std::size_t count) {
  const std::size_t whole = count / Halves::width * Halves::width;
  std::size_t i = 0;
  for (; i < whole; i += Halves::width) Halves::store(out + i, stochastic_codes<Halves>(in + i, random + i));
  if (i == count) return;

  float padded[Halves::width] = {};
  std::uint32_t padded_random[Halves::width] = {};
  std::uint16_t padded_out[Halves::width];
  for (std::size_t j = i; j < count; ++j) {
    padded[j - i] = in[j];
    padded_random[j - i] = random[j];
  }
  Halves::store(padded_out, stochastic_codes<Halves>(padded, padded_random));
  for (std::size_t j = i; j < count; ++j) out[j] = padded_out[j - i];
}

template <class Halves, ArrayOperation operation>
auto operate(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c) {
  if constexpr (operation == ArrayOperation::add) return Halves::add(Halves::load(a), Halves::load(b));
  if constexpr (operation == ArrayOperation::subtract)
    return Halves::subtract(Halves::load(a), Halves::load(b));
  if constexpr (operation == ArrayOperation::multiply)
    return Halves::multiply(Halves::load(a), Halves::load(b));
  if constexpr (operation == ArrayOperation::divide) return Halves::divide(Halves::load(a), Halves::load(b));
  if constexpr (operation == ArrayOperation::sqrt) return Halves::sqrt(Halves::load(a));
  if constexpr (operation == ArrayOperation::fma)
    return Halves::fma(Halves::load(a), Halves::load(b), Halves::load(c));
}

/// One float operation and one more rounding: harmless for + - * / and sqrt, because 24 >= 2 * 11 + 2
/// (Figueroa, "When is double rounding innocuous?", 1995). fma goes by way of round-to-odd.
template <class Halves, ArrayOperation operation>
bool nearest_even(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c, std::uint16_t* out,
                  std::size_t count) {
  constexpr bool is_fma = operation == ArrayOperation::fma;
  struct Nothing {};
  [[maybe_unused]] const std::conditional_t<is_fma, typename Halves::Floats::FmaEnvironment, Nothing>
      environment;
  std::conditional_t<is_fma, typename Halves::FmaNans, typename Halves::Nans> wrong_nans;
  const auto compute = [&](const std::uint16_t* const* from, std::size_t i) {
    const auto result = operate<Halves, operation>(from[0] + i, from[1] + i, from[2] + i);
    const auto codes = Halves::template round<Rounding::nearest_even>(result);
    wrong_nans.look(result, codes);
    return codes;
  };
  for_each_vector<Halves>({a, b, c}, out, count, compute);
  return wrong_nans.found();
}

/// Counts, besides, results that differ from what was rounded: sums and fmas to odd, and exact products. A quotient or root that
/// binary32 rounds is a number of 11 digits only where it is exact: else it is farther than 2^-23 of itself from each.
template <class Halves, ArrayOperation operation>
bool nearest_even_counting(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                           std::uint16_t* out, std::size_t count, RoundedHalves& found) {
  using Words = typename Halves::Words;
  [[maybe_unused]] const typename Halves::Floats::ToOdd environment;
  const auto none = Words::set(0);
  auto largest = none, inexact = none, subnormal = none, flushed = none;
  for (std::size_t i = 0; i < count; i += Halves::width) {
    const auto exact = [&] {
      if constexpr (operation == ArrayOperation::add)
        return Halves::add_to_odd(Halves::load(a + i), Halves::load(b + i));
      else if constexpr (operation == ArrayOperation::subtract)
        return Halves::subtract_to_odd(Halves::load(a + i), Halves::load(b + i));
      else
        return operate<Halves, operation>(a + i, b + i, c + i);
    }();
    const auto codes = Halves::template round<Rounding::nearest_even>(exact);
    Halves::store(out + i, codes);
    const auto magnitudes = codes & Words::set(0x7fff);
    largest = Words::max(largest, magnitudes);
    // What holds is -1.
    const auto is_small = Words::greater(Words::set(0x400), magnitudes);
    if (!Words::any(is_small)) {
      inexact = Words::subtract(inexact, Halves::has_more_than_11_digits(exact));
      continue;
    }
    const auto differs = Halves::differing(Halves::values_of(codes), exact);
    const auto is_zero = Words::equal(magnitudes, none);
    inexact = Words::subtract(inexact, differs);
    subnormal = Words::subtract(subnormal, is_small & ~is_zero);
    flushed = Words::subtract(flushed, differs & is_zero);
  }
  found = {
      .inexact = Words::sum(inexact), .subnormal = Words::sum(subnormal), .flushed = Words::sum(flushed)};
  return Words::any(Words::greater(largest, Words::set(0x7bff)));
}

/// The operation on vectors of floats, rounded to odd.
template <class Floats, ArrayOperation operation>
typename Floats::Vector operate_to_odd(typename Floats::Vector a, typename Floats::Vector b,
                                       typename Floats::Vector c) {
  if constexpr (operation == ArrayOperation::add) return Floats::add_to_odd(a, b);
  if constexpr (operation == ArrayOperation::subtract) return Floats::add_to_odd(a, -b);
  if constexpr (operation == ArrayOperation::multiply) return Floats::multiply_to_odd(a, b);
  if constexpr (operation == ArrayOperation::divide) return Floats::divide_to_odd(a, b);
  if constexpr (operation == ArrayOperation::sqrt) return Floats::sqrt_to_odd(a);
  if constexpr (operation == ArrayOperation::fma) return Floats::fma_to_odd(a, b, c);
}

template <class Floats, ArrayOperation operation>
void vectors_to_odd(const float* a, const float* b, const float* c, float* out, std::size_t count) {
  [[maybe_unused]] const typename Floats::ToOdd environment;
  for_each_vector<Floats>({a, b, c}, out, count, [](const float* const* from, std::size_t i) {
    const auto load = [&](std::size_t k) { return Floats::load(from[k] + i); };
    return operate_to_odd<Floats, operation>(load(0), load(1), load(2));
  });
}

/// `kernels` with operations rounded to odd, in all the range that floats have, and those that count.
template <class Halves>
constexpr BulkKernels with_operations_of(BulkKernels kernels) {
  using Floats = typename Halves::Floats;
  for_each_operation([&]<ArrayOperation operation>() {
    constexpr auto row = static_cast<std::size_t>(operation);
    if constexpr (Halves::can_count)
      kernels.nearest_even_counting[row] = nearest_even_counting<Halves, operation>;
    kernels.to_odd[row] = vectors_to_odd<Floats, operation>;
    if constexpr (Floats::has_full_range_to_odd) kernels.to_odd_wide[row] = vectors_to_odd<Floats, operation>;
  });
  return kernels;
}

/// The kernels of an instruction set, by what serves best: `Casts` to convert without more work, `Sums` to add and
/// multiply, `Quotients` to divide, for roots and for fma, and `Halves` for the rest.
template <class Halves, class Bytes, class Casts = Halves, class Sums = Casts, class Quotients = Halves>
constexpr BulkKernels bulk_kernels() {
  return with_operations_of<Halves>(with_loops({
      .half_to_float = half_to_float<Casts>,
      .float_to_half = {float_to_half<Casts, Rounding::nearest_even>, nullptr,
                        float_to_half<Casts, Rounding::toward_zero>,
                        float_to_half<Casts, Rounding::toward_positive>,
                        float_to_half<Casts, Rounding::toward_negative>, float_to_half_odd<Halves>},
      .float_to_half_stochastic = float_to_half_stochastic<Halves>,
      .encode_8 = {},
      .encode_16 = {},
      .encode_32 = {},
      .decode_8 = decode_small<Halves>,
      .decode_e8m0 = nullptr,
      .decode_16 = {},
      .decode_32 = {},
      .to_odd = {},
      .to_odd_wide = {},
      .nearest_even = {nearest_even<Sums, ArrayOperation::add>, nearest_even<Sums, ArrayOperation::subtract>,
                       nearest_even<Sums, ArrayOperation::multiply>,
                       nearest_even<Quotients, ArrayOperation::divide>,
                       nearest_even<Quotients, ArrayOperation::sqrt>,
                       nearest_even<Quotients, ArrayOperation::fma>},
      .nearest_even_counting = {},
      .pack_4 = pack_4<Bytes>,
      .pack_6 = pack_6<Bytes>,
      .unpack_4 = unpack_4<Bytes>,
      .unpack_6 = unpack_6<Bytes>,
  }));
}

}  // namespace
}  // namespace fp16::detail
