#include "experiments/explain_gemm/census.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "experiments/explain_gemm/evidence.h"
#include "experiments/explain_gemm/prediction.h"
#include "experiments/frame/interrupt.h"
#include "experiments/frame/stopwatch.h"
#include "fp16/codec.h"

namespace experiments::explain_gemm {
namespace {

using fp16::binary16;
using fp16::binary32;

constexpr std::array splits{2, 3, 4, 5, 6, 8, 12, 16};
constexpr int most_chosen = 64;
// Every byte before the product is asked for: a NaN where nothing is written.
constexpr auto unwritten = std::byte{0xff};

fp16::Format format_of(CublasType type) {
  return type == CublasType::fp16 ? binary16 : binary32;
}

/// The problem that a way is given: without D, C in D's format and the factors in theirs.
Problem asked(const Problem& problem, const Way& way) {
  Problem result = problem;
  result.d = {.format = format_of(way.output), .rows = problem.rows, .columns = problem.columns, .codes = {}};
  if (way.output == CublasType::fp16) {
    for (float& c : result.c) c = rounded_to(binary16, c);
  }
  if (scale_type(way.compute) == CublasType::fp16) {
    result.alpha = rounded_to(binary16, problem.alpha);
    result.beta = rounded_to(binary16, problem.beta);
  }
  return result;
}

/// A matrix in memory, as many bytes a code as its format has.
std::vector<std::byte> bytes_of(const fp16::Format& format, std::span<const std::uint32_t> codes) {
  const auto width = static_cast<std::size_t>(format.width()) / 8;
  std::vector<std::byte> bytes(codes.size() * width);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(bytes.data() + i * width, &codes[i], width);
  return bytes;
}

std::vector<std::uint32_t> codes_of(const fp16::Format& format, std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  const auto width = static_cast<std::size_t>(format.width()) / 8;
  std::vector<std::uint32_t> codes(bytes.size() / width);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], bytes.data() + i * width, width);
  return codes;
}

/// What D holds before the product: C, or without it what no product leaves.
std::vector<std::byte> initial_d(const Problem& asked) {
  std::vector<std::uint32_t> codes;
  for (const float c : asked.c) codes.push_back(code_of(asked.d.format, c));
  std::vector<std::byte> bytes = bytes_of(asked.d.format, codes);
  bytes.resize(asked.outputs() * static_cast<std::size_t>(asked.d.format.width()) / 8, unwritten);
  return bytes;
}

/// Evenly out of all.
template <typename Value>
std::vector<Value> thinned(const std::vector<Value>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<Value> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
  return some;
}

struct Libraries {
  Cublas& cublas;
  CublasLt& cublas_lt;
  const CensusMemory& memory;
};

CublasProduct product_of(const Problem& problem, const Way& way, const CensusMemory& memory) {
  const bool halves = way.operands == CublasType::fp16;
  return {.rows = static_cast<int>(problem.rows),
          .columns = static_cast<int>(problem.columns),
          .depth = static_cast<int>(problem.depth),
          .a = halves ? memory.halves_a : memory.floats_a,
          .b = halves ? memory.halves_b : memory.floats_b,
          .d = memory.d,
          .operands = way.operands,
          .output = way.output,
          .compute = way.compute,
          .alpha = problem.alpha,
          .beta = problem.beta};
}

void multiply(const Libraries& libraries, const Way& way, const CublasProduct& product) {
  const CensusMemory& memory = libraries.memory;
  if (way.algorithm)
    return libraries.cublas_lt.multiply(product, *way.algorithm, memory.workspace, memory.workspace_bytes);
  libraries.cublas.set_math_mode(way.math, way.reduction);
  way.source == Source::sgemm ? libraries.cublas.sgemm(product) : libraries.cublas.gemm(product);
}

/// What of the budget is spent, as a share; 0 without one.
class Clock {
 public:
  explicit Clock(std::optional<double> budget_s) : budget_s_(budget_s) {}

