#include "sim/growing_file.h"

#include <doctest/doctest.h>

#include <filesystem>
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
  sim::FileMark mark;
  {
    sim::GrowingFile file(rows);
    file.append("a\n");
    file.append("bc\n");
    mark = file.mark();
    CHECK(mark == sim::FileMark{"rows", 5, 0xe89b87b0});
    CHECK(content_of(rows) == "a\nbc\n");
    file.append("lost\n");
  }
  CHECK(content_of(rows) == "a\nbc\nlost\n");
  sim::GrowingFile file(rows, mark);
  CHECK(file.mark() == mark);
  file.append("d\n");
  file.copy_to(directory / "copy");
  CHECK(content_of(directory / "copy") == "a\nbc\nd\n");
  CHECK(file.mark() == sim::FileMark{"rows", 7, 0x378405e2});
}

TEST_CASE("a growing file of which no mark was taken goes with the object") {
  const TemporaryDirectory directory;
  {
    const sim::GrowingFile file(directory / "unmarked");
    CHECK(fs::exists(directory / "unmarked"));
  }
  CHECK_FALSE(fs::exists(directory / "unmarked"));
}

TEST_CASE("the mark of a file's first bytes is that of the growing file which had come so far") {
  const TemporaryDirectory directory;
  sim::GrowingFile file(directory / "rows");
  const std::string chunk(70'000, 'x');
  file.append(chunk);
  const sim::FileMark first = file.mark();
  file.append(chunk);
  const sim::FileMark second = file.mark();
  CHECK(sim::mark_of(directory / "rows", 0) == sim::FileMark{"rows", 0, 0});
  CHECK(sim::mark_of(directory / "rows", first.bytes) == first);
  CHECK(sim::mark_of(directory / "rows", second.bytes) == second);
  CHECK(sim::mark_of(directory / "rows", 1'000'000) == second);
  CHECK(sim::mark_of(directory / "none", 5) == sim::FileMark{"none", 0, 0});
}

TEST_CASE("a growing file that cannot be written is named") {
  const TemporaryDirectory directory;
  const std::string file = (directory / "no" / "rows").string();
  const std::string message = "file '" + file + "' cannot be written (No such file or directory)";
  CHECK_THROWS_WITH_AS(sim::GrowingFile{file}, message.c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(sim::GrowingFile(file, sim::FileMark{"rows", 5, 0}), message.c_str(),
                       std::runtime_error);
}
