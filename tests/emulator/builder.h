#pragma once
/// From one statement of PTX to one instruction: what the tables of instruction families are written against.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/program.h"
#include "tests/emulator/ptx_text.h"
#include "tests/emulator/types.h"

namespace emulator {

/// mul.wide.u32 as "mul" and the words behind it, which are taken one by one; what nobody took is an error.
class Opcode {
 public:
  explicit Opcode(std::string_view text);
  std::string_view base() const { return base_; }

  /// Whether the word is there; takes it.
  bool take(std::string_view word);
  /// Takes all of them that are there: words without meaning here, such as hints of caching.
  void ignore(std::initializer_list<std::string_view> words);
  /// The first of `words` that is there, or none; takes it.
  std::optional<std::size_t> take_one_of(std::span<const std::string_view> words);
  /// The first type among the words; takes it. Type::none if there is none.
  Type take_type();
  Type first_type() const;
  /// The first word, which is taken, or an empty one.
  std::string_view take_word();
  /// Throws Unsupported if words are left.
  void finish() const;

 private:
  std::string_view base_;
  std::vector<std::string_view> words_;
};

/// The places of names; made by the compiler of a function.
class Names {
 public:
  struct Register {
    Slot slot;
    Type type;
  };
  virtual ~Names() = default;
  virtual Slot new_register(Type type) = 0;
  virtual Slot constant(int bytes, std::uint64_t bits) = 0;
  virtual std::optional<Register> find_register(std::string_view name) = 0;
  struct Place {
    Space space;
    std::uint64_t address;
  };
  /// Where a variable's first byte is.
  virtual Place address_of(std::string_view variable) = 0;
  /// The immediate of the instruction that is built becomes the label's place.
  virtual void jump_to(std::string_view label) = 0;
  /// The number of the list of places that .branchtargets of that label declares.
  virtual std::uint32_t branch_targets_of(std::string_view label) = 0;
  /// An instruction that is executed just before the one that is built, under its guard.
  virtual void emit_before(Instruction instruction) = 0;
  virtual void emit_after(Instruction instruction) = 0;
  /// A call's moves of arguments and of results, as numbers in Program::copies; its immediate becomes the function's
  /// place.
  struct Call {
    std::uint32_t arguments;
    std::uint32_t results;
  };
  virtual Call call(std::string_view function, std::span<const Operand> arguments,
                    std::span<const Operand> results) = 0;
};

class Builder {
 public:
  Builder(const Statement& statement, Names& names, Instruction& out)
      : opcode(statement.opcode), statement(statement), names(names), out(out) {}

  Opcode opcode;
  const Statement& statement;
  Names& names;
  Instruction& out;

  const Operand& operand(std::size_t index) const;
  std::size_t operand_count() const { return statement.operands.size(); }
  /// The slot of a source: a register of the type's size, an integer or floating literal, a symbol's address.
  Slot source(const Operand& operand, Type type);
  Slot source(std::size_t index, Type type) { return source(operand(index), type); }
  /// The slot of a destination; _ is a slot that nobody reads.
  Slot destination(const Operand& operand, Type type);
  Slot destination(std::size_t index, Type type) { return destination(operand(index), type); }
  /// at[0] = destination, at[1] ... = sources, all of these types.
  void operands(std::initializer_list<Type> types);
  /// at[slot] = base register (or a zero), immediate = offset of a memory operand; its space if it names a variable.
  std::optional<Space> address(std::size_t index, int slot);
  /// The registers of a vector, or of a single operand, as 1 element.
  std::vector<Slot> vector(std::size_t index, Type type, bool is_destination, std::size_t size = 0);

  /// .rn .rz .rm .rp, nearest if there is none.
  void take_rounding();
  void take_flags();  ///< .ftz .sat .relu .NaN

  [[noreturn]] void refuse(const std::string& why) const;
};

/// Whose handler it is.
struct Row {
  std::string_view base;
  std::uint32_t types;  ///< a bit for each Type
  Handler (*build)(Builder&);
};

constexpr std::uint32_t set_of(std::initializer_list<Type> types) {
  std::uint32_t result = 0;
  for (const Type type : types) result |= 1u << static_cast<int>(type);
  return result;
}
inline constexpr std::uint32_t any_type = ~0u;
inline constexpr std::uint32_t integer_types =
    set_of({Type::b8, Type::u8, Type::s8, Type::b16, Type::u16, Type::s16, Type::b32, Type::u32, Type::s32,
            Type::b64, Type::u64, Type::s64});
inline constexpr std::uint32_t half_types = set_of({Type::f16, Type::f16x2});
inline constexpr std::uint32_t float_types = set_of({Type::f32, Type::f64});

// One table for each family.
std::span<const Row> integer_rows();
std::span<const Row> bit_rows();
std::span<const Row> comparison_rows();
std::span<const Row> floating_rows();
std::span<const Row> half_rows();
std::span<const Row> approximation_rows();
std::span<const Row> conversion_rows();
std::span<const Row> move_rows();
std::span<const Row> memory_rows();
std::span<const Row> atomic_rows();
std::span<const Row> warp_rows();
std::span<const Row> control_rows();
std::span<const Row> matrix_move_rows();
std::span<const Row> mma_rows();
std::span<const Row> wmma_rows();
std::span<const Row> asynchronous_copy_rows();
std::span<const Row> wgmma_rows();

/// The handler of the statement that `builder` holds; the rest of its instruction is filled in.
Handler build(Builder& builder);

}  // namespace emulator
