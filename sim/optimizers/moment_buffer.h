#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {

/// One binary32 running value per weight for any number of parameters, allocated as zeros at first use.
class MomentBuffer {
 public:
  /// The values of one parameter. Throws std::invalid_argument when its size changed since its first use.
  std::span<float> of(std::size_t parameter, std::size_t size) {
    if (parameter >= buffers_.size()) buffers_.resize(parameter + 1);
    std::vector<float>& buffer = buffers_[parameter];
    if (buffer.empty()) buffer.resize(size);
    if (buffer.size() != size) {
      throw std::invalid_argument("optimizer: parameter " + std::to_string(parameter) + " had " +
                                  std::to_string(buffer.size()) + " weights and now has " +
                                  std::to_string(size));
    }
    return buffer;
  }

 private:
  std::vector<std::vector<float>> buffers_;
};

/// Throws std::invalid_argument unless there is one gradient per weight.
inline void require_equal_sizes(std::size_t parameter, std::span<const float> weights,
                                std::span<const float> gradients) {
  if (weights.size() == gradients.size()) return;
  throw std::invalid_argument("optimizer: parameter " + std::to_string(parameter) + " has " +
                              std::to_string(weights.size()) + " weights and " +
                              std::to_string(gradients.size()) + " gradients");
}

}  // namespace sim
