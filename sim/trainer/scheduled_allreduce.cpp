#include "sim/trainer/scheduled_allreduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sim/trainer/allreduce_arithmetic.h"
#include "sim/trainer/revealed_order.h"

namespace sim {
namespace {

using Rank = std::optional<std::size_t>;  ///< none: nobody

/// Elements [begin, end).
struct Range {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
  Range first_part(std::size_t size) const { return {begin, std::min(begin + size, end)}; }
  Range after(Range part) const { return {part.end, end}; }
};

/// One rank's part of an all-reduce. Ranks keep and send codes: of 16 bits, or in fp32 the numbers themselves.
template <class Code>
class Schedule {
 public:
  /// `codes`: of arrays of one length; `received`: whatever earlier ones left.
  Schedule(Wire& wire, const AllReduce& how, std::span<Code> codes, std::vector<std::vector<Code>>& received)
      : wire_(wire),
        how_(how),
        rank_(wire.rank()),
        ranks_(wire.ranks()),
        arithmetic_(how, ranks_),
        codes_(codes),
        received_(received) {}

  /// Puts the mean over all ranks of their `own` into `mean`, and the codes of the sum in their place.
  void form_mean(std::span<const float> own, std::span<float> mean) {
    std::array<float, block_size> block;
    for_parts(all(), block_size, [&](Range range) {
      const std::span<float> values = first_of(block, range.size());
      arithmetic_.divide_before_sending(own.subspan(range.begin, range.size()), values);
      encode(values, at(range));
    });
    sum();
    for_parts(all(), block_size, [&](Range range) {
      const std::span<float> values = mean.subspan(range.begin, range.size());
      decode(at(range), values);
      arithmetic_.divide_after(values);
    });
  }

  /// Puts the sums over all ranks in the place of their codes.
  void sum() {
    switch (how_.algorithm) {
      case AllReduceAlgorithm::ring:
        return ring();
      case AllReduceAlgorithm::binary_tree:
        return tree();
      case AllReduceAlgorithm::recursive_doubling:
      case AllReduceAlgorithm::rabenseifner:
      case AllReduceAlgorithm::recursive_halving_far_first:
        return folded();
      case AllReduceAlgorithm::direct:
      case AllReduceAlgorithm::direct_descending:
        return direct();
      case AllReduceAlgorithm::mpi:
        return by_carrier();
    }
  }

 private:
  using Codes = std::span<const Code>;
  static constexpr std::size_t block_size = 4096;  ///< stays in a first cache

  Range all() const { return {0, codes_.size()}; }
  Range chunk(std::size_t index) const {
    const auto begin = [&](std::size_t i) {
      return begin_of_chunk(how_.ring_chunks, i, ranks_, codes_.size());
    };
    return {begin(index % ranks_), begin(index % ranks_ + 1)};
  }
  std::span<Code> at(Range range) { return codes_.subspan(range.begin, range.size()); }

  void encode(std::span<const float> values, std::span<Code> codes) const {
    if constexpr (std::is_same_v<Code, float>)
      std::ranges::copy(values, codes.begin());
    else
      encode_for_wire(how_.precision, values, codes);
  }
  void decode(Codes codes, std::span<float> values) const {
    if constexpr (std::is_same_v<Code, float>)
      std::ranges::copy(codes, values.begin());
    else
      decode_from_wire(how_.precision, codes, values);
  }

  static std::span<float> first_of(std::array<float, block_size>& block, std::size_t count) {
    return std::span(block).first(count);
  }
  /// Calls use(part) for one part after the other, each of at most so many elements.
  template <class Use>
  static void for_parts(Range range, std::size_t most, Use use) {
    while (range.size() > 0) {
      const Range part = range.first_part(most);
      use(part);
      range = range.after(part);
    }
  }

