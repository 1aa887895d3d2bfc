#include "sim/trainer/scheduled_allreduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
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
};

/// One rank's part of an all-reduce.
class Schedule {
 public:
  Schedule(Wire& wire, std::span<const float> own, const AllReduce& how, AllReduceSpace& space)
      : wire_(wire),
        how_(how),
        rank_(wire.rank()),
        ranks_(wire.ranks()),
        arithmetic_(how, ranks_),
        values_(own.begin(), own.end()),
        received_(space.received),
        sent_codes_(space.sent_codes),
        received_codes_(space.received_codes) {}

  std::vector<float> mean() {
    arithmetic_.divide_before(values_);
    sum();
    arithmetic_.divide_after(values_);
    return std::move(values_);
  }

 private:
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

  Range all() const { return {0, values_.size()}; }
  Range chunk(std::size_t index) const {
    const auto begin = [&](std::size_t i) {
      return begin_of_chunk(how_.ring_chunks, i, ranks_, values_.size());
    };
    return {begin(index % ranks_), begin(index % ranks_ + 1)};
  }
  std::span<float> at(Range range) { return std::span(values_).subspan(range.begin, range.size()); }

  /// Sends the values of a range, and returns what has come for another, until the next exchange.
  std::span<float> exchange(Range out, Rank to, Range in, Rank from) {
    const std::span<const float> sent = to ? at(out) : std::span<float>();
    const std::span<float> received = first_of(received_, from ? in.size() : 0);
    if (how_.precision == AllReducePrecision::fp32) {
      wire_.send_receive(std::as_bytes(sent), to, std::as_writable_bytes(received), from);
      return received;
    }
    const std::span<std::uint16_t> sent_codes = first_of(sent_codes_, sent.size());
    const std::span<std::uint16_t> received_codes = first_of(received_codes_, received.size());
    encode_for_wire(how_.precision, sent, sent_codes);
    wire_.send_receive(std::as_bytes(sent_codes), to, std::as_writable_bytes(received_codes), from);
    decode_from_wire(how_.precision, received_codes, received);
    return received;
  }
  /// So many elements of an array that only grows.
  template <class T>
  static std::span<T> first_of(std::vector<T>& space, std::size_t count) {
    if (space.size() < count) space.resize(count);
    return std::span(space).first(count);
  }
  void send(Range out, std::size_t to) { exchange(out, to, {0, 0}, std::nullopt); }
  std::span<float> receive(Range in, std::size_t from) { return exchange({0, 0}, std::nullopt, in, from); }
  void take(Range range, std::span<const float> values) { std::ranges::copy(values, at(range).begin()); }

  /// values + received.
  void add_behind(Range range, std::span<const float> received) {
    arithmetic_.add(at(range), received);
    arithmetic_.round_for_sending(at(range));
  }
  /// received + values.
  void add_before(Range range, std::span<float> received) {
    arithmetic_.add(received, at(range));
    arithmetic_.round_for_sending(received);
    take(range, received);
  }

  /// Every rank has the sums of chunk rank + shift, and then those of all.
  void gather_chunks(std::size_t shift) {
    for (std::size_t hop = 0; hop + 1 < ranks_; ++hop) {
      const std::size_t newest = rank_ + shift + ranks_ - hop;
      const Range coming = chunk(newest + ranks_ - 1);
      take(coming, exchange(chunk(newest), next(), coming, previous()));
    }
  }
  std::size_t next() const { return (rank_ + 1) % ranks_; }
  std::size_t previous() const { return (rank_ + ranks_ - 1) % ranks_; }

  void ring() {
    for (std::size_t hop = 0; hop + 1 < ranks_; ++hop) {
      const std::size_t newest = rank_ + ranks_ - hop;
      const Range coming = chunk(newest + ranks_ - 1);
      add_before(coming, exchange(chunk(newest), next(), coming, previous()));
    }
    gather_chunks(1);
  }

