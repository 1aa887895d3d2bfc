#include "experiments/memory_anatomy/published.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace experiments::memory_anatomy {
namespace {

constexpr double mib = 0x1p20;

struct Bert {
  std::uint64_t batch, sequence, hidden, heads;
};

NetworkChoice bert_large(std::uint64_t batch) {
  NetworkChoice choice = find_network("bert_large");
  choice.symbols = {{"batch", batch}, {"sequence", 512}};
  return choice;
}

void add_parameter_counts(std::vector<PublishedRow>& rows) {
  struct Count {
    std::string network;
    double published;
    std::string source;
    std::string note;
  };
  const std::vector<Count> counts{{"bert_large", 340e6, "Devlin et al. 2019",
                                   "the figure is rounded; 335,141,888 without the classifier of two labels"},
                                  {"gpt2_small", 124e6, "openai/gpt-2", "Radford et al. print 117 million"},
                                  {"gpt2_medium", 355e6, "openai/gpt-2", "Radford et al. print 345 million"},
                                  {"gpt2_large", 774e6, "openai/gpt-2", "Radford et al. print 762 million"},
                                  {"gpt2_xl", 1558e6, "openai/gpt-2", "Radford et al. print 1542 million"},
                                  {"resnet50", 25557032, "torchvision resnet50", "exact"}};
  for (const Count& count : counts) {
    rows.push_back({.key = count.network + ".parameters",
                    .quantity = count.network + ": parameters",
                    .published = count.published,
                    .ours = static_cast<double>(find_network(count.network).network().parameter_count()),
                    .source = count.source,
                    .note = count.note});
  }
}

void add_bytes_per_parameter(std::vector<PublishedRow>& rows) {
  const auto add = [&rows](std::string key, std::string quantity, double published, const ParameterCost& cost,
                           std::uint64_t bytes, std::string source, std::string note) {
    rows.push_back({.key = "bytes_per_parameter." + std::move(key),
                    .quantity = "bytes per parameter: " + std::move(quantity),
                    .published = published,
                    .ours = cost.bytes(bytes),
                    .source = std::move(source),
                    .note = std::move(note)});
  };
  const ParameterCost amp = parameter_cost("amp", "adamw"), o2 = parameter_cost("O2", "adamw"),
                      fp32 = parameter_cost("fp32", "adamw"), small = parameter_cost("amp", "adamw8bit"),
                      momentum = parameter_cost("amp", "momentum");
  const std::string anatomy = "Hugging Face, model training anatomy", zero = "Rajbhandari et al. 2020, ZeRO";
  add("mixed_adamw", "mixed precision, AdamW", 18, amp, amp.memory.total(), anatomy,
      "policy amp: weights 4, their FP16 casts 2, gradients 4, moments 8");
  add("mixed_inference", "mixed precision, inference", 6, amp, amp.memory.inference(), anatomy,
      "policy amp; an FP16 model without masters needs 2");
  add("zero", "FP16 model with masters, Adam", 16, o2, o2.memory.total() - o2.memory.unscaled_gradients, zero,
      "policy O2 less the FP32 copy of gradients that Apex unscales into: with it 20");
  add("fp32_adamw", "FP32, AdamW", 16, fp32, fp32.memory.total(), anatomy,
      "weights 4, gradients 4, moments 8");
  add("states_8bit", "moments of 8 bits", 2, small, small.memory.optimizer_state, anatomy,
      "and a binary32 maximum for each block of 256: 2.03");
  add("states_momentum", "momentum", 4, momentum, momentum.memory.optimizer_state, anatomy, "one moment");
}

void add_bert_memory(std::vector<PublishedRow>& rows) {
  constexpr double context_mib = 1343;
  const sim::Network network = bert_large(4).network();
  const sim::PrecisionPolicy& fp32 = sim::find_precision_policy("fp32");
  const sim::StepMemory memory = sim::step_memory(sim::typed(network, fp32), names::parse_spec("adamw"));
  const std::string anatomy = "Hugging Face, model training anatomy";
  rows.push_back({.key = "bert_large.weights_mib",
                  .quantity = "BERT-large: weights on the card, MiB",
                  .published = 2631 - context_mib,
                  .ours = static_cast<double>(memory.weights) / mib,
                  .source = anatomy,
                  .note = "2631 with CUDA's kernels less 1343 of these; an allocator rounds up"});
  rows.push_back({.key = "bert_large.step_mib",
                  .quantity = "BERT-large: training in FP32, batch 4, 512 tokens, MiB",
                  .published = 14949,
                  .ours = context_mib + static_cast<double>(memory.total()) / mib,
                  .source = anatomy,
                  .note = "with 1343 of CUDA's kernels; temporaries, gradients of activations and what the "
                          "caching allocator holds are left out"});
}

double as_double(std::uint64_t count) {
  return static_cast<double>(count);
}

/// Bytes that the second encoder layer keeps; unlike the first it takes its input from a layer.
std::uint64_t kept_by_layer(const sim::TypedNetwork& network, sim::Recomputation recomputation) {
  const sim::Activations kept = sim::activations(network, recomputation);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < kept.of_operators.size(); ++i) {
    const sim::Network::Operator& op = network.network->operators[i];
    if (op.in_checkpoint && op.repetition == 1)
      bytes += kept.of_operators[i].values + kept.of_operators[i].masks;
  }
  return bytes;
}

