#pragma once
/// What `halflab validate` finds of a kernel's results.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/tensor_files/stored_tensor.h"
#include "tools/halflab/ulp_histogram.h"
#include "tools/halflab/validate/deviations.h"
#include "tools/halflab/validate/functions.h"

namespace halflab::validate {

struct Options {
  std::vector<std::string> words;  ///< the operation, files of operands, a file of results
  std::string dtype;
  std::string result_dtype;  ///< empty: dtype
  std::string rounding = "nearest_even";
  std::string nan = "first_operand";
  std::int64_t ulp = 0;
  bool flush_subnormals = false;
  bool saturate = false;
};

/// In the order in which they are shown.
enum class Difference { wrong, nan_bits, allowed };

struct Counterexample {
  Difference difference;
  std::uint64_t index;
  Operands operands;
  std::uint64_t expected, result;
};

/// Results in a part of the range of an operand.
struct Share {
  std::uint64_t results = 0, differing = 0, most_ulp = 0;

  Share& operator+=(const Share& other);
};

/// The parts that the figures have: of equally many numbers each, from the lowest to the highest, then the NaNs.
inline constexpr std::size_t parts = 48;

/// The sample that is held to the deviations: every so many right results.
inline constexpr std::uint64_t sampling = 61;

struct Counts {
  static constexpr std::size_t most_first = 8;

  std::uint64_t results = 0;
  std::uint64_t differing = 0;  ///< in bits, or where any NaN will do in value
  std::uint64_t beyond =
      0;  ///< farther away than is allowed, or a NaN in the place of a number or the other way
  std::uint64_t one_nan = 0;                                      ///< of these the latter
  std::uint64_t nan_bits = 0;                                     ///< differing NaNs
  std::uint64_t zero_signs = 0;                                   ///< zeros of the wrong sign, not allowed
  UlpHistogram by_ulp;                                            ///< of all but one_nan
  std::array<std::array<Share, parts + 1>, parts + 1> by_part{};  ///< by the first operand and the second
  std::map<std::uint32_t, std::uint64_t>
      by_deviations;  ///< how many differing are explained by just this set
  std::array<std::uint64_t, most_deviations>
      contradictions{};  ///< right results of a sample that a deviation would not give
  std::vector<Counterexample> first;

  Counts& operator+=(const Counts& other);
  void add_first(const Counterexample& example);
};

/// Right results that a deviation would not give, and the index of the first.
struct Contradictions {
  std::uint64_t results = 0, first = 0;

  void add(std::uint64_t index);
  Contradictions& operator+=(const Contradictions& other);
};

struct Findings {
  const Function* function;
  const fp16::NamedFormat* operands;
  const fp16::NamedFormat* result;
  std::uint64_t ulp;  ///< allowed
  std::vector<Deviation> deviations;
  Counts counts;
  std::vector<std::size_t>
      explanation;  ///< deviations that together explain all that differs; none where none do
  /// Others that do as well, with as few right results against them: what is given does not tell which it is.
  std::vector<std::vector<std::size_t>> rivals;

  Contradictions contradictions;  ///< of the explanation, by all right results

  bool holds() const { return counts.beyond == 0; }
  std::string_view name_of_class() const {
    return counts.differing == 0 ? "equal" : holds() ? "within" : "different";
  }
};

/// Reads operands and results, all of one shape, in order.
Findings measure(const std::vector<experiments::tensor_files::StoredTensor>& operands,
                 const experiments::tensor_files::StoredTensor& results, const Function& function,
                 const Options& options, experiments::Run& run);

/// The part of the range that a code is in; parts for a NaN. And the code where a part begins.
std::size_t part_of(const fp16::Format& format, const CodeQuestions& questions, std::uint64_t code);
std::uint64_t first_code(const fp16::Format& format, std::size_t part);

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);
void draw_figures(experiments::Run& run, const Findings& found);

}  // namespace halflab::validate
