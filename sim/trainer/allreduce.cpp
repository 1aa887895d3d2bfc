#include "sim/trainer/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "sim/trainer/allreduce_arithmetic.h"
#include "sim/trainer/revealed_order.h"

namespace sim {
namespace {

using Workers = std::span<const std::span<const float>>;
using Values = std::vector<float>;

void require_equal_lengths(Workers workers) {
  if (workers.empty()) throw std::invalid_argument("all-reduce: there are no workers; allowed: 1 or more");
  for (std::size_t worker = 1; worker < workers.size(); ++worker) {
    if (workers[worker].size() == workers[0].size()) continue;
    throw std::invalid_argument(
        fmt::format("all-reduce: worker {} has {} values; allowed: {}, as many as worker 0 has", worker,
                    workers[worker].size(), workers[0].size()));
  }
}

/// The additions of one all-reduce.
class Reduction {
 public:
  Reduction(Workers workers, const AllReduce& how)
      : workers_(workers), how_(how), arithmetic_(how, workers.size()) {}

  AllReducedMean mean() {
    Values result = sum();
    arithmetic_.divide_after(result);
    return {.values = std::move(result), .predivision = predivision_};
  }

 private:
  Values sum() {
    switch (how_.algorithm) {
      case AllReduceAlgorithm::ring:
        return ring();
      case AllReduceAlgorithm::binary_tree:
        return subtree(0);
      case AllReduceAlgorithm::recursive_doubling:
      case AllReduceAlgorithm::rabenseifner:
      case AllReduceAlgorithm::recursive_halving_far_first:
        return exchanged(0, 1, std::bit_floor(workers_.size()));
      case AllReduceAlgorithm::direct:
      case AllReduceAlgorithm::direct_descending:
        return direct();
      case AllReduceAlgorithm::mpi:
        return revealed();
    }
    return {};
  }

  void add(Values& sum, const Values& term) { arithmetic_.add(sum, term); }

  /// What a worker sends or keeps for the next step.
  Values sent(Values sum) {
    arithmetic_.round_for_sending(sum);
    return sum;
  }

  Values divided(Values values) {
    arithmetic_.divide_before(values, &predivision_);
    return values;
  }
  Values contribution(std::size_t worker) {
    return divided({workers_[worker].begin(), workers_[worker].end()});
  }

  /// What each chunk meets at its hop, all chunks in one array.
  Values contributions_at_hop(std::size_t hop) {
    const std::size_t count = workers_.size();
    Values values(workers_[0].size());
    for (std::size_t chunk = 0; chunk < count; ++chunk) {
      const std::span<const float> worker = workers_[(chunk + hop) % count];
      const std::size_t last = begin_of_chunk(how_.ring_chunks, chunk + 1, count, values.size());
      for (std::size_t i = begin_of_chunk(how_.ring_chunks, chunk, count, values.size()); i < last; ++i)
        values[i] = worker[i];
    }
    return divided(std::move(values));
  }

  Values ring() {
    Values sum = contributions_at_hop(0);
    for (std::size_t hop = 1; hop < workers_.size(); ++hop) {
      add(sum, contributions_at_hop(hop));
      sum = sent(std::move(sum));
    }
    return sum;
  }

  Values subtree(std::size_t worker) {
    Values sum = contribution(worker);
    for (const std::size_t child : tree_children(worker, workers_.size())) add(sum, subtree(child));
    return sent(std::move(sum));
  }

  /// What counts as one worker where their number is no power of two.
  Values folded(std::size_t index) {
    const std::size_t extra = workers_.size() - std::bit_floor(workers_.size());
    if (index >= extra) return contribution(index + extra);
    Values sum = contribution(2 * index);
    add(sum, contribution(2 * index + 1));
    return sent(std::move(sum));
  }

  /// The sum of `count` workers from `first` on, `stride` apart, each exchange between halves of them: the
  /// last one, made here, has the largest distance, or the smallest where the first was with the farthest.
  Values exchanged(std::size_t first, std::size_t stride, std::size_t count) {
    if (count == 1) return folded(first);
    const bool doubling = how_.algorithm != AllReduceAlgorithm::recursive_halving_far_first;
    const std::size_t next_stride = doubling ? stride : 2 * stride;
    const std::size_t partner = first + (doubling ? count / 2 : stride);
    Values sum = exchanged(first, next_stride, count / 2);
    add(sum, exchanged(partner, next_stride, count / 2));
    return sent(std::move(sum));
  }

  Values direct() {
    const std::size_t count = workers_.size();
    const bool descending = how_.algorithm == AllReduceAlgorithm::direct_descending;
    const auto worker = [&](std::size_t place) { return descending ? count - 1 - place : place; };
    Values sum = contribution(worker(0));
    for (std::size_t place = 1; place < count; ++place) add(sum, contribution(worker(place)));
    return sent(std::move(sum));
  }

  Values revealed() {
    const RevealedOrder& order = order_for(how_.revealed, workers_.size(), workers_[0].size());
    Values sum;
    for (const auto& [end, tree] : order.pieces) {
      std::vector<Values> terms;
      for (const std::span<const float> worker : workers_)
        terms.push_back(divided({worker.begin() + static_cast<std::ptrdiff_t>(sum.size()),
                                 worker.begin() + static_cast<std::ptrdiff_t>(end)}));
      const Values piece = sum_in_order(tree, terms, arithmetic_);
      sum.insert(sum.end(), piece.begin(), piece.end());
    }
    return sum;
  }

