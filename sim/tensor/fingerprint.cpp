#include "sim/tensor/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

namespace sim {
namespace {

constexpr std::size_t lanes = 8;

/// Sums of elements' bits, and sums of these sums, for their order: of every eighth element one, so that processors add several
/// at once.
struct Sums {
  std::array<std::uint64_t, lanes> once = {}, twice = {};
};

/// Its bits, of every NaN the same ones.
template <class Bits>
Bits without_payload(Bits bits) {
  constexpr int significand = std::is_same_v<Bits, std::uint32_t> ? 23 : 52;
  constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
  constexpr Bits infinity = (sign - 1) >> significand << significand;
  return (bits & ~sign) > infinity ? sign - 1 : bits;
}

template <class Real>
Sums with_elements(Sums sums, const Real* values, std::size_t count) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  const auto add = [&sums](const Real* element, std::size_t lane) {
    sums.once[lane] += without_payload(std::bit_cast<Bits>(element[lane]));
    sums.twice[lane] += sums.once[lane];
  };
  const Real* const rest = values + count - count % lanes;
  for (; values != rest; values += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) add(values, lane);
  }
  for (std::size_t lane = 0; lane < count % lanes; ++lane) add(rest, lane);
  return sums;
}

template <class Real>
Sums sums_of(const Tensor& tensor) {
  std::array<Real, 1024> buffer;
  Sums sums;
  for (std::size_t first = 0; first < tensor.size(); first += buffer.size()) {
    const std::size_t count = std::min(buffer.size(), tensor.size() - first);
    sums = with_elements(sums, read(tensor, first, count, buffer), count);
  }
  return sums;
}

/// A step of MurmurHash3 (x64, its first lane).
std::uint64_t with(std::uint64_t bits, std::uint64_t state) {
  bits = std::rotl(bits * 0x87c37b91114253d5, 31) * 0x4cf5ad432745937f;
  return std::rotl(state ^ bits, 27) * 5 + 0x52dce729;
}

/// Its last step: each bit of the state decides about all.
std::uint64_t finished(std::uint64_t state) {
  state = (state ^ state >> 33) * 0xff51afd7ed558ccd;
  state = (state ^ state >> 33) * 0xc4ceb9fe1a85ec53;
  return state ^ state >> 33;
}

}  // namespace

void Fingerprint::add(const Tensor& tensor) {
  const Sums sums = is_binary64(tensor) ? sums_of<double>(tensor) : sums_of<float>(tensor);
  for (const auto& part : {sums.once, sums.twice}) {
    for (const std::uint64_t sum : part) state_ = with(sum, state_);
  }
}

double Fingerprint::value() const {
  return static_cast<double>(finished(state_) >> 11);
}

}  // namespace sim
