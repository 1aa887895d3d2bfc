#include "sim/sizing/network_description.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/toml_file.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

using test::TemporaryDirectory;

namespace {

/// A file of this text, read and bound.
struct Written {
  explicit Written(const std::string& text) : file((directory / "net.toml").string()) {
    std::ofstream(file, std::ios::binary) << text;
  }
  sim::NetworkDescription description() const {
    return sim::read_network(experiments::read_toml_file(file), file);
  }
  sim::Network network(const std::map<std::string, std::uint64_t>& symbols = {}) const {
    return sim::network_of(description(), symbols);
  }

  TemporaryDirectory directory;
  std::string file;
};

/// The line that reading or binding the text throws, without the directory of its file.
std::string error_of(const std::string& text) {
  const Written written(text);
  try {
    written.network();
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    CHECK(what.starts_with(written.file));
    return what.substr(written.file.size());
  }
  return "nothing thrown";
}

const std::string images = R"(name = "images"
[symbols]
batch = 2
width = 3
[input]
shape = ["batch", 3, 9, 9]
[[blocks]]
name = "stem"
operators = [
  { name = "conv", operation = "conv2d", channels = "2*width", window = 3, stride = 2, padding = 1, bias = false },
  { name = "norm", operation = "batch_norm" },
  { name = "pool", operation = "max_pool2d", window = 2, stride = 2 },
]
[[blocks]]
name = "residual"
repeat = "width"
operators = [
  { name = "conv", operation = "conv2d", channels = "2*width", window = 1 },
  { name = "sum", operation = "add", inputs = ["x", "conv"] },
]
[[blocks]]
name = "head"
operators = [
  { name = "mean", operation = "global_average_pool" },
  { name = "classifier", operation = "linear", features = 10 },
]
)";

/// One operator on batch x 8.
std::string with_operator(const std::string& line) {
  return "name = \"n\"\n[symbols]\nbatch = 4\n[input]\nshape = [\"batch\", 8]\n[[blocks]]\nname = \"b\"\n"
         "operators = [\n" +
         line + "\n]\n";
}

}  // namespace

TEST_CASE("network description: shapes, repetitions and parameters follow from the symbols") {
  const sim::Network network = Written(images).network();
  CHECK(network.operators.size() == 3 + 3 * 2 + 2);
  CHECK(network.operators[0].shape.output == sim::Shape{2, 6, 5, 5});  // (9 + 2 - 3) / 2 + 1
  CHECK(network.operators[2].shape.output == sim::Shape{2, 6, 2, 2});
  CHECK(network.operators.back().shape.output == sim::Shape{2, 10});
  // 6x3x3x3; gain and bias of 6; three of 6x6 with a bias; 10x6 with a bias.
  CHECK(network.parameter_count() == 162 + 12 + 3 * 42 + 70);
  CHECK(network.buffers.size() == 2);
  CHECK(network.parameters[1].of_batch_norm);
  CHECK(!network.parameters[3].of_batch_norm);
  CHECK(network.operators[5].name == "residual.conv");
  CHECK(network.operators[5].repetition == 1);
  CHECK(network.operators[5].description == network.operators[3].description);
  CHECK(network.operators[5].block != network.operators[3].block);
  CHECK(network.operators[6].inputs == std::vector<std::size_t>{5, 6});  // x is the sum before
  CHECK(network.parameters[5].name == "residual2.conv.weight");

  const sim::Network wide = Written(images).network({{"width", 5}, {"batch", 7}});
  CHECK(wide.symbols.at("width") == 5);
  CHECK(wide.operators.size() == 3 + 5 * 2 + 2);
  CHECK(wide.operators.front().shape.output == sim::Shape{7, 10, 5, 5});
}

TEST_CASE("network description: attention, a token of each sequence, and a weight that two share") {
  const Written written(R"(name = "text"
[symbols]
batch = 2
[input]
shape = ["batch", 5]
indices = true
[[blocks]]
name = "all"
operators = [
  { name = "token", operation = "embedding", rows = 11, features = 6 },
  { name = "scores", operation = "attention_scores", inputs = ["token", "token"], heads = 3 },
  { name = "softmax", operation = "softmax" },
  { name = "context", operation = "attention_context", inputs = ["softmax", "token"] },
  { name = "logits", operation = "linear", features = 11, bias = false, weights_of = "all.token" },
  { name = "first", operation = "first_token" },
]
)");
  const sim::Network network = written.network();
  CHECK(network.operators[0].shape.output == sim::Shape{2, 5, 6});
  CHECK(network.operators[1].shape.output == sim::Shape{2, 3, 5, 5});
  CHECK(network.operators[3].shape.output == sim::Shape{2, 5, 6});
  CHECK(network.operators[5].shape.output == sim::Shape{2, 11});
  CHECK(network.parameter_count() == 66);
  CHECK(network.operators[4].parameters == network.operators[0].parameters);
}

