/// The binary `training` as its users run it, and kill it.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Files = std::map<std::string, std::string>;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "halflab-training-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

struct Outcome {
  int exit_code;       ///< minus the signal that ended it
  std::string output;  ///< stdout and stderr together
};

/// `training` in a process of its own.
class Process {
 public:
  Process(const std::string& arguments, const fs::path& out) : log_(out.string() + ".log") {
    std::vector<std::string> words{std::string(HALFLAB_BINARY_DIRECTORY) + "/training", "--out",
                                   out.string()};
    for (const std::string& word : words_of(arguments)) words.push_back(word);
    id_ = ::fork();
    REQUIRE(id_ >= 0);
    if (id_ != 0) return;
    const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    std::vector<char*> raw;
    for (std::string& word : words) raw.push_back(word.data());
    raw.push_back(nullptr);
    ::execv(raw[0], raw.data());
    ::_exit(127);
  }

  void send(int signal) const { ::kill(id_, signal); }
  bool is_running() const {
    siginfo_t information{};
    ::waitid(P_PID, static_cast<id_t>(id_), &information, WEXITED | WNOHANG | WNOWAIT);
    return information.si_pid == 0;
  }

  Outcome wait() const {
    int status = 0;
    ::waitpid(id_, &status, 0);
    return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), content_of(log_)};
  }

 private:
  fs::path log_;
  pid_t id_;
};

Outcome run(const std::string& arguments, const fs::path& out) {
  return Process(arguments, out).wait();
}

/// All files of a run but its manifests, which alone tell times.
Files results_of(const fs::path& directory) {
  Files files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().filename() != "manifest.json")
      files[fs::relative(entry.path(), directory).string()] = content_of(entry.path());
  }
  return files;
}

std::vector<std::string> names_of(const Files& files) {
  std::vector<std::string> names;
  for (const auto& [name, content] : files) names.push_back(name);
  return names;
}

/// Equal names first, so that a failure says which file.
void check_equal(const Files& a, const Files& b) {
  CHECK(names_of(a) == names_of(b));
  for (const auto& [name, content] : a) {
    INFO(name);
    CHECK((b.contains(name) && b.at(name) == content));
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Of the one run in `out`, the newest last.
std::vector<fs::path> checkpoints_in(const fs::path& out) {
  std::vector<fs::path> files;
  std::error_code none_yet;
  for (const fs::directory_entry& entry : fs::directory_iterator(out / "run", none_yet)) {
    if (entry.path().filename().string().starts_with("checkpoint-")) files.push_back(entry.path());
  }
  std::ranges::sort(files, {}, [](const fs::path& file) {
    return std::pair(file.string().size(), file.string());  // checkpoint-90 before checkpoint-100
  });
  return files;
}

int steps_of(const fs::path& checkpoint) {
  return std::stoi(checkpoint.filename().string().substr(std::string("checkpoint-").size()));
}

/// Starts a run and kills it once it has written two checkpoints, the newer one after that many steps.
void leave_unfinished(const std::string& arguments, const fs::path& out, int steps = 0) {
  const Process process(arguments, out);
  const auto is_far_enough = [&] {
    const std::vector<fs::path> checkpoints = checkpoints_in(out);
    return checkpoints.size() >= 2 && steps_of(checkpoints.back()) >= steps;
  };
  while (process.is_running() && !is_far_enough()) std::this_thread::sleep_for(1ms);
  process.send(SIGKILL);
  REQUIRE(process.wait().exit_code == -SIGKILL);
  REQUIRE(checkpoints_in(out).size() >= 2);
}

nlohmann::json json_of(const fs::path& file) {
  return nlohmann::json::parse(content_of(file));
}

const std::string small =
    "--model mlp:hidden1=32:hidden2=16 --batch 16 --steps 500 --checkpoint-every 7 --twin-every 13 "
    "--scalers dynamic:growth_interval=9 --schedule cosine:warmup_steps=20 ";

}  // namespace

TEST_CASE("training: killed again and again, at any moment, a run ends with the bytes of one that was not") {
  const TemporaryDirectory directory;
  const Outcome whole = run(small, directory / "whole");
  INFO(whole.output);
  REQUIRE(whole.exit_code == 0);
  int kills = 0;
  for (auto patience = 60ms;; patience += 45ms) {
    const Process process(small, directory / "killed");
    std::this_thread::sleep_for(patience);
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    if (outcome.exit_code == 0) {
      CHECK(outcome.output == whole.output);
      break;
    }
    REQUIRE(outcome.exit_code == -SIGKILL);
    ++kills;
  }
  CHECK(kills >= 2);
  check_equal(results_of(directory / "killed"), results_of(directory / "whole"));
  CHECK(json_of(directory / "killed" / "run" / "manifest.json").at("settings").at("resumed_at_step") > 0);
  CHECK(checkpoints_in(directory / "whole").empty());
}

TEST_CASE("training: a sweep that was killed, or interrupted, goes on, and makes no finished cell again") {
  const TemporaryDirectory directory;
  const std::string sweep =
      "--sweep --model mlp:hidden1=32:hidden2=16,cnn:channels=2 --policy fp32,amp --seeds 2 --batch 8 "
      "--steps 60 "
      "--checkpoint-every 5 ";
  const fs::path out = directory / "cut", cells = out / "cells";
  const Outcome whole = run(sweep, directory / "whole");
  INFO(whole.output);
  REQUIRE(whole.exit_code == 0);

  const fs::path first_cell = cells / "mlp+hidden1=32+hidden2=16-fp32-none-0" / "manifest.json";
  {
    const Process process(sweep, out);
    while (process.is_running() && !fs::exists(first_cell)) std::this_thread::sleep_for(1ms);
    process.send(SIGKILL);
    process.wait();
  }
  REQUIRE(fs::exists(first_cell));
  CHECK(!fs::exists(out / "summary.json"));
  const std::string first_manifest = content_of(first_cell);
  {
    const Process process(sweep, out);
    std::this_thread::sleep_for(300ms);
    process.send(SIGINT);
    const Outcome interrupted = process.wait();
    INFO(interrupted.output);
    // Before the program listens and after it is done, too, the signal may come.
    CHECK((interrupted.exit_code == 130 || interrupted.exit_code == -SIGINT || interrupted.exit_code == 0));
    if (interrupted.exit_code == 130) {
      CHECK(contains(interrupted.output, "goes on"));
      CHECK(!fs::exists(out / "summary.json"));
      CHECK(!fs::exists(out / ".partial"));
    }
  }
  const Outcome resumed = run(sweep + "--threads 1", out);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.output == whole.output);
  CHECK(content_of(first_cell) == first_manifest);
  check_equal(results_of(out), results_of(directory / "whole"));

  // A larger grid in the same directory makes only what it has more.
  const std::string larger =
      "--sweep --model mlp:hidden1=32:hidden2=16,cnn:channels=2 --policy fp32,amp --seeds 3 --batch 8 "
      "--steps 60 ";
  CHECK(run(larger, out).exit_code == 0);
  CHECK(content_of(first_cell) == first_manifest);
  CHECK(std::distance(fs::directory_iterator(cells), {}) == 12);
}

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
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
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

