#include "experiments/frame/tensor_files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "experiments/frame/files.h"

namespace experiments::tensor_files {

MappedFile::MappedFile(const std::filesystem::path& file) : path_(file) {
  require_regular(file);
  const std::uint64_t size = std::filesystem::file_size(file);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_not_read(file, std::generic_category().message(errno));
  void* const mapping = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (mapping == MAP_FAILED) throw_not_read(file, std::generic_category().message(error));
  bytes_ = {static_cast<const std::byte*>(mapping), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void give_back(Bytes part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace experiments::tensor_files
