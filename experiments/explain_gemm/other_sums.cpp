#include "experiments/explain_gemm/other_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/codec.h"

namespace experiments::explain_gemm {
namespace {

/// What becomes of an operand's numbers before they are multiplied.
struct Narrowing {
  std::string_view name;
  std::string_view what;
  std::string_view next;
  float (*narrowed)(const fp16::Format& operands, float value);
};

template <const fp16::Format& format>
float nearest(const fp16::Format&, float value) {
  return static_cast<float>(fp16::decode<format>(fp16::encode<format>(value).bits));
}

float toward_zero_to_tf32(const fp16::Format&, float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000);
}

float normal_or_zero(const fp16::Format& operands, float value) {
  return std::fabs(value) < operands.min_normal() ? 0 : value;
}

constexpr std::string_view turn_off_tf32 =
    "turn TF32 off (torch.backends.cuda.matmul.allow_tf32 = False, NVIDIA_TF32_OVERRIDE=0)";
constexpr std::string_view look_for_autocast = "look whether the call runs under autocast";
constexpr std::string_view look_for_fp8 = "look where an operand is quantized";

constexpr std::array<Narrowing, 7> narrowings{{
    {"tf32", "rounded to TF32", turn_off_tf32, nearest<fp16::tf32>},
    {"tf32_truncated", "cut off to TF32", turn_off_tf32, toward_zero_to_tf32},
    {"bfloat16", "rounded to bfloat16", look_for_autocast, nearest<fp16::bfloat16>},
    {"fp16", "rounded to FP16", look_for_autocast, nearest<fp16::binary16>},
    {"e4m3", "rounded to E4M3", look_for_fp8, nearest<fp16::e4m3>},
    {"e5m2", "rounded to E5M2", look_for_fp8, nearest<fp16::e5m2>},
    {"operands_flushed", "with subnormal numbers read as 0",
     "look for what flushes to zero (DAZ, .ftz, -use_fast_math), or scale A or B up by a power of two",
     normal_or_zero},
}};

struct Side {
  std::string_view name;
  bool has_a, has_b;
};

constexpr std::array<Side, 3> sides{{{"A and B", true, true}, {"A", true, false}, {"B", false, true}}};

/// A narrowing of an operand or both that gives all of the sample.
struct Fit {
  const Narrowing* narrowing;
  const Side* side;
  double squares = 0;  ///< of what it leaves, summed

