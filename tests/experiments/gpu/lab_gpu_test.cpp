/// `./lab gpu` with programs in the place of its own, which end as they may on a machine with a GPU.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

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

/// A checkout of what `./lab gpu` needs. gpu_status is the real one but for the device and its cuBLAS.
struct Checkout {
  TemporaryDirectory directory;
  fs::path programs = directory / "build-gpu/programs";
  fs::path out = directory / "out";

  Checkout() {
    const fs::path source = HALFLAB_SOURCE_DIRECTORY;
    fs::create_directories(programs);
    for (const fs::path file : {"lab", "experiments/gpu/run.sh", "experiments/training/slurm.sh"}) {
      fs::create_directories(directory / file.parent_path());
      fs::copy_file(source / file, directory / file);
    }
    gpu_status("echo cuBLAS can be used; exit");
    for (const char* name : {"gpu_tests", "gpu_throughput", "explain_gemm"}) program(name, "echo right\n");
    program("validate_gpu", "echo right\n");
  }

  /// `cublas` is what it does when it is asked for it.
  void gpu_status(const std::string& cublas) const {
    program("gpu_status",
            "[ \"$1\" != --device ] || { echo '{\"name\": \"GPU One\", \"driver\": \"580.1\", "
            "\"uuid\": \"GPU-1\"}' >\"$2\"; echo GPU One; exit; }\n"
            "[ \"$1\" != --cublas ] || { " +
                cublas +
                "; }\n"
                "exec " HALFLAB_BINARY_DIRECTORY "/gpu_status \"$@\"\n");
  }

  /// `out` is where it is told to write.
  void program(const std::string& name, const std::string& body) const {
    std::ofstream(programs / name) << "#!/bin/bash\n"
                                      "all=\"$*\"; out=\"${all##*--out }\"; out=\"${out%% *}\"\n"
                                   << body;
    fs::permissions(programs / name, fs::perms::owner_all);
  }

  Outcome lab(const std::string& arguments = "", const std::string& environment = "") const {
    return programs::run_command(environment + ' ' + (directory / "lab").string() + " gpu --out " +
                                 out.string() + ' ' + arguments);
  }
};

/// A run that has its shards and then ends so, but makes its tables without a budget.
std::string ends_with(const std::string& end) {
  return "mkdir -p $out; [[ \"$*\" != *'--budget 0' ]] || { echo '{}' >$out/manifest.json; echo tables "
         ">$out/verdict.txt; echo tables; exit; }\n"
         "echo shards >>$out/shards.bin\n" +
         end + '\n';
}

}  // namespace

TEST_CASE("lab gpu: what runs becomes one record, and what fails is named with what it said") {
  const Checkout checkout;
  checkout.program("gpu_throughput",
                   "echo 'gpu_throughput: check failed: 1 of 9 rows is wrong'; echo a table; exit 1\n");
  const Outcome outcome = checkout.lab();
  INFO(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.output, "lab: on GPU One\n"));
  CHECK(contains(outcome.output, "s, exit code 1: check failed: 1 of 9 rows is wrong\n"));
  CHECK(contains(outcome.output, "lab: gpu: not all went well: gpu_throughput\n"));
  const std::string verdict = content_of(checkout.out / "verdict.txt");
  for (const char* line : {"On GPU One, driver 580.1.", "gpu_tests: done.", "validate_gpu: done.",
                           "gpu_throughput: a check failed.", "explain_gemm: done."})
    CHECK_MESSAGE(contains(verdict, line), line);
  CHECK(test::contents_of(checkout.out).size() <= 8);
  checkout.program("gpu_throughput", "echo \"right, in $out\"\n");
  CHECK(checkout.lab().exit_code == 0);
  CHECK(contains(content_of(checkout.out / "verdict.txt"),
                 "right, in gpu_throughput\n"));  // no place of the machine
}

TEST_CASE("lab gpu: the programs find cuBLAS where CUDA or a Python package has it") {
  const Checkout checkout;
  checkout.program("explain_gemm", "echo \"looks in $LD_LIBRARY_PATH\"\n");
  const fs::path cuda = checkout.directory / "cuda", packages = checkout.directory / "packages";
  for (const fs::path& folder : {cuda / "lib64", packages / "nvidia/cu13/lib"}) {
    fs::create_directories(folder);
    std::ofstream(folder / "libcublas.so.13") << "";
  }
  REQUIRE(checkout.lab("", "env CUDA_PATH=" + cuda.string()).exit_code == 0);
  CHECK(contains(content_of(checkout.out / "verdict.txt"), "looks in " + (cuda / "lib64").string() + '\n'));
  if (fs::exists("/usr/local/cuda/lib64/libcublas.so")) return;
  REQUIRE(checkout.lab("", "env PYTHONPATH=" + packages.string() + " LD_LIBRARY_PATH=/first").exit_code == 0);
  CHECK(contains(content_of(checkout.out / "verdict.txt"),
                 "looks in /first:" + (packages / "nvidia/cu13/lib").string() + '\n'));
}

