#pragma once
/// Internal to bulk: its templates, which do the work themselves one element at a time, or hand it to the
/// vectorised code of bulk.cpp with what that must know of the format.

#include <cstddef>
#include <mutex>
#include <span>
#include <type_traits>

#include "../bulk.h"
#include "bulk_kernels.h"
#include "threads.h"

namespace fp16 {
namespace detail {

/// Throws std::invalid_argument unless `size`, the length of the array called `name`, is `expected`.
void require_length(const char* name, std::size_t size, std::size_t expected,
                    const char* why = "as the other arrays");

/// Throws std::invalid_argument if two arrays share a byte; `name` is the first's.
void require_apart(const char* name, std::span<const std::byte> a, std::span<const std::byte> b);

/// Throws std::invalid_argument if `out` shares a byte with another array of the call, unless that is the very array,
/// of the same type, that an element of `out` is made from.
template <typename Out, typename... In>
void require_apart(std::span<Out> out, const ArrayOptions& options, std::span<In>... in) {
  const auto from = [&]<typename Each>(std::span<Each> each) {
    if (std::is_same_v<Out, std::remove_const_t<Each>> && static_cast<const void*>(each.data()) == out.data())
      return;
    require_apart("out", std::as_bytes(out), std::as_bytes(each));
  };
  (from(in), ...);
  require_apart("out", std::as_bytes(out), std::as_bytes(options.random_bits_32));
  require_apart("out", std::as_bytes(out), std::as_bytes(options.random_bits_64));
}

/// Throws std::invalid_argument unless stochastic rounding has one random number for each of `count`
/// elements.
void require_random_bits(const Attributes& attributes, const ArrayOptions& options, std::size_t count);

/// Elements that are widened, rounded and counted while they are in the first-level cache; also keeps threads
/// from writing to one cache line.
inline constexpr std::size_t block_size = 2048;

/// 32 bits times this are 64.
inline constexpr std::uint64_t repeated_bits = 0x100000001;

/// The attributes for element i. 32 random bits are repeated: a conversion uses the lower half alone, and for
/// an operation the probabilities are right to 2^-32.
inline Attributes with_random_bits(Attributes attributes, const ArrayOptions& options, std::size_t i) {
  if (attributes.rounding == Rounding::stochastic) {
    if (!options.random_bits_64.empty()) {
      attributes.random_bits = options.random_bits_64[i];
    } else {
      const std::uint32_t drawn = options.random ? (*options.random)[i] : options.random_bits_32[i];
      attributes.random_bits = drawn * repeated_bits;
    }
  }
  return attributes;
}

template <const Format& F>
RoundingCounts counts_of(const Result<F>& result) {
  return {.exact = !result.flags.inexact,
          .inexact = result.flags.inexact && !result.flags.overflow,
          .subnormal = is_subnormal<F>(result.bits),
          .flushed = result.flags.inexact && is_zero<F>(result.bits),
          .overflowed = result.flags.overflow};
}

struct EncodedElement {
  std::uint32_t code;
  Flags flags;
};
template <const Format& F>
constexpr EncodedElement element_of(const Result<F>& result) {
  return {.code = result.bits, .flags = result.flags};
}

/// A format as the vectorised code sees it.
struct ArrayFormat {
  Format format;
  EncodedElement (*encode_one)(float value, const Attributes& attributes);
  float (*decode_one)(std::uint32_t code);
  const float* decoded;  ///< the values of all codes, or null if they are more than 256
};

template <const Format& F>
constexpr std::array<float, 256> decode_all() {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 1u << F.width(); ++code)
    values[code] = std::bit_cast<float>(convert<binary32, F>(static_cast<Bits<F>>(code)).bits);
  return values;
}

template <const Format& F>
requires(F.width() <= 8) inline constexpr std::array<float, 256> decoded = decode_all<F>();

template <const Format& F>
constexpr const float* decoded_or_null() {
  if constexpr (F.width() <= 8) {
    return decoded<F>.data();
  } else {
    return nullptr;
  }
}

template <const Format& F>
inline constexpr ArrayFormat array_format{
    .format = F,
    .encode_one =
        [](float value, const Attributes& attributes) {
          return element_of<F>(fp16::encode<F>(value, attributes));
        },
    .decode_one =
        [](std::uint32_t code) {
          return std::bit_cast<float>(convert<binary32, F>(static_cast<Bits<F>>(code)).bits);
        },
    .decoded = decoded_or_null<F>(),
};

/// What the kernels need of a format: all its numbers, and what lies halfway between two, are floats.
constexpr bool narrower_than_binary32(const Format& format) {
  return format.has_arithmetic() && format.precision < binary32.precision &&
         format.emax() <= binary32.emax() && format.emin() >= binary32.emin();
}

/// Whether the vectorised conversions have the random bits that they can use.
inline bool has_usable_bits(const Attributes& attributes, const ArrayOptions& options, std::size_t size) {
  return attributes.rounding != Rounding::stochastic ||
         (options.random_bits_64.empty() &&
          (options.random ? options.random_bits_32.empty() : options.random_bits_32.size() == size));
}

/// `out` and `in` point to integers of format.format.size_bytes().
void encode_array(const ArrayFormat& format, std::span<const float> in, void* out,
                  const Attributes& attributes, const ArrayOptions& options);
void decode_array(const ArrayFormat& format, const void* in, std::span<float> out,
                  const ArrayOptions& options);
void convert_array(const ArrayFormat& from, const void* in, std::size_t size, const ArrayFormat& to,
                   void* out, const Attributes& attributes, const ArrayOptions& options);

/// Formats whose operations are vectorised.
constexpr bool has_vector_arithmetic(const Format& format) {
  return narrower_than_binary32(format) && format.precision <= binary16.precision;
}

/// What redoes an element; it ignores operands that the operation lacks.
using ScalarOperation = EncodedElement (*)(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                           const Attributes& attributes);

/// `operands` has three pointers to codes; those that the operation lacks repeat another.
void operate_array(ArrayOperation operation, const ArrayFormat& format, ScalarOperation scalar,
                   const void* const* operands, void* out, std::size_t size, const Attributes& attributes,
                   const ArrayOptions& options);

template <const Format& F, typename Scalar, typename... In>
void operate(ArrayOperation operation, Scalar scalar, std::span<Bits<F>> out, const Attributes& attributes,
             const ArrayOptions& options, std::span<In>... in) {
  if constexpr (has_vector_arithmetic(F)) {
    (require_length("operand", in.size(), out.size()), ...);
    require_random_bits(attributes, options, out.size());
    require_apart(out, options, in...);
    constexpr std::size_t last = sizeof...(In) - 1;
    const std::array<const void*, sizeof...(In)> given{in.data()...};
    const void* const operands[]{given[0], given[last < 1 ? last : 1], given[last]};
    const ScalarOperation redo = [](std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                    const Attributes& each) {
      const auto code = [](std::uint32_t bits) { return static_cast<Bits<F>>(bits); };
      if constexpr (last == 0) {
        return element_of<F>(Scalar{}(code(a), each));
      } else if constexpr (last == 1) {
        return element_of<F>(Scalar{}(code(a), code(b), each));
      } else {
        return element_of<F>(Scalar{}(code(a), code(b), code(c), each));
      }
    };
    operate_array(operation, array_format<F>, redo, operands, out.data(), out.size(), attributes, options);
  } else {
    transform<F>(scalar, out, attributes, options, in...);
  }
}

}  // namespace detail

