#include "experiments/gpu/vendor/nvml.h"

#include <array>
#include <stdexcept>

namespace experiments {
namespace {

constexpr std::array names{"libnvidia-ml.so.1", "libnvidia-ml.so"};

/// nvmlMemory_t of nvml.h.
struct Memory {
  unsigned long long total, free, used;
};

template <typename... Arguments>
void call(const SharedLibrary& library, const char* name, Arguments... arguments) {
  int (*function)(Arguments...) = nullptr;
  library.find(name, function);
  if (const int status = function(arguments...); status != 0)
    throw std::runtime_error(std::string(name) + ": status " + std::to_string(status));
}

}  // namespace

Nvml::Nvml() : library_(names) {
  call(library_, "nvmlInit_v2");
}

std::string Nvml::driver_version() const {
  std::array<char, 81> text{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, and a zero
  call(library_, "nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size() - 1));
  return text.data();
}

std::int64_t Nvml::used_bytes(const std::string& uuid) const {
  void* device = nullptr;
  Memory memory{};
  call(library_, "nvmlDeviceGetHandleByUUID", uuid.c_str(), &device);
  call(library_, "nvmlDeviceGetMemoryInfo", device, &memory);
  return static_cast<std::int64_t>(memory.used);
}

}  // namespace experiments
