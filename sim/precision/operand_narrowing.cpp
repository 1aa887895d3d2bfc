#include "sim/precision/operand_narrowing.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/config.h"
#include "fp16/vector/threads.h"
#include "sim/tensor/extremes.h"

namespace sim {
namespace {

constexpr std::array<std::string_view, 3> operand_names{"activations", "weights", "gradients"};

constexpr std::size_t piece_size = 2048;

/// Calls visit(first, piece) for pieces of values[first, ...) that fit into the first-level cache.
template <class Visit>
void for_each_piece_of(std::span<float> values, int threads, Visit visit) {
  fp16::detail::for_each_part(values.size(), threads, piece_size, [&](std::size_t first, std::size_t last) {
    for (; first < last; first += piece_size)
      visit(first, values.subspan(first, std::min(piece_size, last - first)));
  });
}

/// values[i] = element first + i of the tensor.
void widen(const Tensor& tensor, std::size_t first, std::span<float> values) {
  const float* read_values = read(tensor, first, values.size(), values);
  if (read_values != values.data()) std::copy_n(read_values, values.size(), values.data());
}

/// NaNs aside.
float largest_magnitude(const Tensor& tensor, int threads) {
  float all = 0;
  std::mutex mutex;
  fp16::detail::for_each_part(tensor.size(), threads, piece_size, [&](std::size_t first, std::size_t last) {
    const float largest = sim::largest_magnitude(tensor, first, last - first);
    const std::scoped_lock lock(mutex);
    all = std::max(all, largest);
  });
  return all;
}

FP16_VECTOR_CLONES void multiply(std::span<float> values, float factor) {
  for (float& value : values) value *= factor;
}

template <const fp16::Format& F>
void round_stochastically(std::span<float> values, const fp16::PhiloxSequence& random) {
  std::array<fp16::Bits<F>, piece_size> buffer;
  const std::span<fp16::Bits<F>> codes = std::span(buffer).first(values.size());
  fp16::encode<F>(values, codes, {.rounding = fp16::Rounding::stochastic, .saturate = true},
                  {.random = random});
  fp16::decode<F>(std::span<const fp16::Bits<F>>(codes), values);
}

/// values * scale rounded to the format, stochastically where there are random bits.
void round_scaled(const fp16::Format& format, std::span<float> values, float scale,
                  const std::optional<fp16::PhiloxSequence>& random) {
  if (!random) return fp16::round_scaled(format, values, scale);
  multiply(values, scale);
  fp16::for_each_format([&]<const fp16::Format & F>() {
    if constexpr (F.width() <= 8 && F.has_arithmetic()) {
      if (F == format) round_stochastically<F>(values, *random);
    }
  });
}

float tensor_scale_of(const fp16::BlockFormat& format, float max_abs) {
  float scale = 1;
  fp16::for_each_block_format([&]<const fp16::BlockFormat & B>() {
    if constexpr (B.has_tensor_scale) {
      if (&B == &format) scale = fp16::tensor_scale<B>(max_abs);
    }
  });
  return scale;
}

}  // namespace

std::string name_of(const OperandFormat& format) {
  std::string name;
  switch (format.kind) {
    case OperandFormat::Kind::as_stored:
      return "as stored";
    case OperandFormat::Kind::per_tensor:
      name.append(fp16::name_of(format.element)).append(" per tensor");
      break;
    case OperandFormat::Kind::per_block:
      name.append(format.block->name);
      if (!format.block->has_tensor_scale) name.append(" ").append(fp16::name_of(format.scale_rule));
  }
  if (format.stochastic) name.append(", stochastic");
  return name;
}

const OperandFormat& OperandNarrowing::format_of(Operand operand) const {
  switch (operand) {
    case Operand::activations:
      return formats_.activations;
    case Operand::weights:
      return formats_.weights;
    default:
      return formats_.gradients;
  }
}

int OperandNarrowing::threads_for(std::size_t elements) const {
  constexpr std::size_t worth_a_thread = std::size_t{1} << 16;  // tens of microseconds
  return elements < worth_a_thread ? 1 : context_.threads;
}

/// Uses of operands are 2^48 numbers apart.
std::optional<fp16::PhiloxSequence> OperandNarrowing::random_of(const OperandUse& use,
                                                                std::size_t elements) const {
  if (!format_of(use.operand).stochastic) return std::nullopt;
  const auto number = static_cast<std::uint64_t>(use.product) * operand_names.size() +
                      static_cast<std::uint64_t>(use.operand);
  const std::uint64_t before = use.operand == Operand::weights ? 0 : context_.shard * elements;
  return context_.random.from((number << 48) + before);
}

double OperandNarrowing::narrow_with_scale(const Tensor& operand, std::span<float> values,
                                           const OperandUse& use) const {
  const OperandFormat& format = format_of(use.operand);
  const std::string name =
      std::string(context_.layer) + "." + std::string(operand_names[static_cast<std::size_t>(use.operand)]);
  const int threads = threads_for(values.size());
  const float scale = context_.scaler != nullptr
                          ? context_.scaler->scale(name, format.element, largest_magnitude(operand, threads))
                          : 1;
  const std::optional<fp16::PhiloxSequence> random = random_of(use, values.size());
  for_each_piece_of(values, threads, [&](std::size_t first, std::span<float> piece) {
    std::optional<fp16::PhiloxSequence> drawn = random;
    if (drawn) drawn->first += first;
    widen(operand, first, piece);
    round_scaled(format.element, piece, scale, drawn);
  });
  return 1.0 / static_cast<double>(scale);
}

double OperandNarrowing::narrow_to_blocks(const Tensor& operand, std::span<float> values,
                                          const OperandUse& use, const fp16::BlockAxis& axis) const {
  const OperandFormat& format = format_of(use.operand);
  const int threads = threads_for(values.size());
  const float scale = format.block->has_tensor_scale
                          ? tensor_scale_of(*format.block, largest_magnitude(operand, threads))
                          : 1;
  for_each_piece_of(values, threads,
                    [&](std::size_t first, std::span<float> piece) { widen(operand, first, piece); });
  fp16::round_to_blocks(*format.block, values, axis,
                        {.scale_rule = format.scale_rule,
                         .tensor_scale = scale,
                         .random = random_of(use, values.size()),
                         .threads = threads});
  return scale;
}

NarrowedOperand OperandNarrowing::narrow(const Tensor& operand, const OperandUse& use,
                                         const fp16::BlockAxis& axis) const {
  const OperandFormat::Kind kind = format_of(use.operand).kind;
  if (kind == OperandFormat::Kind::as_stored) return NarrowedOperand(operand);
  Tensor narrow(operand.shape(), fp16::binary32);
  const std::span<float> values = narrow.elements<float>();
  const double factor = kind == OperandFormat::Kind::per_tensor
                            ? narrow_with_scale(operand, values, use)
                            : narrow_to_blocks(operand, values, use, axis);
  return NarrowedOperand(std::move(narrow), factor);
}

NarrowedOperand narrowed(const OperandNarrowing* narrowing, const Tensor& operand, const OperandUse& use,
                         const fp16::BlockAxis& axis) {
  return narrowing != nullptr ? narrowing->narrow(operand, use, axis) : NarrowedOperand(operand);
}

}  // namespace sim
