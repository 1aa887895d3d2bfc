#pragma once
/// How many bytes the tensors of a run take, by what they are for. Counted are the bytes of elements, two for
/// each of an FP16 tensor; what an allocator adds or keeps is not. The numbers depend on what is computed
/// alone: not on threads, other runs or the machine.

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace sim {

enum class MemoryRole {
  weights,          ///< in the format that the model sees
  master_weights,   ///< wider ones that the optimizer changes, where a policy has them
  optimizer_state,  ///< moments
  activations,      ///< values on the tape (casts of weights too) and what operations keep for backward
  gradients,        ///< of values and parameters, scaled and unscaled
  buffers,          ///< running statistics
  temporaries,      ///< everything else; an operation's results are, until it returns them
};
inline constexpr std::array memory_roles{
    MemoryRole::weights,   MemoryRole::master_weights, MemoryRole::optimizer_state, MemoryRole::activations,
    MemoryRole::gradients, MemoryRole::buffers,        MemoryRole::temporaries};

/// "weights", "master_weights", ...
std::string_view name_of(MemoryRole role);

/// What one run has allocated. It must outlive what is charged to it, and one thread at a time may allocate
/// or free that.
class MemoryAccount {
 public:
  MemoryAccount() = default;
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  std::size_t current_bytes() const { return total_.current; }
  std::size_t current_bytes(MemoryRole role) const { return of(role).current; }
  /// The most at one time. That of all roles together is at most the sum of theirs, which may have peaked at
  /// different times.
  std::size_t peak_bytes() const { return total_.peak; }
  std::size_t peak_bytes(MemoryRole role) const { return of(role).peak; }

 private:
  friend class MemoryCharge;
  struct Level {
    std::size_t current = 0, peak = 0;
    void add(std::size_t bytes);
  };
  Level& of(MemoryRole role) { return roles_[static_cast<std::size_t>(role)]; }
  const Level& of(MemoryRole role) const { return roles_[static_cast<std::size_t>(role)]; }

  Level total_;
  std::array<Level, memory_roles.size()> roles_;
};

/// While it lives, what its thread allocates is charged to `account`, in `role`; null: to none. Scopes nest,
/// and outside of all nothing is counted.
class AllocationScope {
 public:
  explicit AllocationScope(MemoryAccount* account, MemoryRole role = MemoryRole::temporaries);
  ~AllocationScope();
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

 private:
  MemoryAccount* outer_account_;
  MemoryRole outer_role_;
};

/// Bytes charged to the account and role of the scope in which it is made, and given back with its end. To be
/// kept beside the memory it stands for.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  explicit MemoryCharge(std::size_t bytes);
  MemoryCharge(MemoryCharge&& other) noexcept { swap(other); }
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    MemoryCharge taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~MemoryCharge();

  /// Another role in the same account; without one nothing happens.
  void move_to(MemoryRole role);

 private:
  void swap(MemoryCharge& other) noexcept;

  MemoryAccount* account_ = nullptr;
  MemoryRole role_ = MemoryRole::temporaries;
  std::size_t bytes_ = 0;
};

}  // namespace sim
