#pragma once
/// The machine a run took place on, for its manifest.

#include <cstdint>
#include <string>
#include <vector>

namespace experiments {

struct MachineInformation {
  std::string cpu_model;                      ///< as the kernel names it; "unknown" where it does not
  std::vector<std::string> instruction_sets;  ///< the ones that bear on arithmetic speed, in a fixed order
};

/// Reads /proc/cpuinfo; never fails, a fact that cannot be had is left "unknown" or empty.
MachineInformation machine_information();

/// What gethostname(2) says, up to 255 characters; "an unknown host" where it fails.
std::string host_name();

/// The largest resident set of this process so far, in bytes.
std::int64_t peak_resident_bytes();

}  // namespace experiments
