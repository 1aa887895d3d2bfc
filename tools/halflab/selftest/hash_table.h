#pragma once
/// Hashes as a file: what `halflab selftest --write` writes, --against reads, and a release has in golden.tsv.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halflab::selftest {

struct HashEntry {
  std::string group, name;
  std::uint64_t hash;
};

struct HashTable {
  std::string version;  ///< of the Halflab that computed them
  std::vector<HashEntry> entries;
};

/// A first line "halflab VERSION fnv1a-64", then lines "GROUP NAME HASH", with tabs between the columns and the hash in 16
/// hexadecimal digits. Throws std::runtime_error, naming the source and the line, for anything else, and for a name that
/// is there twice in its group.
HashTable parse_hashes(std::string_view text, std::string_view source);

std::string text_of(const HashTable& table);

/// The hashes of the release that this source belongs to.
const HashTable& released_hashes();

}  // namespace halflab::selftest
