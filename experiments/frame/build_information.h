#pragma once

#include <span>
#include <string_view>

namespace experiments {

struct Dependency {
  std::string_view name;
  std::string_view version;  ///< "unknown" where the library does not tell
};

/// What a result must carry for somebody else to build the same program.
struct BuildInformation {
  std::string_view version;         ///< of Halflab: major.minor.patch
  std::string_view git_revision;    ///< 40 hexadecimal digits; "unknown" where the source is no git checkout
  bool git_dirty = false;           ///< a file known to git differed from that revision
  std::string_view compiler;        ///< name and version: "GNU 12.2.0"
  std::string_view compiler_flags;  ///< of all sources; the vectorised ones add instruction sets
  std::string_view build_type;      ///< "Release" or "Debug"
  std::span<const Dependency> dependencies;
};

/// The facts of this very binary: the revision is that of the last build, not of the last configuration.
const BuildInformation& build_information();

}  // namespace experiments
