#include "experiments/gpu_throughput/streaming.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "experiments/gpu_throughput/buffers.h"
#include "fp16/bulk.h"
#include "fp16/cuda/histogram.h"
#include "fp16/cuda/histogram_cub.h"
#include "fp16/cuda/index.h"
#include "fp16/cuda/streaming.h"
#include "sim/statistics/exponent_histogram.h"

namespace experiments::gpu_throughput {
namespace {

namespace cuda = fp16::cuda;
using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;

constexpr double streaming_target = 0.85, histogram_target = 0.6;
constexpr float checked_inverse_scale = 0x1p-10f;
// Leaves the gradients in place as they are, so that every turn has the same to do.
constexpr float timed_inverse_scale = 1;

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

/// What one turn works on.
struct Set {
  Set(const Floats& from_floats, const Halves& from_halves)
      : floats(from_floats),
        halves(from_halves),
        floats_out(floats.bytes()),
        halves_out(halves.bytes()),
        in_place(gradient_list(scaled(), scaled(), from_halves.size())),
        to_floats(gradient_list(scaled(), floats_out.as<float>(), from_halves.size())) {}

  std::uint16_t* scaled() { return halves.as<std::uint16_t>(); }

  cuda::DeviceMemory floats, halves, floats_out, halves_out;
  cuda::GradientList<std::uint16_t> in_place;
  cuda::GradientList<float> to_floats;
};

/// A cell of results that are all wrong until they are written.
constexpr unsigned char poison = 0xa5;

class Streams {
 public:
  explicit Streams(std::size_t elements)
      : elements_(elements),
        floats_(gradient_floats(elements)),
        halves_(gradient_halves(elements)),
        found_(sizeof(std::uint32_t)) {
    const std::size_t smallest_working_set = sizeof(std::uint16_t) * elements;
    const std::size_t sets = sets_beyond_cache(smallest_working_set);
    require_device_memory(sets * 12 * elements);
    for (std::size_t set = 0; set < sets; ++set) sets_.push_back(std::make_unique<Set>(floats_, halves_));
    found_.fill(0);
    open_cub();
  }

  Set& set(std::size_t turn) { return *sets_[turn % sets_.size()]; }
  std::size_t elements() const { return elements_; }
  cuda::HalfHistogram& half_histogram() { return half_histogram_; }
  cuda::FloatHistogram& float_histogram() { return float_histogram_; }
  cuda::CubHalfHistogram& cub(std::size_t method) { return cub_[method]; }
  const std::string& cub_absent() const { return cub_absent_; }
  std::uint32_t* found() { return found_.as<std::uint32_t>(); }

  Check check_copy() {
    first().floats_out.fill(poison);
    cuda::copy_on_device(first().floats_out.as<float>(), first().floats.as<float>(), first().floats.bytes());
    return compare(first().floats_out.to_host<float>(), floats_);
  }

  Check check_to_half() {
    first().halves_out.fill(poison);
    cuda::float_to_half(first().floats.as<float>(), first().halves_out.as<std::uint16_t>(), elements_);
    Halves expected(elements_);
    fp16::float_to_half(floats_, expected);
    return compare(first().halves_out.to_host<std::uint16_t>(), expected);
  }

  Check check_to_float() {
    first().floats_out.fill(poison);
    cuda::half_to_float(first().scaled(), first().floats_out.as<float>(), elements_);
    return compare(first().floats_out.to_host<float>(), widened());
  }

  Check check_unscale_in_place() {
    const std::uint32_t found = unscale(first().in_place);
    Halves expected(elements_);
    fp16::float_to_half(unscaled(), expected);
    Check check = compare(first().halves.to_host<std::uint16_t>(), expected);
    first().halves.copy_from(halves_);
    return with_flag(check, found);
  }

  Check check_unscale_to_float() {
    first().floats_out.fill(poison);
    const std::uint32_t found = unscale(first().to_floats);
    return with_flag(compare(first().floats_out.to_host<float>(), unscaled()), found);
  }

  Check check_half_histogram() {
    half_histogram_.clear();
    half_histogram_.add(first().scaled(), elements_);
    return check_counts(half_histogram_.counts());
  }

