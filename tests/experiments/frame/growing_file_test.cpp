#include "experiments/frame/growing_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using test::content_of;
using test::TemporaryDirectory;

// The checksums are those that Python's zlib.crc32 has of the same texts.

TEST_CASE("a growing file goes on from its mark and leaves out what came after it") {
  const TemporaryDirectory directory;
  const fs::path rows = directory / "rows";
  experiments::FileMark mark;
  {
    experiments::GrowingFile file(rows);
    file.append("a\n");
    file.append("bc\n");
    mark = file.mark();
    CHECK(mark == experiments::FileMark{"rows", 5, 0xe89b87b0});
    CHECK(content_of(rows) == "a\nbc\n");
    file.append("lost\n");
  }
  CHECK(content_of(rows) == "a\nbc\nlost\n");
  experiments::GrowingFile file(rows, mark);
  CHECK(file.mark() == mark);
  file.append("d\n");
  file.copy_to(directory / "copy");
  CHECK(content_of(directory / "copy") == "a\nbc\nd\n");
  CHECK(file.mark() == experiments::FileMark{"rows", 7, 0x378405e2});
}

TEST_CASE("a growing file of which no mark was taken goes with the object") {
  const TemporaryDirectory directory;
  {
    const experiments::GrowingFile file(directory / "unmarked");
    CHECK(fs::exists(directory / "unmarked"));
  }
  CHECK_FALSE(fs::exists(directory / "unmarked"));
}

TEST_CASE("the mark of a file's first bytes is that of the growing file which had come so far") {
  const TemporaryDirectory directory;
  experiments::GrowingFile file(directory / "rows");
  const std::string chunk(70'000, 'x');
  file.append(chunk);
  const experiments::FileMark first = file.mark();
  file.append(chunk);
  const experiments::FileMark second = file.mark();
  CHECK(experiments::mark_of(directory / "rows", 0) == experiments::FileMark{"rows", 0, 0});
  CHECK(experiments::mark_of(directory / "rows", first.bytes) == first);
  CHECK(experiments::mark_of(directory / "rows", second.bytes) == second);
  CHECK(experiments::mark_of(directory / "rows", 1'000'000) == second);
  CHECK(experiments::mark_of(directory / "none", 5) == experiments::FileMark{"none", 0, 0});
}

TEST_CASE("a growing file that another run writes into is neither marked nor copied, and named") {
  const TemporaryDirectory directory;
  const fs::path rows = directory / "rows";
  experiments::GrowingFile file(rows);
  file.append("a\n");
  const experiments::FileMark mark = file.mark();
  const std::string message =
      "file '" + rows.string() +
      "' is not what this run wrote: another run writes there, too; the same command goes on from the last "
      "checkpoint";
  std::ofstream(rows, std::ios::in | std::ios::out) << "b";  // as many bytes
  CHECK_THROWS_WITH_AS(file.copy_to(directory / "copy"), message.c_str(), std::runtime_error);
  std::ofstream(rows, std::ios::app) << "b\n";
  CHECK_THROWS_WITH_AS(file.copy_to(directory / "copy"), message.c_str(), std::runtime_error);
  CHECK_FALSE(fs::exists(directory / "copy"));
  file.append("c\n");
  CHECK_THROWS_WITH_AS(file.mark(), message.c_str(), std::runtime_error);
  std::ofstream(rows) << "a\nlate\n";
  experiments::GrowingFile next(rows, mark);
  next.append("c\n");
  next.copy_to(directory / "copy");
  CHECK(content_of(directory / "copy") == "a\nc\n");
}

TEST_CASE("a growing file that cannot be written is named") {
  const TemporaryDirectory directory;
  const std::string file = (directory / "no" / "rows").string();
  const std::string message = "file '" + file + "' cannot be written (No such file or directory)";
  CHECK_THROWS_WITH_AS(experiments::GrowingFile{file}, message.c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(experiments::GrowingFile(file, experiments::FileMark{"rows", 5, 0}), message.c_str(),
                       std::runtime_error);
}
