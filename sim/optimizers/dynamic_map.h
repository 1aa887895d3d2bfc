#pragma once
/// The 8-bit numbers of "dynamic tree quantisation", which hold optimizer state in blocks that share a
/// maximum.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sim {

/// 256 numbers in ascending order, from -0.993 (signed) or 0 (unsigned) to 1. A number's code is its place.
/// Beside 0 and 1 they fill the seven decades from 1e-7 to 1, each with twice as many evenly spaced numbers
/// as the one below.
///
/// Source: T. Dettmers et al., "8-bit Optimizers via Block-wise Quantization" (ICLR 2022), and
/// bitsandbytes functional.py, create_dynamic_map(signed, max_exponent_bits = 7, total_bits = 8), whose
/// binary32 operations are repeated one by one: torch.linspace as its scalar loop forms it, midpoints, powers
/// of ten.
class DynamicMap {
 public:
  static constexpr std::size_t block = 256;  ///< values that share a maximum

  static const DynamicMap& with_sign();
  static const DynamicMap& without_sign();

  const std::array<float, 256>& values() const { return values_; }
  std::uint8_t code_of_zero() const { return code_of_zero_; }

  /// The code of the nearest number for values in [-1, 1]; what lies outside goes to an end, NaN to code 0.
  /// bitsandbytes' kernel is followed: "nearest" is a comparison with the binary32 midpoint of two neighbours, a
  /// value on the midpoint gets the even code, and a negative value never becomes 0 but the negative number
  /// next to it (small positive values do become 0).
  std::uint8_t nearest(float value) const;

  /// Codes of the values of a block divided by their largest magnitude, which is returned; 0 when all are
  /// zero, and NaNs have no magnitude. The division rounds correctly, where the original's may be off by two
  /// ulp.
  float quantise(std::span<const float> in, std::span<std::uint8_t> codes) const;

  /// out[i] = the number of codes[i] times `maximum`, rounded once to binary32.
  void dequantise(std::span<const std::uint8_t> codes, float maximum, std::span<float> out) const;

 private:
  explicit DynamicMap(bool has_sign);

  std::array<float, 256> values_;
  std::uint8_t code_of_zero_;
  /// For floats that begin with the same 16 bits, of which at most one border separates some from the others: 2^16
  /// times their lowest code, and so much that the place of a float behind the border carries into the next code.
  std::vector<std::uint32_t> steps_;
};

}  // namespace sim
