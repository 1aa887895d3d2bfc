/// What all experiment binaries have in common: files, keys, bytes, help and exit codes.

#include "tests/experiments/programs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/data_directory.h"
#include "tests/experiments/documented_outputs.h"
#include "tests/file_contents.h"
#include "tests/shard.h"
#include "tests/temporary_directory.h"

namespace {

namespace fs = std::filesystem;
using programs::Outcome;
using programs::run;
using test::contents_of;
using test::TemporaryDirectory;

struct Program {
  std::string name;
  std::vector<std::string> summary_keys;
  std::vector<std::string> files;
  std::string arguments = "";  ///< besides --quick
};

const std::vector<Program>& all_programs() {
  static const std::vector<Program> rows = [] {
    std::vector<std::string> comparison_keys;
    for (const char* strategy : {"fp32", "none", "static", "dynamic", "adaptive"}) {
      for (const char* key : {"final_loss", "steps", "skipped_steps", "final_scale_log2", "aborted_runs",
                              "mean_fraction_flushed", "mean_relative_error", "final_loss_std",
                              "final_loss_lower", "final_loss_upper"}) {
        comparison_keys.push_back(std::string(strategy) + "." + key);
      }
    }
    return std::vector<Program>{
        {"gradient_histogram",
         {"values_total", "fraction_zero", "fraction_below_smallest_subnormal", "fraction_flushed_at_scale_1",
          "fraction_subnormal_at_scale_1", "fraction_overflow_at_scale_1", "max_abs_log2",
          "recommended_scale_log2", "fraction_flushed_at_recommended_scale"},
         {"histogram.csv", "layers.csv", "weights.csv", "operations.csv", "moments.csv", "over_training.csv",
          "gradient_histogram.gp", "layers.gp", "weights.gp", "over_training.gp"}},
        {"gradient_histogram",
         {"activation_gradients.fraction_zero"},
         {"paper3.csv", "published.csv", "paper3.gp"},
         " --figure paper3 --steps 5 --batch 4"},
        {"gradient_histogram",
         {"paper2b_fraction_below_2^-24"},
         {"paper2b.csv", "paper2b.gp"},
         " --figure paper2b --model lstm:width=16 --steps 5"},
        {"underflow_sweep",
         {"best_scale_log2", "flushed_at_scale_1", "flushed_at_best_scale", "lost_upstream_at_scale_1"},
         {"sweep.csv", "layers.csv", "sweep.gp"}},
        {"scaler_comparison",
         comparison_keys,
         {"steps.csv", "layers.csv", "loss.csv", "loss.gp", "scale.csv", "scale.gp"}},
        {"formats",
         {"binary16.range_octaves", "tensor.e2m1.row_relative_error", "block.mxfp4.fraction_flushed",
          "block.nvfp4.fraction_saturated"},
         {"formats.csv", "octaves.csv", "values.csv", "spread.csv", "block_size.csv", "values.gp",
          "spread.gp", "block_size.gp"}},
        {"allreduce_precision",
         {"workers", "scale_log2", "network.relative_error.ring.fp16",
          "normal.relative_error.direct.fp32_accumulation", "network.overflow_from_workers.after",
          "network.usable_scale_highest_log2.before"},
         {"allreduce.csv", "scales.csv", "windows.csv", "error.gp", "division.gp", "windows.gp"}},
        {"master_weights",
         {"fp16.swallowed_below_2^p", "fp16.swallowed_above_2^(p+1)", "fp16.worst_accuracy_loss",
          "own.updates_flushed_in_fp16", "adam_1e-5.masters.test_loss", "adam_1e-5.fp16.progress",
          "adam_cosine.fp16_stochastic.cosine", "own_hundredth.bf16.swallowed_late"},
         {"conditions.csv", "swallowed_by_ratio.csv", "steps.csv", "swallowed_by_ratio.gp", "loss.gp",
          "steps.gp"}},
        {"memory_anatomy",
         {"parameters", "memory_bytes.O2", "activation_bytes.selective", "product_flop_forward",
          "time_share.element_wise", "largest_batch.O1.full", "bytes_per_parameter.amp.adamw",
          "published.bert_large.step_mib", "allocated_peaks"},
         {"parameters.csv", "memory.csv", "activations.csv", "operators.csv", "batches.csv", "published.csv",
          "allocated.csv", "memory.gp", "roofline.gp"}},
        {"op_precision",
         {"operations", "measured", "needs_fp32", "fp32_list", "torch.stricter", "apex.laxer",
          "linear.placement"},
         {"operations.csv", "lists.csv", "operations.gp"},
         " --models mlp,cnn,autoencoder"},
        {"opt_levels",
         {"budget_bytes", "O1.final_accuracy", "O1.final_accuracy_difference", "O3.held_bytes",
          "mxfp4.mean_relative_error", "nvfp4.equal_bytes_batch",
          "fp8_unscaled.equal_bytes_final_accuracy_difference"},
         {"policies.csv", "operations.csv", "batches.csv", "runs.csv", "steps.csv", "skips.csv", "costs.gp",
          "operations.gp", "batches.gp"}},
        {"scale_policy_order",
         {"never_unscaled.sgd.measured_factor", "clip_before_unscale.adam.final_loss_difference",
          "two_scalers_summed.sgd.measured_loss_ratio", "optimizer_counts_skips.adam.predicted_factor"},
         {"recipes.csv", "runs.csv", "steps.csv", "rate.gp", "loss.gp"}},
        {"explain_gemm",
         {"verdict", "classification", "hypotheses", "candidates", "chance_survivors", "rival.unexplained",
          "more_outputs", "triples", "best.accumulator", "best.slicing", "best.slices", "best.order",
          "unexplained", "real_bugs", "first_overflow_k"},
         {"hypotheses.csv", "map.csv", "outputs.csv", "error_map.csv", "map.gp", "a.npy", "b.npy", "d.npy"}},
        {"accumulation",
         {"fp32.positive.relative_error", "hopper_fp32.signed.backward_error", "fp16_fma.ones",
          "fp16_to_odd.ones", "l1.fp16_pairwise.sum_then_divide.fails_from_batch_log2",
          "mse.fp32_sequential.divide_first.fails"},
         {"dots.csv", "sums.csv", "stagnation.csv", "loss_reduction.csv", "orders.gp", "tensor_cores.gp",
          "loss_reduction.gp"}},
        {"training",
         {"final_loss", "skipped_for_scale", "peak_tensor_bytes_weights"},
         {"steps.csv", "skips.csv", "parameters.csv", "cells.csv", "comparison.csv", "loss.csv", "loss.gp"}},
    };
  }();
  return rows;
}

/// The experiments of the laboratory, but for the one that needs a GPU.
std::vector<std::string> experiments() {
  std::vector<std::string> names;
  std::istringstream folders(HALFLAB_EXPERIMENTS);
  for (std::string folder; std::getline(folders, folder, ',');) {
    const std::string name = fs::path(folder).filename();
    const bool is_experiment = name != "report" && name != "pages" && !name.ends_with("_status");
    if (is_experiment && name != "gpu_throughput") names.push_back(name);
  }
  REQUIRE(names.size() > 10);
  return names;
}

}  // namespace