TEST_CASE("lab gpu: without cuBLAS what needs it is not run, which is no failure") {
  const Checkout checkout;
  checkout.program("explain_gemm", "echo 'explain_gemm: --cublas: cuBLAS cannot be used'; exit 2\n");
  checkout.gpu_status("echo 'cuBLAS cannot be used: no library libcublas.so can be loaded'; exit 1");
  const Outcome outcome = checkout.lab();
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  const std::string reason =
      "explain_gemm: not run: cuBLAS cannot be used: no library libcublas.so can be loaded "
      "(looked for by the dynamic loader, in CUDA_PATH, ";
  CHECK(contains(outcome.output, "lab: explain_gemm ... not run: cuBLAS cannot be used: "));
  const std::string verdict = content_of(checkout.out / "verdict.txt");
  CHECK(contains(verdict, reason));
  CHECK(contains(verdict, "gpu_throughput: done."));
  CHECK(contains(content_of(checkout.out / "summary.json"), "\"explain_gemm.not_run\": \"cuBLAS cannot"));

  // What else goes wrong the program itself tells.
  checkout.gpu_status("exit 2");
  CHECK(checkout.lab().exit_code == 1);
  CHECK(contains(content_of(checkout.out / "verdict.txt"), "explain_gemm: exit code 2."));
}

TEST_CASE("lab gpu: gpu_status says whether cuBLAS can be used") {
  const TemporaryDirectory directory;
  const auto asked = [&] {
    return programs::run("gpu_status --cublas", "env LD_LIBRARY_PATH=" + directory.path().string() + ' ');
  };
  // The name that is tried first is here, but is no library.
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
    std::ofstream(directory / name) << "no library";
  const Outcome absent = asked();
  CHECK(absent.exit_code == 1);
  CHECK(absent.output ==
        "cuBLAS cannot be used: no library libcublas.so.13, libcublas.so.12, libcublas.so can be loaded\n");
  for (const char* name : {"libcublas.so.13", "libcublasLt.so.13"}) {
    fs::remove(directory / name);
    fs::create_symlink(HALFLAB_FAKE_CUBLAS, directory / name);
  }
  const Outcome present = asked();
  INFO(present.output);
  CHECK(present.exit_code == 0);
  CHECK(present.output == "cuBLAS can be used\n");
}

TEST_CASE("lab gpu: of a program that is ended the tables of its shards are made") {
  const Checkout checkout;
  checkout.program("validate_gpu", ends_with("kill -KILL $$"));
  const Outcome outcome = checkout.lab();
  INFO(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.output, "s, ended by its time limit\n"));
  CHECK(content_of(checkout.out / "shards.bin") == "shards\n");
  const std::string verdict = content_of(checkout.out / "verdict.txt");
  CHECK(contains(verdict, "validate_gpu: ended by its time limit.\n\ntables"));
  CHECK(contains(verdict, "explain_gemm: done."));
}

TEST_CASE("lab gpu: --fma48 goes on from its results, which only what was done replaces") {
  const Checkout checkout;
  checkout.program("validate_gpu", ends_with("echo '{}' >$out/manifest.json"));
  REQUIRE(checkout.lab("--fma48 --budget 1").exit_code == 0);
  CHECK(content_of(checkout.out / "shards.bin") == "shards\n");
  const auto before = test::contents_of(checkout.out);

  checkout.program("validate_gpu", "echo 'validate_gpu: of another revision'; exit 2\n");
  const Outcome refused = checkout.lab("--fma48");
  INFO(refused.output);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.output, "exit code 2: of another revision\n"));
  CHECK((test::contents_of(checkout.out) == before));

  checkout.program("validate_gpu", ends_with("exit 2"));
  CHECK(checkout.lab("--fma48").exit_code == 1);
  CHECK(content_of(checkout.out / "shards.bin") == "shards\nshards\n");
  CHECK(contains(content_of(checkout.out / "verdict.txt"), "tables"));
}

TEST_CASE("lab gpu: without a device, programs or a folder to write it says so in one line") {
  const Checkout checkout;
  const auto refuses = [&](const std::string& must_say, const std::string& arguments = "") {
    const Outcome outcome = checkout.lab(arguments);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, must_say));
  };
  refuses("lab: gpu: --budget: 'soon' must be a number of seconds", "--budget soon");
  refuses("lab: gpu: --out: '/dev/null/out' cannot be made", "--out /dev/null/out");
  checkout.program("gpu_status", "echo 'gpu_status: no CUDA device: none was found' >&2; exit 2\n");
  const Outcome outcome = checkout.lab();
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.output == "lab: gpu: no CUDA device: none was found\n");
  CHECK(!fs::exists(checkout.out));
}
