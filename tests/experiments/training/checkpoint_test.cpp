#include "experiments/training/checkpoint.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/file_contents.h"
#include "tests/sim/training_runs.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;
using training_runs::Run;
using training_runs::Setup;
using training_runs::small_spec;
using training_runs::start;

std::vector<std::string> names_in(const TemporaryDirectory& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory.path())) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// All that a trainer would save, as the bytes of a file.
std::string saved_bytes(sim::Trainer& trainer) {
  const TemporaryDirectory directory;
  experiments::write_checkpoint(directory / "state", {.trainer = trainer.save()});
  return content_of(directory / "state");
}

bool same_step(const sim::StepRecord& a, const sim::StepRecord& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  return a.step == b.step && same(a.loss, b.loss) && same(a.scale, b.scale) && a.decision == b.decision &&
         same(a.learning_rate, b.learning_rate) && a.updates == b.updates &&
         same(a.clipping.norm.norm, b.clipping.norm.norm) && a.twin.size() == b.twin.size();
}

/// Trains `before` steps, goes through a file into a trainer that was just made, and `after` more there: step
/// for step, and in all it would save, like a run that was never cut off. Counts the skipped steps.
std::size_t check_resumes(const Setup& setup, int before, int after) {
  Run whole = start(setup);
  whole.train(before + after);
  Run first = start(setup);
  first.train(before);
  const TemporaryDirectory directory;
  experiments::write_checkpoint(directory / "checkpoint", {.trainer = first.trainer.save()});
  Run second = start(setup);
  second.trainer.restore(experiments::read_checkpoint(directory / "checkpoint").trainer);
  CHECK(second.trainer.steps_done() == static_cast<std::uint64_t>(before));
  second.train(after);
  for (std::size_t i = 0; i < second.steps.size(); ++i) {
    INFO("step ", before + static_cast<int>(i));
    CHECK(same_step(second.steps[i], whole.steps[static_cast<std::size_t>(before) + i]));
  }
  CHECK(training_runs::same_state(second.trainer.state(), whole.trainer.state()));
  CHECK(saved_bytes(second.trainer) == saved_bytes(whole.trainer));
  return static_cast<std::size_t>(std::ranges::count_if(whole.steps, &sim::StepRecord::skipped));
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("checkpoint: a run goes on exactly under every optimizer") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    INFO(row.name);
    // adamw8bit keeps what has fewer than 4096 elements in FP32: one layer has more.
    check_resumes({.model = "mlp:hidden1=16:hidden2=300",
                   .scaler = "dynamic:growth_interval=3:init_scale=16777216",
                   .optimizer = std::string(row.name),
                   .schedule = "cosine:warmup_steps=4",
                   .options = {.batch = 16, .steps = 12, .seed = 3, .twin_every = 4}},
                  5, 7);
  }
  check_resumes({.optimizer = "sgd:momentum=0.9:nesterov=true:weight_decay=0.01"}, 3, 3);
}

TEST_CASE("checkpoint: a run goes on exactly under every scaler of every kind") {
  std::size_t skipped = 0;
  for (const sim::ScalerRow& row : sim::scalers()) {
    INFO(row.name);
    const bool of_casts = row.kind == sim::ScalerKind::tensor;
    skipped += check_resumes({.policy = of_casts ? "fp8" : "amp", .scaler = std::string(row.name)}, 4, 5);
  }
  CHECK(skipped > 0);
  // A policy with scaled casts and a loss scaler has the state of both.
  check_resumes({.policy = "fp8", .scaler = "dynamic:growth_interval=2"}, 3, 5);
}

TEST_CASE("checkpoint: a run of every model goes on exactly, with buffers and dropout") {
  for (const sim::ModelRow& row : sim::models()) {
    INFO(row.name);
    const std::string dropout = row.name == "transformer" ? ":dropout=0.2" : "";
    check_resumes({.model = small_spec(row.name) + dropout, .options = {.batch = 4, .steps = 6, .seed = 1}},
                  3, 3);
  }
}

TEST_CASE("checkpoint: a run goes on exactly whatever rounds, accumulates and clips") {
  check_resumes({.policy = "O2:weight_rounding=stochastic", .scaler = "static"}, 4, 4);
  check_resumes({.policy = "O3:weight_rounding=stochastic:master_weights=false", .scaler = "static"}, 4, 4);
  check_resumes({.policy = "fp64", .scaler = "none"}, 2, 2);
  check_resumes(
      {.policy = "O2", .scaler = "apex_amp", .options = {.batch = 8, .accumulation_steps = 3, .seed = 5}}, 3,
      3);
  check_resumes({.options = {.batch = 8, .seed = 5, .clipping = {.max_norm = 0.5}}}, 3, 3);
}

