#pragma once
/// Means over the gradients of many workers as an all-reduce forms them: which additions, in which order, and
/// where each of them is rounded. The workers are virtual; only the arithmetic is simulated.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fp16/bulk.h"

namespace sim {

struct RevealedOrders;

/// The order of the additions, for workers 0 .. N-1 with gradients g[0] .. g[N-1]. N need not be a power of
/// two.
enum class AllReduceAlgorithm {
  /// Reduce-scatter round a ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
  /// of workstations", 2009). The n elements are cut into N chunks (RingChunks); the sum of chunk c starts at
  /// worker c and goes round: ((g[c] + g[c+1]) + g[c+2]) + ... + g[c-1], indices modulo N.
  ring,
  /// NCCL's first binary tree (ncclGetBtree; its second one mirrors it). Worker 0 has the child
  /// bit_ceil(N) / 2; any other worker r, with b the lowest set bit of r, has the children r - b/2 and
  /// r + b/2, if b > 1, and in place of one that is not below N the first of r + b/4, r + b/8 ... that is. A
  /// worker forms (g[r] + sum of the first child) + sum of the second.
  binary_tree,
  /// In step k = 0, 1 ... worker r exchanges its sum with worker r xor 2^k, and both add:
  /// ((g[0] + g[1]) + (g[2] + g[3])) + ((g[4] + g[5]) + (g[6] + g[7])). Here and in the next two, of
  /// N = 2^m + e workers the first 2e add in pairs g[2i] + g[2i+1] before, and these count as one worker each.
  recursive_doubling,
  /// Rabenseifner's (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
  /// MPICH", 2005) as Open MPI (its algorithm 6) and MPICH have it: step k exchanges ever smaller halves of
  /// the elements with worker r xor 2^k. Addition being commutative, each element has recursive doubling's
  /// sum.
  rabenseifner,
  /// Recursive halving that starts with the farthest worker, r xor N/2, and ends with r xor 1:
  /// ((g[0] + g[4]) + (g[2] + g[6])) + ((g[1] + g[5]) + (g[3] + g[7])).
  recursive_halving_far_first,
  /// The owner of an element is sent all N values and adds them by itself: ((g[0] + g[1]) + g[2]) + ...
  direct,
  /// The owner of an element adds all values from the last worker's on, ((g[N-1] + g[N-2]) + ...) + g[0]: Open
  /// MPI's basic linear.
  direct_descending,
  /// Whatever order a library's own MPI_Allreduce has, which is found by probing (revealed_order.h).
  mpi,
};

/// Where a ring cuts n elements into N chunks.
enum class RingChunks {
  first_longer,  ///< the first n mod N have one element more than the others, as Open MPI cuts
  even,          ///< chunk c from floor(c n / N) on
};

/// What workers add in, and what they send.
enum class AllReducePrecision {
  fp16,                    ///< each addition is one of binary16
  fp32_accumulation,       ///< sums of binary32, rounded to binary16 where sent or kept for the next step
  bf16,                    ///< each addition is one of bfloat16
  bf16_fp32_accumulation,  ///< sums of binary32, rounded to bfloat16 where sent or kept for the next step
  fp32,                    ///< nothing is rounded but to binary32
};

/// By what the gradients are divided before the sum, and by what the sum is divided after it. The product is
/// N.
enum class AllReduceDivision {
  /// By N before: PyTorch's DistributedDataParallel and its fp16_compress_hook, NCCL's ncclAvg, DeepSpeed
  /// with prescale_gradients.
  before,
  /// By about sqrt(N) before and after: PyTorch's FSDP. The factor before is the smallest power of two f with
  /// N / f <= f, or the first that does not divide N. What DeepSpeed, Apex and Horovod call
  /// gradient_predivide_factor is the same with a factor that their users choose.
  split,
  /// By N after: DeepSpeed by default, and Apex and Horovod with their default gradient_predivide_factor
  /// of 1.
  after,
};

/// All but `mpi`, which is no order by itself.
inline constexpr std::array all_reduce_algorithms{AllReduceAlgorithm::ring,
                                                  AllReduceAlgorithm::binary_tree,
                                                  AllReduceAlgorithm::recursive_doubling,
                                                  AllReduceAlgorithm::rabenseifner,
                                                  AllReduceAlgorithm::recursive_halving_far_first,
                                                  AllReduceAlgorithm::direct,
                                                  AllReduceAlgorithm::direct_descending};
inline constexpr std::array all_reduce_precisions{
    AllReducePrecision::fp16, AllReducePrecision::fp32_accumulation, AllReducePrecision::bf16,
    AllReducePrecision::bf16_fp32_accumulation, AllReducePrecision::fp32};
inline constexpr std::array all_reduce_divisions{AllReduceDivision::before, AllReduceDivision::split,
                                                 AllReduceDivision::after};

/// The enumerator's own name.
std::string_view name_of(AllReduceAlgorithm algorithm);
std::string_view name_of(AllReducePrecision precision);
std::string_view name_of(AllReduceDivision division);
std::string_view name_of(RingChunks chunks);

/// What workers send: binary16, bfloat16 or binary32.
const fp16::Format& wire_format(AllReducePrecision precision);

/// Rounds values to what is sent, to nearest even.
void round_to_wire(AllReducePrecision precision, std::span<float> values,
                   fp16::RoundingCounts* counts = nullptr);

/// The codes of 16 bits that are sent, but in fp32, of values that need not be rounded yet; and the values of such codes.
void encode_for_wire(AllReducePrecision precision, std::span<const float> values,
                     std::span<std::uint16_t> codes, fp16::RoundingCounts* counts = nullptr);
void decode_from_wire(AllReducePrecision precision, std::span<const std::uint16_t> codes,
                      std::span<float> values);
/// The codes of sums of two that are sent, but in fp32, each rounded to nearest even; `sum` may be one of the two.
void add_on_wire(AllReducePrecision precision, std::span<const std::uint16_t> first,
                 std::span<const std::uint16_t> second, std::span<std::uint16_t> sum);

/// The divisor before the sum; the one after it is workers / predivisor. At least one worker.
double predivisor(AllReduceDivision division, std::size_t workers);

/// The first element of a ring's chunk, of `count` chunks; of chunk `count`, the number of elements.
std::size_t begin_of_chunk(RingChunks chunks, std::size_t chunk, std::size_t count, std::size_t elements);

/// The children of a worker in `binary_tree`, in the order in which it adds their sums.
std::vector<std::size_t> tree_children(std::size_t worker, std::size_t workers);

struct AllReduce {
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::ring;
  AllReducePrecision precision = AllReducePrecision::fp16;
  AllReduceDivision division = AllReduceDivision::before;
  RingChunks ring_chunks = RingChunks::first_longer;  ///< of `ring` alone
  const RevealedOrders* revealed = nullptr;           ///< of `mpi` alone; must outlive it

