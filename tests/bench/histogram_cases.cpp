#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/code_histogram.h"
#include "fp16/exponent_histogram.h"
#include "sim/statistics/cast_counts.h"
#include "sim/tensor/random.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"

namespace bench {
namespace {

/// Too large for the caches.
constexpr std::size_t size = std::size_t{1} << 24;

using Floats = std::shared_ptr<const std::vector<float>>;
using Halves = std::shared_ptr<const std::vector<Half>>;

/// Magnitudes log-uniform from 2^-34 to 2^0, of either sign, but for the share of zeros at random places.
Floats values_with_zeros(float zeros) {
  const sim::RandomStream exponents(2, "histogram"), fates(2, "histogram zeros");
  auto values = std::make_shared<std::vector<float>>(size);
  for (std::size_t i = 0; i < size; ++i) {
    const float magnitude = std::exp2(-34 * exponents.uniform(i));
    (*values)[i] = fates.uniform(i) < zeros ? 0 : fates.bits(i) & 1 ? magnitude : -magnitude;
  }
  return values;
}

template <class Stored>
fp16::ExponentHistogram exponents_of(std::span<const Stored> values) {
  fp16::ExponentHistogram histogram;
  histogram.add(values);
  return histogram;
}

/// The histogram, and from it what a cast to FP16 does at one scale.
template <class Stored>
sim::CastCounts counts_by_exponent(std::span<const Stored> values, int log2_scale) {
  const fp16::ExponentHistogram histogram = exponents_of(values);
  return {.total = histogram.total(),
          .zero_before = histogram.zero(),
          .flushed = histogram.flushed_at_scale(log2_scale),
          .subnormal = histogram.subnormal_at_scale(log2_scale),
          .overflowed = histogram.overflowed_at_scale(log2_scale),
          .nonfinite_before = histogram.infinite() + histogram.nan()};
}

void add_exponent_cases(std::vector<Case>& cases, const Floats& floats, const Halves& halves,
                        const std::string& suffix) {
  constexpr int log2_scale = 5;
  const auto of_floats = [floats] { return counts_by_exponent(std::span(*floats), log2_scale); };
  require(of_floats() == sim::count_casts(*floats, log2_scale), "exponent_histogram");
  cases.push_back(Case{
      "exponent_histogram" + suffix,
      size,
      [of_floats] { benchmark::DoNotOptimize(of_floats()); },
      {"read_floats"}}.moving(sizeof(float)));

  const auto of_halves = [halves] { return counts_by_exponent(std::span(*halves), log2_scale); };
  std::vector<float> widened(size);
  fp16::half_to_float(*halves, widened);
  require(of_halves() == sim::count_casts(widened, log2_scale), "exponent_histogram_fp16");
  cases.push_back(Case{
      "exponent_histogram_fp16" + suffix,
      size,
      [of_halves] { benchmark::DoNotOptimize(of_halves()); },
      {"read_halves"}}.moving(sizeof(Half)));
}

void add_code_case(std::vector<Case>& cases, const Halves& halves, const std::string& suffix) {
  const auto count = [halves] {
    fp16::CodeHistogram histogram;
    histogram.add(*halves);
    return histogram;
  };
  std::vector<std::uint64_t> expected(fp16::CodeHistogram::code_count);
  for (const Half code : *halves) ++expected[code];
  const fp16::CodeHistogram found = count();
  for (std::size_t code = 0; code < expected.size(); ++code)
    require(expected[code] == found.count(static_cast<Half>(code)), "code_histogram");
  cases.push_back(Case{
      "code_histogram" + suffix,
      size,
      [count] { benchmark::DoNotOptimize(count().total()); },
      {"read_halves"}}.moving(sizeof(Half)));
}

template <class Stored>
void add_limit(std::vector<Case>& cases, const std::string& name,
               const std::shared_ptr<const std::vector<Stored>>& values) {
  const auto read = [values] {
    benchmark::DoNotOptimize(sum_words(values->data(), values->size() * sizeof(Stored)));
  };
  cases.push_back({name, size, read, {}, true});
}

}  // namespace

void add_histogram_cases(std::vector<Case>& cases) {
  for (const auto& [suffix, zeros] : {std::pair{"", 0.0f}, std::pair{"_sparse", 0.67f}}) {
    const Floats floats = values_with_zeros(zeros);
    const auto halves = std::make_shared<std::vector<Half>>(size);
    fp16::float_to_half(*floats, *halves);
    if (zeros == 0) {
      add_limit<float>(cases, "read_floats", floats);
      add_limit<Half>(cases, "read_halves", halves);
    }
    add_exponent_cases(cases, floats, halves, suffix);
    add_code_case(cases, halves, suffix);
  }
}

}  // namespace bench
