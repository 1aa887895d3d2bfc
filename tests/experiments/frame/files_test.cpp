#include "experiments/frame/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using test::TemporaryDirectory;

TEST_CASE("a file's contents come back byte for byte, however many there are") {
  const TemporaryDirectory directory;
  std::string bytes;
  for (int i = 0; i < 70'000; ++i) bytes += static_cast<char>(i % 251);
  for (const std::string& contents :
       {std::string(), std::string("\r\n\0z", 4), bytes, bytes.substr(0, 1 << 16)}) {
    experiments::write_contents(directory / "file", contents);
    CHECK(test::content_of(directory / "file") == contents);
    CHECK(experiments::contents_of(directory / "file") == contents);
  }
}

TEST_CASE("what is missing or a directory has no contents") {
  const TemporaryDirectory directory;
  CHECK_FALSE(experiments::contents_of(directory / "none"));
  CHECK_FALSE(experiments::contents_of(directory.path()));
}

TEST_CASE("what is no regular file, or too long, is refused at once with the reason") {
  const TemporaryDirectory directory;
  const fs::path fifo = directory / "fifo", file = directory / "file";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const auto error_of = [](const fs::path& path, std::uint64_t most_bytes) {
    try {
      experiments::read_file(path, most_bytes);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(error_of(fifo, 9) ==
        "file '" + fifo.string() + "' cannot be read (it is a FIFO, a regular file is needed)");
  CHECK(error_of("/dev/zero", 9) ==
        "file '/dev/zero' cannot be read (it is a device, a regular file is needed)");
  CHECK(error_of("/", 9) == "file '/' cannot be read (it is a directory, a regular file is needed)");
  CHECK(error_of("/none", 9) == "file '/none' cannot be read (No such file or directory)");
  experiments::write_contents(file, "123456789");
  CHECK(experiments::read_file(file, 9) == "123456789");
  CHECK(error_of(file, 8) ==
        "file '" + file.string() + "' cannot be read (it has 9 bytes, at most 8 are allowed)");
  CHECK(error_of("/proc/self/status", 8).find("at most 8 are allowed") != std::string::npos);
  CHECK_FALSE(experiments::contents_of(fifo));
}

TEST_CASE("a file that cannot be written is named with the reason") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(
      experiments::write_contents(directory / "no" / "file", "x"),
      ("file '" + (directory / "no" / "file").string() + "' cannot be written (No such file or directory)")
          .c_str(),
      std::runtime_error);
  CHECK_THROWS_WITH_AS(experiments::write_contents("/dev/full", "x"),
                       "file '/dev/full' cannot be written (No space left on device)", std::runtime_error);
}

TEST_CASE("files and directories are synchronised, and what is missing is named") {
  const TemporaryDirectory directory;
  experiments::write_contents(directory / "file", "x");
  CHECK_NOTHROW(experiments::synchronise(directory / "file"));
  CHECK_NOTHROW(experiments::synchronise(directory.path()));
  CHECK_THROWS_AS(experiments::synchronise(directory / "none"), std::runtime_error);
}