  bool is_past(double share) const { return budget_s_ && stopwatch_.seconds() >= share * *budget_s_; }

 private:
  Stopwatch stopwatch_;
  std::optional<double> budget_s_;
};

constexpr double share_of_lists = 0.4, share_with_products = 0.6;

/// The chosen algorithms, then an even part of all the others.
std::vector<Way> ways_of_lt(const Problem& problem, const CensusOptions& options, const Libraries& libraries,
                            const Clock& clock, std::size_t& listed) {
  std::vector<Way> ways;
  int lists = 0;
  for (const auto& [compute, output] :
       {std::pair(CublasCompute::fp32, CublasType::fp16), std::pair(CublasCompute::fp32, CublasType::fp32),
        std::pair(CublasCompute::fp16, CublasType::fp16)}) {
    const Way way{.source = Source::lt_chosen, .compute = compute, .output = output};
    const CublasProduct product = product_of(problem, way, libraries.memory);
    std::set<std::array<std::uint64_t, 8>> known;
    const std::size_t bytes = libraries.memory.workspace_bytes;
    for (const LtAlgorithm& algorithm : libraries.cublas_lt.chosen(product, bytes, most_chosen)) {
      ways.push_back(way);
      ways.back().algorithm = algorithm;
      known.insert(algorithm.opaque);
    }
    const double share = share_of_lists * ++lists / 3;
    std::vector<LtAlgorithm> others = libraries.cublas_lt.all(product, bytes, splits, [&] {
      throw_if_interrupted();
      return clock.is_past(share);
    });
    std::erase_if(others, [&](const LtAlgorithm& algorithm) { return known.contains(algorithm.opaque); });
    listed += known.size() + others.size();
    for (const LtAlgorithm& algorithm : thinned(others, static_cast<std::size_t>(options.most_algorithms))) {
      ways.push_back(way);
      ways.back().source = Source::lt_listed;
      ways.back().algorithm = algorithm;
    }
  }
  return ways;
}

/// D of one product.
std::vector<std::uint32_t> made(const Problem& asked, const Way& way, const Libraries& libraries) {
  std::vector<std::byte> bytes = initial_d(asked);
  libraries.memory.write_d(bytes);
  multiply(libraries, way, product_of(asked, way, libraries.memory));
  libraries.memory.read_d(bytes);
  return codes_of(asked.d.format, bytes);
}

/// Results by their format and codes.
using Known = std::map<std::pair<CublasType, std::vector<std::uint32_t>>, std::size_t>;

Attempt attempt(const Problem& problem, const Way& way, const Libraries& libraries, Known& known,
                Census& census) {
  Attempt attempt{.way = way};
  Problem asked_for = asked(problem, way);
  try {
    asked_for.d.codes = made(asked_for, way, libraries);
    attempt.repeats = made(asked_for, way, libraries) == asked_for.d.codes;
  } catch (const CublasRefusal& refusal) {
    attempt.refusal = refusal.what();
    return attempt;
  }
  const auto [place, is_new] = known.try_emplace({way.output, asked_for.d.codes}, census.results.size());
  if (is_new) census.results.push_back({.problem = std::move(asked_for), .first = way});
  attempt.result = place->second;
  ++census.results[place->second].ways;
  return attempt;
}

/// Attempts every way, as far as the budget and the device go.
void attempt_all(const Problem& problem, const std::vector<Way>& ways, const Libraries& libraries,
                 const Clock& clock, const Run& run, Census& census) {
  Known known;
  Progress progress = run.progress("products", ways.size());
  for (const Way& way : ways) {
    throw_if_interrupted();
    if (clock.is_past(share_with_products)) break;
    try {
      census.attempts.push_back(attempt(problem, way, libraries, known, census));
    } catch (const std::runtime_error& error) {
      census.fault = fmt::format("{}: {}", way.text(), error.what());
      break;
    }
    progress.tick();
  }
  census.ways_not_asked = ways.size() - census.attempts.size();
}

