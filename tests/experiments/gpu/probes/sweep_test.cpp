#include "experiments/gpu/probes/sweep.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/probes/index.h"
#include "fp16/codec.h"
#include "fp16/cuda/device.h"
#include "fp16/integral.h"
#include "fp16/rounding_names.h"

namespace cuda = fp16::cuda;
namespace probes = experiments::probes;

namespace {

const probes::Sweep& sweep_of(std::string_view function) {
  const auto found = std::ranges::find(probes::sweeps(), function, &probes::Sweep::function);
  REQUIRE(found != probes::sweeps().end());
  return *found;
}

/// The message of what `call` throws, or nothing.
template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every function of the sweeps has its operation and occurs once") {
  std::set<std::string_view> functions;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    CHECK(sweep.operation != nullptr);
    CHECK(functions.insert(sweep.function).second);
  }
  CHECK(functions.size() == 160 + 41 + 46 + 6);
  CHECK(probes::tabulated_functions().size() == 26);
}

TEST_CASE("sweeps exhaust what can be exhausted") {
  CHECK(sweep_of("__hneg").inputs() == 65536);
  CHECK(sweep_of("__hadd2").inputs() == std::uint64_t{1} << 32);
  CHECK(sweep_of("__hadd2").shards() == 1);
  CHECK(sweep_of("__float2half_rz").inputs() == std::uint64_t{1} << 32);
  CHECK(sweep_of("__hfma").inputs() == std::uint64_t{1} << 48);
  CHECK(sweep_of("__hfma").shards() == 65536);
  CHECK(sweep_of("__hfma").exhausts_operands());
  CHECK(!sweep_of("__double2half").exhausts_operands());
  CHECK(!sweep_of("__ll2half_rn").exhausts_operands());
  CHECK(sweep_of("atomicAdd_shared").inputs() == std::uint64_t{1} << 32);
  CHECK(sweep_of("__ldg").inputs() == 65536);
  CHECK(sweep_of("__hcmadd").inputs() == std::uint64_t{1} << 48);
  CHECK(!sweep_of("__hcmadd").exhausts_operands());
}

TEST_CASE("what operations of the device alone answer") {
  const auto answer = [](std::string_view function, const fp16::OperandCodes& operands) {
    return sweep_of(function).operation->apply(operands);
  };
  CHECK(answer("__ldg", {0x7d01, 0, 0}) == 0x7d01);
  CHECK(answer("operator_increment", {0x3c00, 0, 0}) == 0x4000);
  CHECK(answer("operator_decrement", {0x3c00, 0, 0}) == 0);
  // The signalling NaN that was in memory above the sum, 0x7FFF.
  CHECK(answer("atomicAdd_global", {0x7d01, 0x3c00, 0}) == 0x7d017fff);
  CHECK(answer("atomicAdd_global", {0x4000, 0x3c00, 0}) == 0x40004200);
  // (1 + 2i) (3 + 4i) + (5 + 6i) = 0 + 16i, imaginary parts above.
  CHECK(answer("__hcmadd", {0x40003c00, 0x44004200, 0x46004500}) == 0x4c000000);
  // The real part 1 + 2^-10 squared less its rounded square: what one rounding of each step leaves.
  CHECK(answer("__hcmadd", {0x00003c01, 0x00003c01, 0x0000bc02}) == 0x00000010);
}

TEST_CASE("the second number of packed calls takes every input") {
  std::vector<bool> seen(65536);
  for (std::uint64_t i = 0; i < seen.size(); ++i) seen[probes::partner(i, 16)] = true;
  CHECK(std::ranges::count(seen, true) == 65536);
}

TEST_CASE("sampled doubles are both sides of every half and of every midpoint") {
  std::set<double> samples;
  for (std::uint64_t i = 0; i < 6 * 65536; ++i) {
    const double sample = probes::sampled_double(i);
    if (!std::isnan(sample)) samples.insert(sample);
  }
  for (unsigned code = 1; code < 0x7c00; ++code) {
    const double low = fp16::decode<fp16::binary16>(static_cast<std::uint16_t>(code));
    const double high =
        code == 0x7bff ? 65536 : fp16::decode<fp16::binary16>(static_cast<std::uint16_t>(code + 1));
    for (const double point : {low, (low + high) / 2}) {
      for (const double sign : {1.0, -1.0}) {
        REQUIRE(samples.contains(sign * point));
        REQUIRE(samples.contains(sign * std::nextafter(point, 0.0)));
        REQUIRE(samples.contains(sign * std::nextafter(point, 1e9)));
      }
    }
  }
}

TEST_CASE("sampled doubles are around 2^16 and infinity, too") {
  std::set<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < 6 * 65536; ++i)
    samples.insert(std::bit_cast<std::uint64_t>(probes::sampled_double(i)));
  for (const double point : {0x1p16, -0x1p16, HUGE_VAL, -HUGE_VAL}) {
    const auto bits = std::bit_cast<std::uint64_t>(point);
    for (const std::uint64_t beside : {bits - 1, bits, bits + 1}) CHECK(samples.contains(beside));
  }
  for (const double zero : {0.0, -0.0}) {
    const auto bits = std::bit_cast<std::uint64_t>(zero);
    CHECK(samples.contains(bits));
    CHECK(samples.contains(bits + 1));
  }
}

