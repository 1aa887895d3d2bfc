#include "experiments/frame/whole_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using experiments::WholeFile;
using test::content_of;
using test::TemporaryDirectory;

TEST_CASE("a whole file takes its name, and the place of another, only once it is published") {
  const TemporaryDirectory directory;
  for (const std::string content : {"old", "new", ""}) {
    const std::string before = fs::exists(directory / "file") ? content_of(directory / "file") : "";
    WholeFile file(directory / "file");
    file.stream() << content;
    CHECK((fs::exists(directory / "file") ? content_of(directory / "file") : "") == before);
    file.publish();
    CHECK(content_of(directory / "file") == content);
  }
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("of a file that is not published nothing is left") {
  const TemporaryDirectory directory;
  { WholeFile(directory / "file").stream() << "half of it"; }
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("of a file that a killed process was writing nothing is left, where files need no name") {
  const TemporaryDirectory directory;
  const int nameless = ::open(directory.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (nameless < 0) {
    MESSAGE("skipped: this file system has no files without a name");
    return;
  }
  ::close(nameless);
  const pid_t child = ::fork();
  if (child == 0) {
    WholeFile file(directory / "file");
    file.stream() << std::string(100'000, 'x') << std::flush;
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("a whole file is written where /proc is absent") {
  const TemporaryDirectory directory;
  constexpr int cannot_hide = 3;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
      ::_exit(cannot_hide);
    experiments::write_file(directory / "file", "whole");
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_hide) {
    MESSAGE("skipped: this process may not hide /proc");
    return;
  }
  CHECK(status == 0);
  CHECK(content_of(directory / "file") == "whole");
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a device or a pipe is written to and keeps its name") {
  const TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe", link = directory / "null";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  experiments::write_file(pipe, "through a pipe");
  std::string read(14, ' ');
  CHECK(::read(reader, read.data(), read.size()) == 14);
  ::close(reader);
  CHECK(read == "through a pipe");
  CHECK(fs::is_fifo(pipe));
  fs::create_symlink("/dev/null", link);
  experiments::write_file(link, "x");
  CHECK(fs::is_symlink(link));
  CHECK(fs::is_character_file("/dev/null"));
  const fs::path redirected = directory / "redirected";
  const int descriptor = ::open(redirected.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(descriptor >= 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(descriptor), directory / "stdout");
  experiments::write_file(directory / "stdout", "as to /dev/stdout");
  CHECK(fs::is_symlink(directory / "stdout"));
  CHECK(content_of(redirected) == "as to /dev/stdout");
  fs::create_directory_symlink("/proc/self/fd", directory / "fd");
  experiments::write_file(directory / "fd" / std::to_string(descriptor), "as to /dev/fd");
  ::close(descriptor);
  CHECK(content_of(redirected) == "as to /dev/fd");
  fs::create_symlink("/dev/full", directory / "full");
  CHECK_THROWS_WITH_AS(experiments::write_file(directory / "full", "x"),
                       doctest::Contains("No space left on device"), std::runtime_error);
  CHECK(fs::is_symlink(directory / "full"));
}

TEST_CASE("a whole file that cannot be written is named") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(experiments::write_file("/proc/halflab.txt", "x"),
                       doctest::Contains("/proc/halflab.txt"), std::runtime_error);
  CHECK_THROWS_WITH_AS(experiments::write_file(directory / "none" / "file", "x"),
                       doctest::Contains("cannot be written (No such file or directory)"),
                       std::runtime_error);
  fs::create_directories(directory / "directory");
  CHECK_THROWS_AS(experiments::write_file(directory / "directory", "x"), std::runtime_error);
  CHECK(fs::is_empty(directory / "directory"));
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}
