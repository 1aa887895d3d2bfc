#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {

/// While it lives, what its thread allocates for tensors and frees of them is followed, whatever account it is
/// charged to, and to none. Traces nest; the innermost follows.
class AllocationTrace {
 public:
  AllocationTrace();
  ~AllocationTrace();
  AllocationTrace(const AllocationTrace&) = delete;
  AllocationTrace& operator=(const AllocationTrace&) = delete;

  /// Bytes in use after each allocation since the last restart(), without what was there before the trace.
  const std::vector<std::int64_t>& levels() const { return levels_; }
  void restart() { levels_.clear(); }

  /// While it lives, its thread's allocations are followed by `trace` as well, whose own thread waits meanwhile; null: by
  /// none.
  class Continued {
   public:
    explicit Continued(AllocationTrace* trace);
    ~Continued();
    Continued(const Continued&) = delete;
    Continued& operator=(const Continued&) = delete;

   private:
    AllocationTrace* outer_;
  };
  /// That which follows this thread; null: none does.
  static AllocationTrace* innermost();

  /// Called by what is traced.
  static void allocated(std::size_t bytes);
  static void freed(std::size_t bytes);

 private:
  AllocationTrace* outer_;
  std::int64_t level_ = 0;
  std::vector<std::int64_t> levels_;
};

}  // namespace sim