  /// (first + second) + ... into a range of their length, which is one of them.
  void add_up(std::span<const Codes> terms, Range into) {
    for_parts({0, into.size()}, block_size, [&](Range range) {
      const auto part_of = [&](std::size_t index) { return terms[index].subspan(range.begin, range.size()); };
      const std::span<Code> sum = at(into).subspan(range.begin, range.size());
      if (terms.size() > 2 && arithmetic_.accumulates())
        accumulate(terms.size(), part_of, sum);
      else
        add_codes(terms.size(), part_of, sum);
    });
  }
  /// Rounds each sum. Of two terms the only sum is rounded in any precision, as it is sent (all_reduce_mean); a term that is alone
  /// stays where it is.
  template <class PartOf>
  void add_codes(std::size_t terms, PartOf part_of, std::span<Code> sum) {
    std::array<Code, block_size> block;
    const std::span<Code> so_far = std::span(block).first(sum.size());
    for (std::size_t index = 1; index < terms; ++index) {
      const Codes before = index == 1 ? part_of(0) : so_far;
      const std::span<Code> after = index + 1 == terms ? sum : so_far;
      if constexpr (std::is_same_v<Code, float>)
        std::ranges::transform(before, part_of(index), after.begin(), std::plus());
      else
        add_on_wire(how_.precision, before, part_of(index), after);
    }
  }
  /// The sum of binary32 is rounded once, at the end.
  template <class PartOf>
  void accumulate(std::size_t terms, PartOf part_of, std::span<Code> into) {
    std::array<float, block_size> sum_block, term_block;
    const std::span<float> sum = first_of(sum_block, into.size()), term = first_of(term_block, into.size());
    decode(part_of(0), sum);
    for (std::size_t index = 1; index < terms; ++index) {
      decode(part_of(index), term);
      arithmetic_.add(sum, term);
    }
    encode(sum, into);
  }

  /// Sends codes of one range, while those of another are replaced by what comes.
  void exchange(Range out, Rank to, Range in, Rank from) { exchange(at(out), to, at(in), from); }
  void exchange(Codes out, Rank to, std::span<Code> in, Rank from) {
    wire_.send_receive(std::as_bytes(out), to, std::as_writable_bytes(in), from);
  }
  void send(Range out, std::size_t to) { exchange(at(out), to, {}, std::nullopt); }
  void receive(Range in, std::size_t from) { exchange({}, std::nullopt, at(in), from); }

  /// Sends codes of one range, while what comes is added to those of another: in pieces, which are still in a cache when they
  /// are added.
  void exchange_and_add(Range out, Rank to, Range in, Rank from) {
    while (out.size() > 0 || in.size() > 0) {
      const Range sent = out.first_part(all_reduce_piece), kept = in.first_part(all_reduce_piece);
      const std::span<Code> received = buffer(0, kept.size());
      exchange(at(sent), sent.size() > 0 ? to : std::nullopt, received,
               kept.size() > 0 ? from : std::nullopt);
      add_up(std::array<Codes, 2>{received, at(kept)}, kept);
      out = out.after(sent);
      in = in.after(kept);
    }
  }
  /// Several at one time; each only grows.
  std::span<Code> buffer(std::size_t index, std::size_t count) {
    if (received_.size() <= index) received_.resize(index + 1);
    std::vector<Code>& codes = received_[index];
    if (codes.size() < count) codes.resize(count);
    return std::span(codes).first(count);
  }

  /// Every rank has the sums of chunk rank + shift, and then those of all.
  void gather_chunks(std::size_t shift) {
    for (std::size_t hop = 0; hop + 1 < ranks_; ++hop) {
      const std::size_t newest = rank_ + shift + ranks_ - hop;
      exchange(chunk(newest), next(), chunk(newest + ranks_ - 1), previous());
    }
  }
  std::size_t next() const { return (rank_ + 1) % ranks_; }
  std::size_t previous() const { return (rank_ + ranks_ - 1) % ranks_; }

  void ring() {
    for (std::size_t hop = 0; hop + 1 < ranks_; ++hop) {
      const std::size_t newest = rank_ + ranks_ - hop;
      exchange_and_add(chunk(newest), next(), chunk(newest + ranks_ - 1), previous());
    }
    gather_chunks(1);
  }

  /// In pieces, so that a rank adds one while the next is on its way.
  void tree() {
    const std::vector<std::size_t> children = tree_children(rank_, ranks_);
    const Rank parent = parent_in_tree();
    for_parts(all(), all_reduce_piece, [&](Range piece) {
      std::vector<Codes> terms{at(piece)};
      for (const std::size_t child : children) {
        const std::span<Code> received = buffer(terms.size(), piece.size());
        exchange({}, std::nullopt, received, child);
        terms.push_back(received);
      }
      add_up(terms, piece);
      if (parent) send(piece, *parent);
    });
    for_parts(all(), all_reduce_piece, [&](Range piece) {
      if (parent) receive(piece, *parent);
      for (const std::size_t child : children) send(piece, child);
    });
  }
  Rank parent_in_tree() const {
    for (std::size_t worker = 0; worker < ranks_; ++worker) {
      const std::vector<std::size_t> children = tree_children(worker, ranks_);
      if (std::ranges::find(children, rank_) != children.end()) return worker;
    }
    return std::nullopt;
  }

