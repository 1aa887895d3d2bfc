/// `./lab slurm` up to Slurm: the batch files that it writes, what it hands over, and what it refuses.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using programs::Outcome;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;

/// Six cells.
const std::string sweep = HALFLAB_BINARY_DIRECTORY "/training --sweep --policy fp32,amp,O2 --seeds 2";

/// A folder that the command is given in, with an sbatch in its folder bin.
struct Place {
  TemporaryDirectory directory;
  fs::path folder = directory / "with space, 50%";
  fs::path bin = directory / "bin";

  Place() {
    fs::create_directory(folder);
    fs::create_directory(bin);
  }
  void program(const std::string& name, const std::string& body) const {
    std::ofstream(bin / name) << "#!/bin/sh\n" << body;
    fs::permissions(bin / name, fs::perms::owner_all);
  }
  Outcome slurm(const std::string& arguments) const {
    return programs::run_command("cd '" + folder.string() + "' && PATH='" + bin.string() +
                                 "':\"$PATH\" '" HALFLAB_SOURCE_DIRECTORY "/lab' slurm " + arguments);
  }
  void refuses(const std::string& arguments, const std::string& must_say) const {
    const Outcome outcome = slurm(arguments);
    INFO(arguments, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.starts_with("lab: slurm: "));
    CHECK(contains(outcome.output, must_say));
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    CHECK(fs::is_empty(folder));
  }
};

}  // namespace

TEST_CASE("lab slurm: the batch files have all that Slurm needs, and their shells take them") {
  const Place place;
  const Outcome outcome =
      place.slurm("--shards 4 --time=1-2:30 --partition 'a b' --out 'my out' -- " + sweep + " --lr 0.25");
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const fs::path files = place.folder / "my out" / "slurm";
  const std::string shards = content_of(files / "shards.sbatch"), merge = content_of(files / "merge.sbatch");
  for (const std::string& file : {shards, merge}) {
    INFO(file);
    CHECK(file.starts_with("#!/usr/bin/env bash\n#SBATCH --"));
    for (const char* line : {"--requeue", "--open-mode=append", "--cpus-per-task=\"1\"", "--time=\"1-2:30\"",
                             "--partition=\"a b\""})
      CHECK(contains(file, std::string("#SBATCH ") + line + "\n"));
    CHECK(contains(file, "#SBATCH --chdir=\"" + place.folder.string() + "\"\n"));
    CHECK(contains(file, sweep + " --lr 0.25 --out 'my out' --"));
  }
  CHECK(contains(shards, "#SBATCH --array=1-4\n#SBATCH --signal=B:USR1@60\n"));
  CHECK(contains(shards, "with space, 50%%/my out/slurm/shard-%a.log\"\n"));
  CHECK(contains(shards, "--shard \"$SLURM_ARRAY_TASK_ID/4\""));
  CHECK(contains(merge, "--merge 'my out'"));
  CHECK(contains(outcome.output, "sbatch --dependency=afterok:$array --kill-on-invalid-dep=yes '" +
                                     (files / "merge.sbatch").string() + "'\n"));
  for (const char* file : {"shards.sbatch", "merge.sbatch"})
    CHECK(programs::run_command("bash -n '" + (files / file).string() + "'").exit_code == 0);
}

TEST_CASE("lab slurm: without --shards each cell is a job, and --out may be the command's own") {
  const Place place;
  REQUIRE(place.slurm("-- " + sweep + " --out own").exit_code == 0);
  CHECK(contains(content_of(place.folder / "own/slurm/shards.sbatch"), "#SBATCH --array=1-6\n"));
  CHECK(!contains(content_of(place.folder / "own/slurm/shards.sbatch"), "--time"));
}

