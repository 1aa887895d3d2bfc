#include "experiments/frame/claims.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using experiments::Claims;
using experiments::ClaimTimes;
using test::TemporaryDirectory;

/// The claim of a job on another host, renewed so many seconds ago.
void put_foreign_claim(const fs::path& folder, int seconds_ago) {
  fs::create_directories(folder);
  const fs::path file = folder / "0123456789abcdef.json";
  std::ofstream(file)
      << R"({"host": "node3", "job": "Slurm job 7_2", "process": 1, "process_space": "elsewhere"})";
  const std::timespec then{std::time(nullptr) - seconds_ago, 0};
  const std::timespec times[2] = {then, then};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

std::size_t entries_in(const fs::path& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator{}));
}

}  // namespace

TEST_CASE("claims: of many jobs that want the same, one gets it, and after it another") {
  const TemporaryDirectory directory;
  constexpr int jobs = 8, names = 20;
  std::vector<std::unique_ptr<Claims>> claims;
  for (int job = 0; job < jobs; ++job) claims.push_back(std::make_unique<Claims>(directory / "claims"));
  std::vector<std::atomic<int>> winners(names);
  {
    std::vector<std::jthread> threads;
    for (const auto& own : claims) {
      threads.emplace_back([&] {
        for (int i = 0; i < names; ++i) winners[static_cast<std::size_t>(i)] += own->claim(std::to_string(i));
      });
    }
  }
  for (const std::atomic<int>& winner : winners) CHECK(winner == 1);
  for (int i = 0; i < names; ++i) {
    for (const auto& own : claims) own->give_back(std::to_string(i));
  }
  CHECK(claims[3]->claim("0"));
  CHECK(!claims[4]->claim("0"));
  claims[3]->require("0");
  CHECK_THROWS_AS(claims[4]->require("0"), experiments::ClaimLost);
  claims.clear();
  CHECK(!fs::exists(directory / "claims"));
}

TEST_CASE("claims: one of a process that was killed is free at once") {
  const TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    Claims own(directory / "claims");
    own.claim("cell");
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  REQUIRE(fs::exists(directory / "claims" / "cell"));
  CHECK(!experiments::owner_of(directory / "claims", "cell"));
  Claims own(directory / "claims");
  CHECK(own.claim("cell"));
  own.require("cell");
}

TEST_CASE("claims: nothing of a killed process is left") {
  const TemporaryDirectory directory;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Claims own(directory / "claims");
      for (int claim = 0;; ++claim) own.claim(std::to_string(claim)), own.give_back(std::to_string(claim));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  { Claims own(directory / "claims"); }
  const auto is_claim = [](const auto& entry) { return !entry.path().filename().string().starts_with('.'); };
  if (fs::exists(directory / "claims"))
    CHECK(std::all_of(fs::directory_iterator(directory / "claims"), fs::directory_iterator{}, is_claim));
}

TEST_CASE("claims: one of another host is told, and free once it was not renewed for its time") {
  const TemporaryDirectory directory;
  const fs::path claims = directory / "claims";
  put_foreign_claim(claims / "fresh", 5);
  put_foreign_claim(claims / "stale", 300);
  const std::optional<experiments::ClaimOwner> owner = experiments::owner_of(claims, "fresh");
  REQUIRE(owner);
  CHECK(owner->text() == "Slurm job 7_2 on node3");
  CHECK(!experiments::owner_of(claims, "stale"));
  CHECK(!experiments::owner_of(claims, "never"));
  {
    Claims own(claims);
    CHECK(!own.claim("fresh"));
    CHECK(own.claim("stale"));
    CHECK(!experiments::owner_of(claims, "stale")->text().starts_with("Slurm"));
  }
  CHECK(fs::exists(claims / "fresh"));
  CHECK(entries_in(claims) == 1);
}

TEST_CASE(
    "claims: as long as its job lives one is renewed, and a job that was held up learns that it lost its "
    "own") {
  const TemporaryDirectory directory;
  const fs::path claims = directory / "claims";
  const ClaimTimes quick{.renewal = 20ms, .patience = 2s}, held_up{.renewal = 1h, .patience = 2s};
  Claims alive(claims, quick), asleep(claims, held_up), other(claims, quick);
  CHECK(alive.claim("a"));
  CHECK(asleep.claim("b"));
  CHECK(!other.claim("b"));
  std::this_thread::sleep_for(3s);
  CHECK(!other.claim("a"));
  CHECK(other.claim("b"));
  CHECK_THROWS_WITH_AS(asleep.require("b"),
                       ("claim '" + (claims / "b").string() + "' was taken over by another job").c_str(),
                       experiments::ClaimLost);
  asleep.give_back("b");
  other.require("b");
}

TEST_CASE("claims: what is no claim is cleared away, and a folder that cannot be written is named") {
  const TemporaryDirectory directory;
  const fs::path claims = directory / "claims";
  put_foreign_claim(claims / ".new-of-a-killed-job", 300);
  const std::timespec old[2] = {{std::time(nullptr) - 300, 0}, {std::time(nullptr) - 300, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (claims / ".new-of-a-killed-job").c_str(), old, 0) == 0);
  fs::create_directory(claims / ".new-of-another-job");
  fs::create_directory(claims / "empty");  // of a job that was killed as it gave it back
  {
    Claims own(claims);
    CHECK(!fs::exists(claims / ".new-of-a-killed-job"));
    CHECK(own.claim("empty"));
  }
  CHECK(fs::exists(claims / ".new-of-another-job"));
  std::ofstream(directory / "file") << "no folder";
  CHECK_THROWS_WITH_AS(Claims(directory / "file"), doctest::Contains("file"), std::runtime_error);
}