TEST_CASE("training: a checkpoint of another run is refused with both values and left alone") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  leave_unfinished(small, out);
  const Files before = results_of(out);
  const auto refusal = [&](const std::string& arguments) {
    const Outcome outcome = run(arguments, out);
    CHECK(outcome.exit_code == 2);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    return outcome.output;
  };
  const std::string model = refusal("--model cnn:channels=2 --steps 500");
  CHECK(contains(model, "mlp:hidden1=32"));
  CHECK(contains(model, "cnn:channels=2"));
  const std::string policy = refusal(small + "--policy O2");
  CHECK(contains(policy, "'amp'"));
  CHECK(contains(policy, "'O2'"));
  CHECK(contains(refusal(small + "--seed 4"), "seed '0'"));
  CHECK(contains(refusal(small + "--clip-norm 1"), "norm limit 'none'"));
  std::map<std::string, std::string> after = results_of(out);
  for (const auto& [name, content] : before) {
    INFO(name);
    CHECK((contains(name, ".partial") || after[name] == content));
  }
}

TEST_CASE("training: of two checkpoints the older stands in for a damaged newer one") {
  const TemporaryDirectory directory;
  REQUIRE(run(small, directory / "whole").exit_code == 0);
  const fs::path out = directory / "out";
  leave_unfinished(small, out);
  const fs::path newest = checkpoints_in(out).back();
  fs::resize_file(newest, fs::file_size(newest) / 2);
  const Outcome resumed = run(small, out);
  INFO(resumed.output);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.output.starts_with("warning: checkpoint '" + newest.string() + "' was cut off"));
  check_equal(results_of(out), results_of(directory / "whole"));

  const fs::path other = directory / "other";
  leave_unfinished(small, other);
  for (const fs::path& checkpoint : checkpoints_in(other)) std::ofstream(checkpoint) << "no checkpoint";
  const Outcome refused = run(small, other);
  CHECK(refused.exit_code == 2);
  CHECK(std::ranges::count(refused.output, '\n') == 1);
  CHECK(contains(refused.output, "is no checkpoint"));
}

