#pragma once
/// NVIDIA's management library, which knows of devices without a CUDA context.

#include <cstdint>
#include <string>

#include "experiments/gpu/vendor/shared_library.h"

namespace experiments {

class Nvml {
 public:
  /// Opens and initialises it. Here and below: std::runtime_error, one line, where the library is missing or refuses.
  Nvml();

  /// nvmlSystemGetDriverVersion: as nvidia-smi writes it, such as 580.65.06.
  std::string driver_version() const;
  /// nvmlDeviceGetMemoryInfo: the used bytes of the device with this UUID, of all processes and the driver.
  std::int64_t used_bytes(const std::string& uuid) const;

 private:
  SharedLibrary library_;
};

}  // namespace experiments
