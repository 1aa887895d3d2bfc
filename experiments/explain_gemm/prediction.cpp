#include "experiments/explain_gemm/prediction.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "fp16/arithmetic.h"
#include "fp16/bulk.h"
#include "fp16/codec.h"

namespace experiments::explain_gemm {
namespace {

using fp16::bfloat16;
using fp16::binary16;
using fp16::binary32;

template <const fp16::Format& F>
std::vector<fp16::Bits<F>> encoded(std::span<const float> values) {
  std::vector<fp16::Bits<F>> codes(values.size());
  fp16::encode<F>(values, codes);
  return codes;
}

template <const fp16::Format& F>
void round_all(std::vector<float>& values) {
  fp16::decode<F>(encoded<F>(values), values);
}

void round_to(const fp16::Format& format, std::vector<float>& values) {
  if (format == binary16) round_all<binary16>(values);
  if (format == bfloat16) round_all<bfloat16>(values);
}

std::vector<std::uint32_t> codes_of(const fp16::Format& format, std::span<const float> values) {
  const auto widened = [](const auto& codes) {
    return std::vector<std::uint32_t>(codes.begin(), codes.end());
  };
  if (format == binary16) return widened(encoded<binary16>(values));
  if (format == bfloat16) return widened(encoded<bfloat16>(values));
  return bits_of(values);
}

/// sum += term.
void add(std::vector<float>& sum, const std::vector<float>& term, const Hypothesis& hypothesis) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  // A float has more than twice the digits of 16 bits and two, so that rounding twice is rounding once.
  if (hypothesis.reduction == Reduction::narrow) round_to(hypothesis.narrow, sum);
}

std::vector<float> reduced(Partials sums, const Hypothesis& hypothesis) {
  if (hypothesis.reduction == Reduction::narrow || hypothesis.reduction == Reduction::narrow_partials) {
    for (std::vector<float>& sum : sums) round_to(hypothesis.narrow, sum);
  }
  const std::size_t count = sums.size();
  if (hypothesis.order == Order::descending) std::ranges::reverse(sums);
  if (hypothesis.order == Order::pairwise) {
    for (std::size_t stride = 1; stride < count; stride *= 2) {
      for (std::size_t slice = 0; slice + stride < count; slice += 2 * stride)
        add(sums[slice], sums[slice + stride], hypothesis);
    }
  } else if (hypothesis.order == Order::halving) {
    assert(std::has_single_bit(count));
    for (std::size_t half = count / 2; half > 0; half /= 2) {
      for (std::size_t slice = 0; slice < half; ++slice) add(sums[slice], sums[slice + half], hypothesis);
    }
  } else {
    for (std::size_t slice = 1; slice < count; ++slice) add(sums[0], sums[slice], hypothesis);
  }
  return std::move(sums.front());
}

struct Factors {
  float alpha, beta;
  fp16::Format d;  ///< of D
};

float rounded_to_half(float value) {
  return rounded_to(binary16, value);
}

float finished(const Factors& factors, Epilogue epilogue, float sum, float c) {
  switch (epilogue) {
    case Epilogue::scale:
      return factors.alpha * sum;
    case Epilogue::fma_on_product:
      return std::fma(factors.alpha, sum, factors.beta * c);
    case Epilogue::fma_on_c:
      return std::fma(factors.beta, c, factors.alpha * sum);
    case Epilogue::mul_add:
    case Epilogue::round_product_first:
      return factors.alpha * sum + factors.beta * c;
    case Epilogue::round_c_first:
      return factors.alpha * sum + rounded_to(factors.d, factors.beta * c);
    default:
      return sum;
  }
}

/// The epilogue on values of binary16. Products of two are exact in binary32, and their sums round twice as once.
float finished_in_halves(const Factors& factors, Epilogue epilogue, float sum, float c) {
  const auto fused = [](float a, float b, float addend) {
    const fp16::Bits<binary16> bits =
        fp16::fma<binary16>(fp16::float_to_half_bits(a), fp16::float_to_half_bits(b),
                            fp16::float_to_half_bits(addend))
            .bits;
    return fp16::half_bits_to_float(bits);
  };
  const float product = rounded_to_half(factors.alpha * sum);
  if (epilogue == Epilogue::half_scale) return product;
  const float addend = rounded_to_half(factors.beta * c);
  if (epilogue == Epilogue::half_fma_on_product) return fused(factors.alpha, sum, addend);
  if (epilogue == Epilogue::half_fma_on_c) return fused(factors.beta, c, product);
  return rounded_to_half(product + addend);
}

/// The sums through the epilogue, with C where there is one.
void finish(const Factors& factors, Epilogue epilogue, const std::vector<float>& c,
            std::vector<float>& sums) {
  if (epilogue == Epilogue::round_product_first) round_to(factors.d, sums);
  if (!is_in_halves(epilogue)) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = finished(factors, epilogue, sums[i], c.empty() ? 0 : c[i]);
    return;
  }
  const Factors halves{rounded_to_half(factors.alpha), rounded_to_half(factors.beta), binary16};
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] =
        finished_in_halves(halves, epilogue, rounded_to_half(sums[i]), c.empty() ? 0 : rounded_to_half(c[i]));
}