TEST_CASE("between neighbouring samples of double no direction of rounding has a step") {
  // So samples on both sides of every step, and monotony, fix the conversion of every finite double.
  std::set<double> samples;
  for (std::uint64_t i = 0; i < 6 * 65536; ++i) {
    const double sample = probes::sampled_double(i);
    if (!std::isnan(sample)) samples.insert(sample);
  }
  for (const fp16::Rounding rounding : {fp16::Rounding::nearest_even, fp16::Rounding::toward_zero,
                                        fp16::Rounding::toward_positive, fp16::Rounding::toward_negative}) {
    const auto converted = [&](double value) {
      const int code = fp16::encode<fp16::binary16>(value, {.rounding = rounding}).bits;
      return (code & 0x8000) != 0 ? -(code & 0x7fff) : code;
    };
    for (auto left = samples.begin(), right = std::next(left); right != samples.end(); ++left, ++right) {
      const bool adjacent = std::nextafter(*left, HUGE_VAL) == *right;
      if (!adjacent) REQUIRE(converted(*left) == converted(*right));
    }
  }
}

/// Samples hold the small integers and the powers of two, as those of double do.
template <typename Integer>
void check_sampled_integers() {
  std::set<Integer> samples;
  for (std::uint64_t i = 0; i < (1 << 20) + 384; ++i) samples.insert(probes::sampled_integer<Integer>(i));
  CHECK(samples.contains(std::numeric_limits<Integer>::min()));
  CHECK(samples.contains(std::numeric_limits<Integer>::max()));
  for (const fp16::Rounding rounding : {fp16::Rounding::nearest_even, fp16::Rounding::toward_zero,
                                        fp16::Rounding::toward_positive, fp16::Rounding::toward_negative}) {
    const auto converted = [&](Integer value) {
      return fp16::from_integer<fp16::binary16>(value, {.rounding = rounding}).bits;
    };
    for (auto left = samples.begin(), right = std::next(left); right != samples.end(); ++left, ++right) {
      if (*right - 1 != *left) REQUIRE(converted(*left) == converted(*right));
    }
  }
}

TEST_CASE("between neighbouring samples of integers no direction of rounding has a step") {
  check_sampled_integers<long long>();
  check_sampled_integers<unsigned long long>();
}

TEST_CASE("random integers are of every size") {
  std::set<int> widths;
  for (std::uint64_t i = 0; i < 1 << 20; ++i) {
    const auto sample = probes::sampled_integer<unsigned long long>((1 << 20) + 384 + i);
    widths.insert(sample == 0 ? 0 : 64 - __builtin_clzll(sample));
  }
  CHECK(*widths.rbegin() == 64);
  CHECK(*widths.begin() <= 17);
}

TEST_CASE("digests of calls differ when anything does") {
  std::set<std::uint64_t> digests;
  for (std::uint64_t index = 0; index < 20; ++index) {
    for (std::uint64_t first = 0; first < 20; ++first) {
      for (std::uint64_t second = 0; second < 20; ++second)
        digests.insert(probes::digest_of(index, first, second));
    }
  }
  CHECK(digests.size() == 8000);
}

namespace {

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

}  // namespace

TEST_CASE("digests of parts of a shard add up to the whole's") {
  if (skipped()) return;
  for (const std::string_view function : {"__hadd2", "__half2float", "__ldcg", "__shfl_up_sync_half2",
                                          "atomicAdd_shared", "operator_divides", "__hcmadd"}) {
    CAPTURE(function);
    const probes::Sweep& sweep = sweep_of(function);
    const probes::SweepResult whole = probes::run(sweep, 0, {.first = 31, .count = 1000});
    const probes::SweepResult first = probes::run(sweep, 0, {.first = 31, .count = 1});
    const probes::SweepResult rest = probes::run(sweep, 0, {.first = 32, .count = 999});
    CHECK(whole.inputs == 1000);
    CHECK(whole.mismatches == 0);
    CHECK(whole.digest == first.digest + rest.digest);
    CHECK(first.digest != rest.digest);
  }
  const probes::Sweep& copies = sweep_of("__ldg");
  CHECK_THROWS_AS(probes::run(copies, 0, {.first = 65536, .count = 1}), std::runtime_error);
  CHECK_THROWS_AS(probes::run(copies, 0, {.first = 1, .count = 65536}), std::runtime_error);
  CHECK_THROWS_AS(probes::run(copies, 1, {.first = 0, .count = 1}), std::runtime_error);
}

TEST_CASE("moves keep every code, and operators and atomics compute") {
  if (skipped()) return;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    const bool moves = sweep.operation->name == "copy";
    if (!moves && sweep.function.find("operator") == sweep.function.npos &&
        sweep.function.find("atomic") == sweep.function.npos && sweep.function != "__hcmadd")
      continue;
    CAPTURE(sweep.function);
    const std::uint64_t first = sweep.inputs_of_shard() / 3;
    const probes::Range range{.first = moves ? 0 : first, .count = moves ? sweep.inputs() : 2000};
    const probes::SweepResult result = probes::run(sweep, sweep.shards() / 5, range);
    CHECK(result.mismatches == 0);
    if (moves) CHECK(result.nan_mismatches == 0);
  }
}

TEST_CASE("without a device one line says so") {
  if (cuda::available()) return;
  CHECK(cuda::unavailable_reason().find("CUDA") != std::string::npos);
  for (const std::string& error : {error_of([] { probes::run(sweep_of("__hadd"), 0); }),
                                   error_of([] { probes::tabulate(probes::tabulated_functions()[0]); })}) {
    CHECK(!error.empty());
    CHECK(error.find('\n') == std::string::npos);
  }
}
