#pragma once
/// PTX as text: a module's variables and functions, and the statements of a function's body.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/types.h"

namespace emulator {

/// Reads tokens of text without comments; throws Unsupported with the text where one is missing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// The next character that is not white space, 0 at the end.
  char peek();
  bool at_end() { return peek() == 0; }
  /// Whether the next token is `token`, which is then passed.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  /// A name: letters, digits, _ $ %, and dots within one that begins with a dot or %.
  std::string_view name();
  /// A number with an optional sign: decimal, 0x, 0f, 0d. Floating literals are their codes.
  std::int64_t integer();
  /// All up to `end`, which is passed; not trimmed.
  std::string_view until(char end);
  /// The contents of a { } block whose opening brace has been passed; its closing brace is passed.
  std::string_view block();
  void skip_line() { until('\n'); }
  std::size_t position() const { return at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// `text` with comments as blanks.
std::string without_comments(std::string_view text);

enum class Space { generic, global, constant, shared, local, parameter };

struct Initializer {
  std::int64_t value = 0;
  std::string symbol;  ///< to whose address `value` is added, if not empty
};

/// .space .align n .type name[count] = {...};
struct Variable {
  std::string_view name{};
  Space space = Space::global;
  Type type = Type::b8;
  std::uint64_t alignment = 1;
  std::uint64_t size = 0;  ///< bytes; 0 for .extern .shared name[]
  bool external = false;
  std::vector<Initializer> initializers{};
};

/// A variable's declaration behind its space's name, up to its end , ; or ).
Variable parse_variable(Scanner& scanner, Space space);

struct Function {
  std::string_view name{};
  bool is_entry = false;
  std::vector<Variable> results{};
  std::vector<Variable> parameters{};
  int max_threads = 1024;
  std::string_view body{};  ///< without its braces; empty for a declaration
};

/// A module split into its parts; views are into `text`, which must outlive it.
struct ModuleText {
  int target = 0;                      ///< 90 for sm_90a, too
  bool architecture_specific = false;  ///< sm_90a
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

ModuleText parse_module(std::string_view text_without_comments);

struct Operand {
  enum class Kind { name, integer, memory, vector, list, sink };
  Kind kind = Kind::integer;
  std::string_view name{};    ///< of a register, symbol or label; of memory: the base, or empty
  std::string_view second{};  ///< q of p|q
  std::int64_t value = 0;     ///< of an integer; what is added to a name or an address
  int literal_bytes = 0;      ///< 4 of 0f..., 8 of 0d...
  bool negated = false;       ///< !p
  std::vector<Operand> elements{};
};

/// @guard opcode operands;
struct Statement {
  std::string_view guard{};
  bool guard_negated = false;
  std::string_view opcode{};
  std::vector<Operand> operands{};
  std::string_view text{};
};

/// One statement without its semicolon.
Statement parse_statement(std::string_view text);

}  // namespace emulator