/// Each slice's sum times alpha is added to D, the first one's to beta C.
std::vector<float> accumulated_in_place(const Factors& factors, Epilogue epilogue,
                                        const std::vector<float>& c, const Partials& partials) {
  std::vector<float> d = partials.front();
  finish(factors, epilogue, c, d);
  round_to(factors.d, d);
  const bool is_product = epilogue == Epilogue::round_once || epilogue == Epilogue::scale;
  for (std::size_t slice = 1; slice < partials.size(); ++slice) {
    std::vector<float> sum = partials[slice];
    finish({factors.alpha, 1, factors.d}, is_product ? Epilogue::mul_add : epilogue, d, sum);
    round_to(factors.d, sum);
    d = std::move(sum);
  }
  return d;
}

/// Rows or columns of a triple that were met, as bits, which tell zeros and NaNs apart.
using Met = std::set<std::vector<std::uint32_t>>;

/// A part without rows of those columns of a triple.
Part empty_part(const Problem& problem, std::size_t triple, const std::vector<std::size_t>& columns) {
  const auto b = std::make_shared<std::vector<float>>();
  b->reserve(problem.depth * columns.size());
  for (std::size_t k = 0; k < problem.depth; ++k) {
    for (const std::size_t j : columns)
      b->push_back(problem.b[(triple * problem.depth + k) * problem.columns + j]);
  }
  Part part{.rows = {}, .columns = columns, .depth = problem.depth, .a = {}, .b = b, .c = {}, .d = {}};
  Met met;
  std::vector<float> column(problem.depth);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (std::size_t k = 0; k < problem.depth; ++k) column[k] = (*b)[k * columns.size() + j];
    part.column_is_new.push_back(met.insert(bits_of(column)).second);
  }
  return part;
}

void append_row(const Problem& problem, std::size_t i, Met& met, Part& part) {
  const auto begin = problem.a.begin() + static_cast<std::ptrdiff_t>(i * problem.depth);
  const std::vector<float> row(begin, begin + static_cast<std::ptrdiff_t>(problem.depth));
  part.rows.push_back(i);
  part.row_is_new.push_back(met.insert(bits_of(row)).second);
  part.a.insert(part.a.end(), row.begin(), row.end());
  for (const std::size_t j : part.columns) {
    part.d.push_back(problem.d.at(i, j));
    if (!problem.c.empty()) part.c.push_back(problem.c_at(i * problem.columns + j));
  }
}

/// All outputs of a row at once: a number of the tree is a vector over the columns.
std::vector<float> sums_of_tree(const fp16::SummationTree& tree, const Part& part,
                                const fp16::Format& format) {
  const std::size_t columns = part.columns.size();
  std::vector<float> sums;
  std::vector<std::vector<float>> terms(part.depth, std::vector<float>(columns));
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    for (std::size_t k = 0; k < part.depth; ++k) {
      for (std::size_t j = 0; j < columns; ++j)
        terms[k][j] = part.a[i * part.depth + k] * (*part.b)[k * columns + j];
      round_to(format, terms[k]);
    }
    const std::vector<float> row = tree.evaluate<std::vector<float>>(terms, [&](const auto& children) {
      std::vector<float> sum = children[0];
      for (std::size_t j = 0; j < columns; ++j) sum[j] += children[1][j];
      round_to(format, sum);
      return sum;
    });
    sums.insert(sums.end(), row.begin(), row.end());
  }
  return sums;
}

/// A's columns and B's rows of a slice's k: where they stand, or one block after another. A block is whole steps, so that no
/// step reaches across two of them.
struct SliceOperands {
  const float* a;
  const float* b;
  std::size_t depth = 0;
  std::size_t stride;  ///< of A
  std::vector<float> gathered_a, gathered_b;

