#include <cstddef>
#include <span>

#include "experiments/gpu/probes/report.cuh"
#include "fp16/cuda/runtime.cuh"
#include "tests/experiments/gpu/probes/report_program.h"

namespace programs {

namespace {

__global__ void keep(const unsigned long long* indices, std::size_t count,
                     experiments::probes::Report* report) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) report->keep_lowest(indices[i]);
}

}  // namespace

std::vector<unsigned long long> lowest_kept(const std::vector<unsigned long long>& indices) {
  using experiments::probes::Report;
  using namespace fp16::cuda;
  DeviceArray<unsigned long long> on_device{std::span(indices)};
  Report report;
  DeviceArray<Report> kept{std::span<const Report>(&report, 1)};
  const unsigned long long* data = on_device.data();
  std::size_t count = indices.size();
  Report* argument = kept.data();
  launch(reinterpret_cast<const void*>(&keep), 1, 64, {&data, &count, &argument});
  kept.copy_to({&report, 1});
  std::vector<unsigned long long> result;
  for (const unsigned long long index : report.first_indices) {
    if (index != Report::none) result.push_back(index);
  }
  return result;
}

}  // namespace programs
