#pragma once
/// What an operation is tried on, and how the trials are cut into shards.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace experiments::validate_gpu {

/// The operands of one trial as bits, each in the low bits of its word.
struct Operands {
  std::uint64_t a = 0, b = 0, c = 0;
};

/// The result's bits, in the low bits of the word.
using Function = std::uint64_t (*)(const Operands&);

/// A countable set of trials: shard_count shards of shard_size trials each, of which the last may have fewer.
struct Domain {
  std::string_view name;
  std::string_view meaning;
  bool is_complete;  ///< every input there is; else a list of chosen and random ones
  int operand_count;
  std::uint32_t shard_count;
  std::uint64_t shard_size;
  std::uint64_t inputs;
  Operands (*at)(std::uint32_t shard, std::uint32_t index);  ///< null where only a device goes through it
  std::vector<std::uint32_t> (*boundary_shards)();           ///< those that a sample begins with

  std::uint64_t inputs_of(std::uint32_t shard) const {
    return std::min(shard_size, inputs - shard * shard_size);
  }
};

extern const Domain codes;       ///< all 2^16 codes
extern const Domain pairs;       ///< all 2^32 pairs of codes; a shard is one first operand
extern const Domain singles;     ///< all 2^32 binary32 codes; a shard is one lower half
extern const Domain words;       ///< all 2^32 integers of 32 bits; a shard is one upper half
extern const Domain doubles;     ///< below, at and above each rounding boundary, then weighted random
extern const Domain long_words;  ///< the same of integers of 64 bits
extern const Domain triples;     ///< random triples, of which most cancel, tie or touch a border

/// What a device goes through in a shard of up to 2^32: the operands' codes side by side, the first one's in the
/// highest bits.
extern const Domain device_codes;    ///< all 2^16
extern const Domain device_pairs;    ///< all 2^32 pairs of codes
extern const Domain device_words;    ///< all 2^32 codes of one operand
extern const Domain device_triples;  ///< all 2^48; a shard is one first operand
extern const Domain device_points;   ///< around each rounding boundary, then random

/// The shards that a sample of at least `samples` trials (or all there are) consists of, each once: the
/// boundary shards, then others evenly spread over the domain. The shards of a sample are among those of
/// every larger one.
std::vector<std::uint32_t> sampled_shards(const Domain& domain, std::uint64_t samples);

}  // namespace experiments::validate_gpu
