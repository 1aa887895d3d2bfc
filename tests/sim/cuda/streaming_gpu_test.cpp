#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/histogram.h"
#include "fp16/cuda/histogram_cub.h"
#include "fp16/cuda/mix.h"
#include "fp16/cuda/streaming.h"
#include "fp16/exponent_histogram.h"
#include "sim/statistics/cast_counts.h"
#include "sim/tape/gradients.h"

namespace cuda = fp16::cuda;

namespace {

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

/// All codes of binary16 in an order without pattern, again and again.
std::vector<std::uint16_t> half_codes(std::size_t count) {
  std::vector<std::uint16_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint16_t>(i * 40503);
  return codes;
}

/// Mostly around binary16's range and at its ties, and some of all bits: NaNs, infinities, subnormals.
std::vector<float> float_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(i + 1);
    const auto bits = static_cast<std::uint32_t>(random);
    const auto exponent = static_cast<std::uint32_t>(127 - 28 + (random >> 32) % 48) << 23;
    const std::uint32_t kept = i % 4 == 1 ? 0x807ff000 : 0x807fffff;
    values[i] = std::bit_cast<float>(i % 4 == 0 ? bits : (bits & kept) | exponent);
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float edges[] = {0.0f,
                         -0.0f,
                         0x1p-149f,
                         -0x1p-127f,
                         0x1p-126f,
                         0x1p-25f,
                         0x1.000002p-25f,
                         0x1p-24f,
                         0x1.ffcp-15f,
                         65504,
                         65520,
                         0x1.ffdffep15f,
                         0x1.fffffep127f,
                         infinity,
                         -infinity,
                         std::numeric_limits<float>::quiet_NaN()};
  for (std::size_t i = 0; i < std::min(count, std::size(edges)); ++i) values[count - 1 - i] = edges[i];
  return values;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
}
bool same(std::uint16_t a, std::uint16_t b) {
  return a == b || (fp16::is_nan<fp16::binary16>(a) && fp16::is_nan<fp16::binary16>(b));
}

template <typename Value>
std::size_t differences(const std::vector<Value>& found, const std::vector<Value>& expected) {
  REQUIRE(found.size() == expected.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < found.size(); ++i) count += !same(found[i], expected[i]);
  return count;
}

template <typename Value>
std::vector<Value> behind_gap(std::vector<Value> values, std::size_t gap) {
  values.insert(values.begin(), gap, Value{});
  return values;
}
template <typename Value>
std::vector<Value> without_gap(std::vector<Value> values, std::size_t gap) {
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(gap));
  return values;
}

/// Around the sizes of a pack, of a block's turn and of a chunk.
constexpr std::size_t sizes[] = {1, 7, 8, 9, 2047, 2048, 2053, 8193, cuda::chunk_size, 40007};

/// Gradients as sim unscales them; the scale applies to all tensors.
sim::Gradients unscaled_by_sim(const std::vector<std::vector<std::uint16_t>>& tensors, double scale,
                               fp16::Format format) {
  sim::ScaledGradients scaled;
  for (const std::vector<std::uint16_t>& codes : tensors) {
    scaled.sites.push_back({"weight", sim::GradientSite::Kind::weight, {scaled.sites.size()}});
    sim::Tensor& tensor = scaled.values.gradients.emplace_back(sim::Shape{codes.size()}, fp16::binary16);
    std::ranges::copy(codes, tensor.elements<std::uint16_t>().begin());
    scaled.values.scales.push_back(scale);
  }
  return sim::unscale(scaled, {.format = format});
}

template <typename Value>
std::vector<Value> contents_of(const sim::Tensor& tensor) {
  const auto elements = tensor.elements<Value>();
  return {elements.begin(), elements.end()};
}

struct Outcome {
  std::size_t differences = 0;
  std::uint32_t found_nonfinite = 0;
};

