#pragma once

#include <cstddef>

namespace sim {

/// Options of attention_scores and attention_context.
struct AttentionOptions {
  std::size_t heads = 1;    ///< that share the width
  std::size_t context = 1;  ///< tokens in a sequence
};

}  // namespace sim