  Check check_cub(std::size_t method) {
    cub_[method].count(first().scaled(), elements_);
    return check_counts(cub_[method].counts());
  }

  Check check_float_histogram() {
    float_histogram_.clear();
    float_histogram_.add(first().floats.as<float>(), elements_);
    sim::ExponentHistogram expected;
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

 private:
  Set& first() { return *sets_.front(); }

  void open_cub() {
    try {
      for (const auto method : {cuda::CubHistogram::even, cuda::CubHistogram::range})
        cub_.emplace_back(method, elements_);
    } catch (const std::exception& error) {
      cub_absent_ = error.what();
    }
  }

  template <typename Unscaled>
  std::uint32_t unscale(const cuda::GradientList<Unscaled>& gradients) {
    found_.fill(0);
    cuda::unscale(gradients, checked_inverse_scale, found());
    return found_.to_host<std::uint32_t>()[0];
  }

  Check with_flag(Check check, std::uint32_t found) const {
    const bool expected = std::ranges::any_of(
        halves_, [](std::uint16_t code) { return !fp16::is_finite<fp16::binary16>(code); });
    check.wrong += (found == 1) == expected ? 0 : 1;
    return check;
  }

  Floats widened() const {
    Floats values(elements_);
    fp16::half_to_float(halves_, values);
    return values;
  }

  Floats unscaled() const {
    Floats values = widened();
    for (float& value : values) value *= checked_inverse_scale;
    return values;
  }

  Check check_counts(const cuda::HalfExponents& counts) const {
    sim::ExponentHistogram expected;
    expected.add(halves_);
    return compare_counts(counts, expected);
  }

  template <typename Counts>
  Check compare_counts(const Counts& counts, const sim::ExponentHistogram& expected) const {
    Check check{.compared = elements_};
    check.wrong += counts.zero != expected.zero();
    check.wrong += counts.infinite != expected.infinite();
    check.wrong += counts.nan != expected.nan();
    for (int exponent = Counts::min_exponent; exponent <= Counts::max_exponent; ++exponent)
      check.wrong += counts.octave(exponent) != expected.octave(exponent).total;
    return check;
  }

  std::size_t elements_;
  Floats floats_;
  Halves halves_;
  std::vector<std::unique_ptr<Set>> sets_;
  cuda::HalfHistogram half_histogram_;
  cuda::FloatHistogram float_histogram_;
  std::vector<cuda::CubHalfHistogram> cub_;
  std::string cub_absent_;
  cuda::DeviceMemory found_;
};

using Shared = std::shared_ptr<Streams>;

Work work(std::string name, double bytes_per_element, const Shared& streams) {
  return {.name = std::move(name), .amount = bytes_per_element * static_cast<double>(streams->elements())};
}

Work copy(const Shared& streams) {
  Work copy = work("copy", 8, streams);
  copy.call = [streams](std::size_t turn) {
    Set& set = streams->set(turn);
    cuda::copy_on_device(set.floats_out.as<float>(), set.floats.as<float>(), set.floats.bytes());
  };
  copy.check = [streams] { return streams->check_copy(); };
  return copy;
}

void add_casts(std::vector<Work>& works, const Shared& streams) {
  Work& to_half = works.emplace_back(work("float_to_half", 6, streams));
  to_half.call = [streams](std::size_t turn) {
    Set& set = streams->set(turn);
    cuda::float_to_half(set.floats.as<float>(), set.halves_out.as<std::uint16_t>(), streams->elements());
  };
  to_half.check = [streams] { return streams->check_to_half(); };
  Work& to_float = works.emplace_back(work("half_to_float", 6, streams));
  to_float.call = [streams](std::size_t turn) {
    Set& set = streams->set(turn);
    cuda::half_to_float(set.scaled(), set.floats_out.as<float>(), streams->elements());
  };
  to_float.check = [streams] { return streams->check_to_float(); };
}

void add_unscaling(std::vector<Work>& works, const Shared& streams) {
  Work& in_place = works.emplace_back(work("unscale_in_place", 4, streams));
  in_place.call = [streams](std::size_t turn) {
    cuda::unscale(streams->set(turn).in_place, timed_inverse_scale, streams->found());
  };
  in_place.check = [streams] { return streams->check_unscale_in_place(); };
  Work& to_float = works.emplace_back(work("unscale_to_float", 6, streams));
  to_float.call = [streams](std::size_t turn) {
    cuda::unscale(streams->set(turn).to_floats, timed_inverse_scale, streams->found());
  };
  to_float.check = [streams] { return streams->check_unscale_to_float(); };
}

void add_histograms(std::vector<Work>& works, const Shared& streams) {
  Work& halves = works.emplace_back(work("half_histogram", 2, streams));
  halves.call = [streams](std::size_t turn) {
    streams->half_histogram().add(streams->set(turn).scaled(), streams->elements());
  };
  halves.check = [streams] { return streams->check_half_histogram(); };
  Work& floats = works.emplace_back(work("float_histogram", 4, streams));
  floats.call = [streams](std::size_t turn) {
    streams->float_histogram().add(streams->set(turn).floats.as<float>(), streams->elements());
  };
  floats.check = [streams] { return streams->check_float_histogram(); };
}

void add_cub(std::vector<Work>& works, const Shared& streams) {
  for (const std::size_t method : {0, 1}) {
    Work& cub =
        works.emplace_back(work(method == 0 ? "cub_histogram_even" : "cub_histogram_range", 2, streams));
    cub.call = [streams, method](std::size_t turn) {
      streams->cub(method).count(streams->set(turn).scaled(), streams->elements());
    };
    cub.check = [streams, method] { return streams->check_cub(method); };
    cub.absent = streams->cub_absent();
    cub.is_peer = true;
  }
}

/// Exponents in a heap 24 wide, by the number of ones in as many bits.
std::uint64_t heaped_exponent(std::uint64_t random) {
  return static_cast<std::uint64_t>(std::popcount(random & 0xffffff));
}

}  // namespace

std::vector<float> gradient_floats(std::size_t count) {
  std::vector<float> values(count);
  constexpr std::uint64_t lowest = 127 - 26;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(i + 1);
    const std::uint64_t exponent = lowest + heaped_exponent(random >> 32);
    const auto bits = static_cast<std::uint32_t>((random & 0x807fffff) | exponent << 23);
    values[i] = i % 65521 == 65520  ? std::bit_cast<float>(bits | 0x7f800000)
                : random >> 60 == 0 ? 0.0f
                                    : std::bit_cast<float>(bits);
  }
  return values;
}

std::vector<std::uint16_t> gradient_halves(std::size_t count) {
  std::vector<std::uint16_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(~i);
    const std::uint64_t heap = heaped_exponent(random >> 32), lowest = 9;
    // The lower part of the heap are subnormals: their leading digits are zeros.
    const std::uint64_t code =
        heap >= lowest ? (random & 0x3ff) | (heap - lowest + 1) << 10 : (random & 0x3ff) >> (lowest - heap);
    codes[i] = static_cast<std::uint16_t>((random & 0x8000) | code);
    if (random >> 60 == 0) codes[i] = 0;
    if (i % 65521 == 65520) codes[i] = static_cast<std::uint16_t>(codes[i] | 0x7c00);
  }
  return codes;
}

std::vector<std::string> streaming_row_names() {
  return {"copy",           "float_to_half",   "half_to_float",      "unscale_in_place",   "unscale_to_float",
          "half_histogram", "float_histogram", "cub_histogram_even", "cub_histogram_range"};
}

std::vector<Comparison> streaming_comparisons(std::string_view name) {
  const std::vector<std::string> names = streaming_row_names();
  if (name == "copy" || std::ranges::find(names, name) == names.end()) return {};
  if (name == "half_histogram")
    return {{"copy", histogram_target}, {"cub_histogram_even", 1.0}, {"cub_histogram_range", 1.0}};
  if (name.find("histogram") != std::string_view::npos) return {{"copy"}};
  return {{"copy", streaming_target}};
}

Group streaming_group(std::size_t elements) {
  const auto streams = std::make_shared<Streams>(elements);
  Group group{.name = {}, .works = {copy(streams)}};
  add_casts(group.works, streams);
  add_unscaling(group.works, streams);
  add_histograms(group.works, streams);
  add_cub(group.works, streams);
  for (Work& each : group.works) each.comparisons = streaming_comparisons(each.name);
  return group;
}

}  // namespace experiments::gpu_throughput
