#pragma once
/// What is added up: keyed random vectors of halves.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/tensor/random.h"

namespace experiments::accumulation {

/// How the elements of a and b are drawn, before they are rounded to binary16.
struct Distribution {
  std::string_view name;
  std::string_view description;  ///< of a x b
  float (*a)(const sim::RandomStream& stream, std::uint64_t index);
  float (*b)(const sim::RandomStream& stream, std::uint64_t index);
};

/// A new distribution is one row.
std::span<const Distribution> distributions();

/// Two vectors in codes of binary16, rounded to nearest-even.
struct Operands {
  std::vector<std::uint16_t> a;
  std::vector<std::uint16_t> b;
};

/// Element i of vector `vector` depends on nothing but the seed, the distribution's name and the two.
Operands draw(const Distribution& distribution, std::uint64_t seed, int vector, std::size_t length);

}  // namespace experiments::accumulation
