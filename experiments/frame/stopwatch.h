#pragma once
/// Time as a clock on the wall measures it, without the standard header, which costs each file that includes it.

#include <cstdint>

namespace experiments {

/// The seconds since it was made, by a clock that is never set back.
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  std::int64_t start_ns_;
};

}  // namespace experiments
