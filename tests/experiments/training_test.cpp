/// What the binary `training` writes and says, as its users run it.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/data_directory.h"
#include "tests/experiments/programs.h"
#include "tests/experiments/training_process.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace fs = std::filesystem;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;
using training::json_of;
using training::Outcome;
using training::run;

TEST_CASE("training: the tables of a sweep hold every cell, and pairs of the same seed") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const Outcome outcome =
      run("--sweep --quick --model mlp:hidden1=32 --policy amp,fp32 --scalers none,dynamic --seeds 3 --batch "
          "16 --seed 5",
          out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.output, "95 % t-interval"));
  const nlohmann::json summary = json_of(out / "summary.json");
  const std::string amp = "mlp:hidden1=32.amp.none.", fp32 = "mlp:hidden1=32.fp32.none.";
  CHECK(summary.contains(fp32 + "final_accuracy_upper"));
  CHECK(!summary.contains(fp32 + "final_loss_difference"));

  std::map<std::string, std::vector<double>> losses;  // by policy and scaler, in the order of the seeds
  std::istringstream lines(content_of(out / "cells.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line.starts_with("model,policy,scaler,seed,final_loss,final_accuracy,"));
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = test::cells_of(line);
    losses[cells.at(1) + "." + cells.at(2)].push_back(std::stod(cells.at(4)));
    const fs::path cell = out / "cells" / ("mlp+hidden1=32-" + cells[1] + "-" + cells[2] + "-" + cells[3]);
    CHECK(json_of(cell / "summary.json").at("final_loss") == std::stod(cells[4]));
  }
  CHECK(losses.size() == 4);
  const std::vector<double>& a = losses.at("amp.none");
  const std::vector<double>& b = losses.at("fp32.none");
  REQUIRE(a.size() == 3);
  const double mean = (a[0] - b[0] + a[1] - b[1] + a[2] - b[2]) / 3;
  double square = 0;
  for (int i = 0; i < 3; ++i) square += (a[i] - b[i] - mean) * (a[i] - b[i] - mean);
  const double half_width = 4.302652729911275 * std::sqrt(square / 2 / 3);  // t with 2 degrees of freedom
  CHECK(summary.at(amp + "final_loss_difference") == doctest::Approx(mean).epsilon(1e-9));
  CHECK(summary.at(amp + "final_loss_difference_lower") == doctest::Approx(mean - half_width).epsilon(1e-9));
  CHECK(summary.at(amp + "final_loss_difference_upper") == doctest::Approx(mean + half_width).epsilon(1e-9));
  // In FP32 a power of two as a scale changes no bit.
  CHECK(losses.at("fp32.dynamic") == b);
  CHECK(summary.at("mlp:hidden1=32.fp32.dynamic.final_loss_difference") == 0);
}

TEST_CASE("training: what adaptive asked for is in summary and verdict, and the twin may be FP64") {
  const TemporaryDirectory directory;
  const std::string arguments = "--quick --model mlp:hidden1=8 --batch 4 --steps 12 --twin-every 4 ";
  const Outcome adaptive = run(arguments + "--scalers adaptive", directory / "adaptive");
  INFO(adaptive.output);
  REQUIRE(adaptive.exit_code == 0);
  const int twins = json_of(directory / "adaptive" / "summary.json").at("scaler_twins");
  CHECK(twins >= 1);
  CHECK(contains(adaptive.output, "amp with adaptive asked for " + std::to_string(twins) + " twin"));
  CHECK(contains(adaptive.output, "relative error"));

  const Outcome without = run(arguments + "--scalers static --twin-every 0", directory / "without");
  CHECK(!contains(without.output, "asked for"));
  CHECK(!contains(without.output, "relative error"));

  const auto relative_error = [&](const std::string& format) {
    const fs::path out = directory / format;
    REQUIRE(run(arguments + "--policy fp32 --twin-format " + format, out).exit_code == 0);
    CHECK(json_of(out / "run" / "manifest.json").at("options").at("twin format") == format);
    return json_of(out / "summary.json").at("mean_relative_error").get<double>();
  };
  CHECK(relative_error("fp32") == 0);  // run and twin are one
  const double error = relative_error("fp64");
  CHECK((error > 1e-9 && error < 1e-5));
}

