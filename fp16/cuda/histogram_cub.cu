#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_histogram.cuh>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/cuda/histogram_cub.h"
#include "fp16/cuda/runtime.cuh"

namespace fp16::cuda {

namespace {

constexpr int subnormal_octaves = 10;
/// Zero, the octaves, infinity and NaN: of one sign.
constexpr int bins = 1 + HalfExponents::max_exponent - HalfExponents::min_exponent + 1 + 2;
constexpr int infinite_bin = bins - 2;

struct BinOf {
  __host__ __device__ int operator()(std::uint16_t code) const {
    const int magnitude = code & 0x7fff;
    const int exponent = magnitude >> 10;
    if (magnitude > 0x7c00) return infinite_bin + 1;
    if (exponent != 0) return subnormal_octaves + exponent;
    return magnitude == 0 ? 0 : 32 - __builtin_clz(static_cast<unsigned>(magnitude));
  }
};

/// The codes at which bins begin, and the end.
std::vector<int> first_codes() {
  std::vector<int> codes;
  int previous = -1;
  for (int code = 0; code < 0x10000; ++code) {
    const int bin = BinOf{}(static_cast<std::uint16_t>(code));
    if (bin != previous) codes.push_back(code);
    previous = bin;
  }
  codes.push_back(0x10000);
  return codes;
}

std::size_t bins_of(CubHistogram method) {
  return method == CubHistogram::even ? bins : 2 * bins;
}

struct Scratch {
  void* data = nullptr;
  std::size_t bytes = 0;
};

struct Call {
  CubHistogram method;
  unsigned* totals;
  const int* levels;
};

/// Without scratch memory it only says how many bytes are needed.
void call_cub(const Call& call, Scratch& scratch, const std::uint16_t* codes, std::size_t count) {
  const auto samples = static_cast<int>(count);
  const int level_count = static_cast<int>(bins_of(call.method)) + 1;
  if (call.method == CubHistogram::even) {
    const auto numbers = thrust::make_transform_iterator(codes, BinOf{});
    check(cub::DeviceHistogram::HistogramEven(scratch.data, scratch.bytes, numbers, call.totals, level_count,
                                              0, bins, samples),
          "cub::DeviceHistogram::HistogramEven");
  } else {
    check(cub::DeviceHistogram::HistogramRange(scratch.data, scratch.bytes, codes, call.totals, level_count,
                                               call.levels, samples),
          "cub::DeviceHistogram::HistogramRange");
  }
}

std::size_t scratch_bytes(CubHistogram method, std::size_t count) {
  if (count > 0x7fffffff)
    throw std::invalid_argument("CUB histogram: " + std::to_string(count) +
                                " codes; at most 2147483647 are allowed");
  Scratch scratch;
  call_cub({method, nullptr, nullptr}, scratch, nullptr, count);
  return scratch.bytes;
}

}  // namespace

CubHalfHistogram::CubHalfHistogram(CubHistogram method, std::size_t count)
    : method_(method),
      totals_(bins_of(method) * sizeof(unsigned)),
      levels_(first_codes()),
      scratch_(scratch_bytes(method, count)) {}

void CubHalfHistogram::count(const std::uint16_t* codes, std::size_t count) {
  Scratch scratch{scratch_.as<void>(), scratch_.bytes()};
  call_cub({method_, totals_.as<unsigned>(), levels_.as<int>()}, scratch, codes, count);
}

HalfExponents CubHalfHistogram::counts() const {
  const std::vector<unsigned> totals = totals_.to_host<unsigned>();
  const auto total = [&](int bin) {
    const auto at = static_cast<std::size_t>(bin);
    return std::uint64_t{totals[at]} + (method_ == CubHistogram::range ? totals[at + bins] : 0);
  };
  HalfExponents counts{.zero = total(0), .infinite = total(infinite_bin), .nan = total(infinite_bin + 1)};
  for (std::size_t octave = 0; octave < counts.octaves.size(); ++octave)
    counts.octaves[octave] = total(static_cast<int>(octave) + 1);
  return counts;
}

}  // namespace fp16::cuda