TEST_CASE("training: no checkpoint is larger than the first, and what steps wrote is held to its checksum") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", steps = out / "run" / "steps.partial.csv";
  const std::string arguments =
      "--model mlp:hidden1=8:hidden2=8 --batch 4 --steps 3000 --checkpoint-every 20 --twin-every 100 "
      "--scalers dynamic:growth_interval=2 ";  // which skips every third step or so
  leave_unfinished(arguments, out);
  const std::uintmax_t early_size = fs::file_size(checkpoints_in(out).back());
  const std::uintmax_t early_rows = fs::file_size(steps);
  leave_unfinished(arguments, out, 600);
  const std::uintmax_t late_size = fs::file_size(checkpoints_in(out).back());
  CHECK(fs::file_size(steps) > early_rows + 20'000);
  CHECK(late_size <
        early_size + 1000);  // numbers take up to 8 bytes, and the first of each kind of skip is told

  std::string rows = content_of(steps);
  rows[100] ^= 1;
  std::ofstream(steps, std::ios::binary) << rows;
  const Outcome refused = run(arguments, out);
  CHECK(refused.exit_code == 2);
  CHECK(std::ranges::count(refused.output, '\n') == 1);
  CHECK(contains(refused.output, "'steps.partial.csv'"));
  CHECK(contains(refused.output, "remove"));
}

TEST_CASE("training: a damaged summary of a finished cell is named, and its run made again") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out",
                 summary = out / "cells" / "mlp+hidden1=8-amp-dynamic-1" / "summary.json";
  const std::string sweep = "--sweep --quick --model mlp:hidden1=8 --batch 4 --steps 4 --seeds 2";
  REQUIRE(run(sweep, out).exit_code == 0);
  const Files whole = results_of(out);
  const std::string content = content_of(summary);
  for (const std::string& damaged : {std::string("{}"), content.substr(0, content.size() / 2),
                                     std::string("[1]"), std::string("{\"final_loss\": null}")}) {
    std::ofstream(summary, std::ios::binary) << damaged;
    const Outcome again = run(sweep, out);
    INFO(again.output);
    CHECK(again.exit_code == 0);
    CHECK(again.output.starts_with("warning: file '" + summary.string() + "' "));
    check_equal(results_of(out), whole);
  }
}

TEST_CASE("training: skips.csv and parameters.csv tell of the whole run, killed or not") {
  const TemporaryDirectory directory;
  const fs::path whole = directory / "whole", killed = directory / "killed";
  const std::string arguments =
      "--model mlp:hidden1=8:hidden2=8 --batch 4 --steps 400 --checkpoint-every 10 --policy fp16 --scalers "
      "dynamic:growth_interval=2 ";
  const Outcome outcome = run(arguments, whole);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const std::string skips = content_of(whole / "skips.csv");
  const nlohmann::json summary = json_of(whole / "summary.json");
  CHECK(skips.starts_with("model,policy,scaler,seed,step,decision,scale_log2,place,operation,layer,"));
  const int skipped = summary.at("skipped_steps");
  CHECK(skipped > 10);
  CHECK(std::ranges::count(skips, '\n') == 1 + skipped);
  CHECK(summary.at("skipped_for_scale").get<int>() + summary.at("skipped_at_any_scale").get<int>() +
            summary.at("skipped_by_rule").get<int>() ==
        skipped);
  CHECK(contains(outcome.output, "Skipped for its scale: "));
  CHECK(contains(outcome.output, "the first under fp16 with dynamic:growth_interval=2, seed 0. Step "));

  std::istringstream lines(content_of(whole / "parameters.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "model,policy,scaler,seed,parameter,updates,swallowed");
  double updates = 0, swallowed = 0;
  int parameters = 0;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 7);
    updates += std::stod(cells[5]);
    swallowed += std::stod(cells[6]);
    ++parameters;
  }
  CHECK(parameters == 6);  // weight and bias of three layers
  CHECK(swallowed > 0);
  CHECK(summary.at("fraction_swallowed") == swallowed / updates);

  leave_unfinished(arguments, killed, 200);
  CHECK(run(arguments, killed).exit_code == 0);
  check_equal(results_of(killed), results_of(whole));
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
    "training: a character model is told against the unigram entropy; options come from a TOML file too") {
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

TEST_CASE("training: networks learn real data, when HALFLAB_DATA_DIR has them") {
  const char* const root = std::getenv("HALFLAB_DATA_DIR");
  if (root == nullptr) {
    MESSAGE("skipped: HALFLAB_DATA_DIR is not set");
    return;
  }
  const TemporaryDirectory directory;
  const std::string data = std::string("--data ") + root;
  const fs::path digits = directory / "digits", text = directory / "text";
  REQUIRE(
      run("--sweep --model cnn --policy fp32,amp --twin-every 0 " + data + "/mnist-10k", digits).exit_code ==
      0);
  for (const char* policy : {"fp32.none", "amp.dynamic"})
    CHECK(json_of(digits / "summary.json").at("cnn." + std::string(policy) + ".final_accuracy") >= 0.95);
  REQUIRE(run("--model transformer --steps 60 --twin-every 0 " + data + "/text", text).exit_code == 0);
  const nlohmann::json summary = json_of(text / "summary.json");
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
      {"--clip-norm 0", "--clip-norm"},
      {"--clip-before-unscale", "--clip-norm"},
      {"--checkpoint-every -1", "--checkpoint-every"},
      {"--twin-format fp16", "--twin-format"},
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
