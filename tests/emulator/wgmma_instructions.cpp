/// wgmma.mma_async.m64nNk16 of binary16 operands, its fences and groups. Each warp of a warpgroup makes its own 16
/// rows. A product is calculated when it is issued; until the wait that covers it its accumulators hold poison, and
/// then its operands must be what they were.

#include <algorithm>
#include <charconv>

#include "tests/emulator/builder.h"
#include "tests/emulator/rendezvous.h"
#include "tests/emulator/wgmma_operands.h"

namespace emulator {

namespace {

constexpr std::uint32_t poison_word = 0xfdfdfdfd;

// at: a's descriptor or nothing, b's descriptor, whether d is added. vectors: d's registers, then a's.
struct Shape {
  explicit Shape(const Instruction& instruction) : code(static_cast<std::uint64_t>(instruction.immediate)) {}
  static std::int64_t encode(int columns, bool binary32, bool negate_a, bool negate_b, bool m_major,
                             bool n_major) {
    return columns | (binary32 << 16) | (negate_a << 17) | (negate_b << 18) | (m_major << 19) |
           (n_major << 20);
  }
  int columns() const { return static_cast<int>(code & 0xffff); }
  bool binary32() const { return code >> 16 & 1; }
  bool negate_a() const { return code >> 17 & 1; }
  bool negate_b() const { return code >> 18 & 1; }
  bool m_major() const { return code >> 19 & 1; }
  bool n_major() const { return code >> 20 & 1; }
  std::size_t registers() const { return static_cast<std::size_t>(columns()) / (binary32() ? 2 : 4); }
  std::uint64_t code;
};

using Values = std::vector<std::array<std::uint32_t, warp_size>>;

Values read_registers(Warp& warp, std::span<const Slot> slots) {
  Values values(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i)
    std::memcpy(values[i].data(), warp.at(slots[i]), sizeof values[i]);
  return values;
}
void write_registers(Warp& warp, std::span<const Slot> slots, const Values& values) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    std::memcpy(warp.at(slots[i]), values[i].data(), sizeof values[i]);
}

struct Operands {
  HalfTile a;
  HalfTile b_columns;
};

/// Where operands in shared memory lie.
struct Descriptors {
  MatrixDescriptor a;
  MatrixDescriptor b;
};

MatrixDescriptor read_descriptor(Warp& warp, Slot slot) {
  if (slot == no_slot) return MatrixDescriptor(0);
  const Lanes<std::uint64_t> codes(warp, slot);
  for (int lane = 1; lane < warp_size; ++lane) {
    if (codes[lane] != codes[0])
      throw Fault(FaultKind::launch_failure, "the lanes of a warp have different matrix descriptors");
  }
  return MatrixDescriptor(codes[0]);
}

Operands read_operands(Warp& warp, const Instruction& instruction, const Descriptors& descriptors) {
  const Shape shape(instruction);
  Operands result{HalfTile(16, 16),
                  read_operand(warp, descriptors.b, 0, shape.columns(), !shape.n_major(), shape.negate_b())};
  if (instruction.at[0] != no_slot) {
    result.a = read_operand(warp, descriptors.a, warp.index % 4 * 16, 16, !shape.m_major(), shape.negate_a());
    return result;
  }
  const Slot* const slots = instruction.vectors.data() + shape.registers();
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int i = 0; i < 8; ++i) {
      const std::uint16_t code = half_of(Lanes<std::uint32_t>(warp, slots[i / 2])[lane], i % 2);
      result.a(lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8) =
          shape.negate_a() ? code ^ 0x8000 : code;
    }
  }
  return result;
}

}  // namespace

struct WarpgroupProducts {
  struct Product {
    const Instruction* instruction;
    std::vector<Slot> accumulators;
    Descriptors descriptors;
    Operands operands;
    Values values;
    std::uint64_t group;
  };
  bool fenced = false;
  std::vector<std::uint64_t> registers_at_fence;
  std::uint64_t committed = 0;
  std::vector<Product> pending;
};

