#include "experiments/gpu/gpu_throughput/streaming.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "experiments/gpu/gpu_throughput/streams.h"
#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/streaming.h"

namespace experiments::gpu_throughput {
namespace {

namespace cuda = fp16::cuda;

constexpr double streaming_target = 0.85, histogram_target = 0.6;
// Leaves the gradients in place as they are, so that every turn has the same to do.
constexpr float timed_inverse_scale = 1;

using Shared = std::shared_ptr<Streams>;

Work work(std::string name, double bytes_per_element, const Shared& streams) {
  return {.name = std::move(name), .amount = bytes_per_element * static_cast<double>(streams->elements())};
}

Work copy(const Shared& streams) {
  Work copy = work("copy", 8, streams);
  copy.call = [streams](std::size_t turn) {
    StreamSet& set = streams->set(turn);
    cuda::copy_on_device(set.floats_out.as<float>(), set.floats.as<float>(), set.floats.bytes());
  };
  copy.check = [streams] { return streams->check_copy(); };
  return copy;
}

void add_casts(std::vector<Work>& works, const Shared& streams) {
  Work& to_half = works.emplace_back(work("float_to_half", 6, streams));
  to_half.call = [streams](std::size_t turn) {
    StreamSet& set = streams->set(turn);
    cuda::float_to_half(set.floats.as<float>(), set.halves_out.as<std::uint16_t>(), streams->elements());
  };
  to_half.check = [streams] { return streams->check_to_half(); };
  Work& to_float = works.emplace_back(work("half_to_float", 6, streams));
  to_float.call = [streams](std::size_t turn) {
    StreamSet& set = streams->set(turn);
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

}  // namespace

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
