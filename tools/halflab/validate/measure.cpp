#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "experiments/frame/parallel.h"
#include "experiments/frame/tensor_files/element_reader.h"
#include "fp16/names.h"
#include "fp16/rounding_names.h"
#include "tools/halflab/elements.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/validate/explanation.h"
#include "tools/halflab/validate/findings.h"

namespace halflab::validate {
namespace {

namespace files = experiments::tensor_files;

constexpr std::uint64_t results_of_a_piece = 1 << 18, results_of_a_block = 1 << 13;

struct NanRule {
  std::string_view name;
  fp16::NanPolicy policy;
  bool any;
};
constexpr std::array nan_rules{NanRule{"first_operand", fp16::NanPolicy::first_operand, false},
                               NanRule{"canonical_nvidia", fp16::NanPolicy::canonical_nvidia, false},
                               NanRule{"canonical_riscv", fp16::NanPolicy::canonical_riscv, false},
                               NanRule{"any", fp16::NanPolicy::first_operand, true}};

struct Question {
  const Function& function;
  Evaluate evaluate;
  fp16::Attributes attributes;
  bool any_nan;
  std::uint64_t ulp;
  fp16::Format operand_format, result_format;
  CodeQuestions operand, result;
  const std::vector<Deviation>& deviations;
};

bool is_right(const Question& question, std::uint64_t expected, std::uint64_t result) {
  return expected == result ||
         (question.any_nan && question.result.is_nan(expected) && question.result.is_nan(result));
}

/// Counts results, one at a time.
class Counter {
 public:
  explicit Counter(const Question& question) : question_(question) {}

  Counts counts() && { return std::move(counts_); }

  void add(std::uint64_t index, const Operands& codes, std::uint64_t result) {
    const std::uint64_t expected = question_.evaluate(codes, question_.attributes);
    const bool nan_expected = question_.result.is_nan(expected), nan_result = question_.result.is_nan(result);
    const bool right = is_right(question_, expected, result);
    Share share{.results = 1, .differing = !right};
    ++counts_.results;
    if (right) {
      ++counts_.by_ulp.counts[0];
      if (index % sampling == 0) add_contradictions(codes, result);
    } else {
      ++counts_.differing;
      const std::uint64_t beyond = counts_.beyond;
      if (nan_expected != nan_result) {
        ++counts_.one_nan;
        ++counts_.beyond;
      } else {
        add_distance(expected, result, nan_result, share);
      }
      add_explanations(codes, expected, result);
      const Difference difference = counts_.beyond == beyond     ? Difference::allowed
                                    : nan_expected && nan_result ? Difference::nan_bits
                                                                 : Difference::wrong;
      counts_.add_first({difference, index, codes, expected, result});
    }
    const auto part = [&](std::size_t i) {
      return question_.function.arity > static_cast<int>(i)
                 ? part_of(question_.operand_format, question_.operand, codes[i])
                 : 0;
    };
    counts_.by_part[part(0)][part(1)] += share;
  }

 private:
  void add_distance(std::uint64_t expected, std::uint64_t result, bool are_nans, Share& share) {
    const std::uint64_t distance = are_nans ? 0 : question_.result.distance(expected, result);
    counts_.by_ulp.add(distance);
    counts_.nan_bits += are_nans;
    share.most_ulp = distance;
    const bool is_wrong_sign = !are_nans && distance == 0 && question_.ulp == 0;  // of a zero
    counts_.zero_signs += is_wrong_sign;
    counts_.beyond += are_nans || is_wrong_sign || distance > question_.ulp;
  }

  void add_contradictions(const Operands& codes, std::uint64_t result) {
    for (std::size_t i = 0; i < question_.deviations.size(); ++i) {
      const Deviation& deviation = question_.deviations[i];
      counts_.contradictions[i] += deviation.contradicts(codes, result);
    }
  }

  void add_explanations(const Operands& codes, std::uint64_t expected, std::uint64_t result) {
    std::uint32_t set = 0;
    for (std::size_t i = 0; i < question_.deviations.size(); ++i)
      set |= static_cast<std::uint32_t>(question_.deviations[i].explains(codes, expected, result)) << i;
    ++counts_.by_deviations[set];
  }

  const Question& question_;
  Counts counts_;
};

/// Operands and results, read in pieces.
class Results {
 public:
  Results(const std::vector<files::StoredTensor>& operands, const files::StoredTensor& results,
          experiments::Run& run)
      : operands_(operands), results_(results), run_(run) {
    const auto is_mapped = [](const files::StoredTensor& each) {
      return each.packing == files::Packing::none;
    };
    piece_ = std::ranges::all_of(operands, is_mapped) && is_mapped(results) ? results_of_a_piece
                                                                            : results.elements;
  }

