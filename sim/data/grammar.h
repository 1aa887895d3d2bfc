#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/data/random_sequence.h"

namespace sim {

/// One rule of a grammar, or one for each of several words.
///
/// `alternatives` are separated by |. Each is text, in which <name> stands for an alternative of the rule of
/// that name, drawn anew at every place. An alternative that begins with digits and * is drawn that many
/// times as often as one without. Where `words` are given, the rule stands for one rule a word, in which the
/// word takes the place of every $: {"verb.$", "<stem>$|is", {"s", "ed"}} is {"verb.s", "<stem>s|is"} and
/// {"verb.ed", "<stem>ed|is"}.
struct GrammarRule {
  std::string name;
  std::string alternatives;
  std::vector<std::string> words{};
};

/// A probabilistic context-free grammar over bytes.
class Grammar {
 public:
  /// Texts are alternatives of the first rule. Throws std::invalid_argument when there is no rule or, naming
  /// the rule, when two have one name, a name is not a rule's, a bracket is not closed, a weight is not
  /// 1 .. 65535 or the mean length of a text has no end.
  explicit Grammar(const std::vector<GrammarRule>& rules);

  /// Appends one text to `out`.
  void write(std::string& out, RandomSequence& random) const;

  /// The mean length of a text in bytes.
  double mean_length() const { return means_.front().length; }

  /// Entropy of one text over its mean length, in nats per byte: the entropy rate of texts written one after
  /// the other, provided that no two ways of drawing give the same bytes. Of each draw the entropy is right
  /// within 4e-6 nats.
  double entropy_rate() const { return means_.front().entropy / means_.front().length; }

 private:
  struct RuleIndex {
    std::size_t value;
  };
  using Symbol = std::variant<std::string, RuleIndex>;

  struct Alternative {
    std::size_t weight = 1;
    std::vector<Symbol> symbols;
  };

  struct Rule {
    std::vector<Alternative> alternatives;
    std::size_t weight = 0;  ///< of all alternatives together
  };

  /// Over all texts of one rule; `draws` counts the alternatives drawn for one.
  struct Means {
    double draws = 0;
    double length = 0;
    double entropy = 0;
  };

  static Alternative parse(std::string_view text, const GrammarRule& rule,
                           const std::vector<GrammarRule>& rules);
  void write(const Rule& rule, std::string& out, RandomSequence& random) const;
  Means means_of(const Rule& rule) const;
  void find_means(const std::vector<GrammarRule>& rules);

  std::vector<Rule> rules_;
  std::vector<Means> means_;
};

}  // namespace sim
