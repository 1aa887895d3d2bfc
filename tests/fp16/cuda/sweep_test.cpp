#include "fp16/cuda/sweep.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/cuda/index.h"
#include "fp16/cuda/kernels.h"

namespace cuda = fp16::cuda;

namespace {

const cuda::Sweep& sweep_of(std::string_view function) {
  const auto found = std::ranges::find(cuda::sweeps(), function, &cuda::Sweep::function);
  REQUIRE(found != cuda::sweeps().end());
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
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    CHECK(sweep.operation != nullptr);
    CHECK(functions.insert(sweep.function).second);
  }
  CHECK(functions.size() == 160);
  CHECK(cuda::tabulated_functions().size() == 26);
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
}

TEST_CASE("the second number of packed calls takes every input") {
  std::vector<bool> seen(65536);
  for (std::uint64_t i = 0; i < seen.size(); ++i) seen[cuda::partner(i, 16)] = true;
  CHECK(std::ranges::count(seen, true) == 65536);
}

TEST_CASE("sampled doubles are both sides of every half and of every midpoint") {
  std::set<double> samples;
  for (std::uint64_t i = 0; i < 6 * 65536; ++i) {
    const double sample = cuda::sampled_double(i);
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

TEST_CASE("sampled integers are all that do not overflow, and others") {
  std::set<long long> small;
  for (std::uint64_t i = 0; i < 1 << 20; ++i) small.insert(cuda::sampled_integer<long long>(i));
  CHECK(*small.begin() == -(1 << 19));
  CHECK(*small.rbegin() == (1 << 19) - 1);
  CHECK(small.size() == 1 << 20);
  CHECK(cuda::sampled_integer<unsigned long long>((1 << 20) - 1) == (1 << 20) - 1);
}

TEST_CASE("digests of calls differ when anything does") {
  std::set<std::uint64_t> digests;
  for (std::uint64_t index = 0; index < 20; ++index) {
    for (std::uint64_t first = 0; first < 20; ++first) {
      for (std::uint64_t second = 0; second < 20; ++second)
        digests.insert(cuda::digest_of(index, first, second));
    }
  }
  CHECK(digests.size() == 8000);
}

TEST_CASE("without a device one line says so") {
  if (cuda::available()) return;
  CHECK(cuda::unavailable_reason().find("CUDA") != std::string::npos);
  const std::array<std::uint16_t, 2> codes{0x3c00, 0x3c00};
  for (const std::string& error : {error_of([] { cuda::run(sweep_of("__hadd"), 0); }),
                                   error_of([] { cuda::tabulate(cuda::tabulated_functions()[0]); }),
                                   error_of([&] { cuda::sum_blocked_tree(codes); }),
                                   error_of([&] { cuda::dot_blocked_tree(codes, codes); })}) {
    CHECK(!error.empty());
    CHECK(error.find('\n') == std::string::npos);
  }
}