TEST_CASE("checkpoint: numbers come back bit for bit, those that are not finite too") {
  const TemporaryDirectory directory;
  const double infinity = std::numeric_limits<double>::infinity();
  const names::NamedValues values{{"S", infinity},
                                  {"minus", -infinity},
                                  {"nan", std::bit_cast<double>(std::uint64_t{0x7ff8000000000123})},
                                  {"zero", -0.0},
                                  {"tiny", 5e-324},
                                  {"third", 1.0 / 3}};
  const experiments::Checkpoint saved{.run = {{"model", "mlp"}, {"seed", "3"}},
                                      .trainer = {.steps_done = 7,
                                                  .steps_applied = 5,
                                                  .arrays = {{"a", {0, 255, 10, 13}}, {"empty", {}}},
                                                  .loss_scalers = {values, {{"S", 2}}},
                                                  .layer_scaler = {{"layer/entry", infinity}},
                                                  .tensor_scaler = {}},
                                      .totals = values,
                                      .notes = {{"first", "S = 2^10, \"inf\"\n"}, {"none", ""}},
                                      .files = {{"steps.partial.csv", 70'000, 0xfedcba98}}};
  experiments::write_checkpoint(directory / "c", saved);
  const experiments::Checkpoint read = experiments::read_checkpoint(directory / "c");
  const auto same_bits = [](const names::NamedValues& a, const names::NamedValues& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
      return x.first == y.first &&
             std::bit_cast<std::uint64_t>(x.second) == std::bit_cast<std::uint64_t>(y.second);
    });
  };
  CHECK(read.run == saved.run);
  CHECK(read.trainer.steps_done == 7);
  CHECK(read.trainer.steps_applied == 5);
  REQUIRE(read.trainer.arrays.size() == 2);
  CHECK(read.trainer.arrays[0].name == "a");
  CHECK(read.trainer.arrays[0].bytes == saved.trainer.arrays[0].bytes);
  CHECK(read.trainer.arrays[1].bytes.empty());
  REQUIRE(read.trainer.loss_scalers.size() == 2);
  CHECK(same_bits(read.trainer.loss_scalers[0], values));
  CHECK(same_bits(read.trainer.loss_scalers[1], {{"S", 2}}));
  CHECK(same_bits(read.trainer.layer_scaler, saved.trainer.layer_scaler));
  CHECK(same_bits(read.totals, values));
  CHECK(read.notes == saved.notes);
  CHECK(read.files == saved.files);
  CHECK(names_in(directory) == std::vector<std::string>{"c"});
}

TEST_CASE(
    "checkpoint: a file cut off anywhere or with any byte altered is refused in one line that names it") {
  const TemporaryDirectory directory;
  const fs::path file = directory / "checkpoint-3";
  experiments::write_checkpoint(
      file, {.run = {{"model", "mlp"}}, .trainer = {.arrays = {{"w", {1, 2, 3}}}}, .notes = {{"n", "1,2"}}});
  const std::string whole = content_of(file);
  const auto refused = [&](const std::string& bytes) {
    write_bytes(file, bytes);
    CHECK_THROWS_AS(experiments::read_checkpoint(file), std::runtime_error);
    const std::string message = message_of([&] { experiments::read_checkpoint(file); });
    CHECK(contains(message, file.string()));
    CHECK(!contains(message, "\n"));
  };
  for (std::size_t size = 0; size < whole.size(); ++size) refused(whole.substr(0, size));
  refused(whole + '\0');
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    refused(altered);
  }
  write_bytes(file, whole);
  CHECK(experiments::read_checkpoint(file).notes == experiments::NamedTexts{{"n", "1,2"}});
  CHECK(contains(message_of([&] { experiments::read_checkpoint(directory / "none"); }), "cannot be read"));
}