  /// Adds up what count_piece(first, count) makes of each piece.
  template <class Sum, class CountPiece>
  Sum sum(const char* what, CountPiece&& count_piece) const {
    Sum sum{};
    std::mutex mutex;
    const std::uint64_t pieces = (results_.elements + piece_ - 1) / piece_;
    experiments::Progress progress = run_.progress(what, pieces);
    experiments::parallel_for_each(pieces, run_.threads(), [&](std::size_t i) {
      const std::uint64_t first = i * piece_;
      const Sum found = count_piece(first, std::min(piece_, results_.elements - first));
      progress.tick();
      const std::scoped_lock lock(mutex);
      sum += found;
    });
    return sum;
  }

  /// Calls visit(index, codes, result) for so many results.
  template <class Visit>
  void for_each(std::uint64_t first, std::uint64_t count, Visit&& visit) const {
    const auto stream = [&](const files::StoredTensor& tensor) {
      return std::make_unique<files::ElementStream>(files::Piece{&tensor, first, count});
    };
    std::vector<std::unique_ptr<files::ElementStream>> streams;
    for (const files::StoredTensor& tensor : operands_) streams.push_back(stream(tensor));
    const auto result_stream = stream(results_);
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t size = std::min(results_of_a_block, count - done);
      std::array<files::Bytes, 3> blocks;
      for (std::size_t i = 0; i < operands_.size(); ++i) blocks[i] = streams[i]->next(size);
      const files::Bytes result_block = result_stream->next(size);
      for (std::uint64_t i = 0; i < size; ++i) {
        Operands codes{};
        for (std::size_t k = 0; k < operands_.size(); ++k)
          codes[k] = code_at(blocks[k], *operands_[k].type, i);
        visit(first + done + i, codes, code_at(result_block, *results_.type, i));
      }
      done += size;
    }
  }

 private:
  const std::vector<files::StoredTensor>& operands_;
  const files::StoredTensor& results_;
  experiments::Run& run_;
  std::uint64_t piece_;
};

Counts count(const Results& results, const Question& question) {
  return results.sum<Counts>("validate", [&](std::uint64_t first, std::uint64_t count) {
    Counter counter(question);
    results.for_each(first, count, [&](auto&&... result) { counter.add(result...); });
    return std::move(counter).counts();
  });
}

using Contradicts = std::function<bool(const Operands& operands, std::uint64_t result)>;

/// Whether a kernel with all these deviations would not give this result, which is right: computed with what they change,
/// where that is all they do, else asked of each alone.
Contradicts contradiction_of(const Question& question, const DeviationSet& set) {
  fp16::Attributes attributes = question.attributes;
  Evaluate evaluate = question.evaluate;
  for (const std::size_t i : set) {
    if (!question.deviations[i].change)
      return [&question, set](const Operands& codes, std::uint64_t result) {
        return std::ranges::any_of(
            set, [&](std::size_t each) { return question.deviations[each].contradicts(codes, result); });
      };
    question.deviations[i].change(attributes);
  }
  if (attributes.rounding != question.attributes.rounding)
    evaluate = question.function.in(question.operand_format, question.result_format, attributes.rounding);
  return [&question, evaluate, attributes](const Operands& codes, std::uint64_t result) {
    return !is_right(question, evaluate(codes, attributes), result);
  };
}

/// The right results that speak against each set.
struct AllContradictions {
  std::vector<Contradictions> of;