TEST_CASE("training: a finished run of other options is replaced, and steps.csv has what every step did") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  REQUIRE(run("--quick --steps 12 --batch 16", out).exit_code == 0);
  REQUIRE(
      run("--quick --steps 8 --batch 16 --accumulation-steps 2 --clip-norm 0.5 --scalers static:scale=1e30",
          out)
          .exit_code == 0);
  std::istringstream lines(content_of(out / "steps.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line ==
        "model,policy,scaler,seed,step,loss,scale_log2,further_scales_log2,decision,learning_rate,"
        "gradient_norm,clip_coefficient,clipped_values,fraction_swallowed,fraction_flushed,norm_share_"
        "flushed,fraction_overflow,relative_"
        "error,cosine,skip_place,skip_operation,skip_layer,skip_consumer,skip_element,skip_value,"
        "skip_twin_exponent,skip_twin_finite");
  int steps = 0;
  while (std::getline(lines, line)) {
    INFO(line);
    CHECK(line.starts_with("mlp,amp,static:scale=1e30,0," + std::to_string(steps) + ","));
    CHECK(contains(line, ",skip,0,"));
    CHECK(contains(line, ",gradient,"));  // no S as large as this leaves one finite
    ++steps;
  }
  CHECK(steps == 8);
  CHECK(content_of(out / "run" / "steps.csv") == content_of(out / "steps.csv"));
  CHECK(fs::equivalent(out / "run" / "steps.csv", out / "steps.csv"));  // on the disk once
  const nlohmann::json summary = json_of(out / "summary.json");
  CHECK(summary.at("skipped_steps") == 8);
  // 4 bytes for each of 535,818 weights and for its momentum.
  CHECK(summary.at("peak_tensor_bytes_weights") == 4 * 535818);
  CHECK(summary.at("peak_tensor_bytes_optimizer_state") == 4 * 535818);
  CHECK(summary.at("peak_tensor_bytes") > 8 * 535818);
  const nlohmann::json options = json_of(out / "run" / "manifest.json").at("options");
  CHECK(options.at("accumulation steps") == "2");
  CHECK(options.at("norm limit") == "0.5");
}

/// A row of steps.csv has some 130 bytes; a single activation of this batch that stayed would be 50,000 a step.
TEST_CASE("training: the memory of a run does not grow with its steps") {
  constexpr std::int64_t bytes_of_a_step = 8192;
  const TemporaryDirectory directory;
  bool is_sanitized = false;
  const auto peak_of = [&](int steps) {
    const fs::path out = directory / std::to_string(steps);
    const std::string options = "--quick --model mlp --batch 16 --checkpoint-every 25 --steps ";
    REQUIRE(run(options + std::to_string(steps), out).exit_code == 0);
    const nlohmann::json manifest = json_of(out / "manifest.json");
    is_sanitized = contains(manifest.at("compiler_flags").get<std::string>(), "-fsanitize");
    const auto peak = manifest.at("peak_resident_bytes").get<std::int64_t>();
    CHECK(peak > json_of(out / "summary.json").at("peak_tensor_bytes").get<std::int64_t>());
    return peak;
  };
  const std::int64_t few = peak_of(50), many = peak_of(500);
  CAPTURE(few);
  CAPTURE(many);
  if (!is_sanitized) CHECK(many - few < (500 - 50) * bytes_of_a_step);  // sanitizers keep what is freed
}

TEST_CASE("training: a loss scaler for each of two losses, their scales side by side") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const std::string scaler = "apex_amp:num_losses=2:init_scale=32:growth_interval=1";
  REQUIRE(run("--quick --model ssd --steps 3 --batch 2 --scalers " + scaler, out).exit_code == 0);
  const std::string steps = content_of(out / "steps.csv");
  for (const char* scales : {",5,5,apply,", ",6,6,apply,", ",7,7,apply,"}) CHECK(contains(steps, scales));

  const Outcome refused = run("--quick --model mlp --scalers apex_amp:num_losses=2", out);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.output, "num_losses = 2 does not suit this model; allowed: 1, its only loss"));
}