TEST_CASE("checkpoint: a file of another version of the format is refused with both versions") {
  const TemporaryDirectory directory;
  const fs::path file = directory / "c";
  experiments::write_checkpoint(file, {});
  std::string bytes = content_of(file);
  bytes.resize(bytes.size() - 4);
  const std::uint32_t version = 7;
  std::memcpy(bytes.data() + 8, &version, sizeof version);
  const auto sum = static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const ::Bytef*>(bytes.data()), static_cast<::uInt>(bytes.size())));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  write_bytes(file, bytes);
  CHECK_THROWS_AS(experiments::read_checkpoint(file), std::invalid_argument);
  const std::string message = message_of([&] { experiments::read_checkpoint(file); });
  CHECK(contains(message, "version 7"));
  CHECK(contains(message, "version 3"));
}

TEST_CASE("checkpoint: a directory keeps the last two, and the older stands in for a damaged newer one") {
  const TemporaryDirectory directory;
  const experiments::CheckpointDirectory checkpoints(directory.path());
  const experiments::RunIdentity run{{"model", "mlp"}, {"seed", "3"}};
  std::vector<std::string> warnings;
  const auto latest = [&] {
    warnings.clear();
    return checkpoints.latest(run, [&](const std::string& text) { warnings.push_back(text); });
  };
  CHECK(!latest());
  CHECK(!experiments::CheckpointDirectory(directory / "none").latest(run, [](const std::string&) {}));
  for (const std::uint64_t step : {8, 9, 10, 100})
    checkpoints.write({.run = run, .trainer = {.steps_done = step}});
  CHECK(names_in(directory) == std::vector<std::string>{"checkpoint-10", "checkpoint-100"});
  write_bytes(directory / ".checkpoint.partial", "cut off");
  write_bytes(directory / "checkpoint-x", "a file of somebody's own");
  CHECK(latest()->trainer.steps_done == 100);
  CHECK(warnings.empty());

  const std::string whole = content_of(directory / "checkpoint-100");
  write_bytes(directory / "checkpoint-100", whole.substr(0, whole.size() - 1));
  CHECK(latest()->trainer.steps_done == 10);
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "checkpoint-100"));
  CHECK(contains(warnings[0], "checkpoint-10'"));

  write_bytes(directory / "checkpoint-10", "");
  CHECK_THROWS_AS(latest(), std::runtime_error);
  CHECK(contains(message_of(latest), "checkpoint-100"));

  checkpoints.clear();
  CHECK(names_in(directory) == std::vector<std::string>{"checkpoint-x"});
}

TEST_CASE("checkpoint: none grows with the files that it holds the marks of") {
  const TemporaryDirectory directory;
  experiments::GrowingFile file(directory / "rows");
  experiments::write_checkpoint(directory / "c", {.files = {file.mark()}});
  const std::uintmax_t size = fs::file_size(directory / "c");
  for (int i = 0; i < 100'000; ++i) file.append("a row of a table, 1, 2, 3\n");
  experiments::write_checkpoint(directory / "c", {.files = {file.mark()}});
  CHECK(fs::file_size(directory / "rows") == 2'600'000);
  CHECK(fs::file_size(directory / "c") <= size + 8);  // the mark's two numbers
}

TEST_CASE("checkpoint: a file without a directory before its name is one of the working directory") {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  CHECK_NOTHROW(experiments::write_checkpoint("c", {.notes = {{"n", "1"}}}));
  CHECK_NOTHROW(experiments::CheckpointDirectory("").write({}));
  fs::current_path(before);
  CHECK(names_in(directory) == std::vector<std::string>{"c", "checkpoint-0"});
  CHECK(experiments::read_checkpoint(directory / "c").notes == experiments::NamedTexts{{"n", "1"}});
}

TEST_CASE("checkpoint: a directory of a checkpoint's name is refused by it") {
  const TemporaryDirectory directory;
  fs::create_directory(directory / "checkpoint-5");
  CHECK(message_of([&] { experiments::read_checkpoint(directory / "checkpoint-5"); }) ==
        "checkpoint '" + (directory / "checkpoint-5").string() + "' cannot be read");
}

TEST_CASE("checkpoint: one whose files were cut off or altered is passed over, or refused with both names") {
  const TemporaryDirectory directory;
  const experiments::CheckpointDirectory checkpoints(directory.path());
  const fs::path rows = directory / "rows";
  {
    experiments::GrowingFile file(rows);
    file.append("first");
    checkpoints.write({.trainer = {.steps_done = 1}, .files = {file.mark()}});
    file.append("second");
    checkpoints.write({.trainer = {.steps_done = 2}, .files = {file.mark()}});
  }
  std::vector<std::string> warnings;
  const auto latest = [&] {
    warnings.clear();
    return checkpoints.latest({}, [&](const std::string& text) { warnings.push_back(text); });
  };
  const auto after = [&](const std::string& bytes) {
    write_bytes(rows, bytes);
    return latest()->trainer.steps_done;
  };
  CHECK(after("firstsecondthird") == 2);
  CHECK(warnings.empty());
  CHECK(after("firstsecon") == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "checkpoint-2' does not go with 'rows'"));
  CHECK(contains(warnings[0], "10 bytes of 11"));
  CHECK(after("firstSecond") == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "checksum"));
  for (const char* bytes : {"firs", "f1rstsecond"}) {
    write_bytes(rows, bytes);
    CHECK_THROWS_AS(latest(), std::runtime_error);
    CHECK(contains(message_of(latest), "'rows'"));
    CHECK(contains(message_of(latest), "remove them to start anew"));
  }
  fs::remove(rows);
  CHECK(contains(message_of(latest), "0 bytes of 11"));
}

