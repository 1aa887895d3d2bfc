#include "experiments/memory_anatomy/networks.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "experiments/frame/installation.h"
#include "experiments/frame/toml_file.h"
#include "fp16/names.h"

namespace experiments::memory_anatomy {
namespace {

namespace fs = std::filesystem;

fs::path shipped_directory() {
  return shared_data("networks");
}

fs::path file_of(const std::string& name) {
  if (name.ends_with(".toml")) return name;
  const std::vector<std::string> shipped = shipped_networks();
  if (std::ranges::find(shipped, name) == shipped.end())
    throw std::invalid_argument(names::unknown_name_message("network", name, shipped) + ", a FILE.toml");
  return shipped_directory() / (name + ".toml");
}

std::uint64_t whole_number(const std::string& symbol, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(symbol + " = '" + text + "' is not allowed; allowed: whole numbers");
  return value;
}

}  // namespace

std::vector<std::string> shipped_networks() {
  std::vector<std::string> names;
  std::error_code missing;  // without its folder the program still reads the files of its user
  for (const fs::directory_entry& entry : fs::directory_iterator(shipped_directory(), missing)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

NetworkChoice find_network(const std::string& text) {
  const names::Spec spec = names::parse_spec(text);
  const std::string file = file_of(spec.name).string();
  NetworkChoice choice{.description = sim::read_network(read_toml_file(file), file)};
  for (const auto& [symbol, value] : spec.options) choice.symbols[symbol] = whole_number(symbol, value);
  return choice;
}

}  // namespace experiments::memory_anatomy
