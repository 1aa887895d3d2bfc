#include "sim/data/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <stdexcept>

#include "fp16/elementary.h"

namespace sim {
namespace {

[[noreturn]] void fail(const GrammarRule& rule, const std::string& message) {
  throw std::invalid_argument(fmt::format("grammar rule '{}': {}", rule.name, message));
}

std::string replace_dollars(std::string text, std::string_view word) {
  for (auto at = text.find('$'); at != std::string::npos; at = text.find('$', at + word.size()))
    text.replace(at, 1, word);
  return text;
}

std::vector<GrammarRule> one_rule_a_word(const std::vector<GrammarRule>& rules) {
  std::vector<GrammarRule> expanded;
  for (const GrammarRule& rule : rules) {
    if (rule.words.empty()) expanded.push_back(rule);
    for (const std::string& word : rule.words) {
      expanded.push_back({.name = replace_dollars(rule.name, word),
                          .alternatives = replace_dollars(rule.alternatives, word)});
    }
  }
  return expanded;
}

std::size_t index_of(std::string_view name, const std::vector<GrammarRule>& rules) {
  return static_cast<std::size_t>(std::ranges::find(rules, name, &GrammarRule::name) - rules.begin());
}

/// Takes "digits*" off the front of an alternative.
std::size_t take_weight(std::string_view& text, const GrammarRule& rule) {
  const std::size_t star = std::min(text.find_first_not_of("0123456789"), text.size());
  if (star == 0 || star == text.size() || text[star] != '*') return 1;
  std::uint16_t weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + star, weight);
  if (error != std::errc{} || weight == 0)
    fail(rule, fmt::format("weight {} found, allowed are 1 .. 65535", text.substr(0, star)));
  text.remove_prefix(star + 1);
  return weight;
}

double log_of(std::size_t count) {
  return static_cast<double>(fp16::log(static_cast<float>(count)));
}

}  // namespace

Grammar::Grammar(const std::vector<GrammarRule>& rules) {
  if (rules.empty()) throw std::invalid_argument("a grammar needs a rule");
  const std::vector<GrammarRule> expanded = one_rule_a_word(rules);
  for (std::size_t i = 0; i < expanded.size(); ++i) {
    if (index_of(expanded[i].name, expanded) != i) fail(expanded[i], "there are two of that name");
    Rule& rule = rules_.emplace_back();
    std::string_view rest = expanded[i].alternatives;
    for (bool more = true; more;) {
      const std::size_t end = std::min(rest.find('|'), rest.size());
      rule.alternatives.push_back(parse(rest.substr(0, end), expanded[i], expanded));
      rule.weight += rule.alternatives.back().weight;
      more = end < rest.size();
      if (more) rest.remove_prefix(end + 1);
    }
  }
  find_means(expanded);
}

Grammar::Alternative Grammar::parse(std::string_view text, const GrammarRule& rule,
                                    const std::vector<GrammarRule>& rules) {
  Alternative alternative{.weight = take_weight(text, rule), .symbols = {}};
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('<'), text.size());
    if (open > 0) alternative.symbols.emplace_back(std::string(text.substr(0, open)));
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::size_t close = text.find('>');
    if (close == std::string_view::npos) fail(rule, fmt::format("'{}' lacks a >", text));
    const std::string_view name = text.substr(1, close - 1);
    const std::size_t index = index_of(name, rules);
    if (index == rules.size()) fail(rule, fmt::format("there is no rule '{}'", name));
    alternative.symbols.emplace_back(RuleIndex{index});
    text.remove_prefix(close + 1);
  }
  return alternative;
}

void Grammar::write(std::string& out, RandomSequence& random) const {
  write(rules_.front(), out, random);
}

void Grammar::write(const Rule& rule, std::string& out, RandomSequence& random) const {
  std::uint64_t drawn = random.below(rule.weight);
  auto alternative = rule.alternatives.begin();
  for (; drawn >= alternative->weight; ++alternative) drawn -= alternative->weight;
  for (const Symbol& symbol : alternative->symbols) {
    if (const auto* text = std::get_if<std::string>(&symbol)) {
      out += *text;
    } else {
      write(rules_[std::get<RuleIndex>(symbol).value], out, random);
    }
  }
}

/// From the means of other rules as known so far.
Grammar::Means Grammar::means_of(const Rule& rule) const {
  Means means{.draws = 1, .length = 0, .entropy = log_of(rule.weight)};
  for (const Alternative& alternative : rule.alternatives) {
    const double share = static_cast<double>(alternative.weight) / static_cast<double>(rule.weight);
    means.entropy -= share * log_of(alternative.weight);
    for (const Symbol& symbol : alternative.symbols) {
      if (const auto* text = std::get_if<std::string>(&symbol)) {
        means.length += share * static_cast<double>(text->size());
      } else {
        const Means& part = means_[std::get<RuleIndex>(symbol).value];
        means.draws += share * part.draws;
        means.length += share * part.length;
        means.entropy += share * part.entropy;
      }
    }
  }
  return means;
}

/// The means obey linear equations with coefficients that are not negative. Repeated substitution from 0
/// grows towards their least solution, or without end where there is none. The mean number of draws bounds
/// the others up to a factor, so they stand still when it does.
void Grammar::find_means(const std::vector<GrammarRule>& rules) {
  constexpr int rounds = 10'000;
  means_.resize(rules_.size());
  for (int round = 0; round < rounds; ++round) {
    bool grew = false;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const Means means = means_of(rules_[i]);
      grew = grew || !(means.draws - means_[i].draws <= 1e-12 * means.draws);
      means_[i] = means;
    }
    if (!grew) return;
  }
  const auto endless = std::ranges::max_element(means_, {}, &Means::draws) - means_.begin();
  fail(rules[static_cast<std::size_t>(endless)], "a text of it is expected never to end");
}

}  // namespace sim
