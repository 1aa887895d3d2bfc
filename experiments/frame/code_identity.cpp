#include "experiments/frame/code_identity.h"

#include <fmt/format.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "experiments/frame/crc32.h"
#include "experiments/frame/files.h"

namespace experiments {
namespace {

struct Sought {
  std::uintptr_t address;
  std::string file;  ///< stays empty for the program itself
};

int look_into(dl_phdr_info* object, std::size_t, void* sought) {
  auto& [address, file] = *static_cast<Sought*>(sought);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || address < begin || address - begin >= part.p_memsz) continue;
    file = object->dlpi_name;
    return 1;
  }
  return 0;
}

std::vector<std::filesystem::path> files_of_code() {
  Sought library{.address = reinterpret_cast<std::uintptr_t>(&look_into), .file = {}};
  dl_iterate_phdr(look_into, &library);
  std::vector<std::filesystem::path> files{"/proc/self/exe"};
  if (!library.file.empty()) files.emplace_back(library.file);
  return files;
}

}  // namespace

std::string code_identity(const BuildInformation& build, std::span<const std::filesystem::path> files) {
  const std::string revision(build.git_revision);
  if (!build.git_dirty && revision != "unknown") return revision;
  std::uint32_t checksum = 0;
  for (const std::filesystem::path& file : files) {
    const std::optional<std::string> bytes = contents_of(file);
    if (!bytes)
      throw std::runtime_error(
          fmt::format("{}: cannot be read; of modified source this file tells builds apart", file.string()));
    checksum = crc32(std::as_bytes(std::span(*bytes)), checksum);
  }
  return fmt::format("{}+{:08x}", revision, checksum);
}

const std::string& code_identity() {
  static const std::string running = code_identity(build_information(), files_of_code());
  return running;
}

}  // namespace experiments
