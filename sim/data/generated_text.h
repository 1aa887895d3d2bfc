#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/data/dataset.h"
#include "sim/data/grammar.h"

namespace sim {

struct TextOptions {
  std::size_t context = 64;    ///< tokens a window
  std::size_t size = 300'000;  ///< bytes; the last paragraph is completed, so the text is a little longer
  std::uint64_t seed = 0;      ///< of the writer, not of a training run
};

/// The rules by which the text is written: paragraphs, independent of each other, of tales, couplets, sums
/// and dialogues. Much in them is settled by what stands far before: the endings of verbs by the number of
/// their noun, across nested relative clauses; pronouns by the name that a tale began with; closing brackets
/// and quotation marks by the opening ones; the second rhyme by the first; results by their operands; the
/// thing in an answer by the question.
std::vector<GrammarRule> text_rules();

/// A text drawn by these rules, with the entropy rate that they give it. Same options, same bytes, on every
/// machine.
TextDataset generate_text(const TextOptions& options = {});

}  // namespace sim
