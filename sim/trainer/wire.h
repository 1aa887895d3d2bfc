#pragma once
/// What carries numbers from one rank to another where each is computed by a process of its own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sim {

/// One rank's end of the connections between all ranks. What is said of all ranks all of them call, in the same order.
/// Throws std::runtime_error where something cannot be carried.
class Wire {
 public:
  virtual ~Wire() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t ranks() const = 0;

  /// Sends `out` to one rank while `in` is received from one; none: nothing goes that way.
  virtual void send_receive(std::span<const std::byte> out, std::optional<std::size_t> to,
                            std::span<std::byte> in, std::optional<std::size_t> from) = 0;

  /// The numbers of all ranks in their order; as many of each.
  virtual std::vector<double> gather(std::span<const double> own) = 0;
  /// Of all ranks' numbers, none of them a NaN, the largest.
  virtual double maximum(double own) = 0;
  /// The bytes of rank `from`, on all ranks.
  virtual std::string broadcast(std::string bytes, std::size_t from) = 0;

  /// Puts the sums over all ranks in the place of their numbers, codes of binary16 or numbers of binary32, in whatever
  /// order the carrier has for so many.
  virtual void sum(std::span<std::uint16_t> halves) = 0;
  virtual void sum(std::span<float> floats) = 0;
};

/// A wire that leads to nobody, for a trial of what one of several ranks takes: the others' messages are zeros, and their
/// numbers like its own.
class TrialWire final : public Wire {
 public:
  TrialWire(std::size_t rank, std::size_t ranks) : rank_(rank), ranks_(ranks) {}

  std::size_t rank() const override { return rank_; }
  std::size_t ranks() const override { return ranks_; }
  void send_receive(std::span<const std::byte>, std::optional<std::size_t>, std::span<std::byte> in,
                    std::optional<std::size_t>) override {
    std::ranges::fill(in, std::byte{});
  }
  std::vector<double> gather(std::span<const double> own) override {
    std::vector<double> all;
    for (std::size_t i = 0; i < ranks_; ++i) all.insert(all.end(), own.begin(), own.end());
    return all;
  }
  double maximum(double own) override { return own; }
  std::string broadcast(std::string bytes, std::size_t) override { return bytes; }
  void sum(std::span<std::uint16_t>) override {}
  void sum(std::span<float>) override {}

 private:
  std::size_t rank_, ranks_;
};

}  // namespace sim
