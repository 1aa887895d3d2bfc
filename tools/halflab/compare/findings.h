#pragma once
/// What `halflab compare` finds of two sets of tensors.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "fp16/formats.h"
#include "tools/halflab/compare/options.h"
#include "tools/halflab/compare/rounding.h"
#include "tools/halflab/ulp_histogram.h"

namespace halflab::compare {

/// From best to worst.
enum class Class {
  equal,     ///< the same bits, NaNs included
  within,    ///< not that, but what --as or --ulp asks for
  different  ///< neither
};
std::string_view name_of(Class found);

/// Elements of two tensors at one place that differ.
struct Difference {
  std::uint64_t index;  ///< in C order
  std::uint64_t code_a, code_b;
};

/// Both tensors' values at the places where they differ, or at all.
struct Counts {
  static constexpr std::size_t most_first = 5;

  std::uint64_t elements = 0;
  std::uint64_t differing = 0;  ///< in bits; of two stored formats: in value, the sign of zero included
  // Of the differing:
  std::uint64_t nan_bits = 0;      ///< two NaNs
  std::uint64_t zero_signs = 0;    ///< -0 and +0
  std::uint64_t one_nan = 0;       ///< a NaN and a number
  std::uint64_t one_infinite = 0;  ///< an infinity and another number
  std::uint64_t flushed_a = 0;     ///< a zero in A where B is subnormal
  std::uint64_t flushed_b = 0;
  std::uint64_t beyond = 0;  ///< farther apart than --ulp allows (0 without); a NaN and a number always
  double largest = 0;        ///< |a - b|, infinite where one of them is; without NaNs
  UlpHistogram by_ulp;       ///< in the format of comparison, of all but one_nan
  std::vector<Difference>
      first;  ///< of the differing, or of those beyond where numbers are asked for, by index

  Counts& operator+=(const Counts& other);
  void add_first(const Difference& difference);
};

/// Two tensors of one name, or of any where A and B hold but one each.
struct PairFound {
  std::string name;
  const experiments::tensor_files::StoredTensor* a;
  const experiments::tensor_files::StoredTensor* b;
  const fp16::NamedFormat* format;  ///< of comparison
  Counts counts = {};               ///< none where the shapes differ
  RoundingFound rounding = {};      ///< where something differs
  Class found = Class::equal;

  bool same_shape() const { return a->shape == b->shape; }
  bool same_format() const { return a->type == b->type; }
};

/// A tensor of another kind than floating-point numbers, compared in bits alone.
struct OtherFound {
  std::string name;
  std::uint64_t elements;
  bool is_equal;
};

struct Findings {
  std::string a, b;           ///< the paths
  std::uint64_t ulp = 0;      ///< allowed
  bool asks_bits = true;      ///< neither --as nor --ulp is given
  bool has_one_each = false;  ///< A and B hold one tensor each, whatever is selected
  std::vector<PairFound> pairs;
  std::vector<OtherFound> others;
  std::vector<std::string> only_a, only_b;
  Counts total;
  RoundingFound rounding;  ///< of all pairs that differ
  Class found = Class::equal;

  std::size_t count(Class of) const;
};

/// Reads both once, and what differs twice. The sets must outlive what it returns.
Findings measure(const experiments::tensor_files::TensorSet& a, const experiments::tensor_files::TensorSet& b,
                 const Options& options, experiments::Run& run);

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);
void draw_figures(experiments::Run& run, const Findings& found);

}  // namespace halflab::compare
