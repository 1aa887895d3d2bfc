#include "sim/data/grammar.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {
namespace {

/// How often each text comes in 40,000.
std::map<std::string, int> frequencies(const std::vector<GrammarRule>& rules) {
  const Grammar grammar(rules);
  const RandomStream stream(0, "grammar test");
  RandomSequence random(stream, 0);
  std::map<std::string, int> counts;
  for (int i = 0; i < 40'000; ++i) {
    std::string text;
    grammar.write(text, random);
    ++counts[text];
  }
  return counts;
}

/// Five standard deviations of a count that is expected to be p of 40,000.
doctest::Approx expected(double p) {
  return doctest::Approx(40'000 * p).epsilon(5 * std::sqrt((1 - p) / (40'000 * p)));
}

TEST_CASE("alternatives are drawn by weight, and every name anew") {
  const auto counts = frequencies({{"s", "3*<x><x>||2*c"}, {"x", "a|b"}});
  CHECK(counts.size() == 6);
  for (const char* pair : {"aa", "ab", "ba", "bb"}) CHECK(counts.at(pair) == expected(1.0 / 8));
  CHECK(counts.at("") == expected(1.0 / 6));
  CHECK(counts.at("c") == expected(2.0 / 6));
}

TEST_CASE("a rule for each word") {
  const auto counts = frequencies(
      {{"s", "<x.on>|<x.off>"}, {"x.$", "$ <y.$> $", {"on", "off"}}, {"y.$", "1$", {"on", "off"}}});
  CHECK(counts.size() == 2);
  CHECK(counts.at("on 1on on") == expected(0.5));
  CHECK(counts.at("off 1off off") == expected(0.5));
}

TEST_CASE("digits and stars that are no weight are text") {
  const auto counts = frequencies({{"s", "12|*|2*3*"}});
  CHECK(counts.at("12") == expected(0.25));
  CHECK(counts.at("*") == expected(0.25));
  CHECK(counts.at("3*") == expected(0.5));
}

TEST_CASE("mean length and entropy of small grammars, by hand") {
  struct Example {
    std::vector<GrammarRule> rules;
    double length, entropy;
  };
  const double quarter = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  const std::vector<Example> examples{
      {{{"s", "heads|tails"}}, 5, std::log(2.0)},
      {{{"s", "3*aa|b"}}, 1.75, quarter},
      // Geometric: n times a with probability 2^-(n + 1).
      {{{"s", "a<s>|b"}}, 2, 2 * std::log(2.0)},
      // L = 1/4 (2 + 2 L) + 3/4 and H = quarter + 1/4 (2 H).
      {{{"s", "(<s>)<s>|3*."}}, 2.5, 2 * quarter},
      {{{"s", "<x>!"}, {"x", "yes"}}, 4, 0},
  };
  for (const Example& example : examples) {
    CAPTURE(example.rules.front().alternatives);
    const Grammar grammar(example.rules);
    CHECK(grammar.mean_length() == doctest::Approx(example.length).epsilon(1e-9));
    CHECK(grammar.entropy_rate() == doctest::Approx(example.entropy / example.length).epsilon(1e-6));
  }
}

TEST_CASE("rules that make no grammar are refused") {
  const auto error = [](const std::vector<GrammarRule>& rules) {
    try {
      const Grammar grammar(rules);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(error({}) == "a grammar needs a rule");
  CHECK(error({{"s", "<x>"}}) == "grammar rule 's': there is no rule 'x'");
  CHECK(error({{"s", "a"}, {"s", "b"}}) == "grammar rule 's': there are two of that name");
  CHECK(error({{"s", "a"}, {"x.$", "b", {"p", "p"}}}) == "grammar rule 'x.p': there are two of that name");
  CHECK(error({{"s", "a<x|b"}, {"x", "b"}}) == "grammar rule 's': '<x' lacks a >");
  CHECK(error({{"s", "0*a|b"}}) == "grammar rule 's': weight 0 found, allowed are 1 .. 65535");
  CHECK(error({{"s", "65536*a|b"}}) == "grammar rule 's': weight 65536 found, allowed are 1 .. 65535");
  const char* const endless = "a text of it is expected never to end";
  CHECK(error({{"s", "<s>"}}) == std::string("grammar rule 's': ") + endless);
  CHECK(error({{"s", "a<s>"}}) == std::string("grammar rule 's': ") + endless);
  CHECK(error({{"s", "<x>"}, {"x", "2*<x><x>|b"}}) == std::string("grammar rule 's': ") + endless);
  CHECK(error({{"s", "a"}, {"x", "<x>"}}) == std::string("grammar rule 'x': ") + endless);
}

}  // namespace
}  // namespace sim
