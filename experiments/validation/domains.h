#pragma once
/// What an operation is tried on, and how the trials are cut into shards.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace experiments::validation {

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
  Operands (*at)(std::uint32_t shard, std::uint32_t index);  ///< null where only a device goes through it
  std::vector<std::uint32_t> (*boundary_shards)();           ///< those that a sample begins with
  std::uint64_t inputs = shard_count * shard_size;

  std::uint64_t inputs_of(std::uint32_t shard) const {
    return std::min(shard_size, inputs - shard * shard_size);
  }
};

/// The trials of the domains below, one by one.
namespace trials {

/// Every trial can be made by itself: SplitMix64's words by their number, of four streams.
std::uint64_t random_bits(std::uint32_t shard, std::uint32_t index, std::uint64_t stream);

Operands code(std::uint32_t shard, std::uint32_t index);
Operands pair(std::uint32_t shard, std::uint32_t index);
Operands single(std::uint32_t shard, std::uint32_t index);
Operands word(std::uint32_t shard, std::uint32_t index);
Operands double_point(std::uint32_t shard, std::uint32_t index);
Operands long_word(std::uint32_t shard, std::uint32_t index);
Operands triple(std::uint32_t shard, std::uint32_t index);

}  // namespace trials

/// The shards that their samples begin with.
namespace borders {

std::vector<std::uint32_t> none();  ///< the first shard
std::vector<std::uint32_t> codes();
std::vector<std::uint32_t> lower_halves();
std::vector<std::uint32_t> upper_halves();
std::vector<std::uint32_t> points();

}  // namespace borders

inline constexpr std::uint64_t two_to_16 = 1 << 16, two_to_24 = 1 << 24, two_to_32 = two_to_16 << 16;

// clang-format off
/// The domains of the CPU, then those that a device goes through itself: it numbers an input by its operands' codes
/// side by side, the first one's in the highest bits.
inline constexpr Domain domains[] = {
    {"codes", "all 2^16 codes",
     true, 1, 1, two_to_16, trials::code, borders::none},
    {"pairs", "all 2^32 pairs of codes",  // a shard is one first operand
     true, 2, two_to_16, two_to_16, trials::pair, borders::codes},
    {"singles", "all 2^32 binary32 codes",  // a shard is one lower half
     true, 1, two_to_16, two_to_16, trials::single, borders::lower_halves},
    {"words", "all 2^32 integers",  // a shard is one upper half
     true, 1, two_to_16, two_to_16, trials::word, borders::upper_halves},
    {"doubles", "below, at and above every rounding boundary, then weighted random",
     false, 1, two_to_16, two_to_16, trials::double_point, borders::points},
    {"long_words", "below, at and above every rounding boundary, then random lengths",
     false, 1, two_to_16, two_to_16, trials::long_word, borders::points},
    {"triples", "random triples that cancel, tie or touch a border",
     false, 3, two_to_16, two_to_16, trials::triple, borders::none},
    {"device_codes", "all 2^16 codes",
     true, 1, 1, two_to_16, nullptr, borders::none},
    {"device_pairs", "all 2^32 pairs of codes",
     true, 2, 1, two_to_32, nullptr, borders::none},
    {"device_words", "all 2^32 codes",
     true, 1, 1, two_to_32, nullptr, borders::none},
    {"device_triples", "all 2^48 triples of codes",  // a shard is one first operand
     true, 3, two_to_16, two_to_32, nullptr, borders::codes},
    {"device_points", "2^24: around every rounding boundary, then random",
     false, 1, 1, two_to_24, nullptr, borders::none},
};
// clang-format on

/// The row of that name; another name does not compile.
consteval const Domain& domain_called(std::string_view name) {
  for (const Domain& domain : domains) {
    if (domain.name == name) return domain;
  }
  throw "no such domain";
}

/// The shards that a sample of at least `samples` trials (or all there are) consists of, each once: the
/// boundary shards, then others evenly spread over the domain. The shards of a sample are among those of
/// every larger one.
std::vector<std::uint32_t> sampled_shards(const Domain& domain, std::uint64_t samples);

}  // namespace experiments::validation
