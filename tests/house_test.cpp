/// The arrows between the rooms of the house, who may include whom, and what not every compiler has.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/file_contents.h"

namespace {

namespace fs = std::filesystem;

const fs::path root = HALFLAB_SOURCE_DIRECTORY;

/// A room and the rooms it may include besides itself and the standard library.
struct Room {
  std::string_view folder;
  std::vector<std::string_view> allowed;
};

/// The innermost folder that holds a file is its room.
const std::vector<Room>& rooms() {
  static const std::vector<Room> rooms = [] {
    const std::vector<std::string_view> numbers{"fp16", "fp16/vector/threads.h"};
    const auto with = [](std::vector<std::string_view> below, std::initializer_list<std::string_view> more) {
      below.insert(below.end(), more);
      return below;
    };
    const auto precision = with(numbers, {"sim/precision", "sim/tensor"});
    const auto tape = with(precision, {"sim/ops", "sim/loss_scaling", "sim/optimizers", "sim/schedules",
                                       "sim/data", "sim/tape"});
    const auto trainer = with(tape, {"sim/statistics", "sim/models", "sim/trainer"});
    const auto shared = with(trainer, {"sim/sizing", "experiments/frame", "experiments/training"});
    const auto validated = with(shared, {"experiments/validation"});
    const auto vendor = with(shared, {"experiments/gpu/vendor", "fp16/cuda"});
    const auto probes = with(vendor, {"experiments/gpu/probes"});
    return std::vector<Room>{
        {"fp16", {"fp16/vector/bulk_templates.h"}},
        {"fp16/vector", {"fp16"}},
        {"fp16/cuda", {"fp16"}},
        {"sim/tensor", numbers},
        {"sim/precision", precision},
        {"sim/ops", precision},
        {"sim/loss_scaling", precision},
        {"sim/optimizers", precision},
        {"sim/schedules", precision},
        {"sim/data", precision},
        {"sim/tape", tape},
        {"sim/statistics", tape},
        {"sim/models", tape},
        {"sim/trainer", trainer},
        {"sim/sizing",
         with(precision, {"sim/ops", "sim/optimizers", "sim/loss_scaling", "sim/tape", "sim/models"})},
        {"sim", trainer},  // the precompiled header
        {"experiments/frame", {"fp16/names.h"}},
        {"experiments/training", shared},
        {"experiments/gpu/probes", {"fp16", "fp16/cuda"}},
        {"experiments/gpu/vendor", {"experiments/frame", "fp16", "fp16/cuda"}},
        {"experiments/gpu/gpu_status",
         with(probes,
              {"experiments/gpu/gpu_throughput", "experiments/gpu/validate_gpu", "experiments/validation"})},
        {"experiments/gpu/gpu_throughput", vendor},
        {"experiments/gpu/validate_gpu",
         with(probes,
              {"experiments/validation", "fp16/vector/double_double.h", "fp16/vector/math_kernels.h"})},
        {"experiments/validation", with(shared, {"fp16/cuda/mix.h"})},
        {"experiments/cpu/instructions", {"experiments/validation", "fp16"}},
        {"experiments/cpu/runner",
         {"experiments/cpu/instructions", "experiments/frame/build_information.h", "experiments/validation",
          "fp16"}},
        {"experiments/cpu/validate_cpu", with(validated, {"experiments/cpu/instructions"})},
        {"experiments/cpu/cpu_status", with(validated, {"experiments/cpu/instructions"})},
        {"experiments/explain_gemm", vendor},
        {"tools/halflab", with(shared, {"experiments/explain_gemm", "experiments/gradient_histogram/paper3.h",
                                        "experiments/report"})},
    };
  }();
  return rooms;
}

/// The row of the innermost room that holds the file; an experiment without a row may include what all share.
Room room_of(const std::string& file) {
  const Room* innermost = nullptr;
  for (const Room& room : rooms()) {
    const bool holds = file.starts_with(std::string(room.folder) + "/");
    if (holds && (innermost == nullptr || room.folder.size() > innermost->folder.size())) innermost = &room;
  }
  if (innermost != nullptr) return *innermost;
  static std::set<std::string> experiments;
  const std::string folder = fs::path(file).parent_path().string();
  Room room = *std::ranges::find(rooms(), std::string_view("experiments/training"), &Room::folder);
  room.folder = *experiments.insert(folder).first;
  return room;
}

bool may_include(const Room& room, const std::string& included) {
  const std::string_view target = room_of(included).folder;
  return target == room.folder || std::ranges::find(room.allowed, target) != room.allowed.end() ||
         std::ranges::find(room.allowed, std::string_view(included)) != room.allowed.end();
}

std::vector<std::string> sources_in(std::string_view top) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
    const std::string extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh")
      files.push_back(fs::relative(entry.path(), root).string());
  }
  std::ranges::sort(files);
  return files;
}

