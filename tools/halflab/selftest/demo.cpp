#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "experiments/frame/child_process.h"
#include "experiments/frame/files.h"
#include "experiments/frame/installation.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/json.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

namespace fs = std::filesystem;

/// The programs of `./lab demo`, which are no libraries: they are run where they were installed.
constexpr std::array<std::string_view, 3> programs{"gradient_histogram", "underflow_sweep",
                                                   "scaler_comparison"};

/// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "halflab-selftest-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), fmt::format("'{}' cannot be created", name));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A hash for the text of each value of summary.json, so that a key may be added.
std::vector<Hashes::Named> hashes_of(const fs::path& summary) {
  std::vector<Hashes::Named> hashes;
  const experiments::Json values = experiments::Json::from_text(experiments::read_file(summary));
  for (const auto& [key, value] : values.members()) {
    Fnv1a hash;
    hash.add(value.to_text());
    hashes.push_back({key, hash.value()});
  }
  return hashes;
}

Hashes run(std::string_view name) {
  const fs::path program = experiments::experiments_folder() / name;
  if (!fs::exists(program)) throw NotRun(fmt::format("{} is not installed with halflab", name));
  const TemporaryFolder folder;
  constexpr double time_limit_s = 7200;  // an emulator takes a quarter of an hour
  // A PATH without gnuplot: nobody looks at the figures.
  const experiments::ChildResult result =
      experiments::run_child({.words = {program, "--quick", "--threads", "1", "--out", "."},
                              .directory = folder.path(),
                              .time_limit_s = time_limit_s,
                              .variables = {"PATH=" + folder.path().string()}});
  experiments::throw_if_interrupted();
  if (result.spawn_error != 0)
    throw NotRun(
        fmt::format("{} cannot be started ({})", name, std::generic_category().message(result.spawn_error)));
  if (result.timed_out) throw std::runtime_error(fmt::format("{} took more than {} s", name, time_limit_s));
  if (result.status != 0)
    throw std::runtime_error(fmt::format("{} {}: {}", name, how_it_ended(result), result.err));
  return hashes_of(folder.path() / "summary.json");
}

}  // namespace

std::vector<Row> demo_rows() {
  std::vector<Row> rows;
  for (const std::string_view name : programs)
    rows.push_back({std::string(name), [name] { return run(name); }});
  return rows;
}

}  // namespace halflab::selftest
