/// `mpi_scaling`, which measures what real ranks cost.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/training/mpi/launches.h"
#include "tests/experiments/training_process.h"

namespace {

const std::string program = HALFLAB_BINARY_DIRECTORY "/mpi_scaling";

/// docs/scale_out.md: 2 (N-1) a + (N-1)/N n (4 b + c) for a ring of n halves over N ranks.
double ring_seconds(const nlohmann::json& found, double ranks) {
  const double a = found.at("time_latency_s"), b = 1 / double(found.at("rate.bytes")),
               c = 1 / double(found.at("rate.halves_added")), n = found.at("weights");
  return 2 * (ranks - 1) * a + (ranks - 1) / ranks * n * (4 * b + c);
}

/// The verdict of a short run by two ranks, whose results are then in `out`.
std::string measured(const mpi::Library& library, const std::string& options,
                     const std::filesystem::path& out) {
  const mpi::Outcome outcome =
      mpi::launch(library, mpi::processes(2, program, "--mpi --quick " + options + " --out " + out.string()));
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  return outcome.output;
}

}  // namespace

TEST_CASE("mpi scaling: ranks measure each part, and predictions follow from the parts") {
  for (const mpi::Library& library : mpi::libraries()) {
    INFO(library.name);
    const test::TemporaryDirectory directory;
    const std::filesystem::path out = directory / "out";
    const std::string verdict = measured(library, "--model mlp:hidden1=32:hidden2=16", out);
    CHECK(verdict.starts_with("2 ranks of 8 examples each make "));
    const nlohmann::json found = training::json_of(out / "summary.json");
    for (const auto& [name, value] : found.items()) {
      INFO(name, " ", value.dump());
      CHECK(value > 0);
    }
    const double step = found.at("time_step_alone_s");
    CHECK(double(found.at("ratio.examples")) * double(found.at("time_step_together_s")) ==
          doctest::Approx(step));
    for (const int ranks : {2, 16, 4096}) {
      INFO(ranks);
      CHECK(double(found.at("ratio.predicted_ring_" + std::to_string(ranks))) ==
            doctest::Approx(step / (step + ring_seconds(found, ranks))));
    }
    CHECK(training::json_of(out / "manifest.json").at("settings").at("mpi.hosts") != "");
  }
}

TEST_CASE("mpi scaling: of several rounds the examples per second have an interval") {
  for (const mpi::Library& library : mpi::libraries()) {
    INFO(library.name);
    const test::TemporaryDirectory directory;
    const std::filesystem::path out = directory / "out";
    const std::string verdict = measured(library, "--rounds 3 --model mlp:hidden1=16", out);
    const nlohmann::json found = training::json_of(out / "summary.json");
    CHECK(found.at("ratio.examples_lower") < found.at("ratio.examples"));
    CHECK(found.at("ratio.examples") < found.at("ratio.examples_upper"));
    CHECK(test::contains(verdict, " ± "));
  }
}

TEST_CASE("mpi scaling: a rank alone has nobody to exchange with") {
  for (const mpi::Library& library : mpi::libraries()) {
    INFO(library.name);
    const mpi::Outcome outcome = mpi::launch(library, mpi::processes(1, program, "--mpi --quick"));
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(test::contains(outcome.output, "there is nobody to exchange with"));
  }
}
