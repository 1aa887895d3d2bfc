#include "experiments/frame/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "experiments/frame/files.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

fs::path path_of(int descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor);
}

/// A descriptor of a file that can be given a name later; negative where the file system has none or /proc is absent.
int open_nameless(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::access(path_of(descriptor).c_str(), W_OK) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

/// Devices and pipes are written to, and what /dev/stdout leads to. To take the name of one would destroy it: of /dev/null, for
/// all programs.
bool keeps_its_place(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status) || !fs::is_regular_file(status)) return fs::exists(status);
  fs::path link = fs::absolute(file);
  for (int links = 0; links < 40 && fs::is_symlink(link, error); ++links) {
    const fs::path folder = fs::canonical(link.parent_path(), error);  // /dev/fd is a link itself
    if (folder.string().starts_with("/proc/")) return true;
    link = folder / fs::read_symlink(link, error);
  }
  return false;
}

}  // namespace

WholeFile::WholeFile(fs::path file) : file_(std::move(file)), temporary_(file_) {
  errno = 0;
  if (keeps_its_place(file_)) {
    stream_.open(file_, std::ios::binary);
    return;
  }
  temporary_ += fmt::format(".partial-{}", ::getpid());
  const fs::path folder = file_.has_parent_path() ? file_.parent_path() : ".";
  nameless_ = open_nameless(folder);
  errno = 0;
  stream_.open(nameless_ < 0 ? temporary_ : path_of(nameless_), std::ios::binary);
}

WholeFile::~WholeFile() {
  if (temporary_ == file_) return;
  if (nameless_ >= 0) ::close(nameless_);
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void WholeFile::publish() {
  stream_.close();
  if (!stream_) throw_not_written(file_, errno != 0 ? errno : EIO);
  if (temporary_ == file_) return;
  if (nameless_ >= 0) {
    fs::remove(temporary_);  // of a process that had this number
    if (::linkat(AT_FDCWD, path_of(nameless_).c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      throw_not_written(file_, errno);
  }
  std::error_code error;
  fs::rename(temporary_, file_, error);
  if (error) throw_not_written(file_, error.value());
}

void write_file(const fs::path& file, std::string_view content) {
  WholeFile whole(file);
  whole.stream().write(content.data(), static_cast<std::streamsize>(content.size()));
  whole.publish();
}

}  // namespace experiments