namespace {

WarpgroupProducts& products_of(Warp& warp) {
  if (warp.products == nullptr) warp.products = std::make_shared<WarpgroupProducts>();
  return *warp.products;
}

[[noreturn]] void fail(const std::string& what) {
  throw Fault(FaultKind::launch_failure, what);
}

void fence(Warp& warp, const Instruction&, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  products_of(warp).fenced = true;
  products_of(warp).registers_at_fence = warp.registers;
}

void check_fence(Warp& warp, std::span<const Slot> slots) {
  const WarpgroupProducts& products = products_of(warp);
  if (!products.fenced) fail("there is no wgmma.fence before it");
  const auto* fenced = reinterpret_cast<const std::byte*>(products.registers_at_fence.data());
  for (const Slot slot : slots) {
    if (std::memcmp(fenced + slot, warp.at(slot), slot_bytes(Type::b32)) != 0)
      fail("registers that it uses were written since the last wgmma.fence");
  }
}

/// The sums so far: those of the last product that is still pending on the same registers, if there is one.
Values take_sums(Warp& warp, const Instruction& instruction, std::span<const Slot> slots) {
  const auto& pending = products_of(warp).pending;
  for (auto product = pending.rbegin(); product != pending.rend(); ++product) {
    const bool same = std::ranges::equal(product->accumulators, slots);
    if (!same && std::ranges::find_first_of(product->accumulators, slots) != product->accumulators.end())
      fail("its accumulators are in part those of another product that is pending");
    if (same) return product->values;
  }
  const bool adds = Lanes<bool>(warp, instruction.at[2])[0];
  if (adds) check_fence(warp, slots);
  return read_registers(warp, slots);
}

void calculate(const Instruction& instruction, const Operands& operands, bool adds, Values& values) {
  const Shape shape(instruction);
  for_accumulators(shape.columns(), [&](int row, int column, int lane, int index) {
    const auto at = static_cast<std::size_t>(lane);
    if (shape.binary32()) {
      std::uint32_t& value = values[static_cast<std::size_t>(index)][at];
      value = multiply_add<fp16::binary32>(operands.a, row, operands.b_columns, column, adds ? value : 0);
    } else {
      std::uint32_t& codes = values[static_cast<std::size_t>(index / 2)][at];
      const std::uint16_t sum = adds ? half_of(codes, index % 2) : 0;
      codes = with_half(codes, index % 2,
                        multiply_add<fp16::binary16>(operands.a, row, operands.b_columns, column, sum));
    }
  });
}

void multiply(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  const Mask adds = warp.predicate(instruction.at[2]);
  if (adds != 0 && adds != ~Mask{0}) fail("the lanes of a warp differ in whether they add");
  WarpgroupProducts& products = products_of(warp);
  const std::span<const Slot> slots(instruction.vectors);
  const std::span<const Slot> accumulators = slots.first(Shape(instruction).registers());
  check_fence(warp, slots.subspan(accumulators.size()));
  const Descriptors descriptors{read_descriptor(warp, instruction.at[0]),
                                read_descriptor(warp, instruction.at[1])};
  Operands operands = read_operands(warp, instruction, descriptors);
  Values values = take_sums(warp, instruction, accumulators);
  calculate(instruction, operands, adds != 0, values);
  products.pending.push_back({&instruction,
                              {accumulators.begin(), accumulators.end()},
                              descriptors,
                              std::move(operands),
                              std::move(values),
                              products.committed});
  for (const Slot slot : accumulators)
    std::memset(warp.at(slot), static_cast<int>(poison), slot_bytes(Type::b32));
}

void commit(Warp& warp, const Instruction&, Mask mask) {
  if (rendezvous_of_all(warp, mask) != 0) ++products_of(warp).committed;
}

void finish_product(Warp& warp, const WarpgroupProducts::Product& product, bool is_last) {
  const Operands now = read_operands(warp, *product.instruction, product.descriptors);
  if (now.a.elements != product.operands.a.elements ||
      now.b_columns.elements != product.operands.b_columns.elements)
    fail("an operand of a wgmma was changed before the wait for it");
  if (!is_last) return;
  for (const auto& lanes : read_registers(warp, product.accumulators)) {
    if (std::ranges::any_of(lanes, [](std::uint32_t code) { return code != poison_word; }))
      fail("accumulators of a wgmma were written before the wait for it");
  }
  write_registers(warp, product.accumulators, product.values);
  auto* fenced = reinterpret_cast<std::byte*>(products_of(warp).registers_at_fence.data());
  for (std::size_t i = 0; i < product.accumulators.size(); ++i)
    std::memcpy(fenced + product.accumulators[i], product.values[i].data(), sizeof product.values[i]);
}

/// immediate: how many groups may be pending.
void wait_for_groups(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  WarpgroupProducts& products = products_of(warp);
  const auto allowed = static_cast<std::uint64_t>(instruction.immediate);
  const std::uint64_t unfinished = products.committed - std::min(products.committed, allowed);
  for (auto product = products.pending.begin(); product != products.pending.end(); ++product) {
    if (product->group >= unfinished) continue;
    const bool is_last = std::none_of(product + 1, products.pending.end(), [&](const auto& later) {
      return later.accumulators == product->accumulators;
    });
    finish_product(warp, *product, is_last);
  }
  std::erase_if(products.pending, [&](const auto& product) { return product.group < unfinished; });
}

/// 128 of m64n128k16.
int take_columns(Builder& builder) {
  const std::string_view word = builder.opcode.take_word();
  int columns = 0;
  if (!word.starts_with("m64n") || !word.ends_with("k16") ||
      std::from_chars(word.data() + 4, word.data() + word.size() - 3, columns).ptr !=
          word.data() + word.size() - 3 ||
      columns < 8 || columns > 256 || columns % 8 != 0)
    builder.refuse("the emulator does not know this shape of wgmma");
  return columns;
}

Handler build_product(Builder& builder) {
  Opcode& opcode = builder.opcode;
  const int columns = take_columns(builder);
  const Type d = opcode.take_type(), a = opcode.take_type(), b = opcode.take_type();
  opcode.finish();
  if (a != Type::f16 || b != Type::f16 || (d != Type::f32 && d != Type::f16))
    builder.refuse("the emulator does not know these types of wgmma");
  Instruction& out = builder.out;
  const bool a_in_registers = builder.operand(1).kind == Operand::Kind::vector;
  if (builder.operand_count() != (a_in_registers ? 7u : 8u))
    builder.refuse("the number of operands is wrong");
  const auto immediate = [&](std::size_t index) { return builder.operand(index).value; };
  const bool m_major = !a_in_registers && immediate(6) == 1;
  const bool n_major = immediate(a_in_registers ? 6 : 7) == 1;
  out.immediate =
      Shape::encode(columns, d == Type::f32, immediate(4) == -1, immediate(5) == -1, m_major, n_major);
  out.vectors = builder.vector(0, Type::b32, true, Shape(out).registers());
  if (a_in_registers) {
    const std::vector<Slot> slots = builder.vector(1, Type::b32, false, 4);
    out.vectors.insert(out.vectors.end(), slots.begin(), slots.end());
  } else {
    out.at[0] = builder.source(1, Type::b64);
  }
  out.at[1] = builder.source(2, Type::b64);
  out.at[2] = builder.source(3, Type::pred);
  return &multiply;
}

Handler build_wgmma(Builder& builder) {
  Opcode& opcode = builder.opcode;
  opcode.ignore({"sync", "aligned"});
  if (opcode.take("mma_async")) return build_product(builder);
  const bool fences = opcode.take("fence"), commits = opcode.take("commit_group");
  if (!fences && !commits && !opcode.take("wait_group"))
    builder.refuse("the emulator does not know this instruction");
  opcode.finish();
  if (fences) return &fence;
  if (commits) return &commit;
  builder.out.immediate = builder.operand(0).value;
  return &wait_for_groups;
}

constexpr Row rows[] = {{"wgmma", any_type, build_wgmma}};

}  // namespace

std::span<const Row> wgmma_rows() {
  return rows;
}

}  // namespace emulator
