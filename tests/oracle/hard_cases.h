#pragma once
/// Pseudo-random codes of a binary format, weighted towards the places where arithmetic goes wrong.

#include <array>
#include <cstdint>

namespace oracle {

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  int below(int bound) { return static_cast<int>((next() >> 32) * static_cast<std::uint64_t>(bound) >> 32); }

 private:
  std::uint64_t state_;
};

/// Half of the codes are uniform bit patterns or sparse significands at any exponent; the rest lie at the
/// borders of the classes: zero, subnormal, normal, overflow, infinity, quiet and signalling NaN.
template <typename UInt, int trailing_bits>
class HardCases {
 public:
  explicit HardCases(std::uint64_t seed) : random_(seed) {}

  UInt next() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        return uniform();
      case 2:
        return near_border();
      case 3:
      case 4:
        return assemble(exponent(), sparse());
      case 5:
        return assemble(exponent(), ~sparse());
      case 6:
        return assemble(random_.below(2) == 0 ? random_.below(4) : max_exponent - 1 - random_.below(3),
                        uniform());
      default:
        return assemble(0, uniform() >> random_.below(trailing_bits));
    }
  }

  UInt uniform() { return static_cast<UInt>(random_.next()); }

  /// A number whose exponent is within p + 2 of the other's.
  UInt near(UInt other) {
    const int reach = trailing_bits + 3;
    int moved = static_cast<int>(other >> trailing_bits) & max_exponent;
    moved += random_.below(2 * reach + 1) - reach;
    moved = moved < 0 ? 0 : moved > max_exponent - 1 ? max_exponent - 1 : moved;
    return assemble(moved, random_.below(2) == 0 ? uniform() : sparse());
  }

  /// At most eight codes away, across class borders too; the sign is random.
  UInt beside(UInt other) { return static_cast<UInt>((other + random_.below(17) - 8) ^ sign()); }

 private:
  static constexpr int exponent_bits = static_cast<int>(8 * sizeof(UInt)) - 1 - trailing_bits;
  static constexpr int max_exponent = (1 << exponent_bits) - 1;
  static constexpr UInt one_ulp_of_exponent = static_cast<UInt>(UInt{1} << trailing_bits);

  UInt sign() { return static_cast<UInt>(UInt(random_.below(2)) << (8 * sizeof(UInt) - 1)); }
  int exponent() { return random_.below(max_exponent); }

  UInt assemble(int exponent, UInt trailing) {
    return static_cast<UInt>(sign() | UInt(exponent) << trailing_bits |
                             (trailing & (one_ulp_of_exponent - 1)));
  }
  UInt sparse() {
    UInt bits = 0;
    for (int i = random_.below(4); i > 0; --i)
      bits = static_cast<UInt>(bits | UInt{1} << random_.below(trailing_bits));
    return bits;
  }
  UInt near_border() {
    const UInt infinity = static_cast<UInt>(UInt(max_exponent) << trailing_bits);
    const std::array<UInt, 6> borders{0,
                                      one_ulp_of_exponent,
                                      static_cast<UInt>(UInt(max_exponent / 2) << trailing_bits),
                                      infinity,
                                      static_cast<UInt>(infinity + one_ulp_of_exponent / 2),
                                      static_cast<UInt>(infinity + one_ulp_of_exponent - 1)};
    return static_cast<UInt>((borders[random_.below(6)] + random_.below(5) - 2) ^ sign());
  }

  RandomBits random_;
};

using HardHalves = HardCases<std::uint16_t, 10>;
using HardFloats = HardCases<std::uint32_t, 23>;
using HardDoubles = HardCases<std::uint64_t, 52>;

}  // namespace oracle
