#include <algorithm>
#include <array>
#include <bit>

#include "fp16/vector/coding.h"
#include "fp16/vector/environment.h"
#include "fp16/vector/outcomes.h"
#include "fp16/vector/random_bits.h"

namespace fp16::detail {
namespace {

/// An operation over arrays, with all that has been looked up for it.
class Operator {
 public:
  Operator(ArrayOperation operation, const ArrayFormat& format, ScalarOperation scalar,
           const Attributes& attributes, const ArrayOptions& options)
      : operation_(operation),
        format_(format),
        scalar_(scalar),
        attributes_(attributes),
        options_(options),
        kernels_(kernels_of(options.path)),
        decoder_(format, kernels_),
        encoder_(format, attributes, kernels_),
        random_(options.random_bits_32, options.random, options.path),
        finder_(format, attributes, options) {
    const auto row = static_cast<std::size_t>(operation);
    to_odd_ = is_wide(format.format) ? kernels_.to_odd_wide[row] : kernels_.to_odd[row];
    if (attributes.rounding == Rounding::stochastic) {
      draws_ = {.trailing_bits = format.format.trailing_bits(),
                .emin = format.format.emin() + binary32.bias(),
                .tiny = tiny_border(format, attributes)};
      draws_.tiny.is_drawn &= attributes.flush_to_zero;
    }
    if (is_wide(format.format)) finder_.hold_largest_open();
    const bool has_processors_flags = options.flags == nullptr || attributes.tininess == processors_tininess;
    const bool is_direct = format.format == binary16 && attributes.rounding == Rounding::nearest_even &&
                           !attributes.flush_to_zero && !attributes.denormals_are_zero;
    if (!is_direct) return;
    if (options.counts == nullptr && has_processors_flags) nearest_even_ = kernels_.nearest_even[row];
    if (options.counts != nullptr && options.flags == nullptr)
      counting_ = kernels_.nearest_even_counting[row];
  }

  /// Three operands; those that the operation lacks repeat another.
  template <typename Code>
  void operate(const Code* const* operands, Code* out, std::size_t begin, std::size_t count,
               Outcomes& outcomes) const {
    if (operate_directly(operands, out, count, outcomes.flags)) return;
    if (count_directly(operands, out, count, outcomes.counts)) return;
    const auto alone = [&](std::size_t i) {
      return scalar_(operands[0][i], operands[1][i], operands[2][i],
                     with_random_bits(attributes_, options_, begin + i));
    };
    Block exact;
    const Extremes extremes = compute(operands, count, exact, outcomes.flags);
    RandomBlock drawn;
    const bool draws = attributes_.rounding == Rounding::stochastic;
    const std::uint32_t* random = draws ? random_bits(begin, count, drawn) : nullptr;
    encoder_.encode(exact.data(), random, out, count);
    if (draws) {
      for_each_open_draw(exact, random, count,
                         [&](std::size_t i) { out[i] = static_cast<Code>(alone(i).code); });
    }
    if (finder_.is_needed()) finder_.find(extremes, exact.data(), out, count, outcomes, alone);
  }

 private:
  /// Whether a product or a quotient may be too large or too small for a normal number of binary32.
  static bool is_wide(const Format& format) {
    return 2 * format.emin_subnormal() < binary32.emin() ||
           format.emax() - format.emin_subnormal() >= binary32.emax();
  }

  /// Operates on binary16 without widening, if there is such a kernel, and unless NaNs are to be chosen.
  template <typename Code>
  bool operate_directly(const Code* const* operands, Code* out, std::size_t count, Flags& flags) const {
    if constexpr (sizeof(Code) == 2) {
      if (nearest_even_ == nullptr) return false;
      const bool finds_flags = options_.flags != nullptr;
      if (finds_flags) clear_raised_flags();
      const bool leaves_nans = nearest_even_(operands[0], operands[1], operands[2], out, count);
      if (leaves_nans && (finds_flags || attributes_.nan_policy == NanPolicy::first_operand)) return false;
      Flags raised = finds_flags ? raised_flags() : Flags{};
      // An fma takes differences of infinities on its way; an invalid one would have left a NaN.
      raised.invalid &= operation_ != ArrayOperation::fma;
      const bool has_saturated = apply_borders(attributes_, out, count);
      if (finds_flags) flags |= raised | Flags{.inexact = has_saturated, .overflow = has_saturated};
      return true;
    }
    return false;
  }

  /// Operates on binary16 and counts what rounding did without widening, unless there are results that are no numbers.
  template <typename Code>
  bool count_directly(const Code* const* operands, Code* out, std::size_t count,
                      RoundingCounts& counts) const {
    if constexpr (sizeof(Code) == 2) {
      RoundedHalves found;
      if (counting_ == nullptr || count % 16 != 0 ||
          counting_(operands[0], operands[1], operands[2], out, count, found))
        return false;
      counts += {.exact = count - found.inexact,
                 .inexact = found.inexact,
                 .subnormal = found.subnormal,
                 .flushed = found.flushed,
                 .overflowed = 0};
      return true;
    }
    return false;
  }

