#include "sim/sizing/network_description.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "fp16/names.h"
#include "sim/ops/embedding.h"

namespace sim {
namespace {

constexpr std::size_t most_operators = 10'000;
constexpr long double most_flop = 1152921504606846976.0L;  // 2^60
constexpr std::uint64_t most_elements = std::uint64_t{1} << 56, largest_size = (std::uint64_t{1} << 31) - 1;

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

class Binding {
 public:
  Binding(const NetworkDescription& description, const std::map<std::string, std::uint64_t>& given)
      : description_(description) {
    network_.name = description.name;
    network_.source = description.source;
    network_.symbols = description.symbols;
    network_.input_is_indices = description.input_is_indices;
    for (const auto& [name, value] : given) bind_symbol(name, value);
    for (const auto& [name, limit] : description.limits) require_within(name, limit);
    for (const DescribedText& extent : description.input_shape)
      network_.input.push_back(value_of(extent, "input", 1));
    count_elements(network_.input, description.input_shape.front().line, "input");
  }

  Network network() && {
    for (const DescribedBlock& block : description_.blocks) {
      const std::uint64_t repeats = value_of(block.repeat, "block '" + block.name + "': repeat", 1);
      for (std::uint64_t repetition = 0; repetition < repeats; ++repetition) add_block(block, repetition);
      description_index_ += block.operators.size();
    }
    return std::move(network_);
  }

 private:
  [[noreturn]] void reject(std::size_t line, const std::string& what) const {
    throw std::runtime_error(description_.file + ":" + std::to_string(line) + ": " + what);
  }

  void bind_symbol(const std::string& name, std::uint64_t value) {
    const auto found = network_.symbols.find(name);
    if (found == network_.symbols.end()) {
      std::vector<std::string> names;
      for (const auto& [symbol, size] : network_.symbols) names.push_back(symbol);
      throw std::invalid_argument("network '" + network_.name +
                                  "': " + names::unknown_name_message("symbol", name, names));
    }
    if (value < 1 || value > largest_size) {
      throw std::invalid_argument("network '" + network_.name + "': " + name + " = " + std::to_string(value) +
                                  " is not allowed; allowed: whole numbers from 1 to " +
                                  std::to_string(largest_size));
    }
    found->second = value;
  }

  void require_within(const std::string& name, const DescribedText& limit) const {
    const std::uint64_t value = network_.symbols.at(name), most = value_of(limit, "limits: " + name, 1);
    if (value > most)
      throw std::invalid_argument("network '" + network_.name + "': " + name + " = " + std::to_string(value) +
                                  " is not allowed; allowed: at most " + limit.text + ", which is " +
                                  std::to_string(most));
  }

  std::uint64_t value_of(const DescribedText& expression, const std::string& what,
                         std::uint64_t minimum) const {
    std::uint64_t product = 1;
    for (std::string_view rest = expression.text;;) {
      const std::size_t star = rest.find('*');
      const std::string factor(trimmed(rest.substr(0, star)));
      const auto symbol = network_.symbols.find(factor);
      const std::optional<std::uint64_t> number =
          symbol == network_.symbols.end() ? whole_number(factor) : std::optional(symbol->second);
      if (!number) {
        std::string known;
        for (const auto& [name, size] : network_.symbols) known += ", " + name;
        reject(expression.line, what + " = '" + expression.text + "': unknown factor '" + factor +
                                    "'; allowed: products of whole numbers and symbols" + known);
      }
      if (*number > largest_size || product * *number > largest_size) {
        reject(expression.line, what + " = '" + expression.text + "' is too large; allowed: up to " +
                                    std::to_string(largest_size));
      }
      product *= *number;
      if (star == std::string_view::npos) break;
      rest = rest.substr(star + 1);
    }
    if (product < minimum) {
      reject(expression.line, what + " = " + std::to_string(product) + " is not allowed; allowed: at least " +
                                  std::to_string(minimum));
    }
    return product;
  }

  /// The product, which element_count() would not see overflow.
  void count_elements(const Shape& shape, std::size_t line, const std::string& what) {
    std::uint64_t elements = 1;
    for (const std::size_t extent : shape) {
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > most_elements)
        reject(line,
               what + ": shape " + to_string(shape) + " is too large; allowed: up to 2^56 elements in all");
    }
    elements_ += elements;
    if (elements_ > most_elements) reject(line, what + ": the network has more than 2^56 elements");
  }

  void add_block(const DescribedBlock& block, std::uint64_t repetition) {
    names_.clear();
    names_["x"] = network_.operators.size();
    for (std::size_t i = 0; i < block.operators.size(); ++i) {
      if (network_.operators.size() == most_operators)
        reject(block.line, "block '" + block.name + "': the network has more than 10000 operators");
      add_operator(block, block.operators[i], description_index_ + i, repetition);
    }
    ++block_index_;
  }

  void add_operator(const DescribedBlock& block, const DescribedOperator& described, std::size_t index,
                    std::uint64_t repetition) {
    const std::string what = "operator '" + block.name + "." + described.name + "'";
    Network::Operator op{.name = block.name + "." + described.name,
                         .description = index,
                         .repetition = repetition,
                         .block = block_index_,
                         .in_checkpoint = block.is_checkpoint,
                         .recompute = described.recompute};
    try {
      op.operation = &find_network_operation(described.operation);
    } catch (const std::invalid_argument& error) {
      reject(described.line, what + ": " + error.what());
    }
    connect(op, described, what);
    set_sizes(op, described, what);
    for (const Network::ValueIndex input : op.inputs) op.shape.inputs.push_back(shape_of(input));
    try {
      op.shape.output = op.operation->output(op.shape);
    } catch (const std::invalid_argument& error) {
      reject(described.line, what + ": " + error.what());
    }
    count_elements(op.shape.output, described.line, what);
    add_parameters(op, block, described, what);
    count_flop(op, described.line, what);
    names_[described.name] = network_.operators.size() + 1;
    network_.operators.push_back(std::move(op));
  }

