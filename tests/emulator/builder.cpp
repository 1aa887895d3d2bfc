#include "tests/emulator/builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "tests/emulator/warp.h"

namespace emulator {

namespace {

std::uint64_t widened(std::uint32_t a) {
  return a;
}

}  // namespace

Opcode::Opcode(std::string_view text) {
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t dot = std::min(text.find('.', at), text.size());
    const std::string_view word = text.substr(at, dot - at);
    if (at == 0)
      base_ = word;
    else
      words_.push_back(word);
    at = dot + 1;
  }
}

bool Opcode::take(std::string_view word) {
  const auto found = std::ranges::find(words_, word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

void Opcode::ignore(std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) take(word);
}

std::optional<std::size_t> Opcode::take_one_of(std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (take(words[i])) return i;
  }
  return std::nullopt;
}

Type Opcode::first_type() const {
  for (const std::string_view word : words_) {
    if (const Type type = type_named(word); type != Type::none) return type;
  }
  return Type::none;
}

Type Opcode::take_type() {
  for (auto word = words_.begin(); word != words_.end(); ++word) {
    if (const Type type = type_named(*word); type != Type::none) {
      words_.erase(word);
      return type;
    }
  }
  return Type::none;
}

std::string_view Opcode::take_word() {
  if (words_.empty()) return {};
  const std::string_view word = words_.front();
  words_.erase(words_.begin());
  return word;
}

void Opcode::finish() const {
  if (!words_.empty())
    throw Unsupported("the emulator does not know ." + std::string(words_.front()) + " here");
}

void Builder::refuse(const std::string& why) const {
  throw Unsupported(why);
}

const Operand& Builder::operand(std::size_t index) const {
  if (index >= statement.operands.size()) refuse("an operand is missing");
  return statement.operands[index];
}

Slot Builder::source(const Operand& operand, Type type) {
  const int bytes = bytes_of(type);
  if (operand.kind == Operand::Kind::integer) {
    auto bits = static_cast<std::uint64_t>(operand.value);
    if (operand.literal_bytes == 8 && bytes == 4)
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    if (type == Type::pred) bits = bits != 0 ? ~Mask{0} : 0;
    return names.constant(type == Type::pred ? -1 : bytes, bits);
  }
  if (operand.kind != Operand::Kind::name) refuse("operand: a register or a number is expected");
  if (operand.name == "WARP_SZ") return names.constant(bytes, warp_size);
  const auto found = names.find_register(operand.name);
  if (!found) {
    const std::uint64_t address =
        names.address_of(operand.name).address + static_cast<std::uint64_t>(operand.value);
    return names.constant(bytes, address);
  }
  if (bytes_of(found->type) != bytes || (found->type == Type::pred) != (type == Type::pred))
    refuse("register " + std::string(operand.name) + " is not of " + std::to_string(bytes) + " bytes");
  if (!operand.negated) return found->slot;
  const Slot negated = names.new_register(Type::pred);
  names.emit_before({.execute = map<&opposite>, .at = {negated, found->slot}});
  return negated;
}

Slot Builder::destination(const Operand& operand, Type type) {
  if (operand.kind == Operand::Kind::sink) return names.new_register(type);
  const auto found = names.find_register(operand.name);
  if (operand.kind != Operand::Kind::name || !found) refuse("destination: a register is expected");
  if (bytes_of(found->type) != bytes_of(type) || (found->type == Type::pred) != (type == Type::pred))
    refuse("register " + std::string(operand.name) + " is not of " + std::to_string(bytes_of(type)) +
           " bytes");
  return found->slot;
}

void Builder::operands(std::initializer_list<Type> types) {
  opcode.finish();
  if (types.size() != operand_count())
    refuse(std::to_string(types.size()) + " operands are expected, not " + std::to_string(operand_count()));
  std::size_t index = 0;
  for (const Type type : types) {
    out.at[index] = index == 0 ? destination(index, type) : source(index, type);
    ++index;
  }
}

std::optional<Space> Builder::address(std::size_t index, int slot) {
  const Operand& memory = operand(index);
  if (memory.kind != Operand::Kind::memory) refuse("an address in [ ] is expected");
  auto& base = out.at[static_cast<std::size_t>(slot)];
  out.immediate = memory.value;
  if (memory.name.empty()) {
    base = names.constant(8, 0);
    return std::nullopt;
  }
  if (const auto found = names.find_register(memory.name)) {
    base = found->slot;
    if (bytes_of(found->type) == 8) return std::nullopt;
    if (bytes_of(found->type) != 4) refuse("an address has 32 or 64 bits");
    // Addresses of 32 bits are those of shared memory, and are widened.
    const Slot wide = names.new_register(Type::b64);
    names.emit_before({.execute = map<&widened>, .at = {wide, base}});
    base = wide;
    return std::nullopt;
  }
  const Names::Place place = names.address_of(memory.name);
  base = names.constant(8, place.address);
  return place.space;
}

std::vector<Slot> Builder::vector(std::size_t index, Type type, bool is_destination, std::size_t size) {
  const Operand& whole = operand(index);
  const std::vector<Operand> single{whole};
  const std::vector<Operand>& elements = whole.kind == Operand::Kind::vector ? whole.elements : single;
  if (size != 0 && elements.size() != size)
    refuse(std::to_string(size) + " registers are expected, not " + std::to_string(elements.size()));
  std::vector<Slot> result;
  for (const Operand& element : elements)
    result.push_back(is_destination ? destination(element, type) : source(element, type));
  return result;
}

void Builder::take_rounding() {
  constexpr std::array<std::string_view, 4> words{"rn", "rz", "rm", "rp"};
  if (const auto found = opcode.take_one_of(words)) out.modifiers.rounding = static_cast<Rounding>(*found);
}

void Builder::take_flags() {
  out.modifiers.ftz |= opcode.take("ftz");
  out.modifiers.saturate |= opcode.take("sat");
  out.modifiers.relu |= opcode.take("relu");
  out.modifiers.nan |= opcode.take("NaN");
}

namespace {

using Table = std::unordered_multimap<std::string_view, Row>;

const Table& table() {
  static const Table all = [] {
    Table result;
    for (const auto rows :
         {integer_rows, bit_rows, comparison_rows, floating_rows, half_rows, approximation_rows,
          conversion_rows, move_rows, memory_rows, atomic_rows, warp_rows, control_rows, matrix_move_rows,
          mma_rows, wmma_rows, asynchronous_copy_rows, wgmma_rows}) {
      for (const Row& row : rows()) result.emplace(row.base, row);
    }
    return result;
  }();
  return all;
}

}  // namespace

Handler build(Builder& builder) {
  const auto type = static_cast<int>(builder.opcode.first_type());
  const auto [first, last] = table().equal_range(builder.opcode.base());
  for (auto row = first; row != last; ++row) {
    if (row->second.types >> type & 1) return row->second.build(builder);
  }
  builder.refuse("the emulator does not know this instruction");
}

}  // namespace emulator