void explain_results(const SearchOptions& search, const Clock& clock, const Run& run, Census& census) {
  std::vector<Result*> order;
  for (Result& result : census.results) order.push_back(&result);
  std::ranges::stable_sort(order, std::greater{}, &Result::ways);
  for (Result* const result : order) {
    if (clock.is_past(1)) return;
    result->explanation = explain(result->problem, search, run);
    result->classification = classify(result->problem, result->explanation, search.most_slices, run);
  }
}

}  // namespace

std::string_view Result::verdict() const {
  return is_searched() ? name_of(evidence_of(explanation).verdict) : "not searched";
}

std::string_view name_of(Source source) {
  constexpr std::array<std::string_view, 4> names{"cublasGemmEx", "cublasSgemm", "cublasLtMatmul (chosen)",
                                                  "cublasLtMatmul (listed)"};
  return names[static_cast<std::size_t>(source)];
}

std::string Way::text() const {
  const auto type = [](CublasType t) { return t == CublasType::fp16 ? "FP16" : "FP32"; };
  std::string text =
      fmt::format("{} {}, {} to {}", name_of(source), name_of(compute), type(operands), type(output));
  if (math == CublasMath::pedantic) text += ", pedantic";
  if (math == CublasMath::tf32) text += ", TF32";
  if (reduction == ReducedPrecisionReduction::disallowed) text += ", no reduced precision reduction";
  if (!algorithm) return text;
  text += fmt::format(", algorithm {}", algorithm->id);
  if (algorithm->split_k > 1)
    text += fmt::format(", k in {} by {}", algorithm->split_k, name_of(algorithm->reduction));
  return text;
}

std::size_t Census::count(std::string_view verdict) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results, [&](const Result& result) { return result.verdict() == verdict; }));
}

std::vector<Way> ways_of_gemm() {
  using enum CublasCompute;
  constexpr CublasType halves = CublasType::fp16, floats = CublasType::fp32;
  std::vector<Way> ways;
  for (const CublasType output : {halves, floats}) {
    for (const CublasCompute compute : {fp32, fp32_pedantic})
      ways.push_back({.source = Source::gemm, .compute = compute, .output = output});
  }
  ways.push_back({.source = Source::gemm,
                  .compute = fp32,
                  .output = halves,
                  .reduction = ReducedPrecisionReduction::disallowed});
  for (const CublasCompute compute : {fp16, fp16_pedantic})
    ways.push_back({.source = Source::gemm, .compute = compute, .output = halves});
  for (const CublasCompute compute : {fp32, fp32_pedantic, fp32_fast_fp16, fp32_fast_tf32})
    ways.push_back({.source = Source::gemm, .compute = compute, .operands = floats, .output = floats});
  for (const CublasMath math : {CublasMath::standard, CublasMath::pedantic, CublasMath::tf32})
    ways.push_back({.source = Source::sgemm, .operands = floats, .output = floats, .math = math});
  return ways;
}

Census take_census(const Problem& problem, const CensusOptions& options, const SearchOptions& search,
                   Cublas& cublas, CublasLt& cublas_lt, const CensusMemory& memory, const Run& run) {
  Census census{.cublas_version = cublas.version(),
                .cublas_lt_version = cublas_lt.version(),
                .attempts = {},
                .results = {}};
  const Clock clock(options.budget_s);
  const Libraries libraries{cublas, cublas_lt, memory};
  cublas.set_workspace(memory.workspace, memory.workspace_bytes);
  std::vector<Way> ways = ways_of_gemm();
  const std::vector<Way> of_lt = ways_of_lt(problem, options, libraries, clock, census.algorithms_listed);
  ways.insert(ways.end(), of_lt.begin(), of_lt.end());
  attempt_all(problem, ways, libraries, clock, run, census);
  explain_results(search, clock, run, census);
  return census;
}

}  // namespace experiments::explain_gemm
