#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "experiments/memory_anatomy/allocation.h"
#include "experiments/memory_anatomy/anatomy.h"
#include "experiments/memory_anatomy/networks.h"
#include "experiments/memory_anatomy/published.h"
#include "experiments/training/training_setup.h"
#include "tests/temporary_directory.h"

namespace anatomy = experiments::memory_anatomy;

TEST_CASE("memory anatomy: networks that come with the program have the published numbers of parameters") {
  const auto parameters = [](const char* name) {
    return anatomy::find_network(name).network().parameter_count();
  };
  CHECK(parameters("bert_large") == 335'141'888 + 2 * 1024 + 2);  // bert-large-uncased and its classifier
  CHECK(parameters("gpt2_small") == 124'439'808);
  CHECK(parameters("gpt2_medium") == 354'823'168);
  CHECK(parameters("gpt2_large") == 774'030'080);
  CHECK(parameters("gpt2_xl") == 1'557'611'200);
  CHECK(parameters("llama2_7b") == 6'738'415'616);
  CHECK(parameters("resnet50") == 25'557'032);
}

TEST_CASE("memory anatomy: a layer of Llama keeps what its backward reads, each value once") {
  const auto activations = [](int layers) {
    const sim::Network network =
        anatomy::find_network("llama2_7b:batch=2:sequence=64:layers=" + std::to_string(layers)).network();
    return sim::step_memory(sim::typed(network, sim::find_precision_policy("fp32")),
                            names::parse_spec("adam"))
        .activations;
  };
  const std::uint64_t tokens = 2 * 64, hidden = 4096, inner = 11008, heads = 32;
  // Both norms' inputs and outputs, queries, keys, values and what the projection reads; the gate, its SiLU, the other
  // factor and their product; the softmax; an inverse of either norm for each token.
  CHECK(activations(2) - activations(1) ==
        4 * (8 * tokens * hidden + 4 * tokens * inner + heads * tokens * 64 + 2 * tokens));
}

TEST_CASE("memory anatomy: ResNet-50 takes 4.09 billion multiply-adds an image") {
  const sim::Network network = anatomy::find_network("resnet50:batch=1").network();
  const sim::TypedNetwork typed = sim::typed(network, sim::find_precision_policy("fp32"));
  // torchvision states 4.09 GFLOPS, counting a multiplication and an addition as one.
  CHECK(static_cast<double>(anatomy::product_flop(typed).forward) / 2 ==
        doctest::Approx(4.09e9).epsilon(0.001));
}

TEST_CASE("memory anatomy: descriptions of the simulator's models have their parameters and their batch") {
  for (const char* name : {"mlp", "cnn", "transformer"}) {
    experiments::TrainingOptions options{.model = name};
    const experiments::TrainingSetup setup(options);
    const sim::Network network = anatomy::find_network(name).network();
    CHECK(network.input.front() == static_cast<std::size_t>(setup.budget().batch));
    std::vector<std::size_t> described, built;
    for (const sim::ParameterSpec& spec : network.parameters)
      described.push_back(sim::element_count(spec.shape));
    for (const sim::ParameterSpec& spec : setup.model().parameters())
      built.push_back(sim::element_count(spec.shape));
    INFO(name);
    CHECK(described == built);
  }
}

TEST_CASE("memory anatomy: training steps of the simulator allocate what is predicted, to the byte") {
  const auto rows = anatomy::measure_allocations(
      {"mlp", "cnn", "transformer"}, {"fp32", "fp64", "amp", "fp16", "bf16", "fp8", "O1", "O2", "O3"}, 2);
  CHECK(rows.size() == 3 * 9 * 6);
  for (const anatomy::Allocation& row : rows) {
    INFO(row.model, " ", row.policy, " ", sim::name_of(row.role));
    CHECK(row.predicted_bytes == row.allocated_bytes);
    CHECK(row.needed_bytes <= row.allocated_bytes);
  }
}

TEST_CASE("memory anatomy: backward keeps what PyTorch saves, but for what the model leaves out") {
  // Indices are 64-bit; a loss saves one number besides. Under autocast PyTorch keeps the logits before their cast
  // to FP32, and a convolution keeps its weight's cast even where nothing upstream needs a gradient.
  constexpr double loss = 4, running_statistics = 2 * 4 * (16 + 32 + 32 + 64), first_convolution = 2 * 16 * 9;
  constexpr double images = 128, small_images = 64, tokens = 16 * 64, positions = 64;
  const std::map<std::string_view, double> left_out{
      {"mlp.fp32", images * 8 + loss},
      {"mlp.amp", images * 8 + loss + 2 * images * 10},
      {"cnn.fp32", small_images * 8 + loss + running_statistics},
      {"cnn.amp", small_images * 8 + loss + running_statistics + 2 * small_images * 10 + first_convolution},
      {"transformer.fp32", (2 * tokens + positions) * 8 + loss},
      {"transformer.amp", (2 * tokens + positions) * 8 + loss + 2 * tokens * 67}};
  constexpr std::string_view prefix = "saved_for_backward.";
  std::size_t compared = 0;
  for (const anatomy::PublishedRow& row : anatomy::published_rows()) {
    if (!row.key.starts_with(prefix)) continue;
    INFO(row.key);
    CHECK(row.published - row.ours == left_out.at(std::string_view(row.key).substr(prefix.size())));
    CHECK(row.ratio() > 0.99);
    ++compared;
  }
  CHECK(compared == left_out.size());
}

TEST_CASE("memory anatomy: published figures that follow from definitions are met exactly") {
  for (const anatomy::PublishedRow& row : anatomy::published_rows()) {
    INFO(row.key);
    const bool exact =
        row.key.starts_with("transformer_layer.") ||
        (row.key.starts_with("bytes_per_parameter.") && row.key != "bytes_per_parameter.states_8bit");
    if (exact) CHECK(row.ours == row.published);
    if (row.key.ends_with(".parameters")) CHECK(row.ratio() == doctest::Approx(1).epsilon(0.015));
  }
  const anatomy::ClassShares shares = anatomy::encoder_shares();
  double time = 0;
  for (const anatomy::ClassShare& share : shares) time += share.time_share;
  CHECK(time == doctest::Approx(1));
  CHECK(shares[0].flop_share > 0.997);
}

TEST_CASE("memory anatomy: the user's own file, symbols behind colons, and what is not allowed") {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "own.toml";
  std::ofstream(file)
      << "name = \"own\"\n[symbols]\nbatch = 4\nwide = 3\n[input]\nshape = [\"batch\", 8]\n"
         "[[blocks]]\nname = \"b\"\noperators = [ { name = \"a\", operation = \"linear\", features = "
         "\"wide\" } ]\n";
  CHECK(anatomy::find_network(file).network().parameter_count() == 27);
  CHECK(anatomy::find_network(file + ":wide=5").network().parameter_count() == 45);
  CHECK_THROWS_WITH(
      anatomy::find_network("bert_larg"),
      doctest::Contains("unknown network 'bert_larg'; did you mean 'bert_large'? allowed: bert_large, "));
  CHECK_THROWS_WITH(anatomy::find_network(file + ":wide=much"),
                    "wide = 'much' is not allowed; allowed: whole numbers");
  CHECK_THROWS_WITH(anatomy::find_network(directory / "none.toml"), doctest::Contains("cannot be read"));
}

TEST_CASE("memory anatomy: options replace the card's own figures") {
  anatomy::Options options{.memory_gib = 0.5, .peak_tflops = 2.0, .bandwidth_gb_per_s = 3.0};
  const sim::Card card = anatomy::card_of(options, sim::find_precision_policy("amp"));
  CHECK(card.memory_bytes == std::uint64_t{1} << 29);
  CHECK(card.bytes_per_s == 3e9);
  CHECK(anatomy::card_text(options) ==
        "NVIDIA Tesla V100 SXM2, 16 GB, 0.5 GiB instead, 3 GB/s instead, 2 TFLOP/s instead");
  CHECK(card.contraction_flop_per_s(fp16::binary16) == 2e12);
  CHECK(card.contraction_flop_per_s(fp16::binary32) == 15.7e12);
  options.card = "v1000";
  CHECK_THROWS_WITH(anatomy::card_of(options, sim::find_precision_policy("amp")),
                    doctest::Contains("--card: unknown card 'v1000'"));
}
