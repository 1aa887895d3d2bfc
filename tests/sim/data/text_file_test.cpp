#include "sim/data/text_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/data_directory.h"
#include "tests/temporary_directory.h"

namespace sim {
namespace {

using test::TemporaryDirectory;

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The one-line error of reading `path`, with the directory's own path replaced by DIR.
std::string error_of(const fs::path& path, const TemporaryDirectory& directory) {
  try {
    read_text(path, 4);
  } catch (const std::runtime_error& error) {
    std::string text = error.what();
    const std::string own = directory.path().string();
    if (const auto at = text.find(own); at != std::string::npos) text.replace(at, own.size(), "DIR");
    return text;
  }
  return "no error";
}

TEST_CASE("a file's bytes are its tokens, whatever they are") {
  using namespace std::string_literals;
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "a\r\n\0\xff"s;
  write(directory / "small.txt", text);
  write(directory / "other.dat", text);
  for (const fs::path& path : {directory / "small.txt", directory.path()}) {
    const TextDataset data = read_text(path, 4);
    CHECK(data.name() == "small.txt");
    CHECK(data.context() == 4);
    CHECK(data.vocabulary() == "\0\n\ra\xff"s);
    CHECK(data.training_size() == 86);
    CHECK(data.training_batch(std::vector<std::uint32_t>{0}).tokens == std::vector<std::int32_t>{3, 2, 1, 0});
    CHECK(!data.entropy_rate().has_value());
  }
  CHECK(read_text(directory / "other.dat", 4).name() == "other.dat");
}

TEST_CASE("missing and unfit files are refused with one line: file, found, allowed") {
  const TemporaryDirectory directory;
  CHECK(error_of(directory / "none.txt", directory) ==
        "file 'DIR/none.txt' cannot be read (No such file or directory)");
  CHECK(error_of(directory.path(), directory) == "DIR: 0 files named *.txt found, exactly 1 is needed");
  write(directory / "a.txt", "");
  CHECK(error_of(directory / "a.txt", directory) ==
        "DIR/a.txt: 0 bytes found, at least 50 are needed for a context of 4 tokens");
  write(directory / "a.txt", std::string(49, 'x'));
  CHECK(error_of(directory.path(), directory) ==
        "DIR/a.txt: 49 bytes found, at least 50 are needed for a context of 4 tokens");
  write(directory / "a.txt", std::string(50, 'x'));
  CHECK(error_of(directory.path(), directory) == "no error");
  write(directory / "b.txt", "");
  CHECK(error_of(directory.path(), directory) == "DIR: 2 files named *.txt found, exactly 1 is needed");
  fs::resize_file(directory / "b.txt", TextDataset::longest_text + 1);
  CHECK(error_of(directory / "b.txt", directory) ==
        "file 'DIR/b.txt' cannot be read (it has 268435457 bytes, at most 268435456 are allowed)");
  CHECK(error_of("/dev/zero", directory) ==
        "file '/dev/zero' cannot be read (it is a device, a regular file is needed)");
  CHECK_THROWS_AS(read_text(directory / "a.txt", 0), std::invalid_argument);
}

TEST_CASE("a real text, when HALFLAB_DATA_DIR has it") {
  const auto data = test::data_folder("text");
  if (!data) return;
  const TextDataset text = read_text(*data, 64);
  CHECK(text.vocabulary().size() == 65);
  CHECK(text.training_size() == 1115394 - 111539 - 64);
  CHECK(text.unigram_entropy() == doctest::Approx(3.3).epsilon(0.02));
}

}  // namespace
}  // namespace sim
