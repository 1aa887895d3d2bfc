/// Built several times with different optimisation and instruction sets: each build must find the same bits.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fp16/elementary_pow.h"
#include "tests/oracle/fnv_hash.h"

namespace fp16 {
namespace {

constexpr std::size_t piece = 1024;

template <class Real>
void add(oracle::FnvHash& hash, const std::array<Real, piece>& values) {
  for (const Real value : values) hash.add(elementary::bits_of(value));
}

/// Checksum of `function` at every 16381st binary32, computed by a loop that may be vectorised.
template <float (*function)(float)>
std::uint64_t hash_of_slice() {
  constexpr std::uint32_t stride = 16381;
  std::array<float, piece> values;
  oracle::FnvHash hash;
  for (std::uint64_t bits = 0; bits < 0x100000000;) {
    for (float& value : values) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      bits += stride;
    }
    for (float& value : values) value = function(value);
    add(hash, values);
  }
  return hash.value();
}

/// Any bits at even indices, numbers between -2^(exponent) and 2^exponent at odd ones.
template <class Real>
Real spread(std::uint64_t index, int exponent) {
  const std::uint64_t bits = index * 0x9e3779b97f4a7c15u;
  constexpr int unused =
      64 - elementary::Constants<Real>::exponent_bits - elementary::Constants<Real>::precision;
  if (index % 2 == 0) return std::bit_cast<Real>(static_cast<elementary::RealBits<Real>>(bits >> unused));
  const Real unit = elementary::power_of_biased<Real>(
      static_cast<elementary::RealBits<Real>>(elementary::Constants<Real>::bias + exponent - 63));
  return static_cast<Real>(static_cast<std::int64_t>(bits)) * unit;
}

template <double (*function)(double)>
std::uint64_t hash_of_doubles() {
  std::array<double, piece> values;
  oracle::FnvHash hash;
  for (std::uint64_t index = 0; index < 256 * piece;) {
    for (double& value : values) value = spread<double>(index++, 6);
    for (double& value : values) value = function(value);
    add(hash, values);
  }
  return hash.value();
}

template <class Real>
std::uint64_t hash_of_powers() {
  std::array<Real, piece> bases, exponents, powers;
  oracle::FnvHash hash;
  for (std::uint64_t index = 0; index < 256 * piece; index += piece) {
    for (std::size_t i = 0; i < piece; ++i) {
      bases[i] = elementary::absolute(spread<Real>(index + i, 2));
      exponents[i] = spread<Real>((index + i) * 3, 6);
    }
    for (std::size_t i = 0; i < piece; ++i) powers[i] = pow(bases[i], exponents[i]);
    add(hash, powers);
  }
  return hash.value();
}

TEST_CASE("the bits of the elementary functions of binary32") {
  CHECK(hash_of_slice<exp>() == 0xdb4ffc433a62c357);
  CHECK(hash_of_slice<log>() == 0xdaa82a3520ce2bf6);
  CHECK(hash_of_slice<sigmoid>() == 0x00a273e2939355aa);
  CHECK(hash_of_slice<expm1>() == 0x489aab886cc55e62);
  CHECK(hash_of_slice<log1p>() == 0x9aad4d14ae21c172);
  CHECK(hash_of_slice<softplus>() == 0x6b4063ce6de1066a);
  CHECK(hash_of_slice<tanh>() == 0xd8d348711cb5ab32);
  CHECK(hash_of_slice<erf>() == 0x6683c5a97b653d74);
  CHECK(hash_of_slice<normal_cdf>() == 0x3f0c9862b7e8d6b8);
  CHECK(hash_of_powers<float>() == 0xc126ec56ea7ae1c7);
}

TEST_CASE("the bits of the elementary functions of binary64") {
  CHECK(hash_of_doubles<exp>() == 0xa0d275675fa72cf2);
  CHECK(hash_of_doubles<log>() == 0x266d0424bc3c0a07);
  CHECK(hash_of_doubles<sigmoid>() == 0x363ddea625b0907f);
  CHECK(hash_of_doubles<expm1>() == 0xa7c4dd096885cb44);
  CHECK(hash_of_doubles<log1p>() == 0xa6cd13e2772e4069);
  CHECK(hash_of_doubles<softplus>() == 0x88200d918e5e2138);
  CHECK(hash_of_doubles<tanh>() == 0x5436c17a22dde7e4);
  CHECK(hash_of_doubles<erf>() == 0x46787e9f5b6fd7c4);
  CHECK(hash_of_doubles<normal_cdf>() == 0x28d5eacdfd779f0a);
  CHECK(hash_of_powers<double>() == 0x960c4d63bdcdcd0c);
}

}  // namespace
}  // namespace fp16