  AllContradictions& operator+=(const AllContradictions& other) {
    of.resize(other.of.size());
    for (std::size_t i = 0; i < of.size(); ++i) of[i] += other.of[i];
    return *this;
  }
};

AllContradictions contradictions(const Results& results, const Question& question,
                                 const std::vector<DeviationSet>& sets) {
  std::vector<Contradicts> contradict;
  for (const DeviationSet& set : sets) contradict.push_back(contradiction_of(question, set));
  return results.sum<AllContradictions>("explain", [&](std::uint64_t first, std::uint64_t count) {
    AllContradictions found{.of = std::vector<Contradictions>(sets.size())};
    results.for_each(first, count, [&](std::uint64_t index, const Operands& codes, std::uint64_t result) {
      if (!is_right(question, question.evaluate(codes, question.attributes), result)) return;
      for (std::size_t i = 0; i < sets.size(); ++i) {
        if (contradict[i](codes, result)) found.of[i].add(index);
      }
    });
    return found;
  });
}

void require_alike(const std::vector<files::StoredTensor>& operands, const files::StoredTensor& results) {
  if (results.elements == 0)
    throw std::runtime_error(
        fmt::format("{} has no element, so that nothing can be checked", results.place()));
  for (const files::StoredTensor& tensor : operands) {
    if (tensor.elements != results.elements)
      throw std::runtime_error(fmt::format("{} has {} elements, and {} has {}; they must be as many",
                                           tensor.place(), tensor.elements, results.place(),
                                           results.elements));
    if (tensor.columns_first != results.columns_first && tensor.shape.size() + results.shape.size() > 2)
      throw std::runtime_error(
          fmt::format("{} and {} have their elements in different orders; must be one, as "
                      "numpy.ascontiguousarray makes it",
                      tensor.place(), results.place()));
    if (tensor.type != operands.front().type)
      throw std::runtime_error(fmt::format("{} holds {}, and {} holds {}; operands must be of one format",
                                           tensor.place(), tensor.type->format, operands.front().place(),
                                           operands.front().type->format));
  }
}

}  // namespace

Findings measure(const std::vector<files::StoredTensor>& operands, const files::StoredTensor& results,
                 const Function& function, const Options& options, experiments::Run& run) {
  require_alike(operands, results);
  const fp16::NamedFormat* const operand_format = &scalar_format(operands.front().type->format);
  const fp16::NamedFormat* const result_format = &scalar_format(results.type->format);
  const auto& nan =
      experiments::from_option("--nan", [&] { return names::find_by_name(nan_rules, "rule", options.nan); });
  const fp16::Rounding rounding = experiments::from_option("--rounding", [&] {
    return names::find_by_name(fp16::named_roundings, "rounding", options.rounding).rounding;
  });
  if (rounding == fp16::Rounding::stochastic)
    throw std::invalid_argument("--rounding: stochastic has no one result that could be expected");
  const fp16::Attributes attributes{.rounding = rounding,
                                    .saturate = options.saturate,
                                    .flush_to_zero = options.flush_subnormals,
                                    .denormals_are_zero = options.flush_subnormals,
                                    .nan_policy = nan.policy};
  Findings found{.function = &function,
                 .operands = operand_format,
                 .result = result_format,
                 .ulp = static_cast<std::uint64_t>(options.ulp),
                 .deviations = {},
                 .counts = {},
                 .explanation = {},
                 .rivals = {},
                 .contradictions = {}};
  Evaluate evaluate = function.in(operand_format->format, result_format->format, rounding);
  if (!evaluate) {
    std::vector<std::string_view> allowed;
    for (const fp16::NamedFormat& each : fp16::formats) {
      if (function.in(operand_format->format, each.format, rounding)) allowed.push_back(each.name);
    }
    throw std::invalid_argument(fmt::format(
        "{}: is not known for operands of {} and results of {}, rounded {}{}", function.name,
        operand_format->name, result_format->name, options.rounding,
        allowed.empty() ? ""
                        : fmt::format("; allowed: results of {}, to which the kernel rounds them itself",
                                      fmt::join(allowed, " or "))));
  }
  found.deviations =
      deviations_of(function, operand_format->format, result_format->format, attributes, nan.any);
  const Question question{.function = function,
                          .evaluate = evaluate,
                          .attributes = attributes,
                          .any_nan = nan.any,
                          .ulp = found.ulp,
                          .operand_format = operand_format->format,
                          .result_format = result_format->format,
                          .operand = questions_of(operand_format->format),
                          .result = questions_of(result_format->format),
                          .deviations = found.deviations};
  const Results all(operands, results, run);
  found.counts = count(all, question);
  const std::vector<DeviationSet> sets = explanations(found.counts, found.deviations);
  if (sets.empty()) return found;
  const std::vector<Contradictions> against = contradictions(all, question, sets).of;
  const auto best = std::ranges::min_element(against, {}, &Contradictions::results);
  found.explanation = sets[static_cast<std::size_t>(best - against.begin())];
  found.contradictions = *best;
  if (found.contradictions.results > found.counts.differing) {
    found.explanation.clear();
    found.contradictions = {};
    return found;
  }
  const bool is_range = has_range(found.deviations, found.explanation);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i] != found.explanation && against[i].results == best->results &&
        has_range(found.deviations, sets[i]) == is_range)
      found.rivals.push_back(sets[i]);
  }
  return found;
}

}  // namespace halflab::validate
