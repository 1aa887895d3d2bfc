/// `training --mpi`, started by mpirun: the bits of virtual ranks, and how such a run ends.

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "tests/experiments/training/mpi/exit_codes.h"
#include "tests/experiments/training/mpi/launches.h"
#include "tests/experiments/training_process.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using mpi::launch;
using mpi::Library;
using mpi::lines_of_training;
using mpi::Outcome;
using mpi::processes;
using test::contains;
using test::TemporaryDirectory;

/// A run of a second, with skipped steps and twins.
const std::string small =
    "--model mlp:hidden1=32:hidden2=16 --steps 12 --twin-every 5 --checkpoint-every 5 --scalers "
    "dynamic:init_scale=4194304 "
    "--record --dump-tensors 3 ";

std::string with_mpi(const std::string& arguments, const fs::path& out) {
  return "--mpi " + arguments + " --out " + out.string();
}

Outcome train(const Library& library, int ranks, const std::string& arguments, const fs::path& out) {
  return launch(library, processes(ranks, mpi::training, with_mpi(arguments, out)));
}

nlohmann::json manifest_of(const fs::path& out, const std::string& part) {
  return training::json_of(out / "manifest.json").at(part);
}
nlohmann::json settings_of(const fs::path& out) {
  return manifest_of(out, "settings");
}

void check_virtual(const Library& library, int ranks, const std::string& arguments) {
  INFO(library.name, ", ", ranks, " ranks: ", arguments);
  const TemporaryDirectory directory;
  const fs::path real = directory / "real", simulated = directory / "virtual";
  const Outcome outcome = train(library, ranks, arguments, real);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const bool is_librarys = contains(arguments, "--allreduce mpi");
  const auto expected =
      training::run((ranks == 1 ? arguments.substr(0, arguments.find(" --allreduce"))
                                : arguments + " --ranks " + std::to_string(ranks)) +
                        (is_librarys ? " --allreduce-order " + (real / "manifest.json").string() : ""),
                    simulated);
  INFO(expected.output);
  REQUIRE(expected.exit_code == 0);
  training::check_equal(training::results_of(real), training::results_of(simulated));
  const nlohmann::json settings = settings_of(real);
  CHECK(settings.at("mpi.vendor") == (library.name == "mpich" ? "MPICH" : "Open MPI"));
  CHECK(contains(settings.at("mpi.version"), settings.at("mpi.vendor")));
  CHECK(settings.at("mpi.ranks") == ranks);
  CHECK(manifest_of(real, "options").at("ranks") == ranks);
  CHECK(contains(settings.at("mpi.hosts"), " " + std::to_string(ranks)));
}

/// One line, and the exit code of the launcher, or of its processes where it has an exit code of its own.
void check_end(const Outcome& outcome, int exit_code, const std::string& part) {
  INFO(outcome.output);
  CHECK(outcome.exit_code == exit_code);
  const std::vector<std::string> lines = lines_of_training(outcome.output);
  REQUIRE(lines.size() == 1);
  INFO("expected: ", part);
  CHECK(contains(lines.front(), part));
}

/// A run that goes wrong within ten seconds of what is planted; the steps before take as long again.
Outcome planted(const Library& library, const std::string& what, const std::string& arguments,
                const fs::path& out, int ranks = 3) {
  const mpi::Tree tree(mpi::training, HALFLAB_PLANTED_MODULES);
  Library planting = library;
  planting.launcher = "HALFLAB_PLANTED='" + what + "' " + planting.launcher;
  return launch(planting, processes(ranks, tree.program(), with_mpi(arguments, out)), 20);
}

Outcome planted(const Library& library, const std::string& what, const std::string& arguments) {
  const TemporaryDirectory directory;
  return planted(library, what, arguments, directory / "out");
}

/// Four at a time: a launcher mostly waits.
void check_side_by_side(const std::vector<std::function<void()>>& checks) {
  std::counting_semaphore<4> places(4);
  std::vector<std::future<void>> checked;
  for (const std::function<void()>& check : checks)
    checked.push_back(std::async(std::launch::async, [&] {
      places.acquire();
      try {
        check();
      } catch (...) {
        places.release();
        throw;
      }
      places.release();
    }));
  for (std::future<void>& each : checked) each.get();
}

