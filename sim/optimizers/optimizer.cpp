#include "sim/optimizers/optimizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "fp16/codec.h"
#include "fp16/config.h"
#include "fp16/vector/threads.h"

namespace sim {
namespace {

constexpr std::size_t chunk_size = UpdateChunk<float>::capacity;
constexpr std::size_t smallest_part = std::size_t{1} << 15;  // starting a thread costs about as much
constexpr std::size_t max_moments = 2;

[[noreturn]] void reject(const std::string& what) {
  throw std::invalid_argument("optimizer: " + what);
}

std::string name_text(fp16::Format format) {
  return std::string(fp16::name_of(format));
}

bool has_16_bits(fp16::Format format) {
  return format == fp16::binary16 || format == fp16::bfloat16;
}

void require_allowed(std::string_view role, fp16::Format format) {
  if (format == fp16::binary64 || format == fp16::binary32 || has_16_bits(format)) return;
  reject(std::string(role) + " in " + name_text(format) +
         " is not allowed; allowed: binary64, binary32, bfloat16, binary16");
}

void require_same_size(std::size_t parameter, std::size_t weights, std::size_t gradients) {
  if (weights == gradients) return;
  reject("parameter " + std::to_string(parameter) + " has " + std::to_string(weights) + " weights and " +
         std::to_string(gradients) + " gradients");
}

/// a + b exactly, rounded to odd: rounded again to a format at least two digits shorter, it is rounded once
/// (Boldo and Melquiond 2008). TwoSum (Knuth) gives the error of the sum.
template <class Real>
Real sum_to_odd(Real a, Real b) {
  using Bits = std::conditional_t<std::is_same_v<Real, double>, std::uint64_t, std::uint32_t>;
  const Real sum = a + b;
  const Real b_part = sum - a;
  const Real error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<Bits>(sum);
  const Bits inexact = (error < 0) | (error > 0);  // false for the NaN after an infinity
  const Bits away = Bits{1} - ((bits ^ std::bit_cast<Bits>(error)) >> (8 * sizeof(Bits) - 1) << 1);
  return std::bit_cast<Real>(static_cast<Bits>(bits + (away & (Bits{0} - (inexact & ~bits & 1)))));
}

template <class Real>
FP16_VECTOR_CLONES void sum_each_to_odd(const UpdateChunk<Real>& chunk, Real* __restrict__ sums) {
  for (std::size_t i = 0; i < chunk.size; ++i) sums[i] = sum_to_odd(chunk.decayed[i], chunk.change[i]);
}

/// Weights that are stored in the type that the rule computes in.
template <class Real>
FP16_VECTOR_CLONES UpdateCounts add_each(std::size_t count, const Real* __restrict__ decayed,
                                         const Real* __restrict__ change, Real* __restrict__ weights) {
  std::uint32_t updates = 0, swallowed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Real before = weights[i];
    const Real after = decayed[i] + change[i];
    const std::uint32_t changes = (decayed[i] != before) | (change[i] != 0);
    updates += changes;
    swallowed += changes & (after == before);
    weights[i] = after;
  }
  return {.updates = updates, .swallowed = swallowed};
}

template <class Real>
FP16_VECTOR_CLONES UpdateCounts count_each(const UpdateChunk<Real>& chunk, const Real* after) {
  std::uint32_t updates = 0, swallowed = 0;
  for (std::size_t i = 0; i < chunk.size; ++i) {
    const std::uint32_t changes = (chunk.decayed[i] != chunk.weights[i]) | (chunk.change[i] != 0);
    updates += changes;
    swallowed += changes & (after[i] == chunk.weights[i]);
  }
  return {.updates = updates, .swallowed = swallowed};
}

/// The sums by way of binary64, which keeps 42 bits below the last of binary16: stochastic rounding with
/// chances right to 2^-42, and any rounding of doubles.
template <const fp16::Format& F, class Real>
void encode_each(const UpdateChunk<Real>& chunk, const ElementRounding& rounding, std::size_t offset,
                 std::span<std::uint16_t> codes) {
  std::array<std::uint32_t, 2 * chunk_size> drawn = {};
  if (rounding.direction == fp16::Rounding::stochastic)
    rounding.random.fill_bits(2 * offset, std::span(drawn).first(2 * chunk.size));
  for (std::size_t i = 0; i < chunk.size; ++i) {
    const double sum = sum_to_odd<double>(chunk.decayed[i], chunk.change[i]);
    const std::uint64_t bits = std::uint64_t{drawn[2 * i]} << 32 | drawn[2 * i + 1];
    codes[offset + i] = fp16::encode<F>(sum, {.rounding = rounding.direction, .random_bits = bits}).bits;
  }
}

/// Weights in another format than the rule computes in: each sum is rounded once.
template <class Real>
UpdateCounts store_sums(const UpdateChunk<Real>& chunk, const ElementRounding& rounding, std::size_t offset,
                        Tensor& weights) {
  std::array<Real, chunk_size> buffer;
  const bool in_doubles = std::is_same_v<Real, double> || rounding.direction == fp16::Rounding::stochastic;
  if (in_doubles && weights.format() == fp16::binary16) {
    encode_each<fp16::binary16>(chunk, rounding, offset, weights.elements<std::uint16_t>());
  } else if (in_doubles && weights.format() == fp16::bfloat16) {
    encode_each<fp16::bfloat16>(chunk, rounding, offset, weights.elements<std::uint16_t>());
  } else {
    sum_each_to_odd(chunk, buffer.data());
    store({&weights, nullptr, &rounding}, offset, std::span<const Real>(buffer).first(chunk.size));
  }
  return count_each(chunk, read(weights, offset, chunk.size, std::span<Real>(buffer)));
}

}  // namespace

