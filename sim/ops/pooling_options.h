#pragma once

#include <cstddef>

namespace sim {

/// Options of the pools by windows.
struct PoolingOptions {
  std::size_t window = 2;  ///< side of a window, also its stride
};

}  // namespace sim