void check_bad_input(const Library& library) {
  const TemporaryDirectory directory;
  std::atomic<int> runs = 0;
  const auto own_out = [&] { return directory / std::to_string(++runs); };
  const auto alone = [&](int ranks, const std::string& arguments) {
    return train(library, ranks, arguments, own_out());
  };
  const auto unlike = [&](const std::string& first, const std::string& second) {
    const fs::path out = own_out();
    return launch(library, processes(1, mpi::training, with_mpi(first, out)) + " : " +
                               processes(2, mpi::training, with_mpi(second, out)));
  };
  const std::string other = library.name == "mpich" ? "openmpi" : "mpich";
  const mpi::Tree nothing(mpi::training, directory.path());
  const mpi::Tree unavailable(mpi::training, HALFLAB_UNAVAILABLE_MODULES);
  check_side_by_side({
      [&] {
        check_end(alone(3, "--batch 2"), 2, "--batch: 2 examples are not the same number on each of 3 ranks");
      },
      [&] { check_end(alone(2, "--bach 2"), 2, "unknown option --bach"); },
      [&] { check_end(alone(2, "--sweep"), 2, "--mpi: is given with --sweep"); },
      [&] { check_end(alone(2, "--ranks 3"), 2, "--ranks: 3 are given, and 2 processes were started"); },
      [&] { check_end(alone(2, "--ranks 1"), 2, "--ranks: 1 are given, and 2 processes were started"); },
      [&] {
        const Outcome outcome = unlike("--batch 12", "--batch 24");
        check_end(outcome, 2, "rank 1 on");
        check_end(outcome, 2, "has batch '24', and rank 0 has '12'");
      },
      [&] {
        check_end(unlike("--batch 12 --ranks 3", "--batch 12 --ranks 3 --record"), 2,
                  "has record every '10', and rank 0 has none");
      },
      [&] {
        check_end(unlike("--batch 12 --checkpoint-every 3", "--batch 12"), 2,
                  "has checkpoint every '100', and rank 0 has '3'");
      },
      [&] {
        check_end(unlike("--batch 12 --mpi-timeout 60", "--batch 12"), 2, "has seconds of silence '0'");
      },
      [&] {
        check_end(unlike("--batch 12 --compare-every 3", "--batch 12"), 2, "has weights compared every '10'");
      },
      [&] { check_end(unlike("--batch 12", "--bach 12"), 2, "unknown option --bach"); },
      [&] { check_end(unlike("--batch 12", "--help"), 2, "has nothing to train"); },
      [&] {
        check_end(launch(library, processes(1, mpi::training, with_mpi("--batch 12", "/proc/nowhere")) +
                                      " : " + processes(1, mpi::training, with_mpi("--batch 12", own_out()))),
                  2, "/proc/nowhere");
      },
      [&] {
        check_end(launch(library, processes(2, mpi::training, "--batch 12 --out " + own_out().string())), 2,
                  "2 processes were started by mpirun; must come with --mpi");
      },
      [&] { check_end(alone(2, "--mpi-library " + other), 2, "--mpi-library: " + other + " is given"); },
      [&] { check_end(alone(2, "--mpi-library lam"), 2, "must be openmpi or mpich"); },
      [&] {
        check_end(launch(library, processes(2, nothing.program(), with_mpi("--batch 12", own_out()))), 2,
                  "there is no '");
      },
      [&] {
        check_end(launch(library, processes(2, unavailable.program(), with_mpi("--batch 12", own_out()))), 2,
                  "was not found when this Halflab was configured");
      },
  });
  CHECK(fs::is_empty(directory.path()));
}

}  // namespace

TEST_CASE("mpi: every number of ranks has the files of virtual ranks, by a ring in FP16") {
  for (const Library& library : mpi::libraries()) {
    for (const int ranks : {1, 2, 3, 4, 7, 8})
      check_virtual(library, ranks, small + "--batch 168 --allreduce ring:precision=fp16");
  }
}

TEST_CASE(
    "mpi: shared statistics, delayed scales, twins of scalers and micro-batches are those of virtual ranks") {
  for (const Library& library : mpi::libraries()) {
    const std::string tree = "--steps 6 --twin-every 3 --allreduce binary_tree:division=after ";
    check_virtual(library, 2, tree + "--model cnn:channels=2 --batch 8 --sync-batch-norm");
    check_virtual(library, 2,
                  tree + "--model cnn:channels=2 --batch 8 --found-inf before --accumulation-steps 2");
    check_virtual(library, 3, tree + "--model mlp:hidden1=16 --batch 12 --policy fp8");
    check_virtual(library, 3, tree + "--model mlp:hidden1=16 --batch 12 --scalers adaptive");
  }
}

