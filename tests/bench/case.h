#pragma once
/// What the benchmark times.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// Something timed: `work` does `items` units of it.
struct Case {
  std::string name;
  double items;
  std::function<void()> work;
  std::vector<std::string> limits = {};  ///< it is held against the fastest of these cases
  bool is_peer = false;                  ///< a limit or a peer: not ours, reported beside ours
};

/// Throws unless `right`: no case is timed that computes something else than its definition.
void require(bool right, std::string_view what);

inline constexpr std::size_t array_size = 1 << 20;

/// N(0, 1), from a stream of its own for each purpose.
std::vector<float> normal_values(std::size_t count, std::string_view purpose);

/// Magnitudes log-uniform from 2^-30 to 2^-4, as gradients have them: a third below FP16's normal range.
std::vector<float> gradient_like_values(std::size_t count, std::string_view purpose);

/// Conversions, operations and functions on arrays, with their limits and peers.
void add_number_cases(std::vector<Case>& cases);
/// Matrix products.
void add_product_cases(std::vector<Case>& cases);
/// Statistics and whole steps of training.
void add_training_cases(std::vector<Case>& cases);

}  // namespace bench
