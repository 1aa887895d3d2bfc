#include "experiments/gpu/validate_gpu/code_identity.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "sim/tensor/random.h"

namespace experiments::validate_gpu {

std::string code_identity(const BuildInformation& build, const std::filesystem::path& program) {
  const std::string revision(build.git_revision);
  if (!build.git_dirty && revision != "unknown") return revision;
  const std::optional<std::string> bytes = contents_of(program);
  if (!bytes)
    throw std::runtime_error(
        fmt::format("{}: cannot be read; of modified source this file tells builds apart", program.string()));
  return fmt::format("{}+{:016x}", revision, sim::fnv1a(*bytes));
}

}  // namespace experiments::validate_gpu
