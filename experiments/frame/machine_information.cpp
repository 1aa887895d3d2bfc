#include "experiments/frame/machine_information.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace experiments {
namespace {

constexpr std::array relevant_instruction_sets{
    "sse2",     "sse4_2",   "avx",         "f16c",        "fma",         "avx2",     "avx512f",  "avx512dq",
    "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_fp16",
    "asimd",    "asimdhp",  "fphp",        "bf16",        "sve",         "sve2"};

std::string value_of(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::size_t start =
      colon == std::string_view::npos ? colon : line.find_first_not_of(" \t", colon + 1);
  return start == std::string_view::npos ? "" : std::string(line.substr(start));
}

std::vector<std::string> relevant_among(const std::string& words) {
  std::istringstream stream(words);
  const std::vector<std::string> present{std::istream_iterator<std::string>(stream), {}};
  std::vector<std::string> relevant;
  for (const char* name : relevant_instruction_sets) {
    if (std::find(present.begin(), present.end(), name) != present.end()) relevant.emplace_back(name);
  }
  return relevant;
}

}  // namespace

MachineInformation machine_information() {
  MachineInformation machine{.cpu_model = "unknown", .instruction_sets = {}};
  std::ifstream cpuinfo("/proc/cpuinfo");
  // The first processor's block is enough; it ends at the first empty line.
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    if (line.starts_with("model name")) machine.cpu_model = value_of(line);
    if (line.starts_with("flags") || line.starts_with("Features")) {
      machine.instruction_sets = relevant_among(value_of(line));
    }
  }
  return machine;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace experiments
