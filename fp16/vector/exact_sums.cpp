#include "fp16/exact_sums.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "fp16/config.h"
#include "fp16/vector/bulk_templates.h"
#include "fp16/vector/coding.h"
#include "fp16/vector/threads.h"

namespace fp16 {
namespace {

using Codes = std::span<const std::uint16_t>;
using Accumulator = ExactAccumulator<binary16>;

constexpr std::size_t lanes = 16;
static_assert(detail::block_size % lanes == 0);

/// The halves of a block as floats, filled up with zeros to a whole number of lanes.
class Floats {
 public:
  explicit Floats(Codes codes) : count_((codes.size() + lanes - 1) / lanes * lanes) {
    detail::kernels_of(active_vector_path()).half_to_float(codes.data(), values_.data(), codes.size());
    std::fill(values_.begin() + codes.size(), values_.begin() + count_, 0.0f);
  }
  const float* data() const { return values_.data(); }
  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  std::array<float, detail::block_size> values_;
};

struct Signs {
  bool positive, negative;
};

/// Of the codes a[i] ^ b[i], whose signs are those of products; and whether an a[i] or b[i] is not finite.
FP16_VECTOR_CLONES bool find_signs(const std::uint16_t* a, const std::uint16_t* b, std::size_t count,
                                   Signs& signs) {
  std::uint16_t any = 0, all = 0xffff, largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto sign = static_cast<std::uint16_t>(a[i] ^ b[i]);
    any |= sign;
    all &= sign;
    largest = std::max<std::uint16_t>(largest, a[i] & 0x7fff);
    largest = std::max<std::uint16_t>(largest, b[i] & 0x7fff);
  }
  signs = {.positive = all >> 15 == 0, .negative = any >> 15 != 0};
  return largest >= infinity_bits<binary16>;
}

/// Integers of up to 40 bits times 2^-24, at most 2048 of which add up exactly in binary64.
FP16_VECTOR_CLONES double sum_of_values(const float* values, std::size_t count) {
  double sums[lanes]{};
  for (std::size_t i = 0; i < count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(values[i + lane]);
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

constexpr int value_exponent = binary16.emin_subnormal();
constexpr int upper_exponent = -8;
constexpr int lower_exponent = 2 * binary16.emin_subnormal();

struct Split {
  double upper, lower;
};

/// Products, exact in binary32, as integers of up to 41 bits times 2^-8 and of up to 41 bits times 2^-48; at most 2048
/// of each add up exactly in binary64.
FP16_VECTOR_CLONES Split sum_of_products(const float* a, const float* b, std::size_t count) {
  constexpr double shift = 0x1.8p44;  // a sum with it ends at 2^-8
  double uppers[lanes]{}, lowers[lanes]{};
  for (std::size_t i = 0; i < count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double product = a[i + lane] * b[i + lane];
      const double upper = (product + shift) - shift;
      uppers[lane] += upper;
      lowers[lane] += product - upper;
    }
  }
  Split sum{};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sum.upper += uppers[lane];
    sum.lower += lowers[lane];
  }
  return sum;
}

void add(Accumulator& sum, double part, int exponent, const Signs& signs) {
  const auto units = static_cast<std::int64_t>(part * detail::power_of_two(-exponent));
  sum.add_sum(units, exponent, signs.positive, signs.negative);
}

void add_block(Accumulator& sum, Codes values) {
  static constexpr std::array<std::uint16_t, detail::block_size> zeros{};
  Signs signs;
  if (find_signs(values.data(), zeros.data(), values.size(), signs)) {
    for (const std::uint16_t value : values) sum.add(value);
    return;
  }
  const Floats floats(values);
  add(sum, sum_of_values(floats.data(), floats.count()), value_exponent, signs);
}

void add_block(Accumulator& sum, Codes a, Codes b) {
  Signs signs;
  if (find_signs(a.data(), b.data(), a.size(), signs)) {
    for (std::size_t i = 0; i < a.size(); ++i) sum.add_product(a[i], b[i]);
    return;
  }
  const Floats factors(a), others(b);
  const Split products = sum_of_products(factors.data(), others.data(), factors.count());
  add(sum, products.upper, upper_exponent, signs);
  add(sum, products.lower, lower_exponent, signs);
}

/// Adds what `add_to(part, first, count)` adds of each block.
template <typename AddTo>
void add_blocks(Accumulator& sum, std::size_t size, int threads, AddTo add_to) {
  std::mutex mutex;
  detail::for_each_part(size, threads, detail::block_size, [&](std::size_t begin, std::size_t end) {
    Accumulator part;
    for (; begin < end; begin += detail::block_size)
      add_to(part, begin, std::min(detail::block_size, end - begin));
    const std::scoped_lock lock(mutex);
    sum.merge(part);
  });
}

}  // namespace

void add_values(Accumulator& sum, Codes values, int threads) {
  add_blocks(sum, values.size(), threads, [&](Accumulator& part, std::size_t first, std::size_t count) {
    add_block(part, values.subspan(first, count));
  });
}

void add_products(Accumulator& sum, Codes a, Codes b, int threads) {
  detail::require_length("b", b.size(), a.size());
  add_blocks(sum, a.size(), threads, [&](Accumulator& part, std::size_t first, std::size_t count) {
    add_block(part, a.subspan(first, count), b.subspan(first, count));
  });
}

}  // namespace fp16
