#pragma once
/// A described transformer of post-norm layers, as BERT has them, to hold formulas against.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/sizing/network_description.h"

namespace test {

/// `layers` layers on numbers of batch x sequence x hidden.
inline sim::NetworkDescription transformer_layers(std::uint64_t batch, std::uint64_t sequence,
                                                  std::uint64_t hidden, std::uint64_t heads,
                                                  std::uint64_t layers = 3) {
  using sim::DescribedOperator;
  const auto linear = [](std::string name, std::string input, std::string features) {
    return DescribedOperator{.name = std::move(name),
                             .operation = "linear",
                             .inputs = {std::move(input)},
                             .sizes = {{"features", {std::move(features), 0}}}};
  };
  const auto plain = [](std::string name, std::string operation, std::vector<std::string> inputs = {},
                        bool recompute = false) {
    return DescribedOperator{.name = std::move(name),
                             .operation = std::move(operation),
                             .inputs = std::move(inputs),
                             .recompute = recompute};
  };
  DescribedOperator scores = plain("scores", "attention_scores", {"query", "key"}, true);
  scores.sizes = {{"heads", {"heads", 0}}};
  return {
      .file = "test",
      .name = "layers",
      .source = {},
      .symbols = {{"batch", batch}, {"sequence", sequence}, {"hidden", hidden}, {"heads", heads}},
      .input_shape = {{"batch", 0}, {"sequence", 0}, {"hidden", 0}},
      .blocks = {{.name = "layer",
                  .repeat = {std::to_string(layers), 0},
                  .is_checkpoint = true,
                  .operators = {linear("query", "x", "hidden"), linear("key", "x", "hidden"),
                                linear("value", "x", "hidden"), scores, plain("softmax", "softmax", {}, true),
                                plain("dropout", "dropout", {}, true),
                                plain("context", "attention_context", {"dropout", "value"}, true),
                                linear("projection", "context", "hidden"), plain("drop1", "dropout"),
                                plain("sum1", "add", {"x", "drop1"}), plain("norm1", "layer_norm"),
                                linear("wide", "norm1", "4*hidden"), plain("gelu", "gelu"),
                                linear("narrow", "gelu", "hidden"), plain("drop2", "dropout"),
                                plain("sum2", "add", {"norm1", "drop2"}), plain("norm2", "layer_norm")}}}};
}

}  // namespace test
