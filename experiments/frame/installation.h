#pragma once
/// Where a program finds what comes with it, by where it lies itself: in a build, where it was installed and where that was moved
/// to alike.

#include <filesystem>
#include <string_view>

namespace experiments {

/// The folder of the running program, behind all links.
std::filesystem::path program_folder();

/// The folder below which a program's folder is bin/ or libexec/halflab/.
std::filesystem::path prefix_of(const std::filesystem::path& program_folder);

/// Where programs are that nobody starts by name alone: libexec/halflab/ below the prefix where they were installed, in a build
/// beside the running one.
std::filesystem::path experiments_folder();

/// A file or folder of share/halflab/ below the prefix of the running program. It need not exist.
std::filesystem::path shared_data(std::string_view name);

/// The folder of the pages below the prefix of the running program. It need not exist.
std::filesystem::path installed_pages();

}  // namespace experiments