TEST_CASE("network description: a wrong file is one line of file, line, what was found and what is allowed") {
  CHECK(error_of("name = ").starts_with(":1: "));
  CHECK(error_of("name = \"n\"\n") == ":1: the network lacks 'symbols'");
  CHECK(test::contains(error_of("nome = \"n\"\n"),
                       ":1: the network: unknown key 'nome'; did you mean 'name'?"));
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"liner\", features = 3 }"))
            .starts_with(
                ":9: operator 'b.a': unknown operation 'liner'; did you mean 'linear'? allowed: linear, "));
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"linear\" }")) ==
        ":9: operator 'b.a' lacks 'features'");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"relu\", features = 3 }")) ==
        ":9: operator 'b.a': unknown size 'features'; none is allowed");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"linear\", features = \"2*hiden\" }")) ==
        ":9: operator 'b.a': features = '2*hiden': unknown factor 'hiden'; allowed: products of whole "
        "numbers and "
        "symbols, batch");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"linear\", features = 0 }")) ==
        ":9: operator 'b.a': features = 0 is not allowed; allowed: at least 1");
  CHECK(test::contains(error_of(with_operator("{ name = \"a\", operation = \"linear\", features = 1.5 }")),
                       "features = 1.5 is not allowed; allowed: whole numbers"));
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"linear\", features = 4294967296 }")) ==
        ":9: operator 'b.a': features = '4294967296' is too large; allowed: up to 2147483647");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"add\" }")) ==
        ":9: operator 'b.a' has 1 inputs; allowed: 2");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"add\", inputs = [\"x\", \"y\"] }")) ==
        ":9: operator 'b.a': unknown input 'y'; allowed: x");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"max_pool2d\", window = 2 }")) ==
        ":9: operator 'b.a': input 4x8; allowed: batch x channels x height x width");
  CHECK(error_of(with_operator("{ name = \"a\", operation = \"embedding\", rows = 2, features = 2 }")) ==
        ":9: operator 'b.a' is given numbers; allowed: indices, as the network's input");
  CHECK(error_of(with_operator(
            "{ name = \"a\", operation = \"relu\" },\n{ name = \"a\", operation = \"relu\" }")) ==
        ":10: name 'a' stands there twice; allowed: names that differ");
  CHECK(test::contains(
      error_of(with_operator("{ name = \"a\", operation = \"linear\", features = 4, weights_of = \"b.c\" }")),
      "weights_of = 'b.c' is not allowed; allowed: an earlier operator with a weight"));
  CHECK(error_of("name = \"n\"\n[symbols]\nbatch = 0\n[input]\nshape = [1]\n[[blocks]]\nname = \"b\"\n"
                 "operators = [ { name = \"a\", operation = \"relu\" } ]\n") ==
        ":3: symbol batch = 0 is not allowed; allowed: whole numbers from 1 to 2147483647");
}

TEST_CASE("network description: what cannot be counted in 64 bits is refused, not wrapped around") {
  const std::string huge = with_operator("{ name = \"a\", operation = \"linear\", features = 2147483647 }");
  CHECK_THROWS_WITH(Written(huge).network({{"batch", 2147483647}}),
                    doctest::Contains("is too large; allowed: up to 2^56 elements in all"));
  const std::string square = with_operator(
      "{ name = \"a\", operation = \"linear\", features = 4194304 },\n"
      "{ name = \"b\", operation = \"linear\", features = 4194304 }");
  CHECK_THROWS_WITH(Written(square).network({{"batch", 1 << 20}}),
                    doctest::Contains("the network takes more than 2^60 FLOP"));
  std::string repeated = with_operator("{ name = \"a\", operation = \"relu\" }");
  repeated.replace(repeated.find("operators"), 0, "repeat = 20000\n");
  CHECK_THROWS_WITH(Written(repeated).network(), doctest::Contains("more than 10000 operators"));
}

TEST_CASE(
    "network description: a symbol above its limit is refused, and allowed where the limit is raised too") {
  std::string text = images;
  text.replace(text.find("[input]"), 0, "[limits]\nwidth = \"2*batch\"\n");
  const Written written(text);
  CHECK_THROWS_WITH(written.network({{"batch", 2}, {"width", 5}}),
                    "network 'images': width = 5 is not allowed; allowed: at most 2*batch, which is 4");
  CHECK(written.network({{"batch", 3}, {"width", 5}}).symbols.at("width") == 5);
  text.replace(text.find("width = \"2"), 5, "height");
  CHECK(test::contains(error_of(text), "limits: 'height' is no symbol of the network"));
}

TEST_CASE("network description: symbols that are unknown, zero") {
  const Written written(images);
  CHECK_THROWS_WITH(written.network({{"height", 3}}),
                    "network 'images': unknown symbol 'height'; allowed: batch, width");
  CHECK_THROWS_WITH(
      written.network({{"batch", 0}}),
      "network 'images': batch = 0 is not allowed; allowed: whole numbers from 1 to 2147483647");
}
