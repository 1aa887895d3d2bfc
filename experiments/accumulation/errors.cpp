#include "experiments/accumulation/errors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "experiments/frame/parallel.h"
#include "fp16/codec.h"
#include "fp16/exact_sums.h"
#include "fp16/sign.h"

namespace experiments::accumulation {
namespace {

using fp16::binary16;
using fp16::binary64;

/// What a prefix adds up to, rounded once to binary64.
struct Exact {
  double value;
  double magnitudes;  ///< of the |a[k] b[k]|
};

double rounded(const fp16::ExactAccumulator<binary16>& sum) {
  return std::bit_cast<double>(sum.rounded<binary64>().bits);
}

std::vector<std::uint16_t> magnitudes_of(Halves codes) {
  std::vector<std::uint16_t> magnitudes(codes.size());
  std::ranges::transform(codes, magnitudes.begin(), fp16::magnitude<binary16>);
  return magnitudes;
}

std::vector<Exact> exact_prefixes(Halves a, Halves b, std::span<const std::size_t> lengths) {
  const std::vector<std::uint16_t> a_magnitudes = magnitudes_of(a), b_magnitudes = magnitudes_of(b);
  std::vector<Exact> prefixes;
  fp16::ExactAccumulator<binary16> sum, magnitudes;
  std::size_t first = 0;
  for (const std::size_t length : lengths) {
    const auto added = [&](Halves codes) { return codes.subspan(first, length - first); };
    fp16::add_products(sum, added(a), added(b));
    fp16::add_products(magnitudes, added(a_magnitudes), added(b_magnitudes));
    prefixes.push_back({rounded(sum), rounded(magnitudes)});
    first = length;
  }
  return prefixes;
}

/// 0 / 0 is a sum of nothing but zeros, which has no error.
double over(double error, double reference) {
  return error == 0 ? 0 : error / std::fabs(reference);
}

struct Error {
  double relative;
  double backward;
  double backward_bias;
};

Error error_of(double computed, const Exact& exact) {
  const double error =
      std::isfinite(computed) ? std::fabs(computed - exact.value) : std::numeric_limits<double>::infinity();
  const double away = std::fabs(computed) - std::fabs(exact.value);
  return {.relative = over(error, exact.value),
          .backward = over(error, exact.magnitudes),
          .backward_bias = away == 0 ? 0 : away / exact.magnitudes};
}

/// [accumulator][length]
using VectorErrors = std::vector<std::vector<Error>>;

VectorErrors errors_of(const std::vector<Accumulator>& accumulators, Halves a, Halves b,
                       std::span<const std::size_t> lengths) {
  const std::vector<Exact> exact = exact_prefixes(a, b, lengths);
  VectorErrors errors;
  for (const Accumulator& accumulator : accumulators) {
    const std::vector<double> computed = dots_of_prefixes(accumulator, a, b, lengths);
    std::vector<Error>& own = errors.emplace_back();
    for (std::size_t i = 0; i < lengths.size(); ++i) own.push_back(error_of(computed[i], exact[i]));
  }
  return errors;
}

/// One pair of vectors.
struct Cell {
  VectorErrors dots;
  VectorErrors sums;
};

Cell measure_cell(const std::vector<Accumulator>& accumulators, const Operands& operands,
                  std::span<const std::size_t> lengths) {
  const std::vector<std::uint16_t> ones(operands.a.size(), fp16::double_to_half_bits(1));
  return {.dots = errors_of(accumulators, operands.a, operands.b, lengths),
          .sums = errors_of(accumulators, operands.a, ones, lengths)};
}

std::vector<double> values_of(std::span<const Error> errors, double Error::*field) {
  std::vector<double> values(errors.size());
  std::ranges::transform(errors, values.begin(), field);
  return values;
}

ErrorStatistics statistics(const std::vector<double>& errors) {
  return {.mean = estimate(errors), .largest = std::ranges::max(errors)};
}

/// Rows of one distribution over all its vectors; `vector_errors(i)` gives the errors of vector i.
template <class VectorErrorsOf>
void append_rows(std::vector<Measured>& rows, const Distribution& distribution,
                 const std::vector<Accumulator>& accumulators, const Options& options,
                 VectorErrorsOf vector_errors) {
  for (std::size_t m = 0; m < accumulators.size(); ++m) {
    for (int length_log2 = min_length_log2; length_log2 <= options.max_length_log2; ++length_log2) {
      std::vector<Error> errors;
      for (int vector = 0; vector < options.vectors; ++vector)
        errors.push_back(vector_errors(vector)[m][static_cast<std::size_t>(length_log2 - min_length_log2)]);
      rows.push_back({.distribution = &distribution,
                      .accumulator = &accumulators[m],
                      .length_log2 = length_log2,
                      .relative = statistics(values_of(errors, &Error::relative)),
                      .backward = statistics(values_of(errors, &Error::backward)),
                      .backward_bias = estimate(values_of(errors, &Error::backward_bias)).mean,
                      .not_finite = static_cast<int>(std::ranges::count_if(
                          errors, [](const Error& error) { return std::isinf(error.backward); }))});
    }
  }
}

}  // namespace

std::vector<std::size_t> lengths(const Options& options) {
  std::vector<std::size_t> all;
  for (int length_log2 = min_length_log2; length_log2 <= options.max_length_log2; ++length_log2)
    all.push_back(std::size_t{1} << length_log2);
  return all;
}

Errors measure_errors(const std::vector<Accumulator>& accumulators, const Options& options, Run& run) {
  const std::vector<std::size_t> all_lengths = lengths(options);
  const auto vectors = static_cast<std::size_t>(options.vectors);
  std::vector<Cell> cells(distributions().size() * vectors);
  Progress progress = run.progress("sums", cells.size());
  parallel_for_each(cells.size(), run.threads(), [&](std::size_t i) {
    const Operands operands =
        draw(distributions()[i / vectors], options.seed, static_cast<int>(i % vectors), all_lengths.back());
    cells[i] = measure_cell(accumulators, operands, all_lengths);
    progress.tick();
  });
  Errors errors;
  for (std::size_t d = 0; d < distributions().size(); ++d) {
    const auto cell = [&](int vector) -> const Cell& {
      return cells[d * vectors + static_cast<std::size_t>(vector)];
    };
    append_rows(errors.dots, distributions()[d], accumulators, options,
                [&](int vector) -> const VectorErrors& { return cell(vector).dots; });
    append_rows(errors.sums, distributions()[d], accumulators, options,
                [&](int vector) -> const VectorErrors& { return cell(vector).sums; });
  }
  return errors;
}

const Measured& find(const std::vector<Measured>& rows, std::string_view distribution,
                     std::string_view accumulator, int length_log2) {
  return *std::ranges::find_if(rows, [&](const Measured& row) {
    return row.distribution->name == distribution && row.accumulator->name == accumulator &&
           row.length_log2 == length_log2;
  });
}

}  // namespace experiments::accumulation