TEST_CASE("checkpoint: one of another run is refused with both values, whole as it is") {
  const TemporaryDirectory directory;
  const experiments::CheckpointDirectory checkpoints(directory.path());
  checkpoints.write({.run = {{"model", "mlp"}, {"policy", "amp"}}, .trainer = {.steps_done = 4}});
  const auto refusal = [&](const experiments::RunIdentity& run) {
    const auto latest = [&] { checkpoints.latest(run, [](const std::string&) {}); };
    CHECK_THROWS_AS(latest(), std::invalid_argument);
    return message_of(latest);
  };
  const std::string model = refusal({{"model", "cnn"}, {"policy", "fp16"}});
  CHECK(contains(model, "checkpoint-4"));
  CHECK(contains(model, "model 'mlp'"));
  CHECK(contains(model, "and this one has 'cnn'; allowed: the same run, another directory, or to remove "));
  CHECK(contains(refusal({{"model", "mlp"}, {"policy", "O2"}}), "policy 'amp'"));
  CHECK(contains(refusal({{"model", "mlp"}}), "policy 'amp', and this one has none"));
  CHECK(contains(refusal({{"model", "mlp"}, {"policy", "amp"}, {"seed", "1"}}),
                 "seed none, and this one has '1'"));
}

TEST_CASE(
    "checkpoint: one of other ranks is refused with the option that takes it, and nothing else passes") {
  const TemporaryDirectory directory;
  const experiments::CheckpointDirectory checkpoints(directory.path());
  const auto on = [](const std::string& ranks, const std::string& all_reduce) {
    return experiments::RunIdentity{{"model", "mlp"}, {"ranks", ranks}, {"all-reduce", all_reduce}};
  };
  const experiments::RunIdentity on_one{{"model", "mlp"}};
  checkpoints.write({.run = on("4", "ring"), .trainer = {.steps_done = 4}});
  const auto with_others = [&](const experiments::RunIdentity& run) {
    return checkpoints
        .latest(
            run, [](const std::string&) {}, true)
        ->trainer.steps_done;
  };
  const auto refusal = [&](const experiments::RunIdentity& run, bool with_other_ranks) {
    return message_of([&] {
      checkpoints.latest(
          run, [](const std::string&) {}, with_other_ranks);
    });
  };
  const std::string allowed =
      "; allowed: as many, --resume-with-other-ranks, another directory, or to remove ";
  CHECK(contains(refusal(on("3", "ring"), false), "a run on 4 ranks, and this one has 3 ranks" + allowed));
  CHECK(contains(refusal(on_one, false), "a run on 4 ranks, and this one has 1 rank" + allowed));
  CHECK(with_others(on("3", "ring")) == 4);
  CHECK(with_others(on_one) == 4);
  CHECK(contains(refusal(on("3", "direct"), true), "all-reduce 'ring', and this one has 'direct'"));
  CHECK(contains(refusal({{"model", "cnn"}}, true), "model 'mlp', and this one has 'cnn'"));
}