  /// In pieces, so that a rank adds one while the next is on its way.
  void tree() {
    constexpr std::size_t piece_size = std::size_t{1} << 15;
    const std::vector<std::size_t> children = tree_children(rank_, ranks_);
    const Rank parent = parent_in_tree();
    std::vector<Range> pieces;
    for (std::size_t begin = 0; begin < values_.size(); begin += piece_size)
      pieces.push_back({begin, std::min(begin + piece_size, values_.size())});
    for (const Range piece : pieces) {
      for (const std::size_t child : children) arithmetic_.add(at(piece), receive(piece, child));
      arithmetic_.round_for_sending(at(piece));
      if (parent) send(piece, *parent);
    }
    for (const Range piece : pieces) {
      if (parent) take(piece, receive(piece, *parent));
      for (const std::size_t child : children) send(piece, child);
    }
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
      send(all(), rank_ - 1);
      return take(all(), receive(all(), rank_ - 1));
    }
    add_behind(all(), receive(all(), rank_ + 1));
    exchanged(rank_ / 2, workers);
    send(all(), rank_ + 1);
  }
  std::size_t rank_of(std::size_t worker) const {
    const std::size_t extra = ranks_ - std::bit_floor(ranks_);
    return worker < extra ? 2 * worker : worker + extra;
  }

  void exchanged(std::size_t worker, std::size_t workers) {
    if (how_.algorithm == AllReduceAlgorithm::recursive_doubling) {
      for (std::size_t distance = 1; distance < workers; distance *= 2)
        add_partners(worker, distance, all(), all());
      return;
    }
    std::vector<std::size_t> distances;
    for (std::size_t distance = 1; distance < workers; distance *= 2) distances.push_back(distance);
    if (how_.algorithm == AllReduceAlgorithm::recursive_halving_far_first) std::ranges::reverse(distances);
    halve(worker, distances, all());
  }

  /// Sends one range to the worker so far away, and adds up the other with what comes from there.
  void add_partners(std::size_t worker, std::size_t distance, Range given, Range kept) {
    const std::size_t partner = rank_of(worker ^ distance);
    const std::span<float> received = exchange(given, partner, kept, partner);
    if ((worker & distance) == 0)
      add_behind(kept, received);
    else
      add_before(kept, received);
  }

  /// Sums of a range of which this worker and those at these distances have parts.
  void halve(std::size_t worker, std::span<const std::size_t> distances, Range range) {
    if (distances.empty()) return;
    const std::size_t distance = distances.front(), middle = range.begin + range.size() / 2;
    Range kept{range.begin, middle}, given{middle, range.end};
    if ((worker & distance) != 0) std::swap(kept, given);
    add_partners(worker, distance, given, kept);
    halve(worker, distances.subspan(1), kept);
    const std::size_t partner = rank_of(worker ^ distance);
    take(given, exchange(kept, partner, given, partner));
  }

  void direct() {
    const Range own = chunk(rank_);
    std::vector<std::vector<float>> shares(ranks_);
    shares[rank_].assign(at(own).begin(), at(own).end());
    for (std::size_t hop = 1; hop < ranks_; ++hop) {
      const std::size_t to = (rank_ + hop) % ranks_, from = (rank_ + ranks_ - hop) % ranks_;
      const std::span<const float> received = exchange(chunk(to), to, own, from);
      shares[from].assign(received.begin(), received.end());
    }
    if (how_.algorithm == AllReduceAlgorithm::direct_descending) std::ranges::reverse(shares);
    take(own, shares.front());
    for (std::size_t place = 1; place < ranks_; ++place) arithmetic_.add(at(own), shares[place]);
    arithmetic_.round_for_sending(at(own));
    gather_chunks(0);
  }

  void by_carrier() {
    require_carried(how_.precision);
    if (how_.precision == AllReducePrecision::fp32) return wire_.sum(values_);
    const std::span<std::uint16_t> codes = first_of(sent_codes_, values_.size());
    encode_for_wire(how_.precision, values_, codes);
    wire_.sum(codes);
    decode_from_wire(how_.precision, codes, values_);
  }

  Wire& wire_;
  const AllReduce& how_;
  std::size_t rank_, ranks_;
  AllReduceArithmetic arithmetic_;
  std::vector<float> values_;
  std::vector<float>& received_;
  std::vector<std::uint16_t>&sent_codes_, &received_codes_;
};

}  // namespace

std::vector<float> all_reduce_over(Wire& wire, std::span<const float> own, const AllReduce& how,
                                   AllReduceSpace& space) {
  return Schedule(wire, own, how, space).mean();
}

}  // namespace sim