TEST_CASE("programs: --quick writes every promised file and key, the same bytes with 1 and 2 threads") {
  const std::vector<std::string> all = experiments();
  const auto is_looked_at = [&](const std::string& name) {
    return test::is_in_shard(static_cast<std::size_t>(std::ranges::find(all, name) - all.begin()));
  };
  std::map<std::string, programs::Written> written;
  for (const Program& program : all_programs()) {
    if (!is_looked_at(program.name)) continue;
    const std::string command = program.name + program.arguments + " --quick";
    INFO(command);
    const TemporaryDirectory directory;
    const std::string one = directory / "one", two = directory / "two";
    const Outcome first = run(command + " --threads 1 --out " + one);
    INFO(first.output);
    REQUIRE(first.exit_code == 0);
    const Outcome second = run(command + " --threads 2 --out " + two);
    REQUIRE(second.exit_code == 0);
    CHECK(first.output == second.output);

    std::map<std::string, std::string> files = contents_of(one), others = contents_of(two);
    const nlohmann::json summary = nlohmann::json::parse(files.at("summary.json"));
    for (const std::string& key : program.summary_keys) {
      INFO(key);
      CHECK(summary.contains(key));
    }
    for (const std::string& file : program.files) {
      INFO(file);
      CHECK(files.contains(file));
    }
    const nlohmann::json manifest = nlohmann::json::parse(files.at("manifest.json"));
    CHECK(manifest.at("gpu").is_null());
    CHECK(manifest.at("options").at("quick") == true);
    const auto is_manifest = [](const auto& file) { return file.first.ends_with("manifest.json"); };
    std::erase_if(files, is_manifest);
    std::erase_if(others, is_manifest);
    CHECK(files == others);
    written[program.name].add(files);
  }
  // The bytes of validate_gpu, which measures times, are compared in validate_gpu_program_test.cpp.
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  REQUIRE(run("validate_gpu --device cpu --quick --op hadd,hexp --out " + out).exit_code == 0);
  written["validate_gpu"].add(contents_of(out));
  // Likewise of validate_cpu, in validate_cpu_program_test.cpp.
  const std::string held = directory / "held";
  REQUIRE(run("validate_cpu --emulator never --rows conversion --quick --out " + held).exit_code == 0);
  written["validate_cpu"].add(contents_of(held));
  for (const std::string& experiment : all) {
    if (!is_looked_at(experiment)) continue;
    INFO(experiment);
    REQUIRE(written.contains(experiment));
    const auto outputs = programs::parse_outputs(run(experiment + " --help-outputs").output);
    CHECK(!outputs.tables.empty());
    CHECK(!outputs.keys.empty());
    for (const std::string& wrong : programs::disagreements(outputs, written[experiment])) FAIL_CHECK(wrong);
  }
}

