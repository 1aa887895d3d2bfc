#pragma once

#include <vector>

namespace sim {

/// Options of losses that compare a prediction with a target, element by element.
struct ElementwiseLossOptions {
  std::vector<float> row_weights;  ///< a factor per row; empty means 1
  double normaliser = 0;  ///< what the sum of all terms is divided by; 0 means the number of elements
};

}  // namespace sim
