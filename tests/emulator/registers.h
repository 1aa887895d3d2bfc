#pragma once
/// Registers that are wider than the values in them, as ld, st and cvt allow.

#include "tests/emulator/builder.h"
#include "tests/emulator/warp.h"

namespace emulator {

struct WideRegister {
  Slot slot = no_slot;
  std::uint32_t bytes = 0;
};

inline WideRegister wide_destination(Builder& builder, const Operand& operand, Type type) {
  const auto found = builder.names.find_register(operand.name);
  if (operand.kind == Operand::Kind::sink) return {builder.names.new_register(Type::b64), 8};
  if (!found || found->type == Type::pred) builder.refuse("destination: a register is expected");
  if (bytes_of(found->type) < bytes_of(type)) builder.refuse("the destination is too small");
  return {found->slot, static_cast<std::uint32_t>(bytes_of(found->type))};
}

inline WideRegister wide_source(Builder& builder, const Operand& operand, Type type) {
  const auto found =
      operand.kind == Operand::Kind::name ? builder.names.find_register(operand.name) : std::nullopt;
  if (!found) return {builder.source(operand, type), static_cast<std::uint32_t>(bytes_of(type))};
  if (found->type == Type::pred || bytes_of(found->type) < bytes_of(type))
    builder.refuse("register " + std::string(operand.name) + " is too small");
  return {found->slot, static_cast<std::uint32_t>(bytes_of(found->type))};
}

/// A register's bits, whatever their number.
class RegisterView {
 public:
  RegisterView(Warp& warp, Slot slot, std::uint32_t bytes) : data_(warp.at(slot)), bytes_(bytes) {}
  RegisterView(Warp& warp, WideRegister reg) : RegisterView(warp, reg.slot, reg.bytes) {}

  std::uint64_t get(int lane) const {
    switch (bytes_) {
      case 1:
        return as<std::uint8_t>()[lane];
      case 2:
        return as<std::uint16_t>()[lane];
      case 4:
        return as<std::uint32_t>()[lane];
      default:
        return as<std::uint64_t>()[lane];
    }
  }
  void set(int lane, std::uint64_t value) const {
    switch (bytes_) {
      case 1:
        as<std::uint8_t>()[lane] = static_cast<std::uint8_t>(value);
        break;
      case 2:
        as<std::uint16_t>()[lane] = static_cast<std::uint16_t>(value);
        break;
      case 4:
        as<std::uint32_t>()[lane] = static_cast<std::uint32_t>(value);
        break;
      default:
        as<std::uint64_t>()[lane] = value;
    }
  }

 private:
  template <typename Code>
  Code* as() const {
    return reinterpret_cast<Code*>(data_);
  }
  std::byte* data_;
  std::uint32_t bytes_;
};

}  // namespace emulator
