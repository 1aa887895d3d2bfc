#include "experiments/training/tensor_dump.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "experiments/training/all_reduce_cost.h"
#include "experiments/training/training_setup.h"
#include "tests/temporary_directory.h"

namespace {

namespace files = experiments::tensor_files;
using experiments::RunChoice;

/// Step 1 of a run, as dumped; all tensors are of four bytes an element.
using Dumped = std::map<std::string, std::vector<float>>;

Dumped dumped(const std::string& model, int micro_batch, RunChoice choice) {
  const test::TemporaryDirectory directory;
  experiments::TrainingOptions options{.model = model,
                                       .optimizer = "sgd",
                                       .batch = micro_batch,
                                       .steps = 2,
                                       .dump_tensors = "1",
                                       .directory = directory / "."};
  choice.keep_in = "";
  const experiments::TrainingSetup setup(options);
  sim::Trainer trainer = setup.trainer(choice);
  trainer.step();
  trainer.step();
  Dumped tensors;
  const files::TensorSet set({(directory / "tensors" / "step_1.safetensors").string()});
  for (const auto* list : {&set.tensors(), &set.passed_over()}) {
    for (const files::StoredTensor& tensor : *list) {
      const std::vector<std::byte> bytes = files::read_elements(tensor);
      std::vector<float>& values = tensors[tensor.name];
      values.resize(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
    }
  }
  return tensors;
}

/// The norm of the difference over the norm of `b`.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(norm == 0 ? difference : difference / norm);
}

void require_same_step(const Dumped& parts, const Dumped& whole) {
  for (const auto& [name, values] : whole) {
    INFO(name);
    REQUIRE(parts.contains(name));
    if (name.starts_with("batch/")) {
      CHECK(std::memcmp(parts.at(name).data(), values.data(), values.size() * sizeof(float)) == 0);
      CHECK(parts.at(name).size() == values.size());
    } else if (name.starts_with("gradients/") && whole.contains("weights/" + name.substr(10))) {
      CHECK(relative_error(parts.at(name), values) < 1e-4);
    }
  }
}

const std::string mlp = "mlp:hidden1=16:hidden2=8";

}  // namespace

TEST_CASE("tensor dump: a step in micro-batches, on ranks, or decided pass by pass has one whole gradient") {
  const Dumped whole = dumped(mlp, 8, {});
  CHECK(whole.at("batch/labels").size() == 8);
  require_same_step(dumped(mlp, 4, {.accumulation_steps = 2}), whole);
  require_same_step(dumped(mlp, 8, {.parallel = experiments::all_reduced_in_fp32({.ranks = 2})}), whole);
  const std::string each_backward = "apex_amp:init_scale=64";
  require_same_step(dumped(mlp, 4, {.scaler = each_backward, .accumulation_steps = 2}), whole);
  require_same_step(dumped(mlp, 4,
                           {.scaler = each_backward,
                            .accumulation_steps = 2,
                            .parallel = experiments::all_reduced_in_fp32({.ranks = 2})}),
                    whole);
}

TEST_CASE("tensor dump: the gradients of several losses are added up") {
  const std::string scaler = "apex_amp:init_scale=64";
  require_same_step(dumped("ssd", 2, {.scaler = scaler + ":num_losses=2"}),
                    dumped("ssd", 2, {.scaler = scaler}));
}
