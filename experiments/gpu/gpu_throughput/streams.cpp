#include "experiments/gpu/gpu_throughput/streams.h"

#include <algorithm>
#include <exception>
#include <span>

#include "experiments/gpu/gpu_throughput/buffers.h"
#include "experiments/gpu/gpu_throughput/gradient_values.h"
#include "fp16/bits.h"
#include "fp16/bulk.h"
#include "fp16/formats.h"

namespace experiments::gpu_throughput {
namespace {

namespace cuda = fp16::cuda;
using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;

constexpr float checked_inverse_scale = 0x1p-10f;

/// Layers of a network: 40 tensors of several sizes.
template <typename Unscaled>
cuda::GradientList<Unscaled> gradient_list(const std::uint16_t* scaled, Unscaled* unscaled,
                                           std::size_t elements) {
  constexpr std::size_t tensors = 40, aligned = 8;
  std::vector<cuda::GradientTensor<Unscaled>> list;
  std::size_t first = 0;
  for (std::size_t tensor = 1; tensor <= tensors && first < elements; ++tensor) {
    const std::size_t share = elements * tensor / (tensors * (tensors + 1) / 2) / aligned * aligned;
    const std::size_t count = tensor == tensors ? elements - first : std::min(share, elements - first);
    list.push_back({.scaled = scaled + first, .unscaled = unscaled + first, .count = count});
    first += count;
  }
  return cuda::GradientList<Unscaled>{std::span<const cuda::GradientTensor<Unscaled>>(list)};
}

}  // namespace

StreamSet::StreamSet(const Floats& from_floats, const Halves& from_halves)
    : floats(from_floats),
      halves(from_halves),
      floats_out(floats.bytes()),
      halves_out(halves.bytes()),
      in_place(gradient_list(scaled(), scaled(), from_halves.size())),
      to_floats(gradient_list(scaled(), floats_out.as<float>(), from_halves.size())) {}

Streams::Streams(std::size_t elements)
    : elements_(elements),
      floats_(gradient_floats(elements)),
      halves_(gradient_halves(elements)),
      found_(sizeof(std::uint32_t)) {
  const std::size_t smallest_working_set = sizeof(std::uint16_t) * elements;
  const std::size_t sets = sets_beyond_cache(smallest_working_set);
  require_device_memory(sets * 12 * elements);
  for (std::size_t set = 0; set < sets; ++set) sets_.push_back(std::make_unique<StreamSet>(floats_, halves_));
  found_.fill(0);
  open_cub();
}

Check Streams::check_copy() {
  first().floats_out.fill(poison);
  cuda::copy_on_device(first().floats_out.as<float>(), first().floats.as<float>(), first().floats.bytes());
  return compare(first().floats_out.to_host<float>(), floats_);
}

Check Streams::check_to_half() {
  first().halves_out.fill(poison);
  cuda::float_to_half(first().floats.as<float>(), first().halves_out.as<std::uint16_t>(), elements_);
  Halves expected(elements_);
  fp16::float_to_half(floats_, expected);
  return compare(first().halves_out.to_host<std::uint16_t>(), expected);
}

Check Streams::check_to_float() {
  first().floats_out.fill(poison);
  cuda::half_to_float(first().scaled(), first().floats_out.as<float>(), elements_);
  return compare(first().floats_out.to_host<float>(), widened());
}

Check Streams::check_unscale_in_place() {
  const std::uint32_t found = unscale(first().in_place);
  Halves expected(elements_);
  fp16::float_to_half(unscaled(), expected);
  Check check = compare(first().halves.to_host<std::uint16_t>(), expected);
  first().halves.copy_from(halves_);
  return with_flag(check, found);
}

Check Streams::check_unscale_to_float() {
  first().floats_out.fill(poison);
  const std::uint32_t found = unscale(first().to_floats);
  return with_flag(compare(first().floats_out.to_host<float>(), unscaled()), found);
}

Check Streams::check_half_histogram() {
  half_histogram_.clear();
  half_histogram_.add(first().scaled(), elements_);
  return check_counts(half_histogram_.counts());
}

Check Streams::check_cub(std::size_t method) {
  cub_[method].count(first().scaled(), elements_);
  return check_counts(cub_[method].counts());
}

Check Streams::check_float_histogram() {
  float_histogram_.clear();
  float_histogram_.add(first().floats.as<float>(), elements_);
  fp16::ExponentHistogram expected;
  expected.add(floats_);
  Check check = compare_counts(float_histogram_.counts(), expected);
  fp16::RoundingCounts rounding;
  Halves rounded(elements_);
  fp16::float_to_half(floats_, rounded, {}, {.counts = &rounding});
  const cuda::CastLosses losses{.inexact = rounding.inexact,
                                .subnormal = rounding.subnormal,
                                .flushed = rounding.flushed,
                                .overflowed = rounding.overflowed};
  check.wrong += float_histogram_.losses() == losses ? 0 : 1;
  return check;
}

void Streams::open_cub() {
  try {
    for (const auto method : {cuda::CubHistogram::even, cuda::CubHistogram::range})
      cub_.emplace_back(method, elements_);
  } catch (const std::exception& error) {
    cub_absent_ = error.what();
  }
}

template <typename Unscaled>
std::uint32_t Streams::unscale(const cuda::GradientList<Unscaled>& gradients) {
  found_.fill(0);
  cuda::unscale(gradients, checked_inverse_scale, found());
  return found_.to_host<std::uint32_t>()[0];
}

Check Streams::with_flag(Check check, std::uint32_t found) const {
  const bool expected =
      std::ranges::any_of(halves_, [](std::uint16_t code) { return !fp16::is_finite<fp16::binary16>(code); });
  check.wrong += (found == 1) == expected ? 0 : 1;
  return check;
}

Floats Streams::widened() const {
  Floats values(elements_);
  fp16::half_to_float(halves_, values);
  return values;
}

Floats Streams::unscaled() const {
  Floats values = widened();
  for (float& value : values) value *= checked_inverse_scale;
  return values;
}

Check Streams::check_counts(const cuda::HalfExponents& counts) const {
  fp16::ExponentHistogram expected;
  expected.add(halves_);
  return compare_counts(counts, expected);
}

template <typename Counts>
Check Streams::compare_counts(const Counts& counts, const fp16::ExponentHistogram& expected) const {
  Check check{.compared = elements_};
  check.wrong += counts.zero != expected.zero();
  check.wrong += counts.infinite != expected.infinite();
  check.wrong += counts.nan != expected.nan();
  for (int exponent = Counts::min_exponent; exponent <= Counts::max_exponent; ++exponent)
    check.wrong += counts.octave(exponent) != expected.octave(exponent).total;
  return check;
}

}  // namespace experiments::gpu_throughput
