#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/names.h"
#include "sim/optimizers/moment.h"
#include "sim/precision/arithmetic.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// What became of the weights of one parameter in one step. A change is *swallowed* when the rounding of the
/// new weight gives the old one back, w + d = w. With 16-bit weights rounded to nearest-even that is so
/// exactly when |d| <= 2^(e-p), where 2^e <= |w| < 2^(e+1) and p is the precision, but for equality with an
/// odd significand, and except that at |w| = 2^e > 2^emin and toward zero the border is 2^(e-p-1); of
/// subnormal weights it is half the smallest subnormal number.
struct UpdateCounts {
  std::uint64_t updates = 0;    ///< weights that the rule changes: by a step or by decoupled weight decay
  std::uint64_t swallowed = 0;  ///< of these, weights that are what they were

  UpdateCounts& operator+=(const UpdateCounts& other) {
    updates += other.updates;
    swallowed += other.swallowed;
    return *this;
  }
  friend bool operator==(const UpdateCounts&, const UpdateCounts&) = default;
};

/// One array of an optimizer's state: name and raw bytes, in this machine's byte order.
struct StateBlock {
  std::string name;
  std::span<const std::byte> bytes;
};

/// Consecutive weights of one parameter while they are updated, in the type that operations compute in.
template <class Real>
struct UpdateChunk {
  static constexpr std::size_t capacity = 4 * DynamicMap::block;

  std::size_t size;
  std::size_t parameter_size;
  const Real* gradients;
  const Real* weights;
  Real* const* moments;  ///< moment_count() arrays, in and out
  Real* decayed;         ///< out: the weights after decoupled decay
  Real* change;          ///< out: what is added to `decayed`
};

/// Changes weights by their gradients. The new weight is rounded once, to the format of the tensor that holds
/// it, from the exact sum of the old (or decayed) weight and the change that the rule computes, both of the
/// type that `operations` are computed in.
///
/// A step is one begin_step() followed by one update() per parameter. Parameters are told apart by their
/// index.
class Optimizer {
 public:
  /// Throws std::invalid_argument for another format of operations, or state wider than they are.
  explicit Optimizer(const UpdateArithmetic& arithmetic);
  virtual ~Optimizer() = default;

  virtual std::string_view name() const = 0;

  /// Options in force, for the manifest.
  virtual names::NamedValues options() const = 0;

  /// The option: what a schedule's factor multiplies.
  virtual double learning_rate() const = 0;

  /// Once per applied step, before its updates; a skipped step is not begun. With a learning rate of 0
  /// moments still move.
  void begin_step(double learning_rate);
  void begin_step() { begin_step(learning_rate()); }

  /// The state of a parameter, as zeros. update() does it where it was not done.
  /// Throws std::invalid_argument when the parameter has another size already.
  void allocate(std::size_t parameter, std::size_t size);

  /// Updates the weights of one parameter in place, after begin_step(). Threads of `arithmetic` work on large
  /// parameters. Throws std::invalid_argument when the sizes of weights, gradients and state differ, when
  /// gradients are wider than the operations, or weights than 16-bit operations.
  UpdateCounts update(std::size_t parameter, Tensor& weights, const Tensor& gradients);

  const UpdateArithmetic& arithmetic() const { return arithmetic_; }

  /// Steps begun.
  std::uint64_t steps() const { return steps_; }

  /// Bytes of state allocated. Weights, master weights too, are the caller's.
  std::size_t state_bytes() const;

  /// All that the next step depends on besides options and weights; the bytes are the optimizer's own.
  std::vector<StateBlock> state();

  /// Goes on exactly as the optimizer would that gave `saved`. Throws std::invalid_argument, and changes
  /// nothing, unless the same parameters are allocated: the names and sizes of all blocks must be the same.
  void restore(std::span<const StateBlock> saved);

 protected:
  virtual std::size_t moment_count() const = 0;
  virtual std::string_view moment_name(std::size_t moment) const = 0;
  virtual MomentStorage moment_storage(std::size_t moment, std::size_t parameter_size) const;

  /// What the coming updates need to know of the step; steps() already counts it.
  virtual void prepare(double learning_rate) = 0;
  virtual void compute(const UpdateChunk<float>& chunk) const = 0;
  virtual void compute(const UpdateChunk<double>& chunk) const = 0;

 private:
  struct Piece {
    std::size_t parameter, offset, size;
    Tensor& weights;
    const Tensor& gradients;
    const ElementRounding& rounding;
  };
  template <class Real>
  UpdateCounts update_in(std::size_t parameter, Tensor& weights, const Tensor& gradients);
  template <class Real>
  UpdateCounts update_chunk(const Piece& piece);
  void visit_state(const std::function<void(std::string, std::span<std::byte>)>& visit);

  UpdateArithmetic arithmetic_;
  std::uint64_t steps_ = 0;
  struct Parameter {
    std::size_t size = 0;
    std::vector<Moment> moments;
  };
  std::vector<Parameter> parameters_;
};

}  // namespace sim
