#include "experiments/explain_gemm/hypotheses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "fp16/bulk.h"
#include "fp16/mma.h"

namespace experiments::explain_gemm {
namespace {

using fp16::binary16;
using fp16::binary32;

constexpr std::size_t shortest_step = 4;
// Tiles of kernels are that deep, and a slice is a whole number of them.
constexpr std::array<std::size_t, 4> granules{1, 16, 32, 64};

double unit_roundoff(const fp16::Format& format) {
  return std::ldexp(1.0, -format.precision);
}

std::size_t divide_up(std::size_t n, std::size_t divisor) {
  return (n + divisor - 1) / divisor;
}

bool have_equal_steps(const fp16::TensorCore& a, const fp16::TensorCore& b) {
  return a.products_per_step == b.products_per_step && a.fraction_bits == b.fraction_bits &&
         a.binary16_floor == b.binary16_floor;
}

/// Cores with equal steps under all their names.
struct NamedCore {
  std::string names;
  fp16::TensorCore core;
};

std::vector<NamedCore> distinct_cores() {
  std::vector<NamedCore> cores;
  for (const fp16::TensorCore& core : fp16::tensor_cores) {
    const auto same = std::ranges::find_if(
        cores, [&](const NamedCore& other) { return have_equal_steps(core, other.core); });
    if (same == cores.end()) {
      cores.push_back({std::string(core.name), core});
    } else {
      same->names += fmt::format("/{}", core.name);
    }
  }
  return cores;
}

Accumulator chain(fp16::Accumulation way, const fp16::Format& format) {
  return {.name = std::string(fp16::name_of(way)),
          .way = way,
          .format = format,
          .products_per_step = 1,
          .step_error = unit_roundoff(format)};
}

/// Toward zero costs twice the unit roundoff, and each term of the step is truncated.
Accumulator tensor_core(const NamedCore& named, std::size_t step, const fp16::Format& format) {
  fp16::TensorCore core = named.core;
  const bool whole = step == static_cast<std::size_t>(core.products_per_step);
  core.products_per_step = static_cast<int>(step);
  const bool is_fp32 = format == binary32;
  return {.name = fmt::format("{}_{}{}", named.names, is_fp32 ? "fp32" : "fp16",
                              whole ? "" : fmt::format("_step{}", step)),
          .way = fp16::TensorCoreAccumulation{core, format},
          .format = format,
          .products_per_step = step,
          .step_error = static_cast<double>(step + 1) * std::ldexp(1.0, -core.fraction_bits) +
                        (is_fp32 ? 2 : 1) * unit_roundoff(format)};
}

std::vector<Accumulator> make_accumulators() {
  std::vector<Accumulator> all{chain(fp16::Accumulation::fp32_fma_chain, binary32),
                               chain(fp16::Accumulation::fp16_fma_chain, binary16),
                               chain(fp16::Accumulation::fp16_mul_add_chain, binary16)};
  for (const fp16::Format& format : {binary32, binary16}) {
    for (const NamedCore& named : distinct_cores()) {
      for (auto step = static_cast<std::size_t>(named.core.products_per_step); step >= shortest_step;
           step /= 2)
        all.push_back(tensor_core(named, step, format));
    }
  }
  return all;
}

bool is_power_of_two(float factor) {
  int exponent = 0;
  return std::fabs(std::frexp(factor, &exponent)) == 0.5f;
}

std::vector<Epilogue> epilogues_of(const Problem& problem) {
  if (problem.is_plain()) return {Epilogue::round_once};
  if (problem.beta == 0) return {Epilogue::scale};
  std::vector<Epilogue> all{Epilogue::mul_add};
  // A power of two makes the product exact but for underflow, and the fused operation the other one.
  if (!is_power_of_two(problem.alpha)) all.push_back(Epilogue::fma_on_product);
  if (!is_power_of_two(problem.beta)) all.push_back(Epilogue::fma_on_c);
  if (problem.d.format == binary16) all.push_back(Epilogue::round_product_first);
  if (problem.alpha == 1 && problem.beta == 1) all.push_back(Epilogue::start_from_c);
  return all;
}

std::vector<Reduction> reductions_of(const Accumulator& accumulator, std::size_t slices) {
  if (slices == 1) return {Reduction::none};
  if (accumulator.format == binary16) return {Reduction::fp32, Reduction::fp16};
  return {Reduction::fp32, Reduction::fp16_partials, Reduction::fp16};
}

/// Descending, which is to say the fewest slices first.
std::set<std::size_t, std::greater<>> slice_lengths(std::size_t depth, std::size_t most_slices) {
  std::set<std::size_t, std::greater<>> lengths{depth};
  for (std::size_t slices = 2; slices <= most_slices; ++slices) {
    for (const std::size_t granule : granules)
      lengths.insert(std::min(depth, divide_up(divide_up(depth, slices), granule) * granule));
  }
  return lengths;
}

std::vector<std::uint16_t> to_halves(std::span<const float> values) {
  std::vector<std::uint16_t> halves(values.size());
  fp16::encode<binary16>(values, halves);
  return halves;
}

void round_to_halves(std::vector<float>& values) {
  fp16::decode<binary16>(to_halves(values), values);
}

std::vector<float> reduced(const Partials& partials, Reduction reduction) {
  const bool stored_as_halves = reduction == Reduction::fp16 || reduction == Reduction::fp16_partials;
  std::vector<float> sum = partials.front();
  if (stored_as_halves) round_to_halves(sum);
  for (std::size_t slice = 1; slice < partials.size(); ++slice) {
    std::vector<float> partial = partials[slice];
    if (stored_as_halves) round_to_halves(partial);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += partial[i];
    // A float has more than twice a half's digits and two, so that rounding twice is rounding once.
    if (reduction == Reduction::fp16) round_to_halves(sum);
  }
  return sum;
}

float finished(const Problem& problem, Epilogue epilogue, float sum, float c) {
  switch (epilogue) {
    case Epilogue::round_once:
    case Epilogue::start_from_c:
      return sum;
    case Epilogue::scale:
      return problem.alpha * sum;
    case Epilogue::fma_on_product:
      return std::fma(problem.alpha, sum, problem.beta * c);
    case Epilogue::fma_on_c:
      return std::fma(problem.beta, c, problem.alpha * sum);
    case Epilogue::mul_add:
    case Epilogue::round_product_first:
      return problem.alpha * sum + problem.beta * c;
  }
  return sum;
}

}  // namespace

const std::vector<Accumulator>& accumulators() {
  static const std::vector<Accumulator> all = make_accumulators();
  return all;
}

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 4> names{"none", "fp32", "fp16_partials", "fp16"};
  return names[static_cast<std::size_t>(reduction)];
}

