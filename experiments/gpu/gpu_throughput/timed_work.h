#pragma once
/// What is timed: something that the device does again and again, and how it is known to be right.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace experiments::gpu_throughput {

/// What a rate counts.
enum class Unit { bytes, flop };

/// Another row of the group, whose rate is the limit that this row's is held against.
struct Comparison {
  std::string peer;
  std::optional<double> target;  ///< the least share of the peer's rate that is aimed at
};

/// A result that was compared with the CPU's, bit for bit, NaNs aside.
struct Check {
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
};

struct Work {
  std::string name;
  Unit unit = Unit::bytes;
  /// By one call: bytes that it must move (each input read once, each output written once), or operations.
  double amount = 0;
  /// Queues one call; turns go round the sets of buffers.
  std::function<void(std::size_t turn)> call;
  std::function<Check()> check;
  std::vector<Comparison> comparisons;
  std::string absent;    ///< why it cannot run here; empty if it can
  bool is_peer = false;  ///< another library's: where it refuses, it is absent
};

/// Works that take turns, and hold the device's memory that they share.
struct Group {
  std::string name;  ///< part of the keys of its rows; empty where their names are keys already
  std::vector<Work> works;
};

}  // namespace experiments::gpu_throughput