void add_activations(std::vector<PublishedRow>& rows, const sim::Network& network, const Bert& bert) {
  const sim::TypedNetwork typed = sim::typed(network, sim::find_precision_policy("O3"));
  const double sbh = as_double(bert.sequence * bert.batch * bert.hidden);
  const double core = 5 * as_double(bert.heads * bert.sequence) / as_double(bert.hidden);
  const auto add = [&](sim::Recomputation recomputation, const std::string& formula, double published) {
    rows.push_back(
        {.key = fmt::format("transformer_layer.activations_{}", name_of(recomputation)),
         .quantity = fmt::format("transformer layer: activation bytes, recomputation {}, {}",
                                 name_of(recomputation), formula),
         .published = published,
         .ours = as_double(kept_by_layer(typed, recomputation)),
         .source = "Korthikanti et al. 2022",
         .note = "BERT-large's under O3; means and deviations of layer norms, 16sb, on neither side"});
  };
  add(sim::Recomputation::none, "sbh(34 + 5as/h)", sbh * (34 + core));
  add(sim::Recomputation::selective, "34sbh", sbh * 34);
  add(sim::Recomputation::full, "2sbh", sbh * 2);
}

/// Measured by tests/experiments/pytorch_saved_bytes_test.py.
void add_saved_for_backward(std::vector<PublishedRow>& rows) {
  struct Saved {
    const char *network, *policy;
    double bytes;
  };
  constexpr std::array saved{Saved{"mlp", "fp32", 800'772},
                             Saved{"mlp", "amp", 673'284},
                             Saved{"cnn", "fp32", 15'877'380},
                             Saved{"cnn", "amp", 9'212'964},
                             Saved{"transformer", "fp32", 39'162'372},
                             Saved{"transformer", "amp", 30'141'700}};
  for (const auto& [name, policy, bytes] : saved) {
    const sim::Network network = find_network(name).network();
    rows.push_back(
        {.key = fmt::format("saved_for_backward.{}.{}", name, policy),
         .quantity = fmt::format("{} under {}: bytes saved for backward", name, policy),
         .published = bytes,
         .ours = as_double(sim::kept_for_backward(sim::typed(network, sim::find_precision_policy(policy)))),
         .source = "PyTorch 2.15, saved_tensors_hooks under CUDA autocast",
         .note = "PyTorch saves besides indices, running statistics, and under autocast FP16 logits"});
  }
}

void add_flop(std::vector<PublishedRow>& rows, const sim::Network& network, const Bert& bert) {
  const sim::TypedNetwork typed = sim::typed(network, sim::find_precision_policy("O3"));
  std::uint64_t layer_forward = 0, layer_backward = 0;
  for (const sim::Kernel& kernel : sim::kernels_of(typed)) {
    const sim::Network::Operator& op = network.operators[kernel.op];
    if (!op.in_checkpoint || op.repetition != 1 || kernel.name != "product") continue;
    (kernel.phase == sim::Phase::forward ? layer_forward : layer_backward) += kernel.flop;
  }
  const double b = as_double(bert.batch), s = as_double(bert.sequence), h = as_double(bert.hidden);
  const ProductFlop all = product_flop(typed);
  rows.push_back({.key = "transformer_layer.flop_forward",
                  .quantity = "transformer layer: forward FLOP, 24bsh^2 + 4bs^2h",
                  .published = 24 * b * s * h * h + 4 * b * s * s * h,
                  .ours = as_double(layer_forward),
                  .source = "Korthikanti et al. 2022",
                  .note = "contractions of BERT-large's layer"});
  rows.push_back({.key = "transformer_layer.flop_backward_over_forward",
                  .quantity = "transformer layer: FLOP of backward over forward",
                  .published = 2,
                  .ours = as_double(layer_backward) / as_double(layer_forward),
                  .source = "Hugging Face, model training anatomy",
                  .note = "a product for each of two operands"});
  rows.push_back(
      {.key = "bert_large.flop_over_rule",
       .quantity = "BERT-large: FLOP of a step, 6 x parameters x tokens",
       .published = 6 * as_double(network.parameter_count()) * b * s,
       .ours = as_double(all.forward + all.backward),
       .source = "Kaplan et al. 2020",
       .note = "contractions; embeddings multiply nothing, which the rule counts, and attention's scores "
               "have no parameters, which it does not"});
}

void add_shares(std::vector<PublishedRow>& rows) {
  const ClassShares shares = encoder_shares();
  const auto add = [&](std::string_view what, std::size_t i, double published, double ours,
                       std::string note) {
    const std::string_view name = name_of(sim::operator_classes[i]);
    rows.push_back({.key = fmt::format("encoder.{}_percent.{}", what, i),
                    .quantity = fmt::format("BERT-large encoder: {} share of {}, %", what, name),
                    .published = published,
                    .ours = 100 * ours,
                    .source = "Ivanov et al. 2021",
                    .note = std::move(note)});
  };
  for (std::size_t i = 0; i < shares.size(); ++i)
    add("FLOP", i, published_flop_percent[i], shares[i].flop_share, "by the count of operations here");
  for (std::size_t i = 0; i < shares.size(); ++i)
    add("time", i, published_time_percent[i], shares[i].time_share,
        "theirs measured in PyTorch, ours the roofline of a V100 at its nominal rates");
}

}  // namespace

ClassShares encoder_shares() {
  const sim::Network network = bert_large(8).network();
  return class_shares(sim::typed(network, sim::find_precision_policy("O2")), sim::find_card("v100"), true);
}

std::vector<PublishedRow> published_rows() {
  constexpr Bert bert{.batch = 4, .sequence = 512, .hidden = 1024, .heads = 16};
  const sim::Network network = bert_large(bert.batch).network();
  std::vector<PublishedRow> rows;
  add_parameter_counts(rows);
  add_bytes_per_parameter(rows);
  add_bert_memory(rows);
  add_activations(rows, network, bert);
  add_saved_for_backward(rows);
  add_flop(rows, network, bert);
  add_shares(rows);
  return rows;
}

}  // namespace experiments::memory_anatomy