  Workers workers_;
  AllReduce how_;
  AllReduceArithmetic arithmetic_;
  fp16::RoundingCounts predivision_;
};

}  // namespace

std::size_t begin_of_chunk(RingChunks chunks, std::size_t chunk, std::size_t count, std::size_t elements) {
  if (chunks == RingChunks::even) return chunk * elements / count;
  return chunk * (elements / count) + std::min(chunk, elements % count);
}

std::vector<std::size_t> tree_children(std::size_t worker, std::size_t workers) {
  const std::size_t lowest_bit = worker == 0 ? std::bit_ceil(workers) : worker & (~worker + 1);
  std::size_t distance = lowest_bit / 2;
  std::vector<std::size_t> children;
  if (worker != 0 && distance > 0) children.push_back(worker - distance);
  while (distance > 0 && worker + distance >= workers) distance /= 2;
  if (distance > 0) children.push_back(worker + distance);
  return children;
}

std::string_view name_of(AllReduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllReduceAlgorithm::ring:
      return "ring";
    case AllReduceAlgorithm::binary_tree:
      return "binary_tree";
    case AllReduceAlgorithm::recursive_doubling:
      return "recursive_doubling";
    case AllReduceAlgorithm::rabenseifner:
      return "rabenseifner";
    case AllReduceAlgorithm::recursive_halving_far_first:
      return "recursive_halving_far_first";
    case AllReduceAlgorithm::direct:
      return "direct";
    case AllReduceAlgorithm::direct_descending:
      return "direct_descending";
    case AllReduceAlgorithm::mpi:
      return "mpi";
  }
  return "";
}

std::string_view name_of(AllReducePrecision precision) {
  switch (precision) {
    case AllReducePrecision::fp16:
      return "fp16";
    case AllReducePrecision::fp32_accumulation:
      return "fp32_accumulation";
    case AllReducePrecision::bf16:
      return "bf16";
    case AllReducePrecision::bf16_fp32_accumulation:
      return "bf16_fp32_accumulation";
    case AllReducePrecision::fp32:
      return "fp32";
  }
  return "";
}

std::string_view name_of(AllReduceDivision division) {
  switch (division) {
    case AllReduceDivision::before:
      return "before";
    case AllReduceDivision::split:
      return "split";
    case AllReduceDivision::after:
      return "after";
  }
  return "";
}

std::string_view name_of(RingChunks chunks) {
  return chunks == RingChunks::even ? "even" : "first_longer";
}

const fp16::Format& wire_format(AllReducePrecision precision) {
  switch (precision) {
    case AllReducePrecision::fp16:
    case AllReducePrecision::fp32_accumulation:
      return fp16::binary16;
    case AllReducePrecision::bf16:
    case AllReducePrecision::bf16_fp32_accumulation:
      return fp16::bfloat16;
    case AllReducePrecision::fp32:
      break;
  }
  return fp16::binary32;
}

void round_to_wire(AllReducePrecision precision, std::span<float> values, fp16::RoundingCounts* counts) {
  if (precision == AllReducePrecision::fp32) return;
  std::array<std::uint16_t, 4096> codes;  // blocks that stay in a cache
  while (!values.empty()) {
    const std::span<float> block = values.first(std::min(values.size(), codes.size()));
    const std::span<std::uint16_t> block_codes = std::span(codes).first(block.size());
    encode_for_wire(precision, block, block_codes, counts);
    decode_from_wire(precision, block_codes, block);
    values = values.subspan(block.size());
  }
}

void encode_for_wire(AllReducePrecision precision, std::span<const float> values,
                     std::span<std::uint16_t> codes, fp16::RoundingCounts* counts) {
  if (wire_format(precision) == fp16::bfloat16) {
    fp16::encode<fp16::bfloat16>(values, codes, {}, {.counts = counts});
  } else {
    fp16::float_to_half(values, codes, {}, {.counts = counts});
  }
}

void decode_from_wire(AllReducePrecision precision, std::span<const std::uint16_t> codes,
                      std::span<float> values) {
  if (wire_format(precision) == fp16::bfloat16) {
    fp16::decode<fp16::bfloat16>(codes, values);
  } else {
    fp16::half_to_float(codes, values);
  }
}

void add_on_wire(AllReducePrecision precision, std::span<const std::uint16_t> first,
                 std::span<const std::uint16_t> second, std::span<std::uint16_t> sum) {
  if (wire_format(precision) == fp16::bfloat16) {
    fp16::add<fp16::bfloat16>(first, second, sum);
  } else {
    fp16::add<fp16::binary16>(first, second, sum);
  }
}

double predivisor(AllReduceDivision division, std::size_t workers) {
  if (division == AllReduceDivision::before) return static_cast<double>(workers);
  if (division == AllReduceDivision::after) return 1;
  std::size_t factor = 1;
  while (workers % factor == 0 && workers > factor * factor) factor *= 2;
  return static_cast<double>(factor);
}

AllReducedMean all_reduce_mean(Workers workers, const AllReduce& how) {
  require_equal_lengths(workers);
  return Reduction(workers, how).mean();
}

std::vector<double> exact_mean(Workers workers) {
  constexpr std::size_t most_workers = std::size_t{1} << 13;
  require_equal_lengths(workers);
  if (workers.size() > most_workers)
    throw std::invalid_argument(
        fmt::format("exact mean: {} workers; allowed: at most {}", workers.size(), most_workers));
  std::vector<double> mean(workers[0].size());
  for (const std::span<const float> worker : workers) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(worker[i]);
  }
  for (double& value : mean) value /= static_cast<double>(workers.size());
  return mean;
}

}  // namespace sim