TEST_CASE(
    "training: a character model is told against the unigram entropy, and options come from a TOML file "
    "too") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "run.toml") << "model = 'transformer:layers=1:width=16:heads=2:dropout=0.1'\n"
                                           "policy = ['fp32', 'bf16']\nsweep = true\nsteps = 6\nbatch = 4\n"
                                           "context = 8\ncheckpoint-every = 2\n";
  const fs::path out = directory / "out";
  const Outcome outcome = run("--config " + (directory / "run.toml").string(), out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.output, "unigram entropy"));
  const nlohmann::json summary = json_of(out / "summary.json");
  const std::string model = "transformer:layers=1:width=16:heads=2:dropout=0.1.";
  CHECK(summary.at(model + "unigram_entropy") > summary.at(model + "entropy_rate"));
  CHECK(summary.at(model + "fp32.none.steps") == 6);
  CHECK(summary.contains(model + "bf16.none.final_loss_difference"));
}

TEST_CASE("training: a network learns real images, when HALFLAB_DATA_DIR has them") {
  const auto data = test::data_folder("mnist-10k");
  if (!data) return;
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  REQUIRE(
      run("--sweep --model cnn --policy fp32,amp --twin-every 0 --data " + data->string(), out).exit_code ==
      0);
  for (const char* policy : {"fp32.none", "amp.dynamic"})
    CHECK(json_of(out / "summary.json").at("cnn." + std::string(policy) + ".final_accuracy") >= 0.95);
}

TEST_CASE("training: a network learns real text, when HALFLAB_DATA_DIR has it") {
  const auto data = test::data_folder("text");
  if (!data) return;
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  REQUIRE(run("--model transformer --steps 60 --twin-every 0 --data " + data->string(), out).exit_code == 0);
  const nlohmann::json summary = json_of(out / "summary.json");
  CHECK(summary.at("final_loss") < summary.at("unigram_entropy").get<double>() - 0.5);
}

TEST_CASE("training: a run that its scaler ends is a result with the reason") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const Outcome outcome =
      run("--quick --batch 16 --policy fp16 --scalers fairseq:init_scale=1e8:min_scale=1e7", out);
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(json_of(out / "summary.json").at("aborted_runs") == 1);
  CHECK(contains(outcome.output, "was ended by its scaler: "));
  const int steps = json_of(out / "summary.json").at("steps");
  const std::string ending = "ended by its scaler at step " + std::to_string(steps) + " of 20";
  CHECK(outcome.output.starts_with("mlp under fp16 with fairseq:init_scale=1e8:min_scale=1e7: " + ending +
                                   ", at a test loss of "));
  CHECK(contains(outcome.output, " " + ending + "\n"));  // the row
}

TEST_CASE(
    "training: ranks are told in verdict and cell, resume where they were killed, and no thread changes "
    "them") {
  const TemporaryDirectory directory;
  const std::string ranks =
      "--model cnn:channels=2 --batch 16 --steps 30 --checkpoint-every 4 --ranks 4 --allreduce "
      "binary_tree:division=after --sync-batch-norm ";
  const Outcome outcome = run(ranks, directory / "out");
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(
      outcome.output,
      "batch 16, 4 ranks, all-reduced by binary_tree in fp16, divided after, batch norm synchronised; "));
  const nlohmann::json identity = json_of(directory / "out" / "run" / "manifest.json").at("options");
  CHECK(identity.at("ranks") == "4");
  CHECK(identity.at("all-reduce") == "binary_tree:precision=fp16:division=after");

  {
    const training::Process process = training::start(ranks, directory / "killed");
    while (process.is_running() && !fs::exists(directory / "killed" / "run" / "checkpoint-8"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGKILL);
    process.wait();
  }
  REQUIRE(run(ranks, directory / "killed").exit_code == 0);
  REQUIRE(run(ranks + "--threads 2", directory / "threads").exit_code == 0);
  REQUIRE(run("--model cnn:channels=2 --batch 16 --steps 30", directory / "one").exit_code == 0);
  const std::string steps = content_of(directory / "out" / "steps.csv");
  CHECK(content_of(directory / "killed" / "steps.csv") == steps);
  CHECK(content_of(directory / "threads" / "steps.csv") == steps);
  CHECK(content_of(directory / "one" / "steps.csv") != steps);
  CHECK(content_of(directory / "killed" / "summary.json") == content_of(directory / "out" / "summary.json"));
  CHECK(!json_of(directory / "one" / "run" / "manifest.json").at("options").contains("ranks"));
}