  /// Of 2^m + e ranks the first 2e add in pairs before, and these count as one each.
  void folded() {
    const std::size_t workers = std::bit_floor(ranks_), extra = ranks_ - workers;
    if (rank_ >= 2 * extra) return exchanged(rank_ - extra, workers);
    if (rank_ % 2 == 1) {
      exchange_and_add(all(), rank_ - 1, {0, 0}, std::nullopt);
      return receive(all(), rank_ - 1);
    }
    exchange_and_add({0, 0}, std::nullopt, all(), rank_ + 1);
    exchanged(rank_ / 2, workers);
    send(all(), rank_ + 1);
  }
  std::size_t rank_of(std::size_t worker) const {
    const std::size_t extra = ranks_ - std::bit_floor(ranks_);
    return worker < extra ? 2 * worker : worker + extra;
  }

  void exchanged(std::size_t worker, std::size_t workers) {
    if (how_.algorithm == AllReduceAlgorithm::recursive_doubling) {
      for (std::size_t distance = 1; distance < workers; distance *= 2) {
        const std::size_t partner = rank_of(worker ^ distance);
        exchange_and_add(all(), partner, all(), partner);
      }
      return;
    }
    std::vector<std::size_t> distances;
    for (std::size_t distance = 1; distance < workers; distance *= 2) distances.push_back(distance);
    if (how_.algorithm == AllReduceAlgorithm::recursive_halving_far_first) std::ranges::reverse(distances);
    halve(worker, distances, all());
  }

  /// Sums of a range of which this worker and those at these distances have parts.
  void halve(std::size_t worker, std::span<const std::size_t> distances, Range range) {
    if (distances.empty()) return;
    const std::size_t distance = distances.front(), partner = rank_of(worker ^ distance);
    const std::size_t middle = range.begin + range.size() / 2;
    Range kept{range.begin, middle}, given{middle, range.end};
    if ((worker & distance) != 0) std::swap(kept, given);
    exchange_and_add(given, partner, kept, partner);
    halve(worker, distances.subspan(1), kept);
    exchange(kept, partner, given, partner);
  }

  void direct() {
    const Range own = chunk(rank_);
    std::vector<Codes> shares(ranks_);
    shares[rank_] = at(own);
    for (std::size_t hop = 1; hop < ranks_; ++hop) {
      const std::size_t to = (rank_ + hop) % ranks_, from = (rank_ + ranks_ - hop) % ranks_;
      const std::span<Code> received = buffer(from, own.size());
      exchange(at(chunk(to)), to, received, from);
      shares[from] = received;
    }
    if (how_.algorithm == AllReduceAlgorithm::direct_descending) std::ranges::reverse(shares);
    add_up(shares, own);
    gather_chunks(0);
  }

  void by_carrier() {
    require_carried(how_.precision);
    wire_.sum(codes_);
  }

  Wire& wire_;
  const AllReduce& how_;
  std::size_t rank_, ranks_;
  AllReduceArithmetic arithmetic_;
  std::span<Code> codes_;
  std::vector<std::vector<Code>>& received_;
};

}  // namespace

std::span<const float> all_reduce_over(Wire& wire, std::span<const float> own, const AllReduce& how,
                                       AllReduceSpace& space) {
  const auto form_mean = [&]<class Code>(AllReduceSpace::Codes<Code>& codes) {
    codes.own.resize(own.size());
    Schedule<Code>(wire, how, codes.own, codes.received).form_mean(own, space.mean);
  };
  space.mean.resize(own.size());
  if (how.precision == AllReducePrecision::fp32)
    form_mean(space.numbers);
  else
    form_mean(space.halves);
  return space.mean;
}

void sum_over(Wire& wire, std::span<std::uint16_t> codes, const AllReduce& how, AllReduceSpace& space) {
  if (how.precision == AllReducePrecision::fp32)
    throw std::invalid_argument(
        "a sum of codes in fp32; allowed: fp16, fp32_accumulation, bf16, bf16_fp32_accumulation");
  Schedule<std::uint16_t>(wire, how, codes, space.halves.received).sum();
}

}  // namespace sim