TEST_CASE("mpi: the library's own order is found at start, named in the manifest and replayed bit for bit") {
  for (const Library& library : mpi::libraries()) {
    for (const int ranks : {3, 8})
      check_virtual(library, ranks, small + "--batch 24 --allreduce mpi:precision=fp16:division=after");
    check_virtual(library, 4, small + "--batch 24 --allreduce mpi:precision=fp32");
  }
}

TEST_CASE("mpi: each algorithm of Open MPI is found, and the bits are those of its order") {
  for (const Library& library : mpi::libraries()) {
    if (library.name != "openmpi") continue;
    const std::string descending = "direct_descending", pairs = "recursive_doubling, rabenseifner";
    const std::vector<std::string> names{"", descending, descending, pairs, "ring", "ring", pairs};
    for (std::size_t algorithm = 1; algorithm <= 6; ++algorithm) {
      Library forced = library;
      forced.launcher += "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm " +
                         std::to_string(algorithm) + " ";
      INFO("algorithm ", algorithm);
      const TemporaryDirectory directory;
      const std::string arguments = "--model mlp:hidden1=16 --steps 2 --batch 16 --allreduce mpi";
      const Outcome outcome = train(forced, 4, arguments, directory / "real");
      INFO(outcome.output);
      REQUIRE(outcome.exit_code == 0);
      CHECK(settings_of(directory / "real").at("mpi.algorithm") == names[algorithm]);
      REQUIRE(training::run(
                  arguments + " --ranks 4 --allreduce-order " + (directory / "real/manifest.json").string(),
                  directory / "virtual")
                  .exit_code == 0);
      training::check_equal(training::results_of(directory / "real"),
                            training::results_of(directory / "virtual"));
    }
  }
}

TEST_CASE("mpi: memory falls with the number of ranks") {
  for (const Library& library : mpi::libraries()) {
    const TemporaryDirectory directory;
    const std::string arguments = "--model cnn:channels=4 --batch 128 --steps 2 --twin-every 0";
    const auto peak_with = [&](int ranks) {
      const fs::path out = directory / std::to_string(ranks);
      REQUIRE(train(library, ranks, arguments, out).exit_code == 0);
      return training::json_of(out / "summary.json").at("peak_tensor_bytes_activations").get<double>();
    };
    CHECK(peak_with(4) < 0.3 * peak_with(1));
  }
}

TEST_CASE("mpi: a rank that is killed ends all within ten seconds, with one line that names rank and step") {
  for (const Library& library : mpi::libraries()) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome =
        planted(library, "kill 40",
                "--model mlp:hidden1=16 --batch 12 --steps 100000 --allreduce ring:precision=fp16");
    INFO(outcome.output);
    CHECK(std::chrono::steady_clock::now() - start < 18s);
    CHECK(outcome.exit_code != 0);
    CHECK(outcome.exit_code != 124);
    const std::vector<std::string> lines = lines_of_training(outcome.output);
    REQUIRE(lines.size() == 1);
    CHECK(contains(lines.front(), "rank 1 was ended by signal 9 (Killed) in step 9"));
  }
}

TEST_CASE("mpi: a rank that is stopped is told of, and ends all once it has been for as long as is allowed") {
  for (const Library& library : mpi::libraries()) {
    const Outcome outcome = planted(library, "stop 40",
                                    "--model mlp:hidden1=16 --batch 12 --steps 100000 --mpi-timeout 3 "
                                    "--allreduce ring:precision=fp16");
    INFO(outcome.output);
    CHECK(outcome.exit_code != 0);
    CHECK(outcome.exit_code != 124);
    const std::vector<std::string> lines = lines_of_training(outcome.output);
    REQUIRE(lines.size() == 2);
    CHECK(contains(lines[0], "rank 1 is stopped by signal 19 (Stopped (signal)) in step 9"));
    CHECK(contains(lines[1], "rank 1 has been stopped for 3 seconds, as --mpi-timeout allows, in step 9"));
  }
}

TEST_CASE("mpi: where a rank hangs in the library, the first ends all in twice the time that is allowed") {
  for (const Library& library : mpi::libraries())
    check_end(planted(library, "hang 40",
                      "--model mlp:hidden1=16 --batch 12 --steps 100000 --mpi-timeout 3 "
                      "--allreduce ring:precision=fp16"),
              library.name == "mpich" ? 9 : 1,
              "rank 0 has waited for the others for 6 seconds, as --mpi-timeout allows, in step 9");
}