TEST_CASE(
    "trainer: the state of another model, format, optimizer or kind of scaler is refused with both names") {
  Run mlp = start({});
  mlp.train(2);
  const sim::TrainerState saved = mlp.trainer.save();
  const auto refusal = [&](const Setup& setup) {
    Run other = start(setup);
    CHECK_THROWS_AS(other.trainer.restore(saved), std::invalid_argument);
    return message_of([&] { other.trainer.restore(saved); });
  };
  const std::string wider = refusal({.model = "mlp:hidden1=64:hidden2=32"});
  CHECK(contains(wider, "hidden1.weight 48x784 binary32"));
  CHECK(contains(wider, "hidden1.weight 64x784 binary32"));
  CHECK(contains(refusal({.policy = "fp16"}), "binary16"));
  CHECK(contains(refusal({.optimizer = "adam"}), "adam"));
  CHECK(contains(refusal({.scaler = "none"}), "scaler"));
  CHECK(contains(refusal({.scaler = "ada_loss"}), "scaler"));
}

TEST_CASE("checkpoint: images of the same name and size are told apart by any pixel and label") {
  using Contents = sim::ImageDataset::Contents;
  // Two chunks of each part; the one that differs is neither the last one of its chunk nor in the last chunk.
  const auto checksum = [](const std::function<void(Contents&)>& change) {
    const auto examples = [] {
      return sim::LabelledImages{.pixels = std::vector<std::uint8_t>(300 * 4, 9),
                                 .labels = std::vector<std::uint8_t>(300, 1)};
    };
    Contents contents{.name = "same",
                      .image_shape = {.height = 2, .width = 2},
                      .classes = 3,
                      .training = examples(),
                      .test = examples()};
    change(contents);
    return experiments::checksum_of(sim::ImageDataset(std::move(contents)));
  };
  const std::uint32_t unchanged = checksum([](Contents&) {});
  CHECK(checksum([](Contents&) {}) == unchanged);
  CHECK(checksum([](Contents& c) { c.training.pixels[17] = 8; }) != unchanged);
  CHECK(checksum([](Contents& c) { c.training.labels[5] = 2; }) != unchanged);
  CHECK(checksum([](Contents& c) { c.test.pixels[17] = 8; }) != unchanged);
  CHECK(checksum([](Contents& c) { c.test.labels[5] = 2; }) != unchanged);
}

TEST_CASE("checkpoint: texts of the same name and size are told apart by any token") {
  const auto checksum = [](std::size_t changed) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += "abc";
    if (changed < text.size()) text[changed] = text[changed] == 'a' ? 'b' : 'a';
    return experiments::checksum_of(sim::TextDataset({.name = "same", .text = text, .context = 4}));
  };
  const std::uint32_t unchanged = checksum(std::string::npos);
  CHECK(checksum(std::string::npos) == unchanged);
  CHECK(checksum(700) != unchanged);   // of the training part
  CHECK(checksum(1400) != unchanged);  // of the test part
}

TEST_CASE("checkpoint: scenes of the same name and size are told apart by any pixel and box") {
  using Contents = sim::SceneDataset::Contents;
  const auto checksum = [](const std::function<void(Contents&)>& change) {
    const auto scenes = [] {
      const sim::Box box{.x_min = 0.25f, .y_min = 0.25f, .x_max = 0.5f, .y_max = 0.5f, .label = 0};
      return sim::Scenes{.pixels = std::vector<std::uint8_t>(3 * 4, 9), .boxes = {{box, box}, {box}, {}}};
    };
    Contents contents{.name = "same",
                      .image_shape = {.height = 2, .width = 2},
                      .classes = 2,
                      .training = scenes(),
                      .test = scenes()};
    change(contents);
    return experiments::checksum_of(sim::SceneDataset(std::move(contents)));
  };
  const std::uint32_t unchanged = checksum([](Contents&) {});
  CHECK(checksum([](Contents&) {}) == unchanged);
  for (sim::Scenes Contents::*const part : {&Contents::training, &Contents::test}) {
    CHECK(checksum([part](Contents& c) { (c.*part).pixels[1] = 8; }) != unchanged);
    CHECK(checksum([part](Contents& c) { (c.*part).boxes[0][1].y_max = 0.75f; }) != unchanged);
    CHECK(checksum([part](Contents& c) { (c.*part).boxes[1][0].label = 1; }) != unchanged);
    // Boxes in the same order, otherwise shared out among the images.
    CHECK(checksum([part](Contents& c) {
            (c.*part).boxes[1].push_back((c.*part).boxes[0].back());
            (c.*part).boxes[0].pop_back();
          }) != unchanged);
  }
}
