#include "tests/emulator/ptx_text.h"

#include <cctype>

namespace emulator {

namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

Space space_named(std::string_view name) {
  if (name == ".const") return Space::constant;
  if (name == ".shared") return Space::shared;
  if (name == ".local") return Space::local;
  if (name == ".param") return Space::parameter;
  return Space::global;
}

bool is_space_name(std::string_view name) {
  return name == ".global" || space_named(name) != Space::global;
}

void parse_initializers(Scanner& scanner, Variable& variable) {
  if (scanner.accept("{")) {
    while (!scanner.accept("}")) {
      parse_initializers(scanner, variable);
      scanner.accept(",");
    }
    return;
  }
  Initializer one;
  const char next = scanner.peek();
  if (std::isdigit(static_cast<unsigned char>(next)) || next == '-') {
    one.value = scanner.integer();
  } else {
    const bool generic = scanner.accept("generic");
    if (generic) scanner.expect("(");
    one.symbol = scanner.name();
    if (scanner.accept("+")) one.value = scanner.integer();
    if (generic) scanner.expect(")");
  }
  variable.initializers.push_back(one);
}

std::vector<Variable> parse_parameters(Scanner& scanner) {
  std::vector<Variable> result;
  while (!scanner.accept(")")) {
    const std::string_view space = scanner.name();
    if (space != ".param" && space != ".reg") throw Unsupported("PTX: parameter in " + std::string(space));
    result.push_back(parse_variable(scanner, Space::parameter));
    scanner.accept(",");
  }
  return result;
}

/// Behind .entry or .func.
Function parse_function(Scanner& scanner, bool is_entry) {
  Function result{.is_entry = is_entry};
  if (scanner.accept("(")) result.results = parse_parameters(scanner);
  result.name = scanner.name();
  if (scanner.accept("(")) result.parameters = parse_parameters(scanner);
  while (true) {
    if (scanner.accept(";")) return result;
    if (scanner.accept("{")) break;
    const std::string_view directive = scanner.name();
    if (directive == ".maxntid") {
      result.max_threads = 1;
      do result.max_threads *= static_cast<int>(scanner.integer());
      while (scanner.accept(","));
    } else {
      while (std::isdigit(static_cast<unsigned char>(scanner.peek()))) {
        scanner.integer();
        scanner.accept(",");
      }
    }
  }
  result.body = scanner.block();
  return result;
}

void parse_target(Scanner& scanner, ModuleText& module) {
  const std::string_view target = scanner.name();  // sm_90a
  if (!target.starts_with("sm_")) throw Unsupported("PTX: target " + std::string(target));
  module.target = std::stoi(std::string(target.substr(3)));
  module.architecture_specific = std::isalpha(static_cast<unsigned char>(target.back())) != 0;
  while (scanner.accept(",")) scanner.name();
}

Operand parse_operand(Scanner& scanner);

Operand parse_list(Scanner& scanner, Operand::Kind kind, std::string_view end) {
  Operand result{.kind = kind};
  while (!scanner.accept(end)) {
    result.elements.push_back(parse_operand(scanner));
    scanner.accept(",");
  }
  return result;
}

std::int64_t parse_offset(Scanner& scanner) {
  if (scanner.accept("+")) return scanner.integer();
  return scanner.peek() == '-' ? scanner.integer() : 0;
}

Operand parse_operand(Scanner& scanner) {
  if (scanner.accept("[")) {
    Operand result{.kind = Operand::Kind::memory};
    if (!std::isdigit(static_cast<unsigned char>(scanner.peek()))) result.name = scanner.name();
    result.value = result.name.empty() ? scanner.integer() : parse_offset(scanner);
    scanner.expect("]");
    return result;
  }
  if (scanner.accept("{")) return parse_list(scanner, Operand::Kind::vector, "}");
  if (scanner.accept("(")) return parse_list(scanner, Operand::Kind::list, ")");
  if (scanner.accept("!")) {
    Operand result = parse_operand(scanner);
    result.negated = true;
    return result;
  }
  const char next = scanner.peek();
  if (next == '-' || std::isdigit(static_cast<unsigned char>(next))) {
    Scanner ahead = scanner;
    ahead.accept("-");
    Operand result{.kind = Operand::Kind::integer};
    if (ahead.accept("0f") || ahead.accept("0F"))
      result.literal_bytes = 4;
    else if (ahead.accept("0d") || ahead.accept("0D"))
      result.literal_bytes = 8;
    result.value = scanner.integer();
    return result;
  }
  Operand result{.kind = Operand::Kind::name, .name = scanner.name()};
  if (result.name == "_") result.kind = Operand::Kind::sink;
  if (scanner.accept("|")) {
    result.second = scanner.name();
  } else {
    result.value = parse_offset(scanner);
  }
  return result;
}

}  // namespace

Type type_named(std::string_view name) {
  constexpr std::string_view names[] = {"",      "pred", "b8",  "u8",  "s8",  "b16", "u16", "s16", "f16",
                                        "f16x2", "b32",  "u32", "s32", "f32", "b64", "u64", "s64", "f64"};
  for (int i = 1; i < static_cast<int>(std::size(names)); ++i) {
    if (names[i] == name) return static_cast<Type>(i);
  }
  return Type::none;
}

char Scanner::peek() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Scanner::accept(std::string_view token) {
  peek();
  if (!text_.substr(at_).starts_with(token)) return false;
  at_ += token.size();
  return true;
}