namespace detail {

/// store(i, operation(in[i]...)) for all elements; returns the union of the flags.
template <typename Operation, typename Store, typename Out, typename... In>
Flags transform_elements(const Operation& operation, const Store& store, std::span<Out> out,
                         const Attributes& attributes, const ArrayOptions& options, std::span<In>... in) {
  const std::size_t size = out.size();
  (require_length("operand", in.size(), size), ...);
  require_random_bits(attributes, options, size);
  require_apart(out, options, in...);
  require_available(options.path);
  Flags all_flags;
  std::mutex mutex;
  for_each_part(size, options.threads, block_size, [&](std::size_t begin, std::size_t end) {
    Flags flags;
    RoundingCounts counts;
    for (std::size_t i = begin; i < end; ++i) {
      const auto result = operation(in[i]..., with_random_bits(attributes, options, i));
      flags |= result.flags;
      store(i, result, counts);
    }
    const std::scoped_lock lock(mutex);
    all_flags |= flags;
    if (options.counts != nullptr) *options.counts += counts;
  });
  if (options.flags != nullptr) *options.flags |= all_flags;
  return all_flags;
}

}  // namespace detail

template <const Format& F, typename Operation, typename... In>
Flags transform(const Operation& operation, std::span<Bits<F>> out, const Attributes& attributes,
                const ArrayOptions& options, std::span<In>... in) {
  const auto store = [&](std::size_t i, const Result<F>& result, RoundingCounts& counts) {
    out[i] = result.bits;
    counts += detail::counts_of<F>(result);
  };
  return detail::transform_elements(operation, store, out, attributes, options, in...);
}