  const Shape& shape_of(Network::ValueIndex value) const {
    return value == 0 ? network_.input : network_.operators[value - 1].shape.output;
  }

  void connect(Network::Operator& op, const DescribedOperator& described, const std::string& what) const {
    if (described.inputs.empty()) {
      op.inputs.push_back(network_.operators.size());
    } else {
      for (const std::string& name : described.inputs) {
        const auto found = names_.find(name);
        if (found == names_.end()) {
          std::vector<std::string> known;
          for (const auto& [candidate, value] : names_) known.push_back(candidate);
          reject(described.line, what + ": " + names::unknown_name_message("input", name, known));
        }
        op.inputs.push_back(found->second);
      }
    }
    if (op.inputs.size() != op.operation->inputs) {
      reject(described.line, what + " has " + std::to_string(op.inputs.size()) +
                                 " inputs; allowed: " + std::to_string(op.operation->inputs));
    }
    const bool takes_indices = op.operation->operation == &embedding;
    const bool has_indices = network_.input_is_indices && op.inputs.front() == 0;
    if (takes_indices != has_indices) {
      reject(described.line,
             what + (takes_indices ? " is given numbers; allowed: indices, as the network's input"
                                   : " is given indices; allowed: an embedding"));
    }
  }

  void set_sizes(Network::Operator& op, const DescribedOperator& described, const std::string& what) const {
    std::vector<std::string> allowed;
    for (const auto& names : {op.operation->required, op.operation->optional}) {
      for (const std::string_view name : names) {
        if (!name.empty()) allowed.emplace_back(name);
      }
    }
    for (const auto& [name, expression] : described.sizes) {
      if (std::ranges::find(allowed, name) == allowed.end())
        reject(expression.line, what + ": " + names::unknown_name_message("size", name, allowed));
      const OperatorSize& size = names::find_by_name(operator_sizes(), "size", name);
      op.shape.sizes.*size.field = value_of(expression, what + ": " + name, size.minimum);
    }
    for (const std::string_view name : op.operation->required) {
      if (!name.empty() && !described.sizes.contains(std::string(name)))
        reject(described.line, what + " lacks '" + std::string(name) + "'");
    }
  }

  void add_parameters(Network::Operator& op, const DescribedBlock& block, const DescribedOperator& described,
                      const std::string& what) {
    const std::vector<Shape> shapes = op.operation->parameters(op.shape);
    const std::string layer =
        block.name + (block.is_checkpoint ? std::to_string(op.repetition + 1) : "") + "." + described.name;
    const bool of_batch_norm = is_batch_norm(*op.operation);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (i == 0 && !described.weights_of.empty()) {
        op.parameters.push_back(shared_weight(shapes[0], described, what));
        continue;
      }
      count_elements(shapes[i], described.line, what);
      op.parameters.push_back(network_.parameters.size());
      network_.parameters.push_back({.name = layer + (i == 0 ? ".weight" : ".bias"),
                                     .shape = shapes[i],
                                     .of_batch_norm = of_batch_norm});
    }
    if (shapes.empty() && !described.weights_of.empty())
      reject(described.line, what + " has no weight; allowed: no weights_of");
    if (of_batch_norm) add_running_statistics(network_.buffers, layer, shapes[0][0]);
  }

  std::size_t shared_weight(const Shape& shape, const DescribedOperator& described, const std::string& what) {
    const auto owner = std::ranges::find(network_.operators, described.weights_of, &Network::Operator::name);
    if (owner == network_.operators.end() || owner->parameters.empty()) {
      reject(described.line,
             what + ": weights_of = '" + described.weights_of +
                 "' is not allowed; allowed: an earlier operator with a weight, as block.operator");
    }
    const ParameterSpec& weight = network_.parameters[owner->parameters.front()];
    if (weight.shape != shape) {
      reject(described.line, what + ": weights_of = '" + described.weights_of + "' has shape " +
                                 to_string(weight.shape) + "; allowed: " + to_string(shape));
    }
    return owner->parameters.front();
  }

  /// In long double, which has room for what would overflow.
  void count_flop(const Network::Operator& op, std::size_t line, const std::string& what) {
    flop_ += 2 * static_cast<long double>(op.operation->product_terms(op.shape)) *
             static_cast<long double>(element_count(op.shape.output));
    if (flop_ > most_flop)
      reject(line, what + ": the network takes more than 2^60 FLOP; allowed: up to that");
  }

  const NetworkDescription& description_;
  Network network_;
  std::map<std::string, Network::ValueIndex> names_;  ///< within the block
  std::size_t block_index_ = 0, description_index_ = 0;
  std::uint64_t elements_ = 0;
  long double flop_ = 0;
};

}  // namespace

std::uint64_t Network::parameter_count() const {
  std::uint64_t count = 0;
  for (const ParameterSpec& parameter : parameters) count += element_count(parameter.shape);
  return count;
}

Network network_of(const NetworkDescription& description,
                   const std::map<std::string, std::uint64_t>& symbols) {
  return Binding(description, symbols).network();
}

}  // namespace sim