  SliceOperands(const Part& part, const std::vector<Range>& slice)
      : a(part.a.data() + slice.front().first),
        b(part.b->data() + slice.front().first * part.columns.size()),
        stride(part.depth) {
    for (const Range& range : slice) depth += range.length;
    if (slice.size() == 1) return;
    gathered_a.reserve(part.rows.size() * depth);
    for (std::size_t row = 0; row < part.rows.size(); ++row) {
      for (const auto& [first, length] : slice) append(part.a, row * part.depth + first, length, gathered_a);
    }
    gathered_b.reserve(depth * part.columns.size());
    for (const auto& [first, length] : slice)
      append(*part.b, first * part.columns.size(), length * part.columns.size(), gathered_b);
    a = gathered_a.data();
    b = gathered_b.data();
    stride = depth;
  }
  SliceOperands(const SliceOperands&) = delete;
  SliceOperands& operator=(const SliceOperands&) = delete;

  static void append(const std::vector<float>& from, std::size_t first, std::size_t count,
                     std::vector<float>& to) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
    to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
};

/// Adds the slice's product to sums of so many columns; products and sums are rounded.
void multiply_and_add(const SliceOperands& slice, std::size_t columns, std::vector<float>& sums) {
  for (std::size_t i = 0; i < sums.size() / columns; ++i) {
    for (std::size_t k = 0; k < slice.depth; ++k) {
      const float factor = slice.a[i * slice.stride + k];
      for (std::size_t j = 0; j < columns; ++j) sums[i * columns + j] += factor * slice.b[k * columns + j];
    }
  }
}

}  // namespace

std::vector<Part> cut(const Problem& problem, const std::vector<std::size_t>& rows,
                      const std::vector<std::size_t>& columns, std::size_t most_rows) {
  std::vector<Part> parts;
  for (std::size_t triple = 0, next = 0; triple < problem.triples; ++triple) {
    const Part empty = empty_part(problem, triple, columns);
    Met met;
    for (std::size_t in_part = most_rows; next < rows.size() && problem.triple_of(rows[next]) == triple;
         ++next, ++in_part) {
      if (in_part == most_rows) {
        parts.push_back(empty);
        in_part = 0;
      }
      append_row(problem, rows[next], met, parts.back());
    }
  }
  return parts;
}

Partials partial_sums(const Problem& problem, const Part& part, const Hypothesis& hypothesis) {
  const std::size_t rows = part.rows.size(), columns = part.columns.size();
  Partials partials;
  for (const std::vector<Range>& slice : slices_of(hypothesis, part.depth)) {
    const bool from_c = partials.empty() && hypothesis.starts_from_c();
    std::vector<float>& sums = partials.emplace_back(from_c ? part.c : std::vector<float>(part.outputs()));
    if (from_c) round_to(hypothesis.accumulator->format, sums);
    const SliceOperands operands(part, slice);
    const fp16::MatrixOperand a{operands.a, binary32, rows, operands.depth, operands.stride};
    const fp16::MatrixOperand b{operands.b, binary32, operands.depth, columns, columns};
    const fp16::GemmOptions options{.start = from_c ? fp16::ChainStart::from_output : fp16::ChainStart::zero};
    const auto multiply = [&](const auto& way) {
      using Way = std::decay_t<decltype(way)>;
      if constexpr (std::is_same_v<Way, TreeAccumulation>) {
        sums = sums_of_tree(*problem.tree, part, hypothesis.accumulator->format);
      } else if constexpr (std::is_same_v<Way, MulAddAccumulation>) {
        multiply_and_add(operands, columns, sums);
      } else {
        fp16::gemm(a, b, sums.data(), columns, way, options);
      }
    };
    std::visit(multiply, hypothesis.accumulator->way);
  }
  return partials;
}

std::vector<std::uint32_t> predicted(const Problem& problem, const Part& part, const Hypothesis& hypothesis,
                                     const Partials& partials) {
  const Factors factors{problem.alpha, problem.beta, problem.d.format};
  std::vector<float> sums;
  if (hypothesis.reduction == Reduction::narrow_in_place) {
    sums = accumulated_in_place(factors, hypothesis.epilogue, part.c, partials);
  } else {
    sums = reduced(partials, hypothesis);
    finish(factors, hypothesis.epilogue, part.c, sums);
  }
  return codes_of(problem.d.format, sums);
}

}  // namespace experiments::explain_gemm