template <typename Value, typename Operation, typename... In>
Flags transform_values(const Operation& operation, std::span<Value> out, const Attributes& attributes,
                       const ArrayOptions& options, std::span<In>... in) {
  const auto store = [&](std::size_t i, const auto& result, RoundingCounts&) {
    if constexpr (requires { result.holds; }) {
      out[i] = result.holds;
    } else {
      out[i] = result.value;
    }
  };
  return detail::transform_elements(operation, store, out, attributes, options, in...);
}

template <const Format& F>
void encode(std::span<const float> in, std::span<Bits<F>> out, const Attributes& attributes,
            const ArrayOptions& options) {
  if constexpr (detail::narrower_than_binary32(F)) {
    if (detail::has_usable_bits(attributes, options, in.size())) {
      detail::require_length("out", out.size(), in.size());
      detail::require_apart(out, options, in);
      detail::encode_array(detail::array_format<F>, in, out.data(), attributes, options);
      return;
    }
  }
  transform<F>([](float value, const Attributes& a) { return fp16::encode<F>(value, a); }, out, attributes,
               options, in);
}

template <const Format& F>
void decode(std::span<const Bits<F>> in, std::span<float> out, const ArrayOptions& options) {
  static_assert(contains(binary32, F));
  detail::require_length("out", out.size(), in.size());
  detail::require_apart(out, options, in);
  detail::decode_array(detail::array_format<F>, in.data(), out, options);
}

template <const Format& To, const Format& From>
void convert(std::span<const Bits<From>> in, std::span<Bits<To>> out, const Attributes& attributes,
             const ArrayOptions& options) {
  if constexpr (From.width() < 32 && contains(binary32, From) && detail::narrower_than_binary32(To)) {
    if (detail::has_usable_bits(attributes, options, in.size())) {
      detail::require_length("out", out.size(), in.size());
      detail::require_apart(out, options, in);
      detail::convert_array(detail::array_format<From>, in.data(), in.size(), detail::array_format<To>,
                            out.data(), attributes, options);
      return;
    }
  }
  transform<To>([](Bits<From> bits, const Attributes& a) { return fp16::convert<To, From>(bits, a); }, out,
                attributes, options, in);
}

template <const Format& F>
void add(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
         const Attributes& attributes, const ArrayOptions& options) {
  const auto scalar = [](Bits<F> x, Bits<F> y, const Attributes& each) { return fp16::add<F>(x, y, each); };
  detail::operate<F>(detail::ArrayOperation::add, scalar, out, attributes, options, a, b);
}

template <const Format& F>
void subtract(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
              const Attributes& attributes, const ArrayOptions& options) {
  const auto scalar = [](Bits<F> x, Bits<F> y, const Attributes& each) {
    return fp16::subtract<F>(x, y, each);
  };
  detail::operate<F>(detail::ArrayOperation::subtract, scalar, out, attributes, options, a, b);
}

template <const Format& F>
void multiply(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
              const Attributes& attributes, const ArrayOptions& options) {
  const auto scalar = [](Bits<F> x, Bits<F> y, const Attributes& each) {
    return fp16::multiply<F>(x, y, each);
  };
  detail::operate<F>(detail::ArrayOperation::multiply, scalar, out, attributes, options, a, b);
}

template <const Format& F>
void divide(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<Bits<F>> out,
            const Attributes& attributes, const ArrayOptions& options) {
  const auto scalar = [](Bits<F> x, Bits<F> y, const Attributes& each) {
    return fp16::divide<F>(x, y, each);
  };
  detail::operate<F>(detail::ArrayOperation::divide, scalar, out, attributes, options, a, b);
}

template <const Format& F>
void sqrt(std::span<const Bits<F>> a, std::span<Bits<F>> out, const Attributes& attributes,
          const ArrayOptions& options) {
  const auto scalar = [](Bits<F> x, const Attributes& each) { return fp16::sqrt<F>(x, each); };
  detail::operate<F>(detail::ArrayOperation::sqrt, scalar, out, attributes, options, a);
}

template <const Format& F>
void fma(std::span<const Bits<F>> a, std::span<const Bits<F>> b, std::span<const Bits<F>> c,
         std::span<Bits<F>> out, const Attributes& attributes, const ArrayOptions& options) {
  const auto scalar = [](Bits<F> x, Bits<F> y, Bits<F> z, const Attributes& each) {
    return fp16::fma<F>(x, y, z, each);
  };
  detail::operate<F>(detail::ArrayOperation::fma, scalar, out, attributes, options, a, b, c);
}

}  // namespace fp16