TEST_CASE("programs: what is not in --help-outputs, or only there, is found out") {
  const programs::DocumentedOutputs outputs = programs::parse_outputs(
      "Tables:\n"
      "  a.csv, a row for each step\n      step (steps), loss_2^p(x) (1),\n      extra [--more]\n"
      "  b-<model>.csv, a row for each step [--more]\n      step\n"
      "\nKeys of summary.json:\n"
      "  loss            of all\n  <scaler>.<key>  of one\n                  scaler [--more]\n"
      "  a_long_name, another\n                  of all\n");
  REQUIRE(outputs.tables.size() == 2);
  CHECK(outputs.tables[0].table.name == "a.csv");
  REQUIRE(outputs.tables[0].columns.size() == 3);
  CHECK(outputs.tables[0].columns[1].name == "loss_2^p(x)");
  CHECK(outputs.tables[0].columns[1].matches("loss_2^p(x)"));
  CHECK(outputs.tables[0].columns[1].is_always_written);
  CHECK(!outputs.tables[0].columns[2].is_always_written);
  CHECK(outputs.tables[1].table.matches("b-mlp.csv"));
  CHECK(!outputs.tables[1].table.matches("b.csv"));
  CHECK(!outputs.tables[1].table.is_always_written);
  REQUIRE(outputs.keys.size() == 4);
  CHECK(outputs.keys[1].matches("dynamic.loss"));
  CHECK(!outputs.keys[1].is_always_written);
  CHECK(outputs.keys[3].name == "another");
  CHECK(outputs.keys[3].is_always_written);

  programs::Written written;
  written.add({{"a.csv", "step,loss_2^p(x)\n1,2\n"},
               {"summary.json", R"({"loss": 1, "a_long_name": 2, "another": 3})"}});
  CHECK(programs::disagreements(outputs, written).empty());
  written = {};
  written.add({{"a.csv", "step,new\n1,2\n"},
               {"c.csv", "step\n"},
               {"summary.json", R"({"loss": 1, "another": 3, "x": 4})"}});
  CHECK(programs::disagreements(outputs, written) ==
        std::vector<std::string>{"c.csv is not documented", "a.csv: new is not documented",
                                 "a.csv: loss_2^p(x) is not written", "c.csv: step is not documented",
                                 "summary: x is not documented", "summary: a_long_name is not written"});
}

