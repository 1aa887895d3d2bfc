#include <fmt/format.h>

#include <algorithm>
#include <bit>
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
#include "tools/halflab/validate/findings.h"

namespace halflab::validate {
namespace {

namespace files = experiments::tensor_files;

constexpr std::uint64_t results_of_a_piece = 1 << 18, results_of_a_block = 1 << 13;
/// Of right results every so many are held to the deviations.
constexpr std::uint64_t sampling = 61;

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
  fp16::Format operand_format;
  CodeQuestions operand, result;
  const std::vector<Deviation>& deviations;
};

/// Counts results, one at a time.
class Counter {
 public:
  explicit Counter(const Question& question) : question_(question) {}

  Counts counts() && { return std::move(counts_); }

  void add(std::uint64_t index, const Operands& codes, std::uint64_t result) {
    const std::uint64_t expected = question_.evaluate(codes, question_.attributes);
    const bool nan_expected = question_.result.is_nan(expected), nan_result = question_.result.is_nan(result);
    const bool is_right = expected == result || (question_.any_nan && nan_expected && nan_result);
    Share share{.results = 1, .differing = !is_right};
    ++counts_.results;
    if (is_right) {
      ++counts_.by_ulp.counts[0];
      if (index % sampling == 0) add_contradictions(index, codes, result);
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
    const bool is_wrong_sign = distance == 0 && question_.ulp == 0;  // of a zero
    counts_.beyond += are_nans || is_wrong_sign || distance > question_.ulp;
  }

  void add_contradictions(std::uint64_t index, const Operands& codes, std::uint64_t result) {
    for (std::size_t i = 0; i < question_.deviations.size(); ++i) {
      const Deviation& deviation = question_.deviations[i];
      if (!deviation.contradicts || !deviation.contradicts(codes, result)) continue;
      ++counts_.contradictions[i];
      counts_.add_contradiction(i, index);
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

Counts count(const std::vector<files::StoredTensor>& operands, const files::StoredTensor& results,
             std::uint64_t first, std::uint64_t count, const Question& question) {
  const auto stream = [&](const files::StoredTensor& tensor) {
    return std::make_unique<files::ElementStream>(files::Piece{&tensor, first, count});
  };
  std::vector<std::unique_ptr<files::ElementStream>> streams;
  for (const files::StoredTensor& tensor : operands) streams.push_back(stream(tensor));
  const auto result_stream = stream(results);
  Counter counter(question);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t size = std::min(results_of_a_block, count - done);
    std::array<files::Bytes, 3> blocks;
    for (std::size_t i = 0; i < operands.size(); ++i) blocks[i] = streams[i]->next(size);
    const files::Bytes result_block = result_stream->next(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      Operands codes{};
      for (std::size_t k = 0; k < operands.size(); ++k) codes[k] = code_at(blocks[k], *operands[k].type, i);
      counter.add(first + done + i, codes, code_at(result_block, *results.type, i));
    }
    done += size;
  }
  return std::move(counter).counts();
}

void require_alike(const std::vector<files::StoredTensor>& operands, const files::StoredTensor& results) {
  for (const files::StoredTensor& tensor : operands) {
    if (tensor.elements != results.elements)
      throw std::runtime_error(fmt::format("{} has {} elements, and {} has {}; they must be as many",
                                           tensor.place(), tensor.elements, results.place(),
                                           results.elements));
    if (tensor.columns_first != results.columns_first && tensor.shape.size() + results.shape.size() > 2)
      throw std::runtime_error(
          fmt::format("{} and {} have their elements in different orders", tensor.place(), results.place()));
    if (tensor.type != operands.front().type)
      throw std::runtime_error(fmt::format("{} holds {}, and {} holds {}; operands must be of one format",
                                           tensor.place(), tensor.type->format, operands.front().place(),
                                           operands.front().type->format));
  }
}

/// The smallest set that together explains all, with at most one way of rounding; of several the one that fewest right
/// results contradict.
std::vector<std::size_t> explanation(const Counts& counts, const std::vector<Deviation>& deviations) {
  constexpr int most_together = 3;
  if (counts.differing == 0 || counts.by_deviations.contains(0)) return {};
  std::vector<std::size_t> best;
  std::uint64_t fewest = 0;
  const auto look = [&](auto&& self, std::vector<std::size_t>& chosen, std::size_t from, int left) -> void {
    std::uint32_t set = 0;
    std::uint64_t contradictions = 0;
    for (const std::size_t i : chosen) set |= 1u << i, contradictions += counts.contradictions[i];
    if (std::ranges::all_of(counts.by_deviations,
                            [set](const auto& row) { return (row.first & set) != 0; })) {
      if (best.empty() || chosen.size() < best.size() ||
          (chosen.size() == best.size() && contradictions < fewest)) {
        best = chosen;
        fewest = contradictions;
      }
      return;
    }
    const bool has_rounding =
        std::ranges::any_of(chosen, [&](std::size_t i) { return deviations[i].is_rounding; });
    for (std::size_t i = from; left > 0 && i < deviations.size(); ++i) {
      if (has_rounding && deviations[i].is_rounding) continue;
      chosen.push_back(i);
      self(self, chosen, i + 1, left - 1);
      chosen.pop_back();
    }
  };
  std::vector<std::size_t> chosen;
  look(look, chosen, 0, most_together);
  return best;
}

}  // namespace

Share& Share::operator+=(const Share& other) {
  results += other.results;
  differing += other.differing;
  most_ulp = std::max(most_ulp, other.most_ulp);
  return *this;
}

Counts& Counts::operator+=(const Counts& other) {
  results += other.results;
  differing += other.differing;
  beyond += other.beyond;
  one_nan += other.one_nan;
  nan_bits += other.nan_bits;
  by_ulp += other.by_ulp;
  for (std::size_t i = 0; i <= parts; ++i) {
    for (std::size_t j = 0; j <= parts; ++j) by_part[i][j] += other.by_part[i][j];
  }
  for (const auto& [set, count] : other.by_deviations) by_deviations[set] += count;
  for (std::size_t i = 0; i < contradictions.size(); ++i) contradictions[i] += other.contradictions[i];
  for (const auto& [deviation, index] : other.first_contradictions) add_contradiction(deviation, index);
  for (const Counterexample& example : other.first) add_first(example);
  return *this;
}

void Counts::add_contradiction(std::size_t deviation, std::uint64_t index) {
  const auto [row, is_first] = first_contradictions.emplace(deviation, index);
  if (!is_first) row->second = std::min(row->second, index);
}

void Counts::add_first(const Counterexample& example) {
  const auto place = [](const Counterexample& each) { return std::pair(each.difference, each.index); };
  if (first.size() == most_first && place(example) > place(first.back())) return;
  first.insert(std::ranges::upper_bound(first, place(example), {}, place), example);
  if (first.size() > most_first) first.pop_back();
}

std::size_t part_of(const fp16::Format& format, const CodeQuestions& questions, std::uint64_t code) {
  if (questions.is_nan(code)) return parts;
  const auto most = static_cast<__int128>(format.max_finite_code()) + format.has_infinity();
  const __int128 place = questions.ordinal(code) + (format.is_signed() ? most : 0);
  const __int128 places = (format.is_signed() ? 2 * most : most) + 1;
  return static_cast<std::size_t>(place * static_cast<__int128>(parts) / places);
}

std::uint64_t first_code(const fp16::Format& format, std::size_t part) {
  const auto most = static_cast<__int128>(format.max_finite_code()) + format.has_infinity();
  const __int128 places = (format.is_signed() ? 2 * most : most) + 1;
  const __int128 place = (static_cast<__int128>(part) * places + static_cast<__int128>(parts) - 1) /
                         static_cast<__int128>(parts);
  const __int128 ordinal = place - (format.is_signed() ? most : 0);
  return ordinal < 0 ? static_cast<std::uint64_t>(-ordinal) | std::uint64_t{1} << (format.width() - 1)
                     : static_cast<std::uint64_t>(ordinal);
}

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
                 .explanation = {}};
  Evaluate evaluate = function.in(operand_format->format, result_format->format, rounding);
  if (!evaluate)
    throw std::invalid_argument(
        fmt::format("{}: is not known for operands of {} and results of {}, rounded {}{}", function.name,
                    operand_format->name, result_format->name, options.rounding,
                    function.in(operand_format->format, operand_format->format, rounding)
                        ? fmt::format("; allowed: results of {0}, to which the kernel rounds them itself",
                                      operand_format->name)
                        : ""));
  found.deviations = deviations_of(function, operand_format->format, result_format->format, attributes);
  const Question question{.function = function,
                          .evaluate = evaluate,
                          .attributes = attributes,
                          .any_nan = nan.any,
                          .ulp = found.ulp,
                          .operand_format = operand_format->format,
                          .operand = questions_of(operand_format->format),
                          .result = questions_of(result_format->format),
                          .deviations = found.deviations};
  const bool is_mapped =
      std::ranges::all_of(operands, [](auto& each) { return each.packing == files::Packing::none; }) &&
      results.packing == files::Packing::none;
  if (results.elements == 0)
    throw std::runtime_error(
        fmt::format("{} has no element, so that nothing can be checked", results.place()));
  const std::uint64_t piece = is_mapped ? results_of_a_piece : results.elements;
  const std::uint64_t pieces = (results.elements + piece - 1) / piece;
  std::mutex mutex;
  experiments::Progress progress = run.progress("validate", pieces);
  experiments::parallel_for_each(pieces, run.threads(), [&](std::size_t i) {
    const std::uint64_t first = i * piece;
    const Counts counts =
        count(operands, results, first, std::min(piece, results.elements - first), question);
    progress.tick();
    const std::scoped_lock lock(mutex);
    found.counts += counts;
  });
  found.explanation = explanation(found.counts, found.deviations);
  return found;
}

}  // namespace halflab::validate