  friend bool operator==(const AllReduce&, const AllReduce&) = default;
};

struct AllReducedMean {
  std::vector<float> values;
  /// What the division before the sum did to the workers' values; nothing is counted where it is by 1 or in
  /// fp32.
  fp16::RoundingCounts predivision = {};
};

/// The mean that every worker ends with. `workers`: an array of the same length from each, of values of
/// wire_format(), infinities and NaNs included. All roundings are to nearest-even: of each quotient before the
/// sum, of sums as the precision says, of the quotient after it. In fp32 these are the quotients and sums of
/// binary32. Every NaN is the quiet one without a sign.
///
/// With two values at a time, fp16 and fp32_accumulation are the same, bit for bit: a sum or quotient of
/// binary16 that is rounded to 24 digits, which are at least 2 * 11 + 2, and then to 11 is the one rounded to
/// 11 at once (Figueroa, "When is double rounding innocuous?", 1995). So are bf16 and bf16_fp32_accumulation, with 8 digits,
/// among subnormal numbers for up to 2^16 workers. Each pair differs only in `binary_tree`, where a worker adds up to three
/// values, and in `direct` and `direct_descending`.
///
/// Throws std::invalid_argument without workers and when lengths differ, and for `mpi` where no order is revealed for so
/// many workers and elements.
AllReducedMean all_reduce_mean(std::span<const std::span<const float>> workers, const AllReduce& how);

/// sum / N with an exact sum, rounded once, of at most 2^13 workers with values of binary16 alone: these are
/// multiples of 2^-24 below 2^16, so that binary64 holds their sums. Throws std::invalid_argument as above,
/// and for more workers.
std::vector<double> exact_mean(std::span<const std::span<const float>> workers);

}  // namespace sim