TEST_CASE("programs: a broken folder of images is named in one line, and nothing is written") {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, std::string bytes) {
    std::ofstream(directory / name, std::ios::binary) << bytes;
  };
  const std::string images = std::string("\0\0\10\3\0\0\0\2\0\0\0\4\0\0\0\4", 16) + std::string(32, '\x7F');
  const std::string labels = std::string("\0\0\10\1\0\0\0\2\0\1", 10);
  write("t10k-images-idx3-ubyte", images);
  write("t10k-labels-idx1-ubyte", labels);
  write("train-labels-idx1-ubyte", labels);
  write("train-images-idx3-ubyte", images);
  const std::string arguments = "gradient_histogram --quick --data " + (directory / "").string() + " --out " +
                                (directory / "out").string();
  const Outcome good = run(arguments);
  INFO(good.output);
  CHECK(good.exit_code == 0);
  fs::remove_all(directory / "out");
  const auto refuses = [&](const std::string& must_name) {
    const Outcome outcome = run(arguments);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(must_name) != std::string::npos);
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
    CHECK(!fs::exists(directory / "out"));
  };
  write("train-images-idx3-ubyte", images.substr(0, 40));
  refuses("train-images-idx3-ubyte");
  write("train-images-idx3-ubyte", "not an IDX file at all");
  refuses("train-images-idx3-ubyte");
  write("train-images-idx3-ubyte", images);
  write("train-labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\3\0\1\0", 11));
  refuses("train-labels-idx1-ubyte");
  fs::remove(directory / "train-labels-idx1-ubyte");
  refuses("train-labels-idx1-ubyte");
}

TEST_CASE("programs: every one that takes --record and --dump-tensors keeps what they ask for") {
  std::set<std::string> recorded;
  for (const Program& program : all_programs()) {
    const bool takes_both =
        run(program.name + " --help").output.find("--dump-tensors STEPS") != std::string::npos;
    if (!takes_both || !recorded.insert(program.name).second) continue;
    INFO(program.name);
    const TemporaryDirectory out;
    const Outcome outcome =
        run(program.name + " --quick --record --record-every 2 --dump-tensors 0,1 --out '" +
            out.path().string() + "'");
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    std::size_t records = 0, dumps = 0;
    for (const auto& [file, content] : contents_of(out.path())) {
      records += file.ends_with("record/manifest.json");
      dumps += file.ends_with("tensors/step_1.safetensors");
      CHECK(file.find(".partial") == std::string::npos);
    }
    CHECK(records > 0);
    CHECK(dumps == records);
  }
  CHECK(recorded.size() >= 6);
}

TEST_CASE("programs: --help shows an example, --list every family") {
  for (const Program& program : all_programs()) {
    const Outcome help = run(program.name + " --help");
    CHECK(help.exit_code == 0);
    CHECK(help.output.find("--out") != std::string::npos);
    CHECK(help.output.find("Example:\n  " + program.name + " --") != std::string::npos);
    std::istringstream lines(help.output);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t last_word = line.rfind(' ') + 1;
      CHECK_MESSAGE((line.size() <= 100 || line.find_first_not_of(' ') == last_word), line);
    }
    for (const char* family : {"formats", "policies", "ops", "models", "scalers", "optimizers", "schedules",
                               "accumulations", "data"}) {
      const Outcome list = run(program.name + " --list " + family);
      INFO(program.name, " ", family);
      CHECK(list.exit_code == 0);
      CHECK(!list.output.empty());
    }
  }
}

