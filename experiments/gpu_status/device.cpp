#include "experiments/gpu_status/device.h"

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "experiments/common/gpu_information.h"
#include "experiments/common/shared_library.h"
#include "fp16/cuda/sweep.h"
#include "sim/build_information.h"

namespace experiments::gpu_status {
namespace {

using nlohmann::ordered_json;

/// The driver API's answer (cuInit, cuDeviceGetCount); the runtime cannot be asked, which an emulator stands
/// in for.
bool driver_has_device() {
  constexpr std::array names{"libcuda.so.1"};
  try {
    const SharedLibrary driver(names);
    int (*initialise)(unsigned flags) = nullptr;
    int (*device_count)(int* count) = nullptr;
    driver.find("cuInit", initialise);
    driver.find("cuDeviceGetCount", device_count);
    int count = 0;
    return initialise(0) == 0 && device_count(&count) == 0 && count > 0;
  } catch (const std::runtime_error&) {
    return false;
  }
}

/// NVML's nvmlSystemGetDriverVersion. A machine may lack that library and have a driver all the same: then
/// the CUDA version that the driver supports stands for it.
std::string driver_version(int cuda_version) {
  constexpr std::array names{"libnvidia-ml.so.1"};
  try {
    const SharedLibrary nvml(names);
    int (*initialise)() = nullptr;
    int (*version)(char* text, unsigned size) = nullptr;
    int (*shut_down)() = nullptr;
    nvml.find("nvmlInit_v2", initialise);
    nvml.find("nvmlSystemGetDriverVersion", version);
    nvml.find("nvmlShutdown", shut_down);
    std::array<char, 81> text{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, and a zero
    if (initialise() == 0) {
      const bool known = version(text.data(), text.size() - 1) == 0;
      shut_down();
      if (known) return text.data();
    }
  } catch (const std::runtime_error&) {
  }
  return "for CUDA " + cuda_version_text(cuda_version);
}

}  // namespace

std::optional<Gpu> gpu() {
  if (const std::string reason = fp16::cuda::unavailable_reason(); !reason.empty())
    throw std::runtime_error(reason);
  if (!driver_has_device()) return std::nullopt;
  const fp16::cuda::Device device = fp16::cuda::device();
  return Gpu{.name = device.name,
             .driver = driver_version(device.driver),
             .uuid = device.uuid,
             .compute_capability = device.compute_capability};
}

ordered_json gpu_json(const std::optional<Gpu>& gpu) {
  if (!gpu) return nullptr;
  return {{"name", gpu->name},
          {"driver", gpu->driver},
          {"uuid", gpu->uuid},
          {"compute_capability", gpu->compute_capability}};
}

ordered_json cuda_json() {
  constexpr std::string_view build = HALFLAB_CUDA_BUILD;
  return build.empty() ? ordered_json() : ordered_json(build);
}

ordered_json build_json() {
  const sim::BuildInformation& build = sim::build_information();
  return {
      {"version", build.version},   {"git_revision", build.git_revision},     {"git_dirty", build.git_dirty},
      {"compiler", build.compiler}, {"compiler_flags", build.compiler_flags}, {"cuda", cuda_json()}};
}

}  // namespace experiments::gpu_status
