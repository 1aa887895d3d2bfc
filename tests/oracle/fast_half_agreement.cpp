#include "tests/oracle/fast_half_agreement.h"

#include <bit>
#include <initializer_list>
#include <string_view>

#include "tests/oracle/agreement.h"
#include "tests/oracle/exact_half.h"
#include "tests/oracle/exact_operations.h"
#include "tests/oracle/fast_half.h"
#include "tests/oracle/hard_triples.h"
#include "tests/oracle/mpfr_arithmetic.h"

namespace oracle {
namespace {

/// Remembers the first difference.
class Agreement {
 public:
  void equal(std::string_view operation, std::initializer_list<std::uint64_t> operands,
             const fast::PackedOutcomes& packed, const Outcomes& exact, const mpfr::Rounded& by_mpfr) {
    for (std::size_t i = 0; i < direction_count; ++i)
      equal(operation, operands, direction_names[i], fast::unpack(packed[i]), exact[i]);
    for (std::size_t i = 0; i < by_mpfr.size(); ++i) {
      const auto direction = static_cast<std::size_t>(mpfr::directions[i]);
      Outcome outcome = fast::unpack(packed[direction]);
      // MPFR's NaNs carry nothing, and each raises its flag.
      const bool is_nan = (outcome.bits & 0x7fff) > 0x7c00;
      if (is_nan) outcome = {.bits = 0xfe00, .invalid = true};
      equal(operation, operands, direction_names[direction], outcome, by_mpfr[i]);
    }
  }

  void equal(std::string_view operation, std::initializer_list<std::uint64_t> operands,
             std::string_view direction, const Outcome& got, const Outcome& expected) {
    if (got == expected || !difference_.empty()) return;
    difference_ = std::string(operation) + ' ' + std::string(direction);
    for (const std::uint64_t operand : operands) difference_ += ' ' + text(operand);
    difference_ += ": got " + text(got) + ", expected " + text(expected);
  }

  const std::string& difference() const { return difference_; }

 private:
  std::string difference_;
};

std::uint16_t exact_stochastic(std::uint32_t bits, std::uint32_t random) {
  static const ExactFormat &half = exact_format("binary16"), &single = exact_format("binary32");
  const Placed placed(half, convert(half, single, bits));
  const Answer answer = placed.rounded({.mode = Mode::stochastic, .random_bits = random, .random_width = 32});
  return static_cast<std::uint16_t>(answer.bits);
}

/// Random bits that just let the number move, or just not, or any.
void compare_stochastic(Agreement& agreement, std::uint32_t bits, std::uint32_t random) {
  for (const std::uint32_t r :
       {random, fast::fraction_of_binary32(bits), fast::fraction_of_binary32(bits) - 1}) {
    agreement.equal("stochastic conversion", {bits, r}, "",
                    {.bits = fast::from_binary32_stochastically(bits, r)},
                    {.bits = exact_stochastic(bits, r)});
  }
}

}  // namespace

std::string first_difference_of_fast_half(std::uint64_t seed, int count) {
  Agreement agreement;
  HardTriples triples(seed);
  FloatsBesideHalves floats(seed + 1);
  DoublesBesideHalves doubles(seed + 2);
  RandomBits random(seed + 3);
  for (int i = 0; i < count && agreement.difference().empty(); ++i) {
    const auto [a, b, c] = triples.next();
    agreement.equal("add", {a, b}, fast::add(a, b), add(a, b), mpfr::add(a, b));
    agreement.equal("subtract", {a, b}, fast::subtract(a, b), subtract(a, b), mpfr::subtract(a, b));
    agreement.equal("multiply", {a, b}, fast::multiply(a, b), multiply(a, b), mpfr::multiply(a, b));
    agreement.equal("divide", {a, b}, fast::divide(a, b), divide(a, b), mpfr::divide(a, b));
    agreement.equal("fma", {a, b, c}, fast::fma(a, b, c), fma(a, b, c), mpfr::fma(a, b, c));
    const std::uint32_t single = floats.next();
    agreement.equal("convert", {single}, fast::from_binary32(single), from_binary32(single),
                    mpfr::convert(std::bit_cast<float>(single)));
    const std::uint64_t wide = doubles.next();
    agreement.equal("convert", {wide}, fast::from_binary64(wide), from_binary64(wide),
                    mpfr::convert(std::bit_cast<double>(wide)));
    compare_stochastic(agreement, single, static_cast<std::uint32_t>(random.next()));
  }
  return agreement.difference();
}

}  // namespace oracle