TEST_CASE("lab slurm: what Slurm refuses it says in one line, and leaves no array without its merging job") {
  const Place place;
  const auto said = [&] {
    const Outcome outcome = place.slurm("--submit -- " + sweep + " --out out");
    CHECK(outcome.exit_code == 2);
    return outcome.output.substr(outcome.output.find('\n') + 1);
  };
  place.program("sbatch", "echo 'sbatch: error: Batch job submission failed: No such account' >&2; exit 1\n");
  const fs::path files = place.folder / "out" / "slurm";
  CHECK(said() == "lab: slurm: " + (files / "shards.sbatch").string() +
                      " was not submitted: Batch job submission failed: No such account\n");
  place.program(
      "sbatch",
      "case $* in *merge*) echo 'sbatch: error: the queue is full' >&2; exit 1;; esac; echo '17;cluster'\n");
  place.program("scancel", "echo \"$@\" >'" + (place.folder / "cancelled").string() + "'\n");
  CHECK(said() ==
        "lab: slurm: " + (files / "merge.sbatch").string() + " was not submitted: the queue is full\n");
  CHECK(content_of(place.folder / "cancelled") == "17\n");
  place.program("sbatch", "echo \"$@\" >>'" + (place.folder / "submitted").string() + "'; echo 17\n");
  CHECK(place.slurm("--submit -- " + sweep + " --out out").exit_code == 0);
  CHECK(content_of(place.folder / "submitted") ==
        "--parsable " + (files / "shards.sbatch").string() +
            "\n--parsable --dependency=afterok:17 --kill-on-invalid-dep=yes " +
            (files / "merge.sbatch").string() + "\n");
}

TEST_CASE("lab slurm: bad values are one line and exit code 2, and leave nothing") {
  const Place place;
  const std::pair<std::string, const char*> wrong[] = {
      {"", "no command is given; must be such as ./lab slurm "},
      {"--shards", "--shards needs a value"},
      {"--shards 0 -- " + sweep, "--shards: '0' is given; must be 1 to 6, the cells of the sweep"},
      {"--shards 7 -- " + sweep, "--shards: '7' is given; must be 1 to 6, the cells of the sweep"},
      {"--shards few -- " + sweep, "--shards: 'few' is given; must be 1 to 6"},
      {"--time 2 -- " + sweep, "--time: '2' is given; must be at least 3, which is minutes"},
      {"--time 0-0:2 -- " + sweep, "--time: '0-0:2' is given; must be at least 3"},
      {"--time soon -- " + sweep, "--time: 'soon' is given; must be such as 30, 1:30:00 or 2-12"},
      {"--time 1:2:3:4 -- " + sweep, "--time: '1:2:3:4' is given; must be such as"},
      {"--cpus-per-task 0 -- " + sweep, "--cpus-per-task: '0' is given; must be 1 to 9999"},
      {"--account 'a\"b' -- " + sweep, "--account: 'a\"b' is given; must be without quotes"},
      {"-- " + sweep + " --out 'a\"b'", "--out: 'a\"b' is given; must be without quotes"},
      {"--fast -- " + sweep, "unknown option '--fast'"},
      {"--out a -- " + sweep + " --out b", "--out: is given twice"},
      {"--out /dev/null/out -- " + sweep, "--out: '/dev/null/out/slurm' cannot be made"},
      {"-- /no/such/training --sweep",
       "'/no/such/training' is no program; must be such as build/bin/training, "
       "which ./lab build makes: run it first"},
      {"-- mpirun -np 4 " + sweep,
       "'mpirun' is in the command; must be a sweep, whose runs have a process each"},
      {"-- /usr/bin/srun " + sweep, "'srun' is in the command; must be a sweep"},
      {"-- " + sweep + " --mpi", "--mpi: is in the command; must be a sweep"},
      {"-- " + sweep + " --shard 1/2", "--shard: is in the command; must be left to the batch files"},
      {"-- " + sweep + " --merge x", "--merge: is in the command"},
      {"-- " + sweep + " --threads=2", "--threads: is in the command; must be --cpus-per-task, before it"},
      {"-- " HALFLAB_BINARY_DIRECTORY "/training", "training: --cells: there is one run alone"},
      {"-- " + sweep + " --model none", "training: --model: 'none' is not allowed"},
  };
  for (const auto& [arguments, must_say] : wrong) place.refuses(arguments, must_say);
  if (programs::run_command("command -v sbatch").exit_code != 0)
    place.refuses("--submit -- " + sweep, "--submit: there is no sbatch here; must be left out");
}
