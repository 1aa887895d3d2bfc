#include <cuda_fp16.h>

#include <algorithm>

#include "experiments/gpu/probes/fma_sweep.h"
#include "experiments/gpu/probes/traversal.cuh"
#include "fp16/cuda/runtime.cuh"
#include "fp16/ops.h"

namespace experiments::probes {

namespace {

constexpr unsigned runs_per_b = 65536 / fma_run_length;

/// Part of a shard.
struct Part {
  std::uint16_t a;
  std::uint32_t first_b;
  std::uint32_t count_b;

  /// A warp has 32 values of b and the same c, so that its threads branch alike.
  __host__ __device__ std::uint32_t threads() const { return (count_b + 31) / 32 * 32 * runs_per_b; }
};

struct Plain {
  static __device__ __half scalar(__half a, __half b, __half c) { return __hfma(a, b, c); }
  static __device__ __half2 packed(__half2 a, __half2 b, __half2 c) { return __hfma2(a, b, c); }
};
struct Saturating {
  static __device__ __half scalar(__half a, __half b, __half c) { return __hfma_sat(a, b, c); }
  static __device__ __half2 packed(__half2 a, __half2 b, __half2 c) { return __hfma2_sat(a, b, c); }
};
struct Rectifying {
  static __device__ __half scalar(__half a, __half b, __half c) { return __hfma_relu(a, b, c); }
  static __device__ __half2 packed(__half2 a, __half2 b, __half2 c) { return __hfma2_relu(a, b, c); }
};

/// The first number becomes the second.
__device__ std::uint32_t turned(std::uint32_t word) {
  return word >> 16 | word << 16;
}
/// A word with the code in both halves: no instruction, where the code is a result of HFMA2.
__device__ std::uint32_t doubled(std::uint16_t code) {
  std::uint32_t word;
  asm("mov.b32 %0, {%1, %1};" : "=r"(word) : "h"(code));
  return word;
}

/// Operands of a call, two codes in a word; a scalar function has the first ones.
struct Operands {
  std::uint32_t a, b, c;

  __device__ Operands(std::uint16_t a, std::uint16_t b, std::uint16_t even_c)
      : a(a * 0x10001u), b(b * 0x10001u), c(even_c * 0x10001u + 0x10000u) {}
};

/// What `call` finds are two codes in a word, too; of a scalar function the same one twice.
struct Hardware {
  static constexpr int functions = 6;

  static __device__ std::uint32_t expected(const FmaAnswers& answers, int function) {
    return function < 2 ? answers.plain : function < 4 ? answers.saturated : answers.relu;
  }
  static __device__ bool is_packed(int function) { return function % 2 == 1; }
  static __device__ void call(const Operands& operands, std::uint32_t* found) {
    call<Plain>(operands, found);
    call<Saturating>(operands, found + 2);
    call<Rectifying>(operands, found + 4);
  }

 private:
  template <typename Kind>
  static __device__ void call(const Operands& operands, std::uint32_t* found) {
    const __half2 a = pair_of(operands.a), b = pair_of(operands.b), c = pair_of(operands.c);
    found[0] = doubled(__half_as_ushort(Kind::scalar(__low2half(a), __low2half(b), __low2half(c))));
    found[1] = word_of(Kind::packed(a, b, c));
  }
};

struct Software {
  static constexpr int functions = 1;

  static __device__ std::uint32_t expected(const FmaAnswers& answers, int) { return answers.plain; }
  static __device__ bool is_packed(int) { return false; }
  static __device__ void call(const Operands& operands, std::uint32_t* found) {
    const auto first = [](std::uint32_t word) { return half::from_bits(static_cast<std::uint16_t>(word)); };
    found[0] =
        doubled(ops::FusedMultiplyAdd{}(first(operands.a), first(operands.b), first(operands.c)).bits());
  }
};

__device__ FmaAnswers expected_answers(const FmaReference& reference, unsigned offset) {
  return FmaAnswers::of_rounded(word_of(
      __halves2half2(__double2half(reference.sum(offset)), __double2half(reference.sum(offset + 1)))));
}

/// One call of every function, with two neighbouring triples. Of answers in a word the lower half is that to the even
/// c, whichever number of the call it is.
struct Turn {
  std::uint32_t a_and_b;  ///< a in the upper half
  std::uint32_t c;        ///< both
  std::uint32_t weight;
  bool odd_first;  ///< whether the first number, all that scalar functions have, is the odd c

