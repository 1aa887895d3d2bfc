#include "experiments/frame/record.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;

namespace {

using experiments::Json;
using test::content_of;
using test::contents_of;
using test::TemporaryDirectory;

void write_run(const fs::path& directory, int steps) {
  experiments::RunRecord record(directory);
  experiments::Table& table = record.table("loss", {"step", "loss", "name"});
  for (int step = 0; step < steps; ++step) table.row({step, 1.0 / (step + 1), "run"});
  record.summary("steps", steps);
  record.verdict("It ran.");
  record.commit(Json::object({{"experiment", "test"}, {"threads", 2}}));
}

std::string message_of(const fs::path& directory) {
  try {
    const experiments::RunRecord record(directory);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("record: what a killed run has started may hold its folder for a moment longer") {
  const test::TemporaryDirectory directory;
  const std::string folder = directory / "run";
  std::filesystem::create_directory(folder);
  const int held = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  std::jthread orphan([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    ::close(held);
  });
  CHECK_NOTHROW(experiments::RunRecord{folder});
}

TEST_CASE("damaged and missing files of a committed run are named") {
  const TemporaryDirectory temporary;
  const fs::path run = temporary / "run";
  using Names = std::vector<std::string>;
  write_run(run, 3);
  CHECK(experiments::damaged_files(run).empty());
  std::ofstream(run / "other.csv") << "a file of the user's";
  CHECK(experiments::damaged_files(run).empty());
  std::string table = content_of(run / "loss.csv");
  table[20] ^= 1;
  std::ofstream(run / "loss.csv", std::ios::binary) << table;
  CHECK(experiments::damaged_files(run) == Names{"loss.csv"});
  fs::remove(run / "verdict.txt");
  fs::create_directory(run / "verdict.txt");
  CHECK(experiments::damaged_files(run) == Names{"loss.csv", "verdict.txt"});
  fs::resize_file(run / "manifest.json", 40);
  CHECK(experiments::damaged_files(run) == Names{"manifest.json"});
  CHECK(experiments::damaged_files(temporary / "none") == Names{"manifest.json"});
}

TEST_CASE("a committed run has all its files and no others") {
  const TemporaryDirectory temporary;
  write_run(temporary / "a" / "b", 3);
  const auto contents = contents_of(temporary / "a" / "b");
  CHECK(contents.size() == 4);
  CHECK(contents.at("loss.csv") == "step,loss,name\n0,1,run\n1,0.5,run\n2,0.3333333333333333,run\n");
  CHECK(contents.at("summary.json") == "{\n  \"steps\": 3\n}\n");
  CHECK(contents.at("verdict.txt") == "It ran.\n");
  const auto manifest = nlohmann::ordered_json::parse(contents.at("manifest.json"));
  for (const std::string key :
       {"experiment", "threads", "version", "git_revision", "git_dirty", "compiler", "compiler_flags",
        "libraries", "cpu", "instruction_sets", "cuda", "driver", "gpu", "date", "wall_time_s",
        "peak_resident_bytes", "figures", "files", "checksums"}) {
    CHECK_MESSAGE(manifest.contains(key), key);
  }
  CHECK(manifest["gpu"].is_null());
  CHECK(manifest["files"] == nlohmann::ordered_json{"loss.csv", "summary.json", "verdict.txt"});
  CHECK(manifest["date"].get<std::string>().size() == std::string("2000-01-01T00:00:00Z").size());
}

TEST_CASE("the manifest names the GPU of a run") {
  const TemporaryDirectory temporary;
  experiments::RunRecord record(temporary / "run");
  record.gpu({.name = "a GPU", .driver = "13.0", .uuid = "GPU-1", .compute_capability = 90});
  record.commit(Json::object({{"experiment", "test"}}));
  const auto manifest = nlohmann::ordered_json::parse(contents_of(temporary / "run").at("manifest.json"));
  CHECK(manifest["gpu"] ==
        nlohmann::ordered_json{
            {"name", "a GPU"}, {"driver", "13.0"}, {"uuid", "GPU-1"}, {"compute_capability", 90}});
}

TEST_CASE("an exception before the commit leaves nothing behind") {
  const TemporaryDirectory temporary;
  const auto fail = [](const fs::path& directory) {
    experiments::RunRecord record(directory);
    record.table("loss", {"step"}).row({1});
    throw std::runtime_error("stop");
  };
  CHECK_THROWS(fail(temporary / "new" / "deep"));
  CHECK_FALSE(fs::exists(temporary / "new"));

  write_run(temporary / "old", 2);
  const auto before = contents_of(temporary / "old");
  CHECK_THROWS(fail(temporary / "old"));
  CHECK(contents_of(temporary / "old") == before);
}

TEST_CASE("a file in the place of a folder is found before anything is published") {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary / "run";
  write_run(directory, 2);
  std::ofstream(directory / "record") << "mine";
  const auto before = contents_of(directory);
  const auto fail = [&] {
    experiments::RunRecord record(directory);
    fs::create_directory(record.staging() / "record");
    std::ofstream(record.staging() / "record" / "steps.csv") << "step\n";
    record.commit(Json::object());
  };
  CHECK_THROWS_WITH_AS(
      fail(), doctest::Contains(("file '" + (directory / "record").string() + "' cannot be written").c_str()),
      std::runtime_error);
  CHECK(contents_of(directory) == before);
}

TEST_CASE("what a killed run staged is cleared away, foreign files stay, outdated files go") {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary / "run";
  {
    experiments::RunRecord record(directory);
    record.table("outdated", {"x"}).row({1});
    record.commit({});
  }
  fs::create_directories(directory / ".partial");
  std::ofstream(directory / ".partial" / "half.csv") << "half";
  std::ofstream(directory / "notes.txt") << "mine";
  write_run(directory, 1);
  const auto contents = contents_of(directory);
  CHECK(contents.contains("notes.txt"));
  CHECK(contents.contains("loss.csv"));
  CHECK_FALSE(contents.contains("outdated.csv"));
  CHECK_FALSE(contents.contains("half.csv"));
  CHECK_FALSE(fs::exists(directory / ".partial"));
}

TEST_CASE("a damaged manifest cannot have files removed elsewhere, nor one of another's files of theirs") {
  const TemporaryDirectory temporary;
  const std::string kept =
      R"("checksums": {"../precious": "00000000", "mine.csv": "00000000", "": "00000000", ".": 3})";
  std::ofstream(temporary / "precious");  // an empty file's checksum is 0
  fs::create_directories(temporary / "run");
  std::ofstream(temporary / "run" / "mine.csv") << "changed since";
  std::ofstream(temporary / "run" / "manifest.json") << fmt::format(R"({{"git_revision": "x", {}}})", kept);
  write_run(temporary / "run", 1);
  CHECK(fs::exists(temporary / "precious"));
  CHECK(content_of(temporary / "run" / "mine.csv") == "changed since");

  for (const std::string& foreign :
       {fmt::format("{{{}}}", kept), std::string(R"({"files": ["mine.csv"]})"), std::string("{")}) {
    std::ofstream(temporary / "run" / "manifest.json") << foreign;
    const std::string message = message_of(temporary / "run");
    CHECK_MESSAGE(message.find("the manifest.json in it is of no run of Halflab's") != std::string::npos,
                  message);
    CHECK(content_of(temporary / "run" / "manifest.json") == foreign);
    CHECK(fs::exists(temporary / "run" / "mine.csv"));
    CHECK_FALSE(fs::exists(temporary / "run" / ".partial"));
  }
}

TEST_CASE("a page is written with all else, and without it nothing is published") {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary / "run";
  const auto write = [&](const std::string& name) {
    experiments::RunRecord record(directory);
    record.commit({}, [&] {
      CHECK(fs::exists(record.staging() / "manifest.json"));
      if (name.empty()) throw std::runtime_error("no page");
      std::ofstream(record.staging() / name) << "page";
    });
  };
  CHECK_THROWS(write(""));
  CHECK_FALSE(fs::exists(directory));
  write("report.html");
  CHECK(experiments::damaged_files(directory).empty());
  CHECK(contents_of(directory).at("manifest.json").find("report.html") != std::string::npos);
  write("other.html");
  CHECK_FALSE(fs::exists(directory / "report.html"));
}

TEST_CASE("two runs differ in the manifest alone") {
  const TemporaryDirectory temporary;
  write_run(temporary / "a", 100);
  write_run(temporary / "b", 100);
  auto a = contents_of(temporary / "a");
  auto b = contents_of(temporary / "b");
  a.erase("manifest.json");
  b.erase("manifest.json");
  CHECK(a == b);
}

TEST_CASE("a directory that cannot be written is refused at once, by its name") {
  const TemporaryDirectory temporary;
  std::ofstream(temporary / "file") << "not a directory";
  for (const fs::path& bad :
       {temporary / "file", temporary / "file" / "below", fs::path("/proc/halflab/run")}) {
    const std::string message = message_of(bad);
    CHECK_MESSAGE(message.find(bad.string()) != std::string::npos, message);
    CHECK(message.find("must be a directory that can be written") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
  CHECK(content_of(temporary / "file") == "not a directory");
}

TEST_CASE("a second run into the same directory is refused while the first one lasts") {
  const TemporaryDirectory temporary;
  {
    const experiments::RunRecord first(temporary / "run");
    CHECK(message_of(temporary / "run").find("another run is writing there") != std::string::npos);
  }
  CHECK(message_of(temporary / "run").empty());
}

TEST_CASE("numbers in a table read back to the same bits") {
  const TemporaryDirectory temporary;
  const std::vector<double> numbers{0.1,  -0.0,  0x1p-1074, 0x1.fffffffffffffp1023,
                                    1e22, 65504, 0x1p-24,   1.0 / 3};
  const float third = 1.0f / 3;
  {
    experiments::RunRecord record(temporary / "run");
    experiments::Table& table = record.table("numbers", {"number"});
    for (const double number : numbers) table.row({number});
    table.row({third});
    table.row({std::numeric_limits<std::uint64_t>::max()});
    table.row({std::numeric_limits<double>::quiet_NaN()});
    table.row({-std::numeric_limits<double>::infinity()});
    record.commit({});
  }
  std::ifstream stream(temporary / "run" / "numbers.csv");
  std::string line;
  std::getline(stream, line);
  for (const double number : numbers) {
    std::getline(stream, line);
    const double read = std::stod(line == "5e-324" ? "0x1p-1074" : line);
    CHECK(read == number);
    CHECK(std::signbit(read) == std::signbit(number));
  }
  std::getline(stream, line);
  CHECK(line == "0.33333334");
  CHECK(std::stof(line) == third);
  std::getline(stream, line);
  CHECK(line == "18446744073709551615");
  std::getline(stream, line);
  CHECK(line == "nan");
  std::getline(stream, line);
  CHECK(line == "-inf");
}

TEST_CASE("texts in a table are quoted where they need it, and rows must fit the header") {
  const TemporaryDirectory temporary;
  experiments::RunRecord record(temporary / "run");
  experiments::Table& table = record.table("texts", {"a", "b"});
  table.row({"plain", "with, comma"});
  table.row({"say \"half\"", "two\nlines"});
  CHECK_THROWS_AS(table.row({1}), std::logic_error);
  CHECK_THROWS_AS(table.row({1, 2, 3}), std::logic_error);
  record.commit({});
  CHECK(content_of(temporary / "run" / "texts.csv") ==
        "a,b\nplain,\"with, comma\"\n\"say \"\"half\"\"\",\"two\nlines\"\n");
}

TEST_CASE("the summary is flat, in order, and holds only numbers and strings") {
  const TemporaryDirectory temporary;
  experiments::RunRecord record(temporary / "run");
  record.summary("z", 1);
  record.summary("a", std::numeric_limits<double>::quiet_NaN());
  record.summary("b", std::numeric_limits<float>::infinity());
  record.summary("c", "text");
  CHECK_THROWS_AS(record.summary("z", 2), std::logic_error);
  record.commit({});
  CHECK(content_of(temporary / "run" / "summary.json") ==
        "{\n  \"z\": 1,\n  \"a\": \"nan\",\n  \"b\": \"inf\",\n  \"c\": \"text\"\n}\n");
}