/// Unscales on the device, all tensors in one launch, and compares with sim.
template <typename Unscaled>
Outcome compare_unscale(const std::vector<std::vector<std::uint16_t>>& tensors, double scale) {
  std::vector<cuda::DeviceMemory> scaled, unscaled;
  std::vector<cuda::GradientTensor<Unscaled>> list;
  for (const std::vector<std::uint16_t>& codes : tensors) {
    scaled.emplace_back(codes);
    if constexpr (sizeof(Unscaled) == 4) unscaled.emplace_back(codes.size() * sizeof(Unscaled));
    auto* in = scaled.back().as<std::uint16_t>();
    if constexpr (sizeof(Unscaled) == 4) {
      list.push_back({in, unscaled.back().template as<Unscaled>(), codes.size()});
    } else {
      list.push_back({in, in, codes.size()});
    }
  }
  const cuda::GradientList<Unscaled> gradients{std::span<const cuda::GradientTensor<Unscaled>>(list)};
  cuda::DeviceMemory found(sizeof(std::uint32_t));
  found.fill(0);
  cuda::unscale(gradients, static_cast<float>(1 / scale), found.as<std::uint32_t>());

  constexpr bool is_half = sizeof(Unscaled) == 2;
  const sim::Gradients expected = unscaled_by_sim(tensors, scale, is_half ? fp16::binary16 : fp16::binary32);
  Outcome outcome{.found_nonfinite = found.to_host<std::uint32_t>()[0]};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    outcome.differences += differences((is_half ? scaled : unscaled)[i].template to_host<Unscaled>(),
                                       contents_of<Unscaled>(expected.parameters[i]));
  }
  return outcome;
}

template <typename Counts>
void check_counts(const Counts& found, const fp16::ExponentHistogram& expected) {
  CHECK(found.zero == expected.zero());
  CHECK(found.infinite == expected.infinite());
  CHECK(found.nan == expected.nan());
  for (int exponent = Counts::min_exponent; exponent <= Counts::max_exponent; ++exponent) {
    CAPTURE(exponent);
    CHECK(found.octave(exponent) == expected.octave(exponent).total);
  }
}

}  // namespace

TEST_CASE("device memory: bytes go to the device and back, and copies that do not fit are refused") {
  if (skipped()) return;
  const std::vector<float> values = float_values(1000);
  cuda::DeviceMemory memory(values), other(memory.bytes());
  other.fill(0xab);
  CHECK(other.to_host<std::uint32_t>() == std::vector<std::uint32_t>(1000, 0xabababab));
  cuda::copy_on_device(other.as<float>(), memory.as<float>(), memory.bytes());
  CHECK(differences(other.to_host<float>(), values) == 0);
  const cuda::DeviceMemory moved = std::move(other);
  std::vector<float> last(1001);
  CHECK_THROWS_AS(moved.copy_to(last), std::out_of_range);
  CHECK_THROWS_AS(memory.copy_from(last), std::out_of_range);
  CHECK(cuda::device_limits().multiprocessors > 0);
  const cuda::MemoryInfo info = cuda::memory_info();
  CHECK(info.free <= info.total);
  cuda::EventTimer timer;
  CHECK(timer.milliseconds() >= 0);
}