  __device__ std::uint64_t triple(int parity) const {
    return std::uint64_t{a_and_b} << 16 | (c & 0xfffe) | static_cast<std::uint64_t>(parity);
  }
  __device__ std::uint32_t by_parity(std::uint32_t found, bool packed) const {
    return packed && odd_first ? turned(found) : found;
  }
  /// The half of a word that a scalar function answers.
  __device__ std::uint32_t scalar_half() const { return odd_first ? 0xffff0000 : 0xffff; }
};

/// What a thread knows of one function.
struct Tally {
  unsigned mismatches;
  unsigned nan_mismatches;
  unsigned long long digest;
  /// By how much a run's hashes are above those of the expected answers.
  std::uint32_t excess_first;
  std::uint32_t excess_second;

  /// Two answers each, by parity.
  __device__ void note(const Turn& turn, bool packed, std::uint32_t expected, std::uint32_t found,
                       Report& report) {
    if (!packed) found = (expected & ~turn.scalar_half()) | (found & turn.scalar_half());
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint16_t wanted = expected >> 16 * i, answer = found >> 16 * i;
      if (answer == wanted) continue;
      ++(is_nan<binary16>(wanted) && is_nan<binary16>(answer) ? nan_mismatches : mismatches);
      // A thread meets pairs of triples in ascending order, each with up to four answers.
      if (mismatches + nan_mismatches <= 4 * max_counterexamples) report.keep_lowest(turn.triple(i));
    }
    (packed && turn.odd_first ? excess_second : excess_first) += (found - expected) * turn.weight;
  }