  double value(const Problem& problem, std::size_t output) const {
    double sum = 0;
    for (std::size_t k = 0; k < problem.depth; ++k) {
      const float a = problem.a_of(output, k), b = problem.b_of(output, k);
      sum += double{side->has_a ? narrowing->narrowed(problem.operands, a) : a} *
             double{side->has_b ? narrowing->narrowed(problem.operands, b) : b};
    }
    return problem.alpha * sum + added_c(problem, output);
  }
};

std::vector<Fit> fits_of_narrowings(const Problem& problem, const Wrongs& sample) {
  std::vector<Fit> all;
  for (const Narrowing& narrowing : narrowings) {
    for (const Side& side : sides) {
      Fit fit{&narrowing, &side};
      if (!explains_all(problem, sample, [&](const Wrong& w) { return fit.value(problem, w.output); }))
        continue;
      for (const Wrong& w : sample) fit.squares += std::pow(w.observed - fit.value(problem, w.output), 2);
      all.push_back(fit);
    }
  }
  return all;
}

/// Whether what is left is more than 1000 times as likely of the other, by normal errors of one size.
bool is_worse(const Fit& fit, const Fit& other, std::size_t outputs) {
  return static_cast<double>(outputs) / 2 * std::log(fit.squares / other.squares) > std::log(1e3);
}

std::optional<Mistake> narrowed(const Problem& problem, const Wrongs& sample) {
  std::vector<Fit> left = fits_of_narrowings(problem, sample);
  if (left.empty()) return {};
  const Fit best = *std::ranges::min_element(left, {}, &Fit::squares);
  std::erase_if(left, [&](const Fit& fit) { return is_worse(fit, best, sample.size()); });
  left.erase(std::ranges::unique(left, {}, &Fit::narrowing).begin(), left.end());
  Mistake mistake{"", "the wrong outputs are those of ", "if that is not meant, "};
  for (const Fit& fit : left) {
    const bool is_first = &fit == &left.front();
    mistake.name += fmt::format("{}{}", is_first ? "" : "_or_", fit.narrowing->name);
    mistake.what += fmt::format("{}{} {}", is_first ? "" : ", or of ", fit.side->name, fit.narrowing->what);
    mistake.next += fmt::format("{}{}", is_first ? "" : "; or ", fit.narrowing->next);
  }
  if (left.size() > 1) mistake.what += ": these operands do not tell which";
  return mistake;
}

/// Where the elements of an output's sum are read.
struct Reading {
  std::string_view name;
  std::string_view what;
  bool a_by_columns, b_by_columns, d_by_columns, swaps = false;
};

constexpr std::array<Reading, 5> readings{{
    {"a_by_columns", "A read by columns where it lies by rows, or transposed", true, false, false},
    {"b_by_columns", "B read by columns where it lies by rows, or transposed", false, true, false},
    {"both_by_columns", "A and B read by columns where they lie by rows, or transposed", true, true, false},
    {"d_by_columns", "D stored by columns where it is read by rows, or transposed", false, false, true},
    {"operands_swapped", "B A in place of A B, as a BLAS makes of rows that it takes for columns", false,
     false, false, true},
}};

double value_by(const Problem& problem, const Reading& reading, std::size_t output) {
  const std::size_t rows = problem.rows_each(), triple = problem.triple_of(output / problem.columns);
  const std::size_t place = output % (rows * problem.columns);  // in its triple's D
  std::size_t row = place / problem.columns, column = place % problem.columns;
  if (reading.d_by_columns) row = place % rows, column = place / rows;
  const float* left = problem.a.data() + triple * rows * problem.depth;
  const float* right = problem.b.data() + triple * problem.depth * problem.columns;
  if (reading.swaps) std::swap(left, right);
  double sum = 0;
  for (std::size_t k = 0; k < problem.depth; ++k) {
    const std::size_t a = reading.a_by_columns ? k * rows + row : row * problem.depth + k;
    const std::size_t b = reading.b_by_columns ? column * problem.depth + k : k * problem.columns + column;
    sum += double{left[a]} * double{right[b]};
  }
  return problem.alpha * sum + added_c(problem, output);
}

std::optional<Mistake> misread(const Problem& problem, const Wrongs& sample) {
  const bool is_square = problem.rows_each() == problem.depth && problem.depth == problem.columns;
  for (const Reading& reading : readings) {
    if (reading.swaps && !is_square) continue;
    if (explains_all(problem, sample, [&](const Wrong& w) { return value_by(problem, reading, w.output); }))
      return Mistake{std::string(reading.name),
                     fmt::format("the wrong outputs are those of {}", reading.what),
                     "look at the layouts and leading dimensions of the call, or at the files' shapes"};
  }
  return {};
}

/// The loop over k goes on from k = `from` at `to`: past products that are then missing, or back to some that then come
/// twice.
struct Jump {
  std::size_t from, to;
  bool changes = false;  ///< some output, beyond its bound: products of padding do not
  double squares = 0;    ///< of what it leaves, summed

