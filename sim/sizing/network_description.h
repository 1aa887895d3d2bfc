#pragma once
/// Networks as text describes them, operators, shapes and repeats in terms of symbols, and as they are once
/// the symbols have values.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/models/model.h"
#include "sim/sizing/network_operations.h"

namespace toml {
inline namespace v3 {
class table;
}
}  // namespace toml

namespace sim {

/// A text of a description, and where it stands.
struct DescribedText {
  std::string text;
  std::size_t line = 0;
};

/// An operator before its shapes are known.
struct DescribedOperator {
  std::string name;  ///< within its block
  std::string operation;
  /// Names of operators before it in the block, "x" being what enters the block; empty: the one before it.
  std::vector<std::string> inputs;
  std::map<std::string, DescribedText> sizes;  ///< by name, as expressions
  std::string weights_of;                      ///< "block.operator", whose weight it shares; empty: its own
  bool recompute = false;                      ///< selective recomputation runs it again in backward
  std::size_t line = 0;
};

/// Operators in their order, the last of which gives what enters the next block or repetition.
struct DescribedBlock {
  std::string name;
  DescribedText repeat;  ///< an expression
  /// Full recomputation keeps what enters each repetition and nothing in it. True of blocks that say how
  /// often they repeat, be it once.
  bool is_checkpoint = false;
  std::vector<DescribedOperator> operators;
  std::size_t line = 0;
};

/// An expression is a product of whole numbers and symbols: "4*hidden", "3".
struct NetworkDescription {
  std::string file;  ///< for errors
  std::string name;
  std::string source;
  std::map<std::string, std::uint64_t> symbols;  ///< and their defaults
  std::map<std::string, DescribedText> limits;   ///< of symbols: expressions that they do not exceed
  std::vector<DescribedText> input_shape;        ///< expressions
  bool input_is_indices = false;                 ///< tokens: they take no part in arithmetic or memory
  std::vector<DescribedBlock> blocks;
};

/// The network that a TOML file describes; `file` is its name in errors:
///
///     name = "two layers"
///     source = "where it is published"
///     [symbols]
///     batch = 128
///     [input]
///     shape = ["batch", 784]
///     [[blocks]]
///     name = "hidden"
///     repeat = 2
///     operators = [
///       { name = "linear", operation = "linear", features = 512 },
///       { name = "relu", operation = "relu" },
///     ]
///
/// Further keys: a table `limits`, in which `sequence = "positions"` lets no sequence be longer than that; `indices = true`
/// of the input; `inputs`, `weights_of`, `recompute` and sizes of an operator.
/// Throws std::runtime_error in one line, "FILE:LINE: ...", what was found and what is allowed.
NetworkDescription read_network(const toml::table& root, const std::string& file);

/// A network whose shapes are numbers, repetitions written out.
struct Network {
  /// Value 0 is the network's input, value i + 1 the output of operators[i].
  using ValueIndex = std::size_t;

  struct Operator {
    std::string name;             ///< "encoder.query"
    std::size_t description = 0;  ///< the same for all repetitions; in the order of the file
    std::size_t repetition = 0;   ///< from 0
    std::size_t block = 0;        ///< counts repetitions of all blocks
    bool in_checkpoint = false;   ///< DescribedBlock::is_checkpoint
    bool recompute = false;
    const NetworkOperation* operation = nullptr;
    OperatorShape shape = {};
    std::vector<ValueIndex> inputs;
    std::vector<std::size_t> parameters;  ///< their indices; a shared one stands at each operator
  };

  std::string name;
  std::string source;
  std::map<std::string, std::uint64_t> symbols;  ///< as bound
  Shape input;
  bool input_is_indices = false;
  std::vector<Operator> operators;
  std::vector<ParameterSpec>
      parameters;  ///< names with the number of the repetition: "encoder3.query.weight"
  std::vector<ParameterSpec> buffers;

  std::uint64_t parameter_count() const;
};

/// The network for these values of its symbols, defaults where none is given. Throws std::invalid_argument in one line for a
/// symbol that is unknown or above its limit, and std::runtime_error, "FILE:LINE: operator ...", for what does not fit:
/// unknown names, shapes, sizes, or more than 10,000 operators, 2^56 elements or 2^60 FLOP in all.
Network network_of(const NetworkDescription& description,
                   const std::map<std::string, std::uint64_t>& symbols = {});

}  // namespace sim
