/// All-reduces over MPI, order by order, held to virtual ranks.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/experiments/training/mpi/launches.h"

namespace {

using mpi::Library;

const std::string grid = HALFLAB_ALL_REDUCE_GRID;

/// The table goes to the test's output.
void check_grid(const Library& library, int ranks, const std::string& arguments, int limit,
                const std::string& program = grid) {
  const mpi::Outcome outcome =
      mpi::launch(library, mpi::processes(ranks, program, library.name + " " + arguments), limit);
  MESSAGE(library.name, "\n", outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(test::contains(outcome.output, "equal"));
}

TEST_CASE("mpi grid: wrong arguments are one line with the usage, and --help is the usage") {
  const std::string program = grid + " ";
  const std::string usage = "mpirun -np 4 all_reduce_grid openmpi|mpich ELEMENTS,ELEMENTS... [--all]: ";
  const programs::Outcome help = programs::run_command(program + "--help");
  CHECK(help.exit_code == 0);
  CHECK(help.output.starts_with(usage));
  for (const char* wrong :
       {"", "openmpi", "lam 3", "openmpi x", "openmpi 3,0", "openmpi 3x", "mpich 3 --any", "openmpi 3"}) {
    INFO(wrong);
    const programs::Outcome outcome = programs::run_command(program + wrong);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.starts_with("all_reduce_grid: "));
    CHECK(test::contains(outcome.output, usage));
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
  }
}

TEST_CASE("mpi grid: processes that the launcher of another library has started are told, and not compared") {
  const std::vector<Library> libraries = mpi::libraries();
  for (const Library& library : libraries) {
    for (const Library& other : libraries) {
      if (other.name == library.name) continue;
      const mpi::Outcome outcome = mpi::launch(library, mpi::processes(2, grid, other.name + " 3"), 60);
      INFO(outcome.output);
      CHECK(outcome.exit_code != 0);
      CHECK(test::contains(outcome.output, "2 processes were started, of which " + other.name + " knows 1"));
      CHECK(!test::contains(outcome.output, "equal"));
    }
  }
}

#ifdef HALFLAB_FULL_GRID

TEST_CASE("mpi grid: every order, precision and division, of all numbers of ranks and many of numbers") {
  for (const Library& library : mpi::libraries()) {
    for (const int ranks : {1, 2, 3, 4, 7, 8})
      check_grid(library, ranks, "1,2,5,7,8,9,100,1000,65537 --all", 1200);
  }
}

TEST_CASE("mpi grid: every algorithm of Open MPI") {
  for (const Library& library : mpi::libraries()) {
    if (library.name != "openmpi") continue;
    for (int algorithm = 1; algorithm <= 6; ++algorithm) {
      Library forced = library;
      forced.launcher += "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm " +
                         std::to_string(algorithm) + " ";
      for (const int ranks : {2, 3, 4, 7, 8}) check_grid(forced, ranks, "1,3,100,65537,300001", 1200);
    }
  }
}

#else

TEST_CASE("mpi grid: messages longer than a library counts are cut without a trace") {
  const mpi::Tree cutting(grid, HALFLAB_CUTTING_MODULES);
  for (const Library& library : mpi::libraries())
    check_grid(library, 2, "6,7,8,14,15,29,100", 60, cutting.program());
}

TEST_CASE("mpi grid: every order and precision, with fewer numbers than ranks and none that divides") {
  for (const Library& library : mpi::libraries()) {
    check_grid(library, 3, "1,2,203", 60);
    check_grid(library, 7, "3,203", 60);
  }
}

#endif

}  // namespace