TEST_CASE(
    "mpi: a rank that would skip alone, or has other weights, ends all with one line that names rank and "
    "step") {
  const std::string arguments =
      "--model mlp:hidden1=16 --batch 12 --steps 100000 --allreduce ring:precision=fp16";
  for (const Library& library : mpi::libraries()) {
    check_end(planted(library, "inf 40", arguments), 1,
              "rank 1 alone would skip what the others apply in step 9");
    check_end(planted(library, "two 24", arguments), 1,
              "rank 1 has other gradients than the others in step 5, after the all-reduce");
    check_end(planted(library, "drift 24", arguments + " --compare-every 4"), 1,
              "has other weights than the others after step 7; after step 3 all had the same");
  }
}

TEST_CASE("mpi: weights that one rank alone has are in no checkpoint, and no run is finished with them") {
  const std::string arguments =
      "--model mlp:hidden1=16 --batch 12 --compare-every 10 --allreduce ring:precision=fp16 ";
  for (const Library& library : mpi::libraries()) {
    const TemporaryDirectory directory;
    const fs::path out = directory / "out";
    check_end(planted(library, "drift 52", arguments + "--steps 20 --checkpoint-every 5", out), 1,
              "has other weights than the others after step 14; after step 9 all had the same");
    CHECK(fs::exists(out / "run/checkpoint-10"));
    CHECK(!fs::exists(out / "run/checkpoint-15"));
    check_end(planted(library, "drift 48", arguments + "--steps 12 --checkpoint-every 0"), 1,
              "has other weights than the others after step 11; after step 9 all had the same");
  }
}

TEST_CASE("mpi: what a run goes on from is whole also where it is longer than a library counts") {
  const std::string arguments =
      "--model mlp:hidden1=1:hidden2=1 --batch 2 --steps 4 --twin-every 0 --checkpoint-every 2 ";
  for (const Library& library : mpi::libraries()) {
    const mpi::Tree cutting(mpi::training, HALFLAB_CUTTING_MODULES);
    const TemporaryDirectory directory;
    const fs::path out = directory / "out", whole = directory / "whole";
    CHECK(planted(library, "fail 7", arguments, out, 2).exit_code == 2);
    const Outcome again = launch(library, processes(2, cutting.program(), with_mpi(arguments, out)));
    INFO(again.output);
    REQUIRE(again.exit_code == 0);
    CHECK(settings_of(out).at("mpi.vendor") == "cutting");
    CHECK(settings_of(out / "run").at("resumed_at_step") == 2);
    REQUIRE(training::run(arguments + "--ranks 2", whole).exit_code == 0);
    training::check_equal(training::results_of(out), training::results_of(whole));
  }
}

TEST_CASE("mpi: --threads is divided among the processes of a host") {
  for (const Library& library : mpi::libraries()) {
    const TemporaryDirectory directory;
    for (const auto& [threads, each] : {std::pair(5, 2), std::pair(1, 1)}) {
      const fs::path out = directory / std::to_string(threads);
      REQUIRE(train(library, 2,
                    "--model mlp:hidden1=8 --batch 4 --steps 1 --threads " + std::to_string(threads), out)
                  .exit_code == 0);
      CHECK(training::json_of(out / "run/manifest.json").at("threads") == each);
    }
  }
}

TEST_CASE("mpi: training itself links no MPI library") {
  const Outcome linked = programs::run_command("ldd " + mpi::training);
  REQUIRE(linked.exit_code == 0);
  CHECK(contains(linked.output, "libc.so"));
  for (const char* const part : {"libmpi", "libopen-", "libpmi"}) CHECK(!contains(linked.output, part));
}

TEST_CASE("mpi: a rank whose host lacks the library ends all with a line that names the host") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const mpi::Tree nothing(mpi::training, directory.path());
  char host[256] = "";
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  for (const Library& library : mpi::libraries()) {
    check_end(launch(library, processes(1, mpi::training, with_mpi("--batch 12", out)) + " : " +
                                  processes(1, nothing.program(), with_mpi("--batch 12", out))),
              2, "--mpi: " + library.name + " cannot be loaded on " + host + " (there is no '");
    CHECK(!fs::exists(out));
  }
}

TEST_CASE("mpi: a rank without --mpi ends all with a line, whichever rank it is") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  for (const Library& library : mpi::libraries()) {
    const std::string with = processes(1, mpi::training, with_mpi("--batch 12", out));
    const std::string without =
        processes(1, mpi::training, "--quiet --quick --model mlp:hidden1=16 --out " + out.string());
    for (const std::string& command : {with + " : " + without, without + " : " + with})
      check_end(launch(library, command), 2, "2 processes were started by mpirun; must come with --mpi");
    CHECK(!fs::exists(out));
  }
}