TEST_CASE(
    "training: the fp32 that a sweep compares with is all-reduced in FP32, and a single run as asked for") {
  const TemporaryDirectory directory;
  const std::string ranks =
      "--model mlp:hidden1=8 --batch 8 --steps 3 --ranks 2 --allreduce ring:precision=fp16 ";
  const Outcome outcome = run(ranks + "--sweep --policy fp32,amp", directory / "sweep");
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  REQUIRE(run(ranks + "--policy fp32", directory / "single").exit_code == 0);
  const auto all_reduce_of = [&](const fs::path& cell) {
    return json_of(cell / "manifest.json").at("options").at("all-reduce").get<std::string>();
  };
  const fs::path cells = directory / "sweep" / "cells";
  CHECK(contains(all_reduce_of(cells / "mlp+hidden1=8-fp32-none-0"), "precision=fp32"));
  CHECK(contains(all_reduce_of(cells / "mlp+hidden1=8-amp-dynamic-0"), "precision=fp16"));
  CHECK(contains(all_reduce_of(directory / "single" / "run"), "precision=fp16"));
  CHECK(contains(outcome.output, "2 ranks, all-reduced by ring in fp16, divided before; 3 steps"));
  CHECK(contains(outcome.output, " The runs of fp32 were all-reduced in FP32.\n"));
}

TEST_CASE("training: where a sum overflows that nobody looks into, later skips are laid to it") {
  const TemporaryDirectory directory;
  const Outcome outcome =
      run("--model mlp:hidden1=32 --batch 24 --ranks 8 --steps 12 --twin-every 0 --allreduce "
          "ring:precision=fp16:division=after --found-inf before",
          directory / "out");
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.output, " under amp with dynamic: diverged, at no finite test loss"));
  CHECK(contains(outcome.output, "Step 0 at S = 2^16: the gradient of hidden1.weight is "));
  CHECK(contains(outcome.output, "summed over 8 ranks whose own are finite, and was applied unseen"));
  CHECK(!contains(outcome.output, "no scale would have saved"));
  const nlohmann::json summary = json_of(directory / "out" / "summary.json");
  CHECK(summary.at("skipped_after_overflow") == 11);
  CHECK(summary.at("skipped_at_any_scale") == 0);
}

TEST_CASE("training: an order of another run's sums is refused with its file, and what that holds") {
  const TemporaryDirectory directory;
  const fs::path file = directory / "manifest.json";
  std::ofstream(file) << R"json({"settings": {"allreduce.order": "0-2: ((0+1)+2); 3-4: (0+(1+2))"}})json";
  const std::string arguments =
      "--model mlp:hidden1=8 --batch 12 --steps 2 --allreduce mpi --allreduce-order " + file.string();
  for (const char* ranks : {"3", "4"}) {
    const Outcome outcome = run(arguments + " --ranks " + ranks, directory / "never");
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, "--allreduce-order: file '" + file.string() +
                                       "' has the order of 5 numbers of 3 ranks, and this run sums "));
    CHECK(contains(outcome.output,
                   std::string(" numbers of ") + ranks + " ranks; must be of a run of as many\n"));
    CHECK(!fs::exists(directory / "never"));
  }
}

TEST_CASE("training: a run that replaces another keeps nothing of its record and dumps") {
  const TemporaryDirectory directory;
  const std::string options = "--model mlp:hidden1=8:hidden2=8 --steps 3 ", out = directory / "out";
  REQUIRE(run(options + "--batch 4 --record --dump-tensors 0,2", out).exit_code == 0);
  REQUIRE(run(options + "--batch 8 --dump-tensors 1", out).exit_code == 0);
  std::vector<std::string> kept;
  for (const auto& [file, content] : test::contents_of(fs::path(out) / "run")) {
    if (file.starts_with("record/") || file.starts_with("tensors/")) kept.push_back(file);
  }
  CHECK(kept == std::vector<std::string>{"tensors/", "tensors/step_1.safetensors"});
}

TEST_CASE("training: an FP32 that is compared with keeps its name under --accumulation") {
  const TemporaryDirectory directory;
  const Outcome outcome =
      run("--sweep --quick --model mlp:hidden1=8 --policy fp32,amp --accumulation volta_fp16 --scalers none "
          "--seeds 1",
          directory / "out");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(!contains(outcome.output, "which --policy does not name"));
}