Optimizer::Optimizer(const UpdateArithmetic& arithmetic) : arithmetic_(arithmetic) {
  const fp16::Format operations = arithmetic.operations;
  require_allowed("computing", operations);
  require_allowed("state", arithmetic.state);
  if (arithmetic.state == fp16::binary64 && operations != fp16::binary64)
    reject("state in binary64 needs operations in binary64, not in " + name_text(operations));
}

MomentStorage Optimizer::moment_storage(std::size_t, std::size_t) const {
  return {.format = arithmetic_.state};
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  prepare(learning_rate);
}

void Optimizer::allocate(std::size_t index, std::size_t size) {
  if (index >= parameters_.size()) parameters_.resize(index + 1);
  Parameter& parameter = parameters_[index];
  if (parameter.size == size) return;
  if (parameter.size != 0) {
    reject("parameter " + std::to_string(index) + " had " + std::to_string(parameter.size) +
           " weights and now has " + std::to_string(size));
  }
  parameter.size = size;
  for (std::size_t moment = 0; moment < moment_count(); ++moment)
    parameter.moments.emplace_back(moment_storage(moment, size), size);
}

UpdateCounts Optimizer::update(std::size_t parameter, Tensor& weights, const Tensor& gradients) {
  require_same_size(parameter, weights.size(), gradients.size());
  const fp16::Format operations = arithmetic_.operations;
  const bool computes_in_doubles = operations == fp16::binary64;
  for (const fp16::Format format : {weights.format(), gradients.format()}) {
    if (format == fp16::binary64 && !computes_in_doubles)
      reject("weights and gradients in binary64 need operations in binary64");
  }
  if (has_16_bits(operations) && weights.format() != operations) {
    reject("operations in " + name_text(operations) + " need weights in that format, not in " +
           name_text(weights.format()));
  }
  assert(steps_ > 0 && "begin_step() comes before update()");
  allocate(parameter, weights.size());
  return computes_in_doubles ? update_in<double>(parameter, weights, gradients)
                             : update_in<float>(parameter, weights, gradients);
}

