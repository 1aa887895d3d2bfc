#include "experiments/frame/code_identity.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <stdexcept>

#include "experiments/frame/crc32.h"
#include "experiments/frame/files.h"

namespace experiments {

std::string code_identity(const BuildInformation& build, const std::filesystem::path& program) {
  const std::string revision(build.git_revision);
  if (!build.git_dirty && revision != "unknown") return revision;
  const std::optional<std::string> bytes = contents_of(program);
  if (!bytes)
    throw std::runtime_error(
        fmt::format("{}: cannot be read; of modified source this file tells builds apart", program.string()));
  return fmt::format("{}+{:08x}", revision, crc32(std::as_bytes(std::span(*bytes))));
}

const std::string& code_identity() {
  static const std::string running = code_identity(build_information(), "/proc/self/exe");
  return running;
}

}  // namespace experiments