std::string_view name_of(Epilogue epilogue) {
  constexpr std::array<std::string_view, 7> names{
      "round_once", "scale", "fma_on_product", "fma_on_c", "mul_add", "round_product_first", "start_from_c"};
  return names[static_cast<std::size_t>(epilogue)];
}

std::string Hypothesis::text() const {
  std::string text = accumulator->name;
  if (slices > 1)
    text += fmt::format(", k in {} slices of {} reduced by {}", slices, slice_length, name_of(reduction));
  return text + (epilogue == Epilogue::round_once ? "" : fmt::format(", {}", name_of(epilogue)));
}

std::vector<Hypothesis> hypotheses(const Problem& problem, std::size_t most_slices) {
  std::vector<Hypothesis> all;
  for (const std::size_t length : slice_lengths(problem.depth, most_slices)) {
    const std::size_t slices = divide_up(problem.depth, length);
    for (const Accumulator& accumulator : accumulators()) {
      for (const Epilogue epilogue : epilogues_of(problem)) {
        for (const Reduction reduction : reductions_of(accumulator, slices))
          all.push_back({&accumulator, length, slices, reduction, epilogue});
      }
    }
  }
  return all;
}

bool have_equal_partials(const Hypothesis& a, const Hypothesis& b) {
  return a.accumulator == b.accumulator && a.slice_length == b.slice_length &&
         a.starts_from_c() == b.starts_from_c();
}

std::vector<Part> cut(const Problem& problem, const std::vector<std::size_t>& rows,
                      const std::vector<std::size_t>& columns, std::size_t most_rows) {
  const auto b = std::make_shared<std::vector<std::uint16_t>>();
  b->reserve(problem.depth * columns.size());
  for (std::size_t k = 0; k < problem.depth; ++k) {
    for (const std::size_t j : columns) b->push_back(problem.b[k * problem.columns + j]);
  }
  std::vector<Part> parts;
  for (std::size_t first = 0; first < rows.size(); first += most_rows) {
    const std::size_t next = std::min(first + most_rows, rows.size());
    Part part{.rows = {}, .columns = columns, .depth = problem.depth, .a = {}, .b = b, .c = {}, .d = {}};
    for (std::size_t row = first; row < next; ++row) {
      const std::size_t i = rows[row];
      const auto begin = problem.a.begin() + static_cast<std::ptrdiff_t>(i * problem.depth);
      part.rows.push_back(i);
      part.a.insert(part.a.end(), begin, begin + static_cast<std::ptrdiff_t>(problem.depth));
      for (const std::size_t j : columns) {
        part.d.push_back(problem.d.at(i, j));
        if (!problem.c.empty()) part.c.push_back(problem.c_at(i * problem.columns + j));
      }
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Partials partial_sums(const Part& part, const Hypothesis& hypothesis) {
  const std::size_t rows = part.rows.size(), columns = part.columns.size();
  Partials partials;
  for (std::size_t first = 0; first < part.depth; first += hypothesis.slice_length) {
    const std::size_t length = std::min(hypothesis.slice_length, part.depth - first);
    const bool from_c = first == 0 && hypothesis.starts_from_c();
    std::vector<float>& sums = partials.emplace_back(from_c ? part.c : std::vector<float>(part.outputs()));
    if (from_c && hypothesis.accumulator->format == binary16) round_to_halves(sums);
    const fp16::MatrixOperand a{part.a.data() + first, binary16, rows, length, part.depth};
    const fp16::MatrixOperand b{part.b->data() + first * columns, binary16, length, columns, columns};
    const fp16::GemmOptions options{.start = from_c ? fp16::ChainStart::from_output : fp16::ChainStart::zero};
    std::visit([&](const auto& way) { fp16::gemm(a, b, sums.data(), columns, way, options); },
               hypothesis.accumulator->way);
  }
  return partials;
}

std::vector<std::uint32_t> predicted(const Problem& problem, const Part& part, const Hypothesis& hypothesis,
                                     const Partials& partials) {
  std::vector<float> sums = reduced(partials, hypothesis.reduction);
  if (hypothesis.epilogue == Epilogue::round_product_first) round_to_halves(sums);
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = finished(problem, hypothesis.epilogue, sums[i], part.c.empty() ? 0 : part.c[i]);
  if (problem.d.format == binary16) {
    const std::vector<std::uint16_t> halves = to_halves(sums);
    return {halves.begin(), halves.end()};
  }
  std::vector<std::uint32_t> codes(sums.size());
  std::ranges::transform(sums, codes.begin(), [](float sum) { return std::bit_cast<std::uint32_t>(sum); });
  return codes;
}

}  // namespace experiments::explain_gemm
