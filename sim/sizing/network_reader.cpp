#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "fp16/names.h"
#include "sim/sizing/network_description.h"

namespace sim {
namespace {

std::string text_of(const auto& streamable) {
  std::ostringstream text;
  text << streamable;
  return text.str();
}

class NetworkReader {
 public:
  explicit NetworkReader(std::string file) { description_.file = std::move(file); }

  NetworkDescription read(const toml::table& root) && {
    require_keys(root, "the network", {"name", "symbols", "input", "blocks"}, {"source", "limits"});
    description_.name = text_at(root, "name");
    if (root.contains("source")) description_.source = text_at(root, "source");
    read_symbols(table_at(root, "symbols"));
    if (root.contains("limits")) read_limits(table_at(root, "limits"));
    const toml::table& input = table_at(root, "input");
    require_keys(input, "input", {"shape"}, {"indices"});
    for (const toml::node& extent : array_at(input, "shape"))
      description_.input_shape.push_back(expression(extent, "input: shape"));
    if (input.contains("indices")) description_.input_is_indices = truth_at(input, "indices");
    std::set<std::string> names;
    for (const toml::node& node : array_at(root, "blocks")) {
      description_.blocks.push_back(block(as_table(node, "blocks")));
      require_new(names, description_.blocks.back().name, node);
    }
    return std::move(description_);
  }

 private:
  [[noreturn]] void reject(const toml::node& node, const std::string& what) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", description_.file, node.source().begin.line, what));
  }

  void require_keys(const toml::table& table, const std::string& what,
                    const std::vector<std::string>& required,
                    const std::vector<std::string>& optional) const {
    std::vector<std::string> allowed = required;
    allowed.insert(allowed.end(), optional.begin(), optional.end());
    for (const auto& [key, node] : table) {
      if (std::ranges::find(allowed, key.str()) == allowed.end())
        reject(node, what + ": " + names::unknown_name_message("key", key.str(), allowed));
    }
    for (const std::string& key : required) {
      if (!table.contains(key)) reject(table, fmt::format("{} lacks '{}'", what, key));
    }
  }

  void require_new(std::set<std::string>& names, const std::string& name, const toml::node& node) const {
    if (!names.insert(name).second)
      reject(node, fmt::format("name '{}' stands there twice; allowed: names that differ", name));
  }

  [[noreturn]] void reject_type(const toml::node& node, const std::string& what,
                                std::string_view allowed) const {
    reject(node, fmt::format("{} is a TOML {}; allowed: {}", what, text_of(node.type()), allowed));
  }

  std::string as_text(const toml::node& node, const std::string& what) const {
    if (const auto* text = node.as_string(); text && !text->get().empty()) return text->get();
    reject_type(node, what, "a text that is not empty");
  }
  const toml::table& as_table(const toml::node& node, const std::string& what) const {
    if (const toml::table* table = node.as_table()) return *table;
    reject_type(node, what, "a table");
  }
  std::string text_at(const toml::table& table, const std::string& key) const {
    return as_text(*table.get(key), key);
  }
  bool truth_at(const toml::table& table, const std::string& key) const {
    if (const auto* truth = table.get(key)->as_boolean()) return truth->get();
    reject_type(*table.get(key), key, "true, false");
  }
  const toml::table& table_at(const toml::table& table, const std::string& key) const {
    return as_table(*table.get(key), key);
  }
  const toml::array& array_at(const toml::table& table, const std::string& key) const {
    if (const toml::array* array = table.get(key)->as_array(); array && !array->empty()) return *array;
    reject_type(*table.get(key), key, "an array that is not empty");
  }

  /// Truth values are 1 and 0.
  DescribedText expression(const toml::node& node, const std::string& what) const {
    const std::size_t line = node.source().begin.line;
    if (const auto* truth = node.as_boolean()) return {truth->get() ? "1" : "0", line};
    if (const auto* text = node.as_string()) return {text->get(), line};
    const auto* number = node.as_integer();
    if (number && number->get() >= 0) return {std::to_string(number->get()), line};
    reject(node, fmt::format(
                     "{} = {} is not allowed; allowed: whole numbers, and products of them and symbols as a "
                     "text",
                     what, text_of(toml::node_view(node))));
  }

  void read_symbols(const toml::table& symbols) {
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    for (const auto& [key, node] : symbols) {
      const auto* number = node.as_integer();
      if (!number || number->get() < 1 || number->get() > largest) {
        reject(node, fmt::format("symbol {} = {} is not allowed; allowed: whole numbers from 1 to {}",
                                 key.str(), text_of(toml::node_view(node)), largest));
      }
      description_.symbols[std::string(key.str())] = static_cast<std::uint64_t>(number->get());
    }
  }

  void read_limits(const toml::table& limits) {
    for (const auto& [key, node] : limits) {
      const std::string symbol(key.str());
      if (!description_.symbols.contains(symbol))
        reject(node, fmt::format("limits: '{}' is no symbol of the network", symbol));
      description_.limits[symbol] = expression(node, "limits: " + symbol);
    }
  }

  DescribedBlock block(const toml::table& table) const {
    require_keys(table, "block", {"name", "operators"}, {"repeat"});
    DescribedBlock block{.name = text_at(table, "name"),
                         .repeat = {"1", table.source().begin.line},
                         .is_checkpoint = table.contains("repeat"),
                         .operators = {},
                         .line = table.source().begin.line};
    if (block.is_checkpoint) block.repeat = expression(*table.get("repeat"), "repeat");
    std::set<std::string> names{"x"};
    for (const toml::node& node : array_at(table, "operators")) {
      block.operators.push_back(described_operator(as_table(node, "operators")));
      require_new(names, block.operators.back().name, node);
    }
    return block;
  }

  DescribedOperator described_operator(const toml::table& table) const {
    std::vector<std::string> optional{"inputs", "weights_of", "recompute"};
    for (const OperatorSize& size : operator_sizes()) optional.emplace_back(size.name);
    require_keys(table, "operator", {"name", "operation"}, optional);
    DescribedOperator described{.name = text_at(table, "name"),
                                .operation = text_at(table, "operation"),
                                .line = table.source().begin.line};
    if (table.contains("inputs")) {
      for (const toml::node& input : array_at(table, "inputs"))
        described.inputs.push_back(as_text(input, "inputs"));
    }
    if (table.contains("weights_of")) described.weights_of = text_at(table, "weights_of");
    if (table.contains("recompute")) described.recompute = truth_at(table, "recompute");
    for (const OperatorSize& size : operator_sizes()) {
      if (const toml::node* node = table.get(size.name))
        described.sizes[std::string(size.name)] = expression(*node, std::string(size.name));
    }
    return described;
  }

  NetworkDescription description_;
};

}  // namespace

NetworkDescription read_network(const toml::table& root, const std::string& file) {
  return NetworkReader(file).read(root);
}

}  // namespace sim