void Scanner::expect(std::string_view token) {
  if (!accept(token))
    throw Unsupported("PTX: expected '" + std::string(token) + "' at '" + std::string(text_.substr(at_, 40)) +
                      "'");
}

std::string_view Scanner::name() {
  const char first = peek();
  const std::size_t begin = at_;
  const bool dotted = first == '.' || first == '%';
  if (first == '.') ++at_;
  while (at_ < text_.size() && (in_name(text_[at_]) || (dotted && text_[at_] == '.' && first == '%'))) ++at_;
  if (at_ == begin) throw Unsupported("PTX: expected a name at '" + std::string(text_.substr(at_, 40)) + "'");
  return text_.substr(begin, at_ - begin);
}

std::int64_t Scanner::integer() {
  const bool negative = accept("-");
  peek();
  const std::size_t begin = at_;
  while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_]))) ++at_;
  std::string digits(text_.substr(begin, at_ - begin));
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && std::isalpha(static_cast<unsigned char>(digits[1]))) {
    base = digits[1] == 'b' || digits[1] == 'B' ? 2 : 16;
    digits.erase(0, 2);
  }
  if (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.pop_back();
  std::size_t used = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(digits, &used, base);
  } catch (const std::exception&) {
  }
  if (digits.empty() || used != digits.size())
    throw Unsupported("PTX: expected a number at '" + std::string(text_.substr(begin, 40)) + "'");
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::string_view Scanner::until(char end) {
  const std::size_t begin = at_;
  const std::size_t found = text_.find(end, begin);
  at_ = found == std::string_view::npos ? text_.size() : found + 1;
  return text_.substr(begin, (found == std::string_view::npos ? text_.size() : found) - begin);
}

std::string_view Scanner::block() {
  const std::size_t begin = at_;
  for (int depth = 1; at_ < text_.size(); ++at_) {
    if (text_[at_] == '{') ++depth;
    if (text_[at_] == '}' && --depth == 0) return text_.substr(begin, at_++ - begin);
  }
  throw Unsupported("PTX: a block is not closed");
}

std::string without_comments(std::string_view text) {
  std::string result(text);
  for (std::size_t i = 0; i + 1 < result.size(); ++i) {
    if (result[i] == '"') {
      i = result.find('"', i + 1);
      if (i == std::string::npos) break;
    } else if (result[i] == '/' && (result[i + 1] == '/' || result[i + 1] == '*')) {
      const bool line = result[i + 1] == '/';
      std::size_t end = result.find(line ? "\n" : "*/", i);
      end = end == std::string::npos ? result.size() : end + (line ? 0 : 2);
      for (; i < end; ++i) result[i] = ' ';
      --i;
    }
  }
  return result;
}

Variable parse_variable(Scanner& scanner, Space space) {
  Variable result{.space = space};
  while (scanner.peek() == '.') {
    const std::string_view word = scanner.name();
    if (word == ".align") {
      result.alignment = static_cast<std::uint64_t>(scanner.integer());
    } else if (const Type type = type_named(word.substr(1)); type != Type::none) {
      result.type = type;
    } else if (word == ".ptr") {  // of a kernel's parameter: says what it points to
      while (scanner.peek() == '.') {
        if (scanner.name() == ".align") scanner.integer();
      }
    }
  }
  const auto element = static_cast<std::uint64_t>(bytes_of(result.type));
  result.alignment = std::max(result.alignment, element);
  result.name = scanner.name();
  result.size = element;
  while (scanner.accept("[")) {
    if (scanner.accept("]")) {
      result.size = 0;
      continue;
    }
    result.size *= static_cast<std::uint64_t>(scanner.integer());
    scanner.expect("]");
  }
  if (scanner.accept("=")) parse_initializers(scanner, result);
  return result;
}

ModuleText parse_module(std::string_view text) {
  Scanner scanner(text);
  ModuleText result;
  bool external = false;
  while (!scanner.at_end()) {
    const std::string_view directive = scanner.name();
    if (directive == ".target") {
      parse_target(scanner, result);
    } else if (directive == ".entry" || directive == ".func") {
      result.functions.push_back(parse_function(scanner, directive == ".entry"));
      external = false;
    } else if (is_space_name(directive)) {
      result.variables.push_back(parse_variable(scanner, space_named(directive)));
      result.variables.back().external = external;
      scanner.expect(";");
      external = false;
    } else if (directive == ".section") {
      scanner.until('{');
      scanner.block();
    } else if (directive == ".extern" || directive == ".common") {
      external = true;
    } else if (directive == ".visible" || directive == ".weak") {
      continue;
    } else if (directive == ".pragma" || directive == ".alias") {
      scanner.until(';');
    } else {
      scanner.skip_line();  // .version, .address_size, .file, .loc
    }
  }
  return result;
}

Statement parse_statement(std::string_view text) {
  Scanner scanner(text);
  Statement result{.text = text};
  if (scanner.accept("@")) {
    result.guard_negated = scanner.accept("!");
    result.guard = scanner.name();
  }
  scanner.peek();
  const std::size_t begin = scanner.position();
  std::size_t end = begin;
  while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end])) && text[end] != ';') ++end;
  result.opcode = text.substr(begin, end - begin);
  Scanner operands(text.substr(end));
  while (!operands.at_end()) {
    result.operands.push_back(parse_operand(operands));
    operands.accept(",");
  }
  return result;
}

}  // namespace emulator
