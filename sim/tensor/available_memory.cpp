#include "sim/tensor/available_memory.h"

#include <sys/resource.h>

#include <array>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace sim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kib = 1024;

/// What a control group tells of its memory, in version 2 and 1 of its files.
struct GroupFiles {
  std::string_view controller;  ///< in /proc/self/cgroup
  std::string_view folder;      ///< of the groups
  const char* limit;
  const char* used;
  std::string_view reclaimable;  ///< in memory.stat: pages of files, which are given back first
};
constexpr std::array group_files{
    GroupFiles{"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
    GroupFiles{"", "sys/fs/cgroup", "memory.high", "memory.current", "inactive_file"},
    GroupFiles{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
               "total_inactive_file"}};

/// None where the file cannot be read or holds "max".
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

/// The number after a line's first word.
std::optional<std::uint64_t> number_after(const fs::path& file, std::string_view word) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string first;
    std::uint64_t number = 0;
    if (words >> first >> number && first == word) return number;
  }
  return std::nullopt;
}

std::uint64_t without(std::uint64_t total, std::uint64_t part) {
  return total > part ? total - part : 0;
}

class LeastBound {
 public:
  void add(std::optional<std::uint64_t> bytes, std::string_view bound) {
    if (bytes && *bytes < least_.bytes) least_ = {*bytes, bound};
  }
  const AvailableMemory& least() const { return least_; }

 private:
  AvailableMemory least_{std::numeric_limits<std::uint64_t>::max(), "are free"};
};

void add_group(LeastBound& bounds, const GroupFiles& files, const fs::path& group) {
  const std::optional<std::uint64_t> limit = number_in(group / files.limit);
  if (!limit) return;
  const std::uint64_t used = number_in(group / files.used).value_or(0);
  const std::uint64_t reclaimable = number_after(group / "memory.stat", files.reclaimable).value_or(0);
  bounds.add(without(*limit, without(used, reclaimable)), "are left by the control group");
}

/// Whether a controller stands in a list as "cpu,memory"; in version 2 the list is empty, as the name is.
bool is_among(std::string_view controller, std::string_view list) {
  const auto between_commas = [](std::string_view text) {
    return std::string(1, ',').append(text).append(1, ',');
  };
  return between_commas(list).find(between_commas(controller)) != std::string::npos;
}

/// Adds the control groups of the process and all around them; a container sees its own as the root.
void add_groups(LeastBound& bounds, const fs::path& root) {
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {  // "0::/user.slice", "4:memory:/docker/12ab"
    const std::size_t colon = line.find(':'), second = line.find(':', colon + 1);
    if (colon == std::string::npos || second == std::string::npos) continue;
    for (const GroupFiles& files : group_files) {
      if (!is_among(files.controller, line.substr(colon + 1, second - colon - 1))) continue;
      const fs::path folder = root / files.folder;
      for (fs::path group = fs::path(line.substr(second + 1)).relative_path(); !group.empty();
           group = group.parent_path())
        add_group(bounds, files, folder / group);
      add_group(bounds, files, folder);
    }
  }
}

std::optional<std::uint64_t> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

AvailableMemory available_memory(const fs::path& root) {
  LeastBound bounds;
  const fs::path memory = root / "proc/meminfo", status = root / "proc/self/status";
  if (const auto available = number_after(memory, "MemAvailable:")) {
    const std::uint64_t swap = number_after(memory, "SwapFree:").value_or(0);
    bounds.add((*available + swap) * kib, "are free on the machine");
  }
  add_groups(bounds, root);
  if (const auto limit = limit_of(RLIMIT_AS))
    bounds.add(without(*limit, number_after(status, "VmSize:").value_or(0) * kib), "are left by ulimit -v");
  if (const auto limit = limit_of(RLIMIT_DATA))
    bounds.add(without(*limit, number_after(status, "VmData:").value_or(0) * kib), "are left by ulimit -d");
  return bounds.least();
}

}  // namespace sim