TEST_CASE("streaming: casts on the device are those of the software, at any size and alignment") {
  if (skipped()) return;
  for (const std::size_t count : sizes) {
    const std::vector<float> values = float_values(count);
    const std::vector<std::uint16_t> codes = half_codes(count);
    std::vector<std::uint16_t> rounded(count);
    std::vector<float> widened(count);
    fp16::float_to_half(values, rounded);
    fp16::half_to_float(codes, widened);
    for (const auto& [in_shift, out_shift] :
         {std::pair<std::size_t, std::size_t>{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
      CAPTURE(count);
      CAPTURE(in_shift);
      CAPTURE(out_shift);
      const cuda::DeviceMemory floats(behind_gap(values, in_shift)), halves(behind_gap(codes, in_shift));
      cuda::DeviceMemory halves_out((count + out_shift) * 2), floats_out((count + out_shift) * 4);
      halves_out.fill(0x5a);
      floats_out.fill(0x5a);
      cuda::float_to_half(floats.as<float>() + in_shift, halves_out.as<std::uint16_t>() + out_shift, count);
      cuda::half_to_float(halves.as<std::uint16_t>() + in_shift, floats_out.as<float>() + out_shift, count);
      CHECK(differences(without_gap(halves_out.to_host<std::uint16_t>(), out_shift), rounded) == 0);
      CHECK(differences(without_gap(floats_out.to_host<float>(), out_shift), widened) == 0);
    }
  }
}

TEST_CASE("streaming: nothing is written beyond the end of an array") {
  if (skipped()) return;
  constexpr std::size_t count = 4099;
  const cuda::DeviceMemory floats(float_values(count));
  cuda::DeviceMemory halves((count + 64) * 2);
  halves.fill(0x5a);
  cuda::float_to_half(floats.as<float>(), halves.as<std::uint16_t>(), count);
  const std::vector<std::uint16_t> found = halves.to_host<std::uint16_t>();
  CHECK(std::ranges::all_of(std::span(found).subspan(count), [](auto code) { return code == 0x5a5a; }));
}

TEST_CASE("streaming: gradients are unscaled as sim does it, in one launch for all tensors") {
  if (skipped()) return;
  std::vector<std::vector<std::uint16_t>> tensors{half_codes(0x10000)};
  for (const std::size_t count : {1, 8, 13, 3000}) tensors.push_back(half_codes(count));
  for (const double scale : {1.0, 1024.0, 0x1p-3, 0x1p24, 1000.0, 3.0}) {
    CAPTURE(scale);
    CHECK(compare_unscale<std::uint16_t>(tensors, scale).differences == 0);
    CHECK(compare_unscale<float>(tensors, scale).differences == 0);
  }
}

TEST_CASE("streaming: the flag says whether a scaled gradient is infinite or NaN, wherever it stands") {
  if (skipped()) return;
  std::vector<std::vector<std::uint16_t>> tensors{std::vector<std::uint16_t>(20001, 0x7bff),
                                                  std::vector<std::uint16_t>(5, 0x8001)};
  // 65504 * 2 is infinite in binary16, but the scaled gradients are not.
  CHECK(compare_unscale<std::uint16_t>(tensors, 0.5).found_nonfinite == 0);
  const std::pair<std::size_t, std::size_t> places[] = {{0, 0}, {0, 16383}, {0, 20000}, {1, 4}};
  for (const auto& [tensor, element] : places) {
    for (const std::uint16_t code : {0x7c00, 0xfc00, 0x7c01, 0xffff}) {
      const std::uint16_t kept = std::exchange(tensors[tensor][element], code);
      CHECK(compare_unscale<std::uint16_t>(tensors, 8).found_nonfinite == 1);
      CHECK(compare_unscale<float>(tensors, 8).found_nonfinite == 1);
      tensors[tensor][element] = kept;
    }
  }
  cuda::DeviceMemory found(sizeof(std::uint32_t)), finite(tensors[1]);
  found.copy_from(std::vector<std::uint32_t>{1});
  auto* codes = finite.as<std::uint16_t>();
  const std::vector<cuda::GradientTensor<std::uint16_t>> list{{codes, codes, 5}};
  const cuda::GradientList<std::uint16_t> gradients{std::span(list)};
  cuda::unscale(gradients, 1, found.as<std::uint32_t>());
  CHECK(found.to_host<std::uint32_t>()[0] == 1);
}

TEST_CASE("histogram: exponents of all halves are counted as sim counts them") {
  if (skipped()) return;
  cuda::HalfHistogram histogram;
  fp16::ExponentHistogram expected;
  for (const std::size_t count : {std::size_t{0x10000}, std::size_t{1}, std::size_t{1029}}) {
    const std::vector<std::uint16_t> codes = half_codes(count);
    const cuda::DeviceMemory memory(codes);
    histogram.add(memory.as<std::uint16_t>(), count);
    histogram.add(memory.as<std::uint16_t>() + 1, count - 1);
    expected.add(codes);
    expected.add(std::span(codes).subspan(1));
  }
  check_counts(histogram.counts(), expected);
  histogram.clear();
  CHECK(histogram.counts() == cuda::HalfExponents{});
}

TEST_CASE("histogram: exponents of floats and the losses of their cast are counted as sim counts them") {
  if (skipped()) return;
  const std::vector<float> values = float_values(40000);
  const cuda::DeviceMemory memory(values);
  fp16::ExponentHistogram exponents;
  exponents.add(values);
  for (const int log2_scale : {0, 10, 127, -9, -126}) {
    CAPTURE(log2_scale);
    cuda::FloatHistogram histogram(log2_scale);
    histogram.add(memory.as<float>(), values.size());
    const cuda::FloatExponents counts = histogram.counts();
    check_counts(counts, exponents);
    const cuda::CastLosses losses = histogram.losses();
    const sim::CastCounts expected = sim::count_casts(values, log2_scale);
    CHECK(losses.flushed == expected.flushed);
    CHECK(losses.subnormal == expected.subnormal);
    CHECK(losses.overflowed == expected.overflowed);
    CHECK(counts.zero == expected.zero_before);
    CHECK(counts.infinite + counts.nan == expected.nonfinite_before);
    CHECK(exponents.flushed_at_scale(log2_scale) == expected.flushed);
  }
}

TEST_CASE("histogram: what is inexact is what the software calls so") {
  if (skipped()) return;
  const std::vector<float> values = float_values(30000);
  const cuda::DeviceMemory memory(values);
  cuda::FloatHistogram histogram;
  histogram.add(memory.as<float>(), values.size());
  fp16::RoundingCounts expected;
  std::vector<std::uint16_t> codes(values.size());
  fp16::float_to_half(values, codes, {}, {.counts = &expected});
  CHECK(histogram.losses() == cuda::CastLosses{.inexact = expected.inexact,
                                               .subnormal = expected.subnormal,
                                               .flushed = expected.flushed,
                                               .overflowed = expected.overflowed});
}

TEST_CASE("histogram: losses are those of the exact product, however small the scale") {
  if (skipped()) return;
  const std::vector<float> values = float_values(5000);
  const cuda::DeviceMemory memory(values);
  for (const int log2_scale : {-126, -100, -1, 7, 127}) {
    CAPTURE(log2_scale);
    cuda::FloatHistogram histogram(log2_scale);
    histogram.add(memory.as<float>(), values.size());
    cuda::CastLosses expected;
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      const auto cast = fp16::encode<fp16::binary16>(std::ldexp(static_cast<double>(value), log2_scale));
      const std::uint16_t magnitude = fp16::magnitude<fp16::binary16>(cast.bits);
      expected.inexact += cast.flags.inexact && !cast.flags.overflow;
      expected.subnormal += fp16::is_subnormal<fp16::binary16>(magnitude);
      expected.flushed += magnitude == 0 && value != 0;
      expected.overflowed += cast.flags.overflow;
    }
    CHECK(histogram.losses() == expected);
  }
}

TEST_CASE("histogram: CUB counts the same") {
  if (skipped()) return;
  const std::vector<std::uint16_t> codes = half_codes(0x10000 + 77);
  const cuda::DeviceMemory memory(codes);
  cuda::HalfHistogram histogram;
  histogram.add(memory.as<std::uint16_t>(), codes.size());
  for (const auto method : {cuda::CubHistogram::even, cuda::CubHistogram::range}) {
    cuda::CubHalfHistogram cub(method, codes.size());
    cub.count(memory.as<std::uint16_t>(), codes.size());
    CHECK(cub.counts() == histogram.counts());
  }
}
