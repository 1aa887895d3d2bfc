#include "fp16/code_histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "fp16/config.h"

namespace fp16 {
namespace {

constexpr std::uint16_t sign = 0x8000;

/// Where a code's counter stands. Codes of few significant bits lie thousands apart, and their counters would share
/// a few places of the processor's cache: the upper bits shuffle the lower. Neighbours stay within a line of it.
[[gnu::always_inline]] constexpr std::uint16_t place_of(std::uint16_t code) {
  return static_cast<std::uint16_t>(code ^ code >> 7);
}

// An increment waits for the one before it at the same address, and arrays are full of such: one magnitude is often
// much more frequent than any other (a gradient's zeros, of either sign). In each block one magnitude's codes are
// therefore counted as `lanes` different codes in turn, itself and neighbours of it, and moved back afterwards.
// Runs of any other code are counted at once.

constexpr std::size_t lanes = 32;
constexpr std::size_t block_size = 2048;

using Places = std::array<std::uint16_t, block_size>;

/// What find_places found of a magnitude in each lane.
struct Found {
  std::array<std::uint16_t, lanes> all;
  std::array<std::uint16_t, lanes> negative;  ///< those with the sign bit
};

FP16_VECTOR_CLONES void find_places(const std::uint16_t* __restrict codes, std::uint16_t magnitude,
                                    Places& __restrict places, Found& __restrict found) {
  // Lane by lane, which compilers turn into vectors of lanes.
  for (unsigned lane = 0; lane < lanes; ++lane) {
    std::uint16_t all = 0, negative = 0;
    for (std::size_t i = 0; i < block_size; i += lanes) {
      const std::uint16_t code = codes[i + lane];
      const auto unsigned_code = static_cast<std::uint16_t>(code & ~sign);
      const std::uint16_t is_found = unsigned_code == magnitude ? 0xffff : 0;
      const auto is_negative = static_cast<std::uint16_t>(static_cast<std::int16_t>(code) >> 15);
      places[i + lane] = place_of(static_cast<std::uint16_t>(code ^ (is_found & lane)));
      all = static_cast<std::uint16_t>(all - is_found);
      negative = static_cast<std::uint16_t>(negative - (is_found & is_negative));
    }
    found.all[lane] = all;
    found.negative[lane] = negative;
  }
}

/// Undoes what find_places counted as something else. Returns how many codes had the magnitude.
std::uint32_t move_back(const Found& found, std::uint16_t magnitude, std::uint32_t* counters) {
  std::uint32_t all = 0;
  for (const std::uint16_t in_lane : found.all) all += in_lane;
  if (all == 0) return 0;
  for (unsigned lane = 1; lane < lanes; ++lane) {
    const std::uint32_t negative = found.negative[lane], positive = found.all[lane] - negative;
    const auto neighbour = static_cast<std::uint16_t>(magnitude ^ lane);
    counters[place_of(neighbour)] -= positive;
    counters[place_of(magnitude)] += positive;
    counters[place_of(neighbour | sign)] -= negative;
    counters[place_of(magnitude | sign)] += negative;
  }
  return all;
}

constexpr std::size_t run = 16;

bool is_run(const std::uint16_t* places) {
  std::array<std::uint64_t, run / 4> fours;
  std::memcpy(fours.data(), places, sizeof fours);
  return fours[0] == fours[1] && fours[0] == fours[2] && fours[0] == fours[3] &&
         fours[0] == std::rotl(fours[0], 16);
}

/// `upcoming` is a block that is fetched meanwhile.
void count_places(const Places& places, const std::uint16_t* upcoming, std::uint32_t* counters) {
  constexpr std::size_t line = 64 / sizeof *upcoming;
  for (std::size_t i = 0; i < block_size; i += run) {
    if (i % line == 0) __builtin_prefetch(upcoming + i);
    const std::uint16_t* next = &places[i];
    if (is_run(next)) {
      counters[*next] += run;
      continue;
    }
    for (std::size_t j = 0; j < run; ++j) ++counters[next[j]];
  }
}

void count_codes(std::span<const std::uint16_t> codes, std::uint32_t* counters) {
  Places places;
  Found found;
  std::uint16_t frequent = 0;
  for (; codes.size() >= block_size; codes = codes.subspan(block_size)) {
    find_places(codes.data(), frequent, places, found);
    const std::size_t later = std::min(2 * block_size, codes.size() - block_size);
    count_places(places, &codes[later], counters);
    if (move_back(found, frequent, counters) < block_size / 8) frequent = codes[block_size - 1] & ~sign;
  }
  for (const std::uint16_t code : codes) ++counters[place_of(code)];
}

}  // namespace

CodeHistogram::CodeHistogram() : recent_(code_count), settled_(code_count) {}

void CodeHistogram::add(std::span<const std::uint16_t> codes) {
  total_ += codes.size();
  while (!codes.empty()) {
    const std::size_t room = std::numeric_limits<std::uint32_t>::max() - recent_total_;
    const std::size_t size = std::min(codes.size(), room);
    count_codes(codes.first(size), recent_.data());
    recent_total_ += static_cast<std::uint32_t>(size);
    codes = codes.subspan(size);
    if (!codes.empty()) settle();
  }
}

void CodeHistogram::settle() {
  for (std::size_t code = 0; code < code_count; ++code)
    settled_[code] += recent_[place_of(static_cast<std::uint16_t>(code))];
  std::ranges::fill(recent_, 0);
  recent_total_ = 0;
}

CodeHistogram& CodeHistogram::operator+=(const CodeHistogram& other) {
  for (std::size_t code = 0; code < code_count; ++code)
    settled_[code] += other.count(static_cast<std::uint16_t>(code));
  total_ += other.total_;
  return *this;
}

std::uint64_t CodeHistogram::count(std::uint16_t code) const {
  return settled_[code] + recent_[place_of(code)];
}

bool operator==(const CodeHistogram& a, const CodeHistogram& b) {
  for (std::size_t code = 0; code < CodeHistogram::code_count; ++code) {
    if (a.count(static_cast<std::uint16_t>(code)) != b.count(static_cast<std::uint16_t>(code))) return false;
  }
  return true;
}

}  // namespace fp16