TEST_CASE("training: processes that a launcher started and that do not know of each other are refused") {
  const TemporaryDirectory directory;
  const auto under = [&](const std::string& variables, const std::string& more) {
    return programs::run_command(variables + " " HALFLAB_BINARY_DIRECTORY "/training --model mlp:hidden1=8 " +
                                 more + " --out " + (directory / "out").string());
  };
  const std::string open_mpi = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0",
                    srun = "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=4",
                    batch_script = "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0";
  const auto refused = under(open_mpi, "--steps 2");
  CHECK(refused.exit_code == 2);
  CHECK(refused.output ==
        "training: 2 processes were started by mpirun; must come with --mpi, or each with --shard, its own "
        "part "
        "of a sweep\n");
  CHECK(contains(under(srun, "--steps 2").output, "4 processes were started by srun; must come with --mpi"));
  CHECK(!fs::exists(directory / "out"));
  for (const char* const question : {"--help", "-h", "--help-outputs", "--list models"})
    CHECK(under(srun, question).exit_code == 0);
  CHECK(under(srun, "--sweep --steps 2 --shard 1/2").exit_code == 0);
  CHECK(under(batch_script, "--steps 2").exit_code == 0);
}

TEST_CASE("training: bad usage is one line, exit code 2, and nothing is written") {
  const TemporaryDirectory directory;
  const std::pair<const char*, const char*> wrong[] = {
      {"--model resnet", "resnet"},
      {"--model mlp:hiden1=3", "hidden1"},
      {"--model mlp,cnn", "--sweep"},
      {"--policy fp32,amp", "--sweep"},
      {"--seeds 2", "--sweep"},
      {"--policy fp13", "fp13"},
      {"--policy O1:master_weights=true", "master_weights"},
      {"--sweep --policy amp,fp8 --scalers delayed", "allowed: policy fp8"},
      {"--sweep --scalers dynamic,static:scale=0", "scale = 0"},
      {"--scalers dynamic:growth_factor=1", "growth_factor = 1"},
      {"--optimizer adamm", "adamm"},
      {"--accumulation-steps 0", "--accumulation-steps"},
      {"--lr 0.1 --optimizer sgd:learning_rate=0.5",
       "--lr: 0.1 is given beside --optimizer sgd:learning_rate=0.5"},
      {"--steps 3 --dump-tensors 0,3", "--dump-tensors: step 3 is given; allowed: 0 to 2, by --steps 3"},
      {"--policy amp:loss_scale=128 --scalers dynamic", "must be one of them"},
      {"--policy fp32 --accumulation volta_fp16", "needs operands in binary16"},
      {"--record-every 3", "--record-every: is given without --record; must come with it"},
      {"--clip-norm 0", "--clip-norm"},
      {"--clip-before-unscale", "--clip-norm"},
      {"--checkpoint-every -1", "--checkpoint-every"},
      {"--twin-format fp16", "--twin-format"},
      {"--ranks 0", "--ranks"},
      {"--ranks 3", "allowed with --ranks 3: its multiples"},
      {"--ranks 4 --allreduce rings", "did you mean 'ring'?"},
      {"--allreduce ring:precision=fp8", "--allreduce: all-reduce 'ring': unknown precision 'fp8'"},
      {"--allreduce direct:chunks=even", "allowed: precision, division"},
      {"--ranks 2 --found-inf never", "--found-inf"},
      {"--ranks 2 --scalers ada_loss", "allowed: 1 rank"},
      {"--allreduce ring:precision=fp16", "--allreduce: is given with one rank, which exchanges nothing"},
      {"--found-inf before", "--found-inf: is given with one rank"},
      {"--model cnn --sync-batch-norm", "--sync-batch-norm: is given with one rank"},
      {"--ranks 2 --sync-batch-norm", "--sync-batch-norm: model 'mlp' has no batch norm; must be left out"},
      {"--ranks 2 --compare-every 3", "--compare-every: is given without --mpi; must come with it"},
      {"--mpi-timeout 30", "--mpi-timeout: is given without --mpi"},
      {"--mpi-library mpich", "--mpi-library: is given without --mpi"},
      {"--data /no/such/text", "/no/such/text"},
      {"--sweep --model mlp,transformer --data digits", "'digits' holds images"},
  };
  for (const auto& [arguments, must_name] : wrong) {
    const Outcome outcome = run(arguments, directory / "never");
    INFO(arguments, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, must_name));
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    CHECK(!fs::exists(directory / "never"));
  }
}