/// The files of the house that `file` includes, by their paths from the root or from its own folder.
std::vector<std::string> included_by(const std::string& file) {
  std::vector<std::string> included;
  std::ifstream stream(root / file);
  constexpr std::string_view directive = "#include \"";
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(directive)) continue;
    const std::string name = line.substr(directive.size(), line.rfind('"') - directive.size());
    const fs::path beside = (fs::path(file).parent_path() / name).lexically_normal();
    if (fs::exists(root / beside)) {
      included.push_back(beside.string());
    } else if (name.find('/') != std::string::npos) {  // else it is generated
      included.push_back(name);
    }
  }
  return included;
}

/// GCC 12 has no _Float16 in C++ for AArch64.
std::vector<std::string> unguarded_native_halves() {
  std::vector<std::string> unguarded;
  for (const std::string_view top : {"fp16", "sim", "experiments", "tools/halflab", "tests"}) {
    for (const std::string& file : sources_in(top)) {
      bool guarded = false;
      std::ifstream stream(root / file);
      for (std::string line; std::getline(stream, line);) {
        const std::string code = line.substr(0, line.find("//"));
        guarded = guarded || code.find("FP16_HAS_NATIVE_HALF") != std::string::npos;
        if (!guarded && code.find("_Float16") != std::string::npos) unguarded.push_back(file + ": " + line);
      }
    }
  }
  return unguarded;
}

/// ctest keeps names in a list of CMake, whose brackets and semicolons split or join them: such a test would not run.
bool is_listed_by_ctest(std::string_view test_name) {
  return test_name.find_first_of("[];") == std::string_view::npos;
}

/// The names of a file's tests, of which long ones go over several lines.
std::vector<std::string> test_names_in(const std::string& text) {
  std::vector<std::string> names;
  constexpr std::string_view opening = "\nTEST_CASE(", end = ") {\n";
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at + 1)) {
    const std::size_t begin = at + opening.size();
    names.push_back(text.substr(begin, text.find(end, begin) - begin));
  }
  return names;
}

std::vector<std::string> tests_unknown_to_ctest() {
  std::vector<std::string> unknown;
  for (const std::string& file : sources_in("tests")) {
    for (const std::string& name : test_names_in(test::content_of(root / file))) {
      if (!is_listed_by_ctest(name)) unknown.push_back(file + ": " + name);
    }
  }
  return unknown;
}

std::vector<std::string> arrows_against_the_house() {
  std::vector<std::string> wrong;
  for (const std::string_view top : {"fp16", "sim", "experiments", "tools/halflab"}) {
    for (const std::string& file : sources_in(top)) {
      const Room room = room_of(file);
      for (const std::string& included : included_by(file)) {
        if (!may_include(room, included)) wrong.push_back(file + " includes " + included);
      }
    }
  }
  return wrong;
}

TEST_CASE("house: every include follows an arrow that is allowed") {
  for (const std::string& arrow : arrows_against_the_house()) FAIL_CHECK(arrow);
}

TEST_CASE("house: _Float16 stands behind FP16_HAS_NATIVE_HALF alone") {
  for (const std::string& line : unguarded_native_halves()) FAIL_CHECK(line);
}

TEST_CASE("house: ctest can list every test by its name") {
  for (const std::string& test : tests_unknown_to_ctest()) FAIL_CHECK(test);
  CHECK_FALSE(is_listed_by_ctest("one; two"));
  CHECK_FALSE(is_listed_by_ctest("m[0]"));
  const std::string two = "\nTEST_CASE(\"a\") {\n}\n\nTEST_CASE(\n    \"b; \"\n    \"c\") {\n}\n";
  CHECK(test_names_in(two) == std::vector<std::string>{"\"a\"", "\n    \"b; \"\n    \"c\""});
}

TEST_CASE("house: the rows refuse what points up") {
  CHECK_FALSE(may_include(room_of("sim/ops/relu.cpp"), "sim/optimizers/adam.h"));
  CHECK_FALSE(may_include(room_of("sim/tape/tape.cpp"), "sim/trainer/trainer.h"));
  CHECK_FALSE(may_include(room_of("sim/trainer/trainer.cpp"), "experiments/frame/record.h"));
  CHECK_FALSE(may_include(room_of("experiments/frame/record.cpp"), "fp16/bulk.h"));
  CHECK_FALSE(may_include(room_of("experiments/formats/main.cpp"), "experiments/report/html.h"));
  CHECK_FALSE(may_include(room_of("fp16/cuda/gemm.cpp"), "experiments/gpu/probes/sweep.h"));
  CHECK_FALSE(
      may_include(room_of("experiments/gpu/gpu_throughput/main.cpp"), "experiments/gpu/probes/sweep.h"));
  CHECK_FALSE(may_include(room_of("experiments/report/page.cpp"), "tools/halflab/command.h"));
  CHECK(may_include(room_of("experiments/frame/families.cpp"), "fp16/names.h"));
  CHECK(may_include(room_of("experiments/gpu/gpu_status/merge.cpp"), "experiments/gpu/validate_gpu/rows.h"));
}

}  // namespace