  __device__ void add_to(Report& report) const {
    report.add({.mismatches = mismatches, .nan_mismatches = nan_mismatches, .digest = digest});
  }
};

template <typename Value>
using BitsOf = std::conditional_t<sizeof(Value) == 8, std::uint64_t, std::uint32_t>;

/// Through memory, because nvcc would compute a loop's constants again in each pass to save registers.
template <typename... Values>
__device__ void detour(Values&... values) {
  __shared__ volatile std::uint64_t places[sizeof...(Values)][threads_per_block];
  int i = 0;
  ((places[i++][threadIdx.x] = std::bit_cast<BitsOf<Values>>(values)), ...);
  i = 0;
  ((values = std::bit_cast<Values>(static_cast<BitsOf<Values>>(places[i++][threadIdx.x]))), ...);
}

template <typename Subject>
struct Found {
  std::uint32_t words[Subject::functions];
};

/// Not inline, since it is seldom called: what it needs would cost the loop instructions and registers.
template <typename Subject>
__noinline__ __device__ void note_turn(Found<Subject> found, FmaAnswers expected, Turn turn, Tally* tallies,
                                       Report* reports) {
  for (int f = 0; f < Subject::functions; ++f)
    tallies[f].note(turn, Subject::is_packed(f), Subject::expected(expected, f), found.words[f], reports[f]);
}

/// Makes one call of each function and compares. Without its branch between them, ptxas would make two scalar
/// calls with neighbouring triples one packed call.
template <typename Subject>
__device__ void compare_turn(const Operands& operands, const FmaAnswers& expected, const Turn& turn,
                             Tally* tallies, Report* reports) {
  Found<Subject> found;
  Subject::call(operands, found.words);
  std::uint32_t scalar_differences = 0, packed_differences = 0;
#pragma unroll
  for (int f = 0; f < Subject::functions; ++f) {
    found.words[f] = turn.by_parity(found.words[f], Subject::is_packed(f));
    (Subject::is_packed(f) ? packed_differences : scalar_differences) |=
        found.words[f] ^ Subject::expected(expected, f);
  }
  if ((packed_differences | (scalar_differences & turn.scalar_half())) != 0)
    note_turn<Subject>(found, expected, turn, tallies, reports);
}

/// The subject's functions on one run.
template <typename Subject>
__device__ void compare_run(std::uint16_t a, std::uint16_t b, std::uint16_t first_c, Tally* tallies,
                            Report* reports) {
  FmaReference reference(a, b, first_c);
  Operands operands(a, b, first_c);
  detour(reference.product, reference.first_c_word, reference.scale_c, operands.a, operands.b);
  const std::uint32_t a_and_b = std::uint32_t{a} << 16 | b;
  FmaAnswers hashes{};
  std::uint32_t weight = 1;
#pragma unroll 1
  for (unsigned offset = 0; offset < fma_run_length; offset += 2) {
    const FmaAnswers expected = expected_answers(reference, offset);
    weight *= fma_weight_step;
    hashes.plain += expected.plain * weight;
    hashes.saturated += expected.saturated * weight;
    hashes.relu += expected.relu * weight;
#pragma unroll
    for (const bool odd_first : {false, true}) {
      compare_turn<Subject>(operands, expected, {a_and_b, operands.c, weight, odd_first}, tallies, reports);
      operands.c = turned(operands.c);
    }
    operands.c += 0x20002;
  }
  const std::uint64_t number = std::uint64_t{a_and_b} << 16 | first_c;
#pragma unroll
  for (int f = 0; f < Subject::functions; ++f) {
    Tally& tally = tallies[f];
    const std::uint32_t hash = Subject::expected(hashes, f);
    tally.digest +=
        digest_of(number, hash + tally.excess_first, Subject::is_packed(f) ? hash + tally.excess_second : 0);
    tally.excess_first = tally.excess_second = 0;
  }
}

/// `reports`: one for each function.
template <typename Subject>
__global__ void __launch_bounds__(threads_per_block) compare_fma(Part part, Report* reports) {
  // Shared memory because they are seldom used.
  __shared__ Tally all_tallies[threads_per_block][Subject::functions];
  Tally* tallies = all_tallies[threadIdx.x];
  for (int f = 0; f < Subject::functions; ++f) tallies[f] = {};
  for (std::uint32_t i = blockIdx.x * threads_per_block + threadIdx.x; i < part.threads();
       i += gridDim.x * threads_per_block) {
    const std::uint32_t b = i / (32 * runs_per_b) * 32 + i % 32, run = i / 32 % runs_per_b;
    if (b >= part.count_b) continue;
    compare_run<Subject>(part.a, static_cast<std::uint16_t>(part.first_b + b),
                         static_cast<std::uint16_t>(run * fma_run_length), tallies, reports);
  }
#pragma unroll
  for (int f = 0; f < Subject::functions; ++f) tallies[f].add_to(reports[f]);
}

/// Fills in the calls whose numbers are given, one a thread.
template <typename Subject>
__global__ void __launch_bounds__(threads_per_block)
    explain_fma(int function, Counterexample* calls, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Counterexample& result = calls[i];
  const auto a = static_cast<std::uint16_t>(result.index >> 32),
             b = static_cast<std::uint16_t>(result.index >> 16), c = static_cast<std::uint16_t>(result.index);
  const std::uint16_t offset = c % fma_run_length;
  const FmaAnswers expected =
      expected_answers(FmaReference(a, b, static_cast<std::uint16_t>(c - offset)), offset & ~1u);
  Operands operands(a, b, c & ~1u);
  if (c % 2 == 1) operands.c = turned(operands.c);
  std::uint32_t as_first[Subject::functions], as_second[Subject::functions];
  Subject::call(operands, as_first);
  operands.c = turned(operands.c);
  Subject::call(operands, as_second);
#pragma unroll
  for (int f = 0; f < Subject::functions; ++f) {
    if (f != function) continue;
    const std::uint64_t wanted = Subject::expected(expected, f) >> 16 * (c % 2) & 0xffff;
    result.expected = {wanted, 0};
    result.found = {as_first[f] & 0xffff, 0};
    result.operands = {OperandCodes{a, b, c}, OperandCodes{}};
    if (!Subject::is_packed(f)) continue;
    result.expected[1] = wanted;
    result.found[1] = as_second[f] >> 16;
    result.operands[1] = {a, b, c ^ 1u};
  }
}

template <typename Subject>
std::array<SweepResult, Subject::functions> compare_part(Part part) {
  constexpr std::size_t functions = Subject::functions;
  std::array<Report, functions> reports;
  cuda::DeviceArray<Report> on_device{std::span<const Report>(reports)};
  Report* argument = on_device.data();
  const auto kernel = reinterpret_cast<const void*>(&compare_fma<Subject>);
  cuda::load(kernel);

  cuda::Stopwatch stopwatch;
  cuda::launch(kernel, blocks_for(part.threads()), threads_per_block, {&part, &argument});
  const double milliseconds = stopwatch.milliseconds();
  on_device.copy_to(reports);
  std::array<SweepResult, functions> results;
  for (std::size_t f = 0; f < functions; ++f) {
    int function = static_cast<int>(f);
    results[f] = result_of(reports[f], reinterpret_cast<const void*>(&explain_fma<Subject>), {&function});
    results[f].inputs = std::uint64_t{part.count_b} * 65536;
    results[f].milliseconds = milliseconds;
  }
  return results;
}

}  // namespace

FmaSweepResult run_fma(std::uint16_t a, std::uint32_t first_b, std::uint32_t count_b) {
  constexpr std::uint32_t codes = 1 << 16, magnitudes = 1 << 15;
  if (count_b == 0 || first_b >= codes || count_b > codes - first_b)
    throw std::invalid_argument("sweep of fma: " + std::to_string(count_b) + " values of b from " +
                                std::to_string(first_b) + " on; allowed: 1 or more, all below 65536");
  FmaSweepResult result{.functions = compare_part<Hardware>({.a = a, .first_b = first_b, .count_b = count_b}),
                        .software = {}};
  const std::uint32_t first = std::max<std::uint32_t>(first_b, a),
                      end = std::min(first_b + count_b, magnitudes);
  if (first < end)
    result.software = compare_part<Software>({.a = a, .first_b = first, .count_b = end - first})[0];
  return result;
}

}  // namespace experiments::probes
