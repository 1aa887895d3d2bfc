/// `training --mpi` as tasks of a Slurm job, by the batch script of docs/scale_out.md.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/experiments/slurm_cluster.h"
#include "tests/experiments/training/mpi/launches.h"
#include "tests/experiments/training_process.h"

namespace {

namespace fs = std::filesystem;

void replace(std::string& text, const std::string& old, const std::string& by) {
  const std::size_t place = text.find(old);
  INFO("in the page's script: ", old);
  REQUIRE(place != std::string::npos);
  text.replace(place, old.size(), by);
}

const std::string run = "--model mlp:hidden1=16 --batch 12 --steps 8 --allreduce ring:precision=fp16";

/// The page's, for two ranks and a run of a second, its command for this library.
std::string script_for(const std::string& library) {
  std::string script = test::content_of(fs::path(HALFLAB_SOURCE_DIRECTORY) / "docs/scale_out.md");
  script.erase(0, script.find("#!/bin/sh\n"));
  script.erase(script.find("```"));
  while (test::contains(script, "\n ")) replace(script, "\n ", "\n");  // it stands in a list
  replace(script, "--ntasks=8", "--ntasks=2");
  replace(script, "--model cnn", run);
  if (library == "openmpi") {
    replace(script, "srun --mpi=pmi2", "srun --mpi=pmix");
    replace(script, "--mpi-library mpich", "--mpi-library openmpi");
  }
  return script;
}

/// Whether there is nothing to test with; says why.
bool must_skip() {
  const std::string reason = slurm::why_not();
  if (!reason.empty()) MESSAGE("skipped: ", reason);
  return !reason.empty();
}

}  // namespace

TEST_CASE("slurm: ranks that the page's batch script starts have the files of virtual ranks") {
  if (must_skip()) return;
  const slurm::Cluster cluster;
  for (const mpi::Library& library : mpi::libraries()) {
    INFO(library.name);
    const test::TemporaryDirectory folder;
    fs::create_directory(folder / "build");
    fs::create_directory_symlink(HALFLAB_BINARY_DIRECTORY, folder / "build" / "bin");
    std::ofstream(folder / "job.sh") << script_for(library.name);
    // PMIx takes two nodes of one host for one that it knows already.
    const std::string nodes = library.name == "openmpi" ? "--nodes 1 --overcommit " : "";
    const mpi::Outcome job = programs::run_command("cd '" + folder.path().string() +
                                                   "' && timeout 60 sbatch --wait --output job.log " + nodes +
                                                   "job.sh; code=$?; cat job.log; exit $code");
    INFO(job.output);
    REQUIRE(job.exit_code == 0);
    CHECK(training::json_of(folder / "results/ranks/manifest.json").at("settings").at("mpi.ranks") == 2);
    REQUIRE(training::run(run + " --ranks 2", folder / "virtual").exit_code == 0);
    training::check_equal(training::results_of(folder / "results/ranks"),
                          training::results_of(folder / "virtual"));
  }
}
