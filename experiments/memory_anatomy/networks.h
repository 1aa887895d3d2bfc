#pragma once
/// The networks that come with the program, and those of its user.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/sizing/network_description.h"

namespace experiments::memory_anatomy {

/// Names of the networks that come with the program, in the order of the alphabet.
std::vector<std::string> shipped_networks();

/// A network as an option names it: "NAME", "FILE.toml", with symbols behind colons as in
/// "bert_large:batch=8:sequence=128".
struct NetworkChoice {
  sim::NetworkDescription description;
  std::map<std::string, std::uint64_t> symbols;

  sim::Network network() const { return sim::network_of(description, symbols); }
};

/// Throws std::invalid_argument, naming those that come with the program, for an unknown name or a symbol
/// that is no number, and std::runtime_error as read_toml_file() and sim::read_network() do.
NetworkChoice find_network(const std::string& spec);

}  // namespace experiments::memory_anatomy