TEST_CASE("mpi: where one rank cannot begin, each ends with exit code 2") {
  const TemporaryDirectory directory;
  for (const Library& library : mpi::libraries()) {
    const mpi::ExitCodes codes(mpi::training);
    const auto rank = [&](const std::string& arguments) {
      return processes(1, codes.script(), with_mpi(arguments, directory / "out"));
    };
    const Outcome outcome =
        launch(library, rank("--batch 12") + " : " + rank("--bach 12") + " : " + rank("--batch 12"));
    check_end(outcome, 2, "unknown option --bach");
    CHECK(codes.of(3) == "2 2 2");
  }
}

TEST_CASE("mpi: what fails on one rank ends all with its line") {
  for (const Library& library : mpi::libraries()) {
    const Outcome outcome =
        planted(library, "fail 40",
                "--model mlp:hidden1=16 --batch 12 --steps 100000 --allreduce ring:precision=fp16");
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    const std::vector<std::string> lines = lines_of_training(outcome.output);
    REQUIRE(lines.size() == 1);
    CHECK(contains(lines.front(), "in step 9: "));
    CHECK(contains(lines.front(), "exchanging gradients failed in "));
  }
}

TEST_CASE("mpi: a wrong operation is found before the first step") {
  for (const Library& library : mpi::libraries())
    check_end(planted(library, "sum 0", "--model mlp:hidden1=16 --batch 12 --steps 3 --allreduce mpi"), 2,
              "the MPI library's all-reduce is no sum in binary16");
}

TEST_CASE("mpi: bad input is one line and exit code 2 on all ranks, and nobody waits") {
  for (const Library& library : mpi::libraries()) check_bad_input(library);
}

TEST_CASE("mpi: other data of the same name are found by their checksum") {
  const TemporaryDirectory directory;
  for (const std::string side : {"a", "b"}) {
    fs::create_directories(directory / side);
    std::ofstream text(directory / side / "text.txt");
    for (int i = 0; i < 3000; ++i) text << (side == "a" ? "the cat " : "the dog ") << i % 7 << ' ';
  }
  const fs::path place = directory / "text.txt";
  const std::string arguments =
      with_mpi("--model lstm:layers=1:width=8 --batch 4 --steps 2 --data text.txt", directory / "out");
  const auto in = [&](const std::string& side) { return "-wdir " + (directory / side).string() + " "; };
  for (const Library& library : mpi::libraries())
    check_end(launch(library, in("a") + processes(1, mpi::training, arguments) + " : " + in("b") +
                                  processes(1, mpi::training, arguments)),
              2, "has data 'text.txt, checksum");
}

TEST_CASE("mpi: without a launcher there is one line") {
  const programs::Outcome outcome = programs::run("training --mpi --model mlp");
  CHECK(outcome.exit_code == 2);
  CHECK(contains(outcome.output,
                 "--mpi: no launcher has started this process; must be started as 'mpirun -np 4"));
}

TEST_CASE("mpi: a killed run goes on with as many ranks to the same bytes, and with others only if asked") {
  const std::string arguments =
      "--model mlp:hidden1=16 --batch 12 --steps 40 --checkpoint-every 4 --allreduce ring:precision=fp16";
  for (const Library& library : mpi::libraries()) {
    const TemporaryDirectory directory;
    const fs::path out = directory / "out", whole = directory / "whole";
    const mpi::Tree tree(mpi::training, HALFLAB_PLANTED_MODULES);
    Library killing = library;
    killing.launcher = "HALFLAB_PLANTED='kill 100' " + killing.launcher;
    CHECK(launch(killing, processes(3, tree.program(), with_mpi(arguments, out))).exit_code != 0);
    REQUIRE(fs::exists(out / "run/checkpoint-24"));
    fs::copy(out, directory / "other", fs::copy_options::recursive);
    CHECK(train(library, 3, arguments, out).exit_code == 0);
    CHECK(settings_of(out / "run").at("resumed_at_step") == 24);
    REQUIRE(training::run(arguments + " --ranks 3", whole).exit_code == 0);
    training::check_equal(training::results_of(out), training::results_of(whole));
    const Outcome refused = train(library, 2, arguments, directory / "other");
    check_end(refused, 2,
              "a run on 3 ranks, and this one has 2 ranks; allowed: as many, --resume-with-other");
    const Outcome asked = train(library, 2, arguments + " --resume-with-other-ranks", directory / "other");
    INFO(asked.output);
    CHECK(asked.exit_code == 0);
    CHECK(contains(asked.output, "the run goes on from step 24 with other ranks; its bits are"));
    CHECK(contains(asked.output, "ran to step 24 on 3 ranks, then on 2: its bits are those of no"));
  }
}