TEST_CASE("programs: bad usage is one line, exit code 2, and nothing is written") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "not a directory";
  const struct {
    std::string arguments;
    std::string must_name;
  } wrong[] = {
      {"gradient_histogram --model resnet --out {}", "resnet"},
      {"gradient_histogram --stpes 3 --out {}", "--steps"},
      {"gradient_histogram --steps -3 --out {}", "--steps"},
      {"gradient_histogram --lr 0 --out {}", "--lr"},
      {"gradient_histogram --data /no/such/folder --out {}", "/no/such/folder"},
      {"underflow_sweep --policy fp13 --out {}", "--policy: 'fp13' is not allowed; did you mean 'fp16'?"},
      {"underflow_sweep --policy O5 --out {}", "did you mean 'O0'?"},
      {"training --policy O2:foo=1 --out {}", "policy 'O2': unknown override 'foo'; allowed: "},
      {"underflow_sweep --model mlpp --out {}", "did you mean 'mlp'?"},
      {"underflow_sweep --optimizer adm --out {}", "did you mean 'adam'?"},
      {"underflow_sweep --schedule cosin --out {}", "did you mean 'cosine'?"},
      {"underflow_sweep --data builtn --out {}", "did you mean 'builtin'?"},
      {"training --accumulation fp16_fmaa --out {}", "did you mean 'fp16_fma'?"},
      {"training --steps 20 --schedule cosine:warmup_steps=1000000 --out {}", "longer than the run"},
      {"training --model mlp --data " + (directory / "file").string() + " --out {}",
       "is a file, which is read as text; allowed for images: builtin, digits, a directory with IDX files; "
       "models by data: images mlp, autoencoder, cnn; text transformer, lstm; scenes ssd"},
      {"training --list scalers:dinamic --out {}", "did you mean 'dynamic'?"},
      {"underflow_sweep --policy amp:gradient_rounding=upwards --out {}", "gradient_rounding"},
      {"underflow_sweep --max-scale-log2 -1 --out {}", "--max-scale-log2"},
      {"report --site --notebooks /nowhere --out {} run",
       "--notebooks: '/nowhere' must be a directory with HTML"},
      {"report --notebooks /nowhere --out {} run", "give --site too"},
      {"op_precision --reductions fp8 --out {}", "--reductions: 'fp8' is not allowed; allowed: fp32, fp16"},
      {"op_precision --models mlp,cnnn --out {}", "did you mean 'cnn'?"},
      {"op_precision --models mlp:foo=1 --out {}", "--models: "},
      {"opt_levels --recipes O4 --out {}", "--recipes: unknown recipe 'O4'; did you mean 'O0'?"},
      {"scale_policy_order --micro-batches 5 --out {}", "5 do not divide a batch of 32"},
      {"master_weights --optimizer nope --out {}", "--optimizer"},
      {"explain_gemm --a a.npy --out {}", "--a, --b and --d belong together"},
      {"explain_gemm --a " + (directory / "file").string() + " --b b --d d --out {}",
       "is none of .npy, .npz, .safetensors"},
      {"explain_gemm --a a,a --b b --d d,d --out {}", "--b: the number of files is 1 where --a has 2"},
      {"explain_gemm --most-slices 17 --out {}", "--most-slices"},
      {"explain_gemm --cublas --d d.npy --a a --b b --out {}", "--d: with --cublas D is made, not read"},
      {"explain_gemm --cublas --a a.npy --out {}", "--a and --b belong together"},
      {"explain_gemm --alpha nan --out {}", "--alpha"},
      {"gpu_throughput --only half_histogramm --out {}", "did you mean 'half_histogram'?"},
      {"gpu_throughput --size 0 --out {}", "--size"},
      {"scaler_comparison --scalers none,dinamic --out {}", "did you mean 'dynamic'?"},
      {"scaler_comparison --scalers '' --out {}", "--scalers"},
      {"scaler_comparison --scalers static:scale=0 --out {}", "scale = 0"},
      {"scaler_comparison --scalers static:scale=-8 --out {}", "scale = -8"},
      {"scaler_comparison --scalers static:scale=many --out {}", "many"},
      {"scaler_comparison --scalers static:scale --out {}", "scale"},
      {"scaler_comparison --scalers dynamic:growht_factor=3 --out {}", "growth_factor"},
      {"scaler_comparison --scalers none,none --out {}", "--scalers"},
      {"scaler_comparison --policy O1:master_weights=true --out {}", "master_weights"},
      {"scaler_comparison --model mlp:hidden1=0 --out {}", "hidden1 = 0"},
      {"scaler_comparison --model mlp --data text --out {}", "'text' holds text"},
      {"scaler_comparison --model transformer:width=10 --out {}", "multiples of heads"},
      {"scaler_comparison --optimizer sgd:momentum=1 --out {}", "momentum = 1"},
      {"scaler_comparison --schedule cosine:warmup=3 --out {}", "warmup_steps"},
      {"scaler_comparison --context 1 --out {}", "--context"},
      {"scaler_comparison --growth-interval 0 --out {}", "--growth-interval"},
      {"scaler_comparison --quick --out " + (directory / "file").string(), "file"},
      {"scaler_comparison --regimes spikey --out {}", "did you mean 'spiky'?"},
      {"scaler_comparison --regimes spiky,spiky --out {}", "twice"},
      {"scaler_comparison --regimes spiky --steps 10 --out {}", "--disturb-every"},
      {"scaler_comparison --outlier-factor 1 --out {}", "--outlier-factor"},
      {"scaler_comparison --outlier-factor 40 --out {}",
       "--outlier-factor: is given without spiky runs; must come with --regimes spiky"},
      {"scaler_comparison --regimes all --statistics-every 5 --out {}", "--statistics-every"},
      {"scaler_comparison --policy amp:loss_scale=128 --out {}",
       "--policy: 'amp:loss_scale=128' has a loss_scale, and --scalers is in force; must be one of them"},
      {"formats --rows 0 --out {}", "--rows"},
      {"formats --spread 9 --out {}", "--spread"},
      {"accumulation --lengths-log2 4 --out {}", "--lengths-log2"},
      {"accumulation --vectors 0 --out {}", "--vectors"},
      {"allreduce_precision --max-workers-log2 14 --out {}", "--max-workers-log2"},
      {"allreduce_precision --pool 1 --out {}", "--pool"},
      {"memory_anatomy --network bert_larg --out {}", "bert_large"},
      {"memory_anatomy --network none.toml --out {}", "none.toml"},
      {"memory_anatomy --network bert_large:heads=3 --out {}", "heads"},
      {"memory_anatomy --card x --out {}", "v100"},
      {"memory_anatomy --optimizer adamw:foo=1 --out {}", "foo"},
      {"memory_anatomy --context-mib 20000 --out {}", "20000"},
  };
  for (const auto& [arguments, must_name] : wrong) {
    const std::string out = directory / "never";
    std::string line = arguments;
    if (const std::size_t at = line.find("{}"); at != std::string::npos) line.replace(at, 2, out);
    const Outcome outcome = run(line, "timeout 60 ");  // training takes longer
    INFO(line, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(must_name) != std::string::npos);
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
    CHECK(!fs::exists(out));
  }
}

TEST_CASE("programs: a folder of MNIST files runs as the built-in data does") {
  const auto data = test::data_folder("mnist-10k");
  if (!data) return;
  const TemporaryDirectory directory;
  const Outcome outcome =
      run("gradient_histogram --quick --data " + data->string() + " --out " + (directory / "mnist").string());
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
}