  bool is_back() const { return to < from; }
  std::size_t length() const { return is_back() ? from - to : to - from; }
};

constexpr std::size_t most_jumps = std::size_t{1} << 21;

/// The sums of an output's products before each k, and of all.
std::vector<double> sums_before(const Problem& problem, std::size_t output) {
  std::vector<double> sums(problem.depth + 1);
  for (std::size_t k = 0; k < problem.depth; ++k) sums[k + 1] = sums[k] + product_at(problem, output, k);
  return sums;
}

/// All that give an output, and some that nearly do; no more than `most_jumps` and those from one k.
std::vector<Jump> jumps_to(const Problem& problem, const Wrong& wrong, const std::vector<double>& sums) {
  const double part = (wrong.exact - wrong.observed) / problem.alpha;
  const double reach = 1.01 * bound_around(problem, wrong, wrong.observed) / std::fabs(problem.alpha);
  std::vector<std::size_t> ascending(sums.size());
  std::iota(ascending.begin(), ascending.end(), std::size_t{0});
  const auto sum_at = [&](std::size_t k) { return sums[k]; };
  std::ranges::sort(ascending, {}, sum_at);
  std::vector<Jump> jumps;
  for (std::size_t from = 0; from < sums.size() && jumps.size() <= most_jumps; ++from) {
    const double wanted = sums[from] + part;
    auto to = std::ranges::lower_bound(ascending, wanted - reach, {}, sum_at);
    for (; to != ascending.end() && sums[*to] <= wanted + reach; ++to) {
      if (*to != from) jumps.push_back({from, *to});
    }
  }
  return jumps;
}

/// The one that leaves least; nothing where the bounds are so wide that one of all would fit by chance.
std::optional<Jump> best_jump(const Problem& problem, const Wrongs& sample) {
  constexpr double most_by_chance = 1e-3;
  const double all = static_cast<double>(problem.depth) * static_cast<double>(problem.depth + 1);
  double by_chance = all;
  std::vector<Jump> left;
  for (const Wrong& w : sample) {
    const std::vector<double> sums = sums_before(problem, w.output);
    if (!std::isfinite(sums.back())) return {};
    if (by_chance > most_by_chance) {
      std::vector<Jump> fitting = jumps_to(problem, w, sums);
      if (fitting.size() > most_jumps) return {};
      by_chance *= static_cast<double>(fitting.size()) / all;
      if (&w == &sample.front()) left = std::move(fitting);
    }
    const auto value = [&](const Jump& j) { return w.exact - problem.alpha * (sums[j.to] - sums[j.from]); };
    std::erase_if(left, [&](const Jump& jump) { return !fits(problem, w, value(jump)); });
    for (Jump& jump : left) {
      jump.changes = jump.changes || is_another(w, value(jump));
      jump.squares += std::pow(w.observed - value(jump), 2);
    }
  }
  std::erase_if(left, [](const Jump& jump) { return !jump.changes; });
  if (left.empty() || by_chance > most_by_chance) return {};
  return *std::ranges::min_element(left, {}, [](const Jump& j) { return std::pair(j.squares, j.length()); });
}

std::optional<Mistake> miscounted(const Problem& problem, const Wrongs& sample) {
  const std::optional<Jump> jump = best_jump(problem, sample);
  if (!jump) return {};
  const auto [first, last] = std::minmax(jump->from, jump->to);
  const std::string products =
      jump->length() == 1 ? fmt::format("the product of k = {}", first)
                          : fmt::format("the {} products from k = {} to {}", last - first, first, last - 1);
  if (jump->is_back())
    return Mistake{"products_repeated", fmt::format("the wrong outputs hold {} twice", products),
                   "look at the loop over k: a tile that is loaded twice, or slices that overlap"};
  return Mistake{"products_missing", fmt::format("the wrong outputs are sums without {}", products),
                 "look at the loop over k: its first and last tile, the mask of what is left over, a copy "
                 "that is not waited for"};
}

}  // namespace

std::optional<Mistake> other_sum(const Problem& problem, const Wrongs& sample) {
  if (auto mistake = narrowed(problem, sample)) return mistake;
  if (auto mistake = misread(problem, sample)) return mistake;
  return miscounted(problem, sample);
}

}  // namespace experiments::explain_gemm
