#include "sim/files.h"

#include <doctest/doctest.h>

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
    sim::write_contents(directory / "file", contents);
    CHECK(test::content_of(directory / "file") == contents);
    CHECK(sim::contents_of(directory / "file") == contents);
  }
}

TEST_CASE("what is missing or a directory has no contents") {
  const TemporaryDirectory directory;
  CHECK_FALSE(sim::contents_of(directory / "none"));
  CHECK_FALSE(sim::contents_of(directory.path()));
}

TEST_CASE("a file that cannot be written is named with the reason") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(
      sim::write_contents(directory / "no" / "file", "x"),
      ("file '" + (directory / "no" / "file").string() + "' cannot be written (No such file or directory)")
          .c_str(),
      std::runtime_error);
  CHECK_THROWS_WITH_AS(sim::write_contents("/dev/full", "x"),
                       "file '/dev/full' cannot be written (No space left on device)", std::runtime_error);
}

TEST_CASE("files and directories are synchronised, and what is missing is named") {
  const TemporaryDirectory directory;
  sim::write_contents(directory / "file", "x");
  CHECK_NOTHROW(sim::synchronise(directory / "file"));
  CHECK_NOTHROW(sim::synchronise(directory.path()));
  CHECK_THROWS_AS(sim::synchronise(directory / "none"), std::runtime_error);
}
