#pragma once
/// "2/4": one part of work that several processes share.

#include <cstddef>
#include <string>

namespace experiments {

/// The part `index` of 1 .. count.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;
};

/// "2/4" as `--shard` is given. Throws UsageError for anything else, for an index that is not 1 .. count and a count above 2^31.
Shard parse_shard(const std::string& text);

}  // namespace experiments
