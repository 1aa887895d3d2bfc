#include "sim/data/generated_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sim {
namespace {

std::string text_of(const TextDataset& data) {
  const auto append = [&](std::string& text, const Batch& batch) {
    for (const std::int32_t token : batch.tokens) text += data.vocabulary()[static_cast<std::size_t>(token)];
  };
  std::string text;
  std::vector<std::uint32_t> starts;
  for (std::uint32_t start = 0; start < data.training_size();
       start += static_cast<std::uint32_t>(data.context()))
    starts.push_back(start);
  append(text, data.training_batch(starts));
  return text;
}

/// Reads texts by the rules, in every way there is. It shares nothing with the grammar that writes them but
/// the notation.
class Reader {
 public:
  struct Reading {
    double ways = 0;
    double probability = 0;
  };

  explicit Reader(const std::vector<GrammarRule>& rules) {
    for (const GrammarRule& rule : rules) {
      if (rule.words.empty()) add_rule(rule.name, rule.alternatives);
      for (const std::string& word : rule.words)
        add_rule(with_word(rule.name, word), with_word(rule.alternatives, word));
    }
  }

  Reading read(std::string_view text) {
    text_ = text;
    readings_.clear();
    const auto& ends = readings("paragraph", 0);
    const auto whole = ends.find(text.size());
    return whole == ends.end() ? Reading{} : whole->second;
  }

 private:
  struct Alternative {
    double weight = 1;
    std::string symbols;
  };
  using Ends = std::map<std::size_t, Reading>;

  static std::string with_word(const std::string& text, const std::string& word) {
    std::string result;
    for (char c : text) result += c == '$' ? word : std::string(1, c);
    return result;
  }

  void add_rule(const std::string& name, const std::string& alternatives) {
    std::vector<Alternative>& rule = rules_[name];
    double total = 0;
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = alternatives.find('|', begin);
      Alternative alternative{.symbols = alternatives.substr(begin, end - begin)};
      const std::size_t star = alternative.symbols.find('*');
      if (star != std::string::npos) {
        alternative.weight = std::stod(alternative.symbols.substr(0, star));
        alternative.symbols.erase(0, star + 1);
      }
      total += alternative.weight;
      rule.push_back(alternative);
    }
    for (Alternative& alternative : rule) alternative.weight /= total;
  }

  const Ends& readings(const std::string& name, std::size_t begin) {
    const auto key = std::pair(name, begin);
    if (const auto known = readings_.find(key); known != readings_.end()) return known->second;
    Ends ends;
    for (const Alternative& alternative : rules_.at(name))
      follow(alternative.symbols, begin, {1, alternative.weight}, ends);
    return readings_[key] = ends;
  }

  void follow(std::string_view symbols, std::size_t at, Reading so_far, Ends& ends) {
    while (!symbols.empty() && symbols.front() != '<') {
      if (at == text_.size() || text_[at] != symbols.front()) return;
      symbols.remove_prefix(1);
      ++at;
    }
    if (symbols.empty()) {
      ends[at].ways += so_far.ways;
      ends[at].probability += so_far.probability;
      return;
    }
    const std::size_t close = symbols.find('>');
    const Ends parts = readings(std::string(symbols.substr(1, close - 1)), at);
    for (const auto& [end, part] : parts) {
      follow(symbols.substr(close + 1), end, {so_far.ways * part.ways, so_far.probability * part.probability},
             ends);
    }
  }

  std::map<std::string, std::vector<Alternative>> rules_;
  std::map<std::pair<std::string, std::size_t>, Ends> readings_;
  std::string_view text_;
};

/// Lines up to an empty one, with it.
std::vector<std::string_view> paragraphs_of(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  for (auto end = text.find("\n\n"); end != std::string_view::npos; end = text.find("\n\n")) {
    paragraphs.push_back(text.substr(0, end + 2));
    text.remove_prefix(end + 2);
  }
  return paragraphs;
}

TEST_CASE("the built-in text is the same bytes everywhere") {
  const TextDataset data = generate_text();
  CHECK(data.name() == "text");
  CHECK(data.context() == 64);
  CHECK(data.vocabulary().size() == 67);
  CHECK(data.training_size() == 270447);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text_of(data)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  CHECK(hash == 0x5203a0079ab0ada1);
  CHECK(data.unigram_entropy() == doctest::Approx(3.042).epsilon(1e-4));
  CHECK(data.entropy_rate().value() == doctest::Approx(0.370299).epsilon(1e-5));
}

TEST_CASE("every paragraph can be read in one way, and tells as much as the entropy rate says") {
  const TextDataset data = generate_text();
  const std::string text = text_of(data);
  Reader reader(text_rules());
  std::vector<std::pair<double, double>> told;  // nats and bytes of a paragraph
  double nats = 0, bytes = 0;
  for (const std::string_view paragraph : paragraphs_of(text)) {
    CAPTURE(paragraph);
    const Reader::Reading reading = reader.read(paragraph);
    REQUIRE(reading.ways == 1);
    told.emplace_back(-std::log(reading.probability), static_cast<double>(paragraph.size()));
    nats += told.back().first;
    bytes += told.back().second;
  }
  REQUIRE(told.size() > 2000);
  // The rate of the sample is a quotient of means of independent paragraphs; its standard error is that of
  // nats - rate * bytes.
  const double rate = data.entropy_rate().value();
  double squares = 0;
  for (const auto& [paragraph_nats, paragraph_bytes] : told)
    squares += std::pow(paragraph_nats - rate * paragraph_bytes, 2);
  const double standard_error = std::sqrt(squares) / bytes;
  CAPTURE(nats / bytes);
  CAPTURE(standard_error);
  CHECK(standard_error < 0.005);
  CHECK(std::fabs(nats / bytes - rate) < 4 * standard_error);
}

TEST_CASE("a reader that counts ways finds two where there are two") {
  Reader reader({{"paragraph", "<x>|a<x>"}, {"x", "a|<y>b"}, {"y", "a|aa"}});
  CHECK(reader.read("aab").ways == 2);
  CHECK(reader.read("aab").probability == doctest::Approx(0.25));
  CHECK(reader.read("aa").ways == 1);
  CHECK(reader.read("ba").ways == 0);
}

TEST_CASE("options: context, size and seed") {
  const TextDataset small = generate_text({.context = 16, .size = 5000});
  CHECK(small.context() == 16);
  CHECK(text_of(small).size() >= 4400);
  CHECK(text_of(small).size() < 6000);
  CHECK(text_of(small).substr(0, 4000) == text_of(generate_text()).substr(0, 4000));
  CHECK(text_of(generate_text({.context = 16, .size = 5000, .seed = 1})).substr(0, 4000) !=
        text_of(small).substr(0, 4000));
}

}  // namespace
}  // namespace sim