  /// The results rounded to odd; what it replaces of them depends on the operands beyond their values. Returns their
  /// extremes, and sets the flags that no rounding raises.
  template <typename Code>
  Extremes compute(const Code* const* operands, std::size_t count, Block& exact, Flags& flags) const {
    std::array<Block, 3> widened;
    const float* floats[3];
    for (std::size_t k = 0; k < 3; ++k) {
      const bool repeated = k > 0 && operands[k] == operands[k - 1];
      floats[k] = repeated ? floats[k - 1] : widened[k].data();
      if (repeated) continue;
      decoder_.decode(operands[k], widened[k].data(), count);
      if (attributes_.denormals_are_zero)
        read_subnormals_as_zeros(format_.format, floats[k], widened[k].data(), count);
    }
    to_odd_(floats[0], floats[1], floats[2], exact.data(), count);
    const Extremes extremes = extremes_of(exact.data(), count);
    if (extremes.largest > infinity_bits<binary32>)
      choose_nans(floats[0], floats[1], floats[2], exact.data(), count);
    if (extremes.smallest == 0 && attributes_.rounding == Rounding::toward_negative)
      lower_zero_sums(operation_, floats[0], floats[1], floats[2], exact.data(), count);
    if (options_.flags != nullptr && extremes.largest >= infinity_bits<binary32>)
      find_special_flags(operands, floats, exact, count, flags);
    return extremes;
  }

  template <typename Code>
  void find_special_flags(const Code* const* operands, const float* const* floats, const Block& exact,
                          std::size_t count, Flags& flags) const {
    if (operation_ == ArrayOperation::divide && !flags.divide_by_zero)
      flags.divide_by_zero = divides_by_zero(floats[0], floats[1], count);
    if (flags.invalid) return;
    flags.invalid = has_invalid_result(floats[0], floats[1], floats[2], exact.data(), count);
    for (std::size_t k = 0; k < 3; ++k)
      flags.invalid |= !flags.invalid && has_signalling_nan(format_.format, operands[k], count);
  }

  /// The upper 32 of an element's 64 bits.
  const std::uint32_t* random_bits(std::size_t begin, std::size_t count, RandomBlock& buffer) const {
    if (options_.random_bits_64.empty()) return random_.from(begin, count, buffer.data());
    for (std::size_t i = 0; i < count; ++i)
      buffer[i] = static_cast<std::uint32_t>(options_.random_bits_64[begin + i] >> 32);
    return buffer.data();
  }

  /// use(i) for elements whose draw the vectorised code leaves undecided.
  template <typename Use>
  void for_each_open_draw(const Block& exact, const std::uint32_t* random, std::size_t count, Use use) const {
    std::array<std::uint8_t, block_size> marks;
    if (!mark_open_draws(draws_, exact.data(), random, marks.data(), count)) return;
    const std::uint8_t *mark = marks.data(), *const end = mark + count;
    for (; (mark = std::find(mark, end, std::uint8_t{1})) != end; ++mark)
      use(static_cast<std::size_t>(mark - marks.data()));
  }

  ArrayOperation operation_;
  const ArrayFormat& format_;
  ScalarOperation scalar_;
  Attributes attributes_;
  const ArrayOptions& options_;
  const BulkKernels& kernels_;
  Decoder decoder_;
  Encoder encoder_;
  RandomBits random_;
  OutcomeFinder finder_;
  DrawBorders draws_ = {};
  ToOddKernel to_odd_ = nullptr;
  NearestEvenKernel nearest_even_ = nullptr;
  CountingKernel counting_ = nullptr;
};

}  // namespace

void operate_array(ArrayOperation operation, const ArrayFormat& format, ScalarOperation scalar,
                   const void* const* operands, void* out, std::size_t size, const Attributes& attributes,
                   const ArrayOptions& options) {
  const Operator operator_of(operation, format, scalar, attributes, options);
  with_codes(format.format, out, [&]<typename Code>(Code* codes) {
    for_each_block(size, options, [&](std::size_t begin, std::size_t count, Outcomes& outcomes) {
      const Code* block[3];
      for (std::size_t k = 0; k < 3; ++k) block[k] = static_cast<const Code*>(operands[k]) + begin;
      // Elements may be redone from their operands after they have been written.
      std::array<Code, block_size> kept;
      if (std::ranges::count(block, codes + begin) > 0) std::copy_n(codes + begin, count, kept.begin());
      std::ranges::replace(block, codes + begin, kept.data());
      operator_of.operate(block, codes + begin, begin, count, outcomes);
    });
  });
}

}  // namespace fp16::detail