template <class Real>
UpdateCounts Optimizer::update_in(std::size_t parameter, Tensor& weights, const Tensor& gradients) {
  const ElementRounding rounding{
      arithmetic_.weight_rounding,
      RandomStream(arithmetic_.seed, "update " + std::to_string(parameter) + " " + std::to_string(steps_))};
  const int threads = weights.size() < 2 * smallest_part ? 1 : arithmetic_.threads;
  UpdateCounts total;
  std::mutex mutex;
  fp16::detail::for_each_part(weights.size(), threads, smallest_part,
                              [&](std::size_t first, std::size_t last) {
                                UpdateCounts counts;
                                for (std::size_t offset = first; offset < last; offset += chunk_size) {
                                  counts += update_chunk<Real>({.parameter = parameter,
                                                                .offset = offset,
                                                                .size = std::min(chunk_size, last - offset),
                                                                .weights = weights,
                                                                .gradients = gradients,
                                                                .rounding = rounding});
                                }
                                const std::scoped_lock lock(mutex);
                                total += counts;
                              });
  return total;
}

template <class Real>
UpdateCounts Optimizer::update_chunk(const Piece& piece) {
  const auto& [parameter, offset, size, weights, gradients, rounding] = piece;
  using Buffer = std::array<Real, chunk_size>;
  Buffer gradient_buffer, weight_buffer, decayed, change, moment_buffers[max_moments];
  Real* opened[max_moments] = {};
  std::vector<Moment>& moments = parameters_[parameter].moments;
  for (std::size_t k = 0; k < moments.size(); ++k)
    opened[k] = moments[k].open(offset, size, moment_buffers[k].data());
  const UpdateChunk<Real> chunk{.size = size,
                                .parameter_size = weights.size(),
                                .gradients = read(gradients, offset, size, std::span<Real>(gradient_buffer)),
                                .weights = read(weights, offset, size, std::span<Real>(weight_buffer)),
                                .moments = opened,
                                .decayed = decayed.data(),
                                .change = change.data()};
  compute(chunk);
  for (std::size_t k = 0; k < moments.size(); ++k) moments[k].close(offset, size, opened[k]);
  if (weights.format() == (std::is_same_v<Real, double> ? fp16::binary64 : fp16::binary32))
    return add_each(size, chunk.decayed, chunk.change, weights.elements<Real>().data() + offset);
  return store_sums(chunk, rounding, offset, weights);
}

std::size_t Optimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const Parameter& parameter : parameters_) {
    for (const Moment& moment : parameter.moments) bytes += moment.size_bytes();
  }
  return bytes;
}

void Optimizer::visit_state(const std::function<void(std::string, std::span<std::byte>)>& visit) {
  visit("steps", std::as_writable_bytes(std::span(&steps_, 1)));
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    std::vector<Moment>& moments = parameters_[index].moments;
    for (std::size_t k = 0; k < moments.size(); ++k) {
      const std::string name = std::string(moment_name(k)) + " of parameter " + std::to_string(index);
      moments[k].visit_bytes([&](std::string_view array, std::span<std::byte> bytes) {
        visit(name + std::string(array), bytes);
      });
    }
  }
}

std::vector<StateBlock> Optimizer::state() {
  std::vector<StateBlock> blocks;
  visit_state([&](std::string name, std::span<std::byte> bytes) {
    blocks.push_back({std::move(name), bytes});
  });
  return blocks;
}

void Optimizer::restore(std::span<const StateBlock> saved) {
  const auto described = [](const StateBlock& block) {
    return "'" + block.name + "' of " + std::to_string(block.bytes.size()) + " bytes";
  };
  const std::vector<StateBlock> own = state();
  for (std::size_t i = 0; i < std::max(saved.size(), own.size()); ++i) {
    if (i < saved.size() && i < own.size() && saved[i].name == own[i].name &&
        saved[i].bytes.size() == own[i].bytes.size()) {
      continue;
    }
    throw std::invalid_argument("optimizer '" + std::string(name()) + "': saved state has " +
                                (i < saved.size() ? described(saved[i]) : "nothing") + " in place of " +
                                (i < own.size() ? described(own[i]) : "nothing"));
  }
  std::size_t next = 0;
  visit_state([&](const std::string&, std::span<std::byte> bytes) {
    std::ranges::copy(saved[next++].bytes, bytes.begin());
  });
}

}  // namespace sim
