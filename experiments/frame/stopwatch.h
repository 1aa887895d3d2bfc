#pragma once
/// A stopwatch that keeps <chrono> out of headers, so that what includes them compiles faster.

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
