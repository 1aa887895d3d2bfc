/// AArch64's half instructions, scalar and vector, with those that widen or convert, and those of bfloat16.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/aarch64_rules.h"
#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/inputs.h"

#ifdef __aarch64__
#include <arm_neon.h>
#include <sys/auxv.h>

#include "experiments/cpu/instructions/executed.h"
#endif

namespace experiments::validate_cpu {
namespace {

using namespace aarch64;
using fp16::Predicate;
using validation::domain_called;
using validation::half_number;
using validation::NumberKind;

#ifdef __aarch64__

/// FPCR and FPSR (Arm ARM C5.2.8, C5.2.10).
class Control {
 public:
  explicit Control(const Mode& mode) {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    std::uint64_t bits = mode.flushes_halves << 19 | mode.reads_wide_as_zero << 24 | mode.default_nan << 25 |
                         mode.alternative_half << 26;
    if (mode.rounding == Rounding::toward_positive) bits |= 1U << 22;
    if (mode.rounding == Rounding::toward_negative) bits |= 2U << 22;
    if (mode.rounding == Rounding::toward_zero) bits |= 3U << 22;
    asm volatile("msr fpcr, %0" : : "r"(bits));
  }
  ~Control() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void clear() const { asm volatile("msr fpsr, xzr"); }
  Exceptions raised() const {
    std::uint64_t status = 0;
    asm volatile("mrs %0, fpsr" : "=r"(status));
    constexpr std::pair<int, Exceptions> bits[] = {{0, invalid},  {1, divide_by_zero},
                                                   {2, overflow}, {3, underflow},
                                                   {4, inexact},  {7, subnormal_operand}};
    Exceptions raised = 0;
    for (const auto& [bit, exception] : bits)
      raised |= static_cast<Exceptions>((status >> bit & 1) * exception);
    return raised;
  }

 private:
  std::uint64_t before_ = 0;
};

using Half = __fp16;
using Halves = uint16x8_t;
using Word = std::uint32_t;
using Long = std::uint64_t;

/// The number of the processor and its maker (Arm ARM D19.2, MIDR_EL1), which Linux lets programs read.
std::uint64_t main_identity() {
  std::uint64_t identity = 0;
  asm volatile("mrs %0, midr_el1" : "=r"(identity));
  return identity;
}

#define EXECUTE(lanes, ...) executed<Control, lanes, [] __VA_ARGS__>
#else
#define EXECUTE(lanes, ...) nullptr
#endif

// Instructions by the registers that they take: halves in scalar and vector registers, sums in a vector of either width,
// conditions, and integers in general registers.
// clang-format off
#define HALF_1(name) EXECUTE(1, (Half a) { \
  Half y; asm volatile(name " %h0, %h1" : "=w"(y) : "w"(a)); return y; })
#define HALF_2(name) EXECUTE(1, (Half a, Half b) { \
  Half y; asm volatile(name " %h0, %h1, %h2" : "=w"(y) : "w"(a), "w"(b)); return y; })
#define HALF_3(name) EXECUTE(1, (Half a, Half b, Half c) { \
  Half y; asm volatile(name " %h0, %h1, %h2, %h3" : "=w"(y) : "w"(a), "w"(b), "w"(c)); return y; })
#define HALVES_1(name, more) EXECUTE(8, (Halves a) { \
  Halves y; asm volatile(name " %0.8h, %1.8h" more : "=w"(y) : "w"(a)); return y; })
#define HALVES_2(name) EXECUTE(8, (Halves a, Halves b) { \
  Halves y; asm volatile(name " %0.8h, %1.8h, %2.8h" : "=w"(y) : "w"(a), "w"(b)); return y; })
#define HALVES_ADDED(name) EXECUTE(8, (Halves a, Halves b, Halves c) { \
  asm volatile(name " %0.8h, %1.8h, %2.8h" : "+w"(c) : "w"(a), "w"(b)); return c; })
#define CONDITIONS_2(name) EXECUTE(1, (Half a, Half b) { \
  Long y; asm volatile(name " %h1, %h2\n\tmrs %0, nzcv" : "=r"(y) : "w"(a), "w"(b) : "cc"); \
  return static_cast<std::uint16_t>(y >> 28); })
#define CONDITIONS_1(name) EXECUTE(1, (Half a) { \
  Long y; asm volatile(name " %h1, #0.0\n\tmrs %0, nzcv" : "=r"(y) : "w"(a) : "cc"); \
  return static_cast<std::uint16_t>(y >> 28); })
#define TO_WORD(name) EXECUTE(1, (Half a) { \
  Word y; asm volatile(name " %w0, %h1" : "=r"(y) : "w"(a)); return y; })
#define TO_LONG(name) EXECUTE(1, (Half a) { \
  Long y; asm volatile(name " %x0, %h1" : "=r"(y) : "w"(a)); return y; })
#define FROM_WORD(name) EXECUTE(1, (Word a) { \
  Half y; asm volatile(name " %h0, %w1" : "=w"(y) : "r"(a)); return y; })
#define FROM_LONG(name) EXECUTE(1, (Long a) { \
  Half y; asm volatile(name " %h0, %x1" : "=w"(y) : "r"(a)); return y; })
#define CONVERTED(To, From, text) EXECUTE(1, (From a) { \
  To y; asm volatile(text : "=w"(y) : "w"(a)); return y; })
#define CONVERTED_4(To, From, text) EXECUTE(4, (From a) { \
  To y; asm volatile(text : "=w"(y) : "w"(a)); return y; })
#define SINGLES_ADDED(name) EXECUTE(4, (uint16x4_t a, uint16x4_t b, uint32x4_t c) { \
  asm volatile(name " %0.4s, %1.4h, %2.4h" : "+w"(c) : "w"(a), "w"(b)); return c; })
#define SINGLES_ADDED_2(name) EXECUTE(4, (uint16x4_t a, uint16x4_t b, uint32x4_t c) { \
  const uint16x8_t x = vcombine_u16(b, a), z = vcombine_u16(a, b); \
  asm volatile(name " %0.4s, %1.4h, %2.4h" : "+w"(c) : "w"(x), "w"(z)); return c; })
#define BFLOATS_ADDED(name, place) EXECUTE(4, (uint16x4_t a, uint16x4_t b, uint32x4_t c) { \
  const uint32x4_t x = vshlq_n_u32(vmovl_u16(a), place), z = vshlq_n_u32(vmovl_u16(b), place); \
  asm volatile(name " %0.4s, %1.8h, %2.8h" : "+w"(c) : "w"(x), "w"(z)); return c; })
#define DOTS_ADDED EXECUTE(4, (uint32x4_t a, uint32x4_t b, uint32x4_t c) { \
  asm volatile("bfdot %0.4s, %1.8h, %2.8h" : "+w"(c) : "w"(a), "w"(b)); return c; })
#define MATRIX_DIAGONAL EXECUTE(2, (uint64x2_t a, uint64x2_t b, uint32x2_t c) { \
  uint32x4_t sums = {c[0], 0, 0, c[1]}; \
  asm volatile("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(sums) : "w"(a), "w"(b)); \
  return uint32x2_t{sums[0], sums[3]}; })
#define MATRIX_OTHER_DIAGONAL EXECUTE(2, (uint64x2_t a, uint64x2_t b, uint32x2_t c) { \
  uint32x4_t sums = {0, c[0], c[1], 0}; \
  asm volatile("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(sums) : "w"(a), "w"(vextq_u64(b, b, 1))); \
  return uint32x2_t{sums[1], sums[2]}; })
// clang-format on

constexpr Mode plain{};
constexpr Mode upward{.name = "toward_positive", .rounding = Rounding::toward_positive};
constexpr Mode downward{.name = "toward_negative", .rounding = Rounding::toward_negative};
constexpr Mode truncating{.name = "toward_zero", .rounding = Rounding::toward_zero};
constexpr Mode flushing{.name = "FZ16", .flushes_halves = true};
constexpr Mode flushing_wide{.name = "FZ", .reads_wide_as_zero = true};
constexpr Mode with_default_nan{.name = "DN", .default_nan = true};
constexpr Mode alternative{.name = "AHP", .alternative_half = true};
constexpr Mode alternative_upward{
    .name = "AHP toward_positive", .rounding = Rounding::toward_positive, .alternative_half = true};
constexpr Mode alternative_downward{
    .name = "AHP toward_negative", .rounding = Rounding::toward_negative, .alternative_half = true};
constexpr Mode alternative_truncating{
    .name = "AHP toward_zero", .rounding = Rounding::toward_zero, .alternative_half = true};

using Modes = std::vector<Mode>;
const Modes all_modes{plain, upward, downward, truncating, flushing, with_default_nan};
const Modes without_rounding{plain, flushing, with_default_nan};
const Modes of_comparisons{plain, flushing};
const Modes of_sums{plain, upward, downward, truncating};
const Modes of_conversions{plain, upward, downward, truncating, flushing, with_default_nan, flushing_wide};

constexpr std::string_view nan_rule =
    "of NaN operands the first signalling one is returned, else the first, quieted (FPProcessNaNs)";
constexpr std::string_view nan_and_flush_rule =
    "of NaN operands the first signalling one is returned, else the first, quieted (FPProcessNaNs), and a "
    "result that "
    "FZ16 flushes raises underflow alone (FPRoundBase)";
constexpr std::string_view addend_rule =
    "a NaN addend comes before NaN factors (FPProcessNaNs3), and a quiet one with an infinity times zero is "
    "invalid "
    "(FPMulAdd)";
constexpr std::string_view addend_and_flush_rule =
    "a NaN addend comes before NaN factors (FPProcessNaNs3), a quiet one with an infinity times zero is "
    "invalid "
    "(FPMulAdd), and a result that FZ16 flushes raises underflow alone (FPRoundBase)";
constexpr std::string_view flush_wide_rule = "a subnormal operand is a zero, which IDC tells (FPUnpackCV)";
constexpr std::string_view alternative_rule =
    "NaNs become zeros, infinities and overflow the largest number, with invalid alone (FPConvert, "
    "FPRoundBase)";

constexpr std::string_view half_arithmetic = "FEAT_FP16", base = "", widening = "FEAT_FHM",
                           bfloat = "FEAT_BF16";

constexpr NumberType half_mask{NumberKind::unsigned_integer, 16}, conditions{NumberKind::unsigned_integer, 4};
constexpr NumberType single_number{.bits = 32}, double_number{.bits = 64};
constexpr NumberType alternative_number{NumberKind::alternative_half, 16};

constexpr NumberType bfloats(int bits) {
  return {NumberKind::bfloat16, bits};
}

/// Singles that halves are added to are not flushed.
std::string_view rule_when_flushing(const Instruction& row) {
  if (row.rule == nan_rule) return nan_and_flush_rule;
  if (row.rule == addend_rule && row.result.bits == 16) return addend_and_flush_rule;
  return row.rule;
}

class List {
 public:
  /// A row for each mode.
  void append(const Instruction& instruction, const Modes& modes) {
    for (const Mode& mode : modes) {
      rows_.push_back(instruction);
      Instruction& row = rows_.back();
      row.mode = mode;
      if (!mode.name.empty()) row.name += ", " + std::string(mode.name);
      if (mode.flushes_halves) row.rule = rule_when_flushing(row);
      if (mode.reads_wide_as_zero) row.rule = flush_wide_rule;
      if (mode.default_nan && row.rule == nan_rule) row.rule = {};
    }
  }

  /// The scalar and the vector form of two halves.
  void append_pair(const std::string& name, std::string_view group, Model model, Execute scalar,
                   Execute vector, const Modes& modes, NumberType result = half_number,
                   std::string_view rule = nan_rule) {
    append_both({.name = name,
                 .group = group,
                 .domain = &domain_called("pairs"),
                 .model = model,
                 .result = result,
                 .rule = rule},
                scalar, " h, h, h", vector, " 8h, 8h, 8h", modes);
  }

  void append_unary(const std::string& name, std::string_view group, Model model, Execute scalar,
                    Execute vector, const Modes& modes) {
    append_both({.name = name, .group = group, .domain = &domain_called("codes"), .model = model}, scalar,
                " h, h", vector, " 8h, 8h", modes);
  }

  std::vector<Instruction> take() { return std::move(rows_); }

 private:
  /// The row's name goes on with the registers of each form.
  void append_both(Instruction row, Execute scalar, const char* scalar_registers, Execute vector,
                   const char* vector_registers, const Modes& modes) {
    row.needs = half_arithmetic;
    Instruction wide = row;
    row.name += scalar_registers;
    row.execute = scalar;
    append(row, modes);
    wide.name += vector_registers;
    wide.lanes = 8;
    wide.execute = vector;
    append(wide, modes);
  }

  std::vector<Instruction> rows_;
};

void append_arithmetic(List& list) {
  constexpr std::string_view group = "arithmetic";
  list.append_pair("fadd", group, binary<fp16::add<binary16>>, HALF_2("fadd"), HALVES_2("fadd"), all_modes);
  list.append_pair("fsub", group, binary<fp16::subtract<binary16>>, HALF_2("fsub"), HALVES_2("fsub"),
                   all_modes);
  list.append_pair("fabd", group, binary<fp16::subtract<binary16>, After::absolute>, HALF_2("fabd"),
                   HALVES_2("fabd"), all_modes);
  list.append_pair("fmul", group, binary<fp16::multiply<binary16>>, HALF_2("fmul"), HALVES_2("fmul"),
                   all_modes);
  list.append_pair("fmulx", group, binary<multiply_extended>, HALF_2("fmulx"), HALVES_2("fmulx"), all_modes);
  list.append({.name = "fnmul h, h, h",
               .group = group,
               .domain = &domain_called("pairs"),
               .model = binary<fp16::multiply<binary16>, After::negate>,
               .execute = HALF_2("fnmul"),
               .needs = half_arithmetic,
               .rule = nan_rule},
              all_modes);
  list.append_pair("fdiv", group, binary<fp16::divide<binary16>>, HALF_2("fdiv"), HALVES_2("fdiv"),
                   all_modes);
  list.append_unary("fsqrt", group, unary<fp16::sqrt<binary16>>, HALF_1("fsqrt"), HALVES_1("fsqrt", ""),
                    all_modes);
}

void append_fused(List& list) {
  const auto append = [&](std::string name, Model model, int lanes, Execute execute) {
    Instruction row{.name = std::move(name),
                    .group = "fused multiply-add",
                    .domain = &domain_called("triples"),
                    .model = model,
                    .lanes = lanes,
                    .execute = execute,
                    .needs = half_arithmetic,
                    .rule = addend_rule};
    list.append(row, all_modes);
    row.name += ", specials";
    row.domain = &special_triples;
    list.append(row, all_modes);
  };
  append("fmadd h, h, h, h", fused<Negated::none>, 1, HALF_3("fmadd"));
  append("fmsub h, h, h, h", fused<Negated::product>, 1, HALF_3("fmsub"));
  append("fnmadd h, h, h, h", fused<Negated::both>, 1, HALF_3("fnmadd"));
  append("fnmsub h, h, h, h", fused<Negated::addend>, 1, HALF_3("fnmsub"));
  append("fmla 8h, 8h, 8h", fused<Negated::none>, 8, HALVES_ADDED("fmla"));
  append("fmls 8h, 8h, 8h", fused<Negated::product>, 8, HALVES_ADDED("fmls"));
}

void append_extrema(List& list) {
  constexpr std::string_view group = "minimum, maximum";
  list.append_pair("fmax", group, binary<fp16::maximum<binary16>>, HALF_2("fmax"), HALVES_2("fmax"),
                   without_rounding);
  list.append_pair("fmin", group, binary<fp16::minimum<binary16>>, HALF_2("fmin"), HALVES_2("fmin"),
                   without_rounding);
  list.append_pair("fmaxnm", group, binary<fp16::max_num<binary16>>, HALF_2("fmaxnm"), HALVES_2("fmaxnm"),
                   without_rounding);
  list.append_pair("fminnm", group, binary<fp16::min_num<binary16>>, HALF_2("fminnm"), HALVES_2("fminnm"),
                   without_rounding);
}

void append_comparisons(List& list) {
  constexpr std::string_view group = "comparison";
  const auto append_conditions = [&](const std::string& name, Model model, Execute pair, Execute zero) {
    const Instruction row{.name = name + " h, h",
                          .group = group,
                          .domain = &domain_called("pairs"),
                          .model = model,
                          .result = conditions,
                          .execute = pair,
                          .needs = half_arithmetic};
    list.append(row, of_comparisons);
    Instruction with_zero = row;
    with_zero.name = name + " h, #0.0";
    with_zero.domain = &domain_called("codes");
    with_zero.execute = zero;
    list.append(with_zero, of_comparisons);
  };
  append_conditions("fcmp", compared<false>, CONDITIONS_2("fcmp"), CONDITIONS_1("fcmp"));
  append_conditions("fcmpe", compared<true>, CONDITIONS_2("fcmpe"), CONDITIONS_1("fcmpe"));
  const auto append_mask = [&](const std::string& name, Model model, Execute scalar, Execute vector) {
    list.append_pair(name, group, model, scalar, vector, of_comparisons, half_mask, {});
  };
  append_mask("fcmeq", compared_to_mask<Predicate::equal>, HALF_2("fcmeq"), HALVES_2("fcmeq"));
  append_mask("fcmge", compared_to_mask<Predicate::greater_equal>, HALF_2("fcmge"), HALVES_2("fcmge"));
  append_mask("fcmgt", compared_to_mask<Predicate::greater>, HALF_2("fcmgt"), HALVES_2("fcmgt"));
  append_mask("facge", compared_to_mask<Predicate::greater_equal, true>, HALF_2("facge"), HALVES_2("facge"));
  append_mask("facgt", compared_to_mask<Predicate::greater, true>, HALF_2("facgt"), HALVES_2("facgt"));
  const auto append_zero = [&](const std::string& name, Model model, Execute execute) {
    list.append({.name = name + " 8h, 8h, #0.0",
                 .group = group,
                 .domain = &domain_called("codes"),
                 .model = model,
                 .result = half_mask,
                 .lanes = 8,
                 .execute = execute,
                 .needs = half_arithmetic},
                of_comparisons);
  };
  append_zero("fcmeq", compared_to_mask<Predicate::equal>, HALVES_1("fcmeq", ", #0.0"));
  append_zero("fcmge", compared_to_mask<Predicate::greater_equal>, HALVES_1("fcmge", ", #0.0"));
  append_zero("fcmgt", compared_to_mask<Predicate::greater>, HALVES_1("fcmgt", ", #0.0"));
  append_zero("fcmle", compared_to_mask<Predicate::less_equal>, HALVES_1("fcmle", ", #0.0"));
  append_zero("fcmlt", compared_to_mask<Predicate::less>, HALVES_1("fcmlt", ", #0.0"));
}

void append_float_conversions(List& list) {
  const auto append = [&](std::string name, const Domain& domain, Model model, NumberType from, NumberType to,
                          int lanes, Execute execute, const Modes& modes, std::string_view needs = base,
                          std::string_view rule = {}) {
    list.append({.name = std::move(name),
                 .group = "floating-point conversion",
                 .domain = &domain,
                 .model = model,
                 .operands = {from},
                 .result = to,
                 .lanes = lanes,
                 .execute = execute,
                 .needs = needs,
                 .rule = rule},
                modes);
  };
  constexpr const Domain& codes = domain_called("codes");
  constexpr const Domain& singles = domain_called("singles");
  constexpr const Domain& doubles = domain_called("doubles");
  const Modes widenings{plain, flushing, with_default_nan},
      narrow_alternative{alternative, alternative_upward, alternative_downward, alternative_truncating};
  append("fcvt s, h", codes, converted<binary32, binary16>, half_number, single_number, 1,
         CONVERTED(float, Half, "fcvt %s0, %h1"), widenings);
  append("fcvt d, h", codes, converted<fp16::binary64, binary16>, half_number, double_number, 1,
         CONVERTED(double, Half, "fcvt %d0, %h1"), widenings);
  append("fcvt h, s", singles, converted<binary16, binary32>, single_number, half_number, 1,
         CONVERTED(Half, float, "fcvt %h0, %s1"), of_conversions);
  append("fcvt h, d", doubles, converted<binary16, fp16::binary64>, double_number, half_number, 1,
         CONVERTED(Half, double, "fcvt %h0, %d1"), of_conversions);
  append("fcvtl 4s, 4h", codes, converted<binary32, binary16>, half_number, single_number, 4,
         CONVERTED_4(uint32x4_t, uint16x4_t, "fcvtl %0.4s, %1.4h"), widenings);
  append("fcvtn 4h, 4s", singles, converted<binary16, binary32>, single_number, half_number, 4,
         CONVERTED_4(uint16x4_t, uint32x4_t, "fcvtn %0.4h, %1.4s"), of_conversions);
  append("bfcvt h, s", singles, converted<bfloat16, binary32>, single_number, bfloats(16), 1,
         CONVERTED(Half, float, "bfcvt %h0, %s1"), of_sums, bfloat);
  append("fcvt s, h", codes, converted_from_alternative<binary32>, alternative_number, single_number, 1,
         CONVERTED(float, Half, "fcvt %s0, %h1"), {alternative});
  append("fcvt d, h", codes, converted_from_alternative<fp16::binary64>, alternative_number, double_number, 1,
         CONVERTED(double, Half, "fcvt %d0, %h1"), {alternative});
  append("fcvtl 4s, 4h", codes, converted_from_alternative<binary32>, alternative_number, single_number, 4,
         CONVERTED_4(uint32x4_t, uint16x4_t, "fcvtl %0.4s, %1.4h"), {alternative});
  append("fcvt h, s", singles, converted_to_alternative<binary32>, single_number, alternative_number, 1,
         CONVERTED(Half, float, "fcvt %h0, %s1"), narrow_alternative, base, alternative_rule);
  append("fcvt h, d", doubles, converted_to_alternative<fp16::binary64>, double_number, alternative_number, 1,
         CONVERTED(Half, double, "fcvt %h0, %d1"), narrow_alternative, base, alternative_rule);
  append("fcvtn 4h, 4s", singles, converted_to_alternative<binary32>, single_number, alternative_number, 4,
         CONVERTED_4(uint16x4_t, uint32x4_t, "fcvtn %0.4h, %1.4s"), narrow_alternative, base,
         alternative_rule);
}

/// FCVT<rounding>S and U, to all integers.
template <Rounding rounding>
void append_to_integers(List& list, const std::string& name, const std::array<Execute, 8>& forms) {
  const auto append = [&](std::string text, Model model, NumberKind kind, int bits, int lanes,
                          Execute execute) {
    list.append({.name = std::move(text),
                 .group = "integer conversion",
                 .domain = &domain_called("codes"),
                 .model = model,
                 .result = {kind, bits},
                 .lanes = lanes,
                 .execute = execute,
                 .needs = half_arithmetic},
                of_comparisons);
  };
  constexpr auto whole = NumberKind::signed_integer, natural = NumberKind::unsigned_integer;
  append(name + "s w, h", to_integer<std::int32_t, rounding>, whole, 32, 1, forms[0]);
  append(name + "u w, h", to_integer<std::uint32_t, rounding>, natural, 32, 1, forms[1]);
  append(name + "s x, h", to_integer<std::int64_t, rounding>, whole, 64, 1, forms[2]);
  append(name + "u x, h", to_integer<std::uint64_t, rounding>, natural, 64, 1, forms[3]);
  append(name + "s h, h", to_integer<std::int16_t, rounding>, whole, 16, 1, forms[4]);
  append(name + "u h, h", to_integer<std::uint16_t, rounding>, natural, 16, 1, forms[5]);
  append(name + "s 8h, 8h", to_integer<std::int16_t, rounding>, whole, 16, 8, forms[6]);
  append(name + "u 8h, 8h", to_integer<std::uint16_t, rounding>, natural, 16, 8, forms[7]);
}

#define TO_INTEGERS(name)                                                                         \
  {                                                                                               \
    TO_WORD(name "s"), TO_WORD(name "u"), TO_LONG(name "s"), TO_LONG(name "u"), HALF_1(name "s"), \
        HALF_1(name "u"), HALVES_1(name "s", ""), HALVES_1(name "u", "")                          \
  }

void append_integer_conversions(List& list) {
  append_to_integers<Rounding::nearest_even>(list, "fcvtn", TO_INTEGERS("fcvtn"));
  append_to_integers<Rounding::nearest_away>(list, "fcvta", TO_INTEGERS("fcvta"));
  append_to_integers<Rounding::toward_positive>(list, "fcvtp", TO_INTEGERS("fcvtp"));
  append_to_integers<Rounding::toward_negative>(list, "fcvtm", TO_INTEGERS("fcvtm"));
  append_to_integers<Rounding::toward_zero>(list, "fcvtz", TO_INTEGERS("fcvtz"));
  const auto append = [&](std::string name, const Domain& domain, Model model, NumberType from, int lanes,
                          Execute execute) {
    list.append({.name = std::move(name),
                 .group = "integer conversion",
                 .domain = &domain,
                 .model = model,
                 .operands = {from},
                 .lanes = lanes,
                 .execute = execute,
                 .needs = half_arithmetic},
                of_sums);
  };
  constexpr auto whole = NumberKind::signed_integer, natural = NumberKind::unsigned_integer;
  constexpr const Domain& codes = domain_called("codes");
  constexpr const Domain& words = domain_called("words");
  constexpr const Domain& longs = domain_called("long_words");
  append("scvtf h, w", words, from_integer<std::int32_t>, {whole, 32}, 1, FROM_WORD("scvtf"));
  append("ucvtf h, w", words, from_integer<std::uint32_t>, {natural, 32}, 1, FROM_WORD("ucvtf"));
  append("scvtf h, x", longs, from_integer<std::int64_t>, {whole, 64}, 1, FROM_LONG("scvtf"));
  append("ucvtf h, x", longs, from_integer<std::uint64_t>, {natural, 64}, 1, FROM_LONG("ucvtf"));
  append("scvtf h, h", codes, from_integer<std::int16_t>, {whole, 16}, 1, HALF_1("scvtf"));
  append("ucvtf h, h", codes, from_integer<std::uint16_t>, {natural, 16}, 1, HALF_1("ucvtf"));
  append("scvtf 8h, 8h", codes, from_integer<std::int16_t>, {whole, 16}, 8, HALVES_1("scvtf", ""));
  append("ucvtf 8h, 8h", codes, from_integer<std::uint16_t>, {natural, 16}, 8, HALVES_1("ucvtf", ""));
}

void append_integral(List& list) {
  constexpr std::string_view group = "rounding to integers";
  const auto append = [&](const std::string& name, Model model, Execute scalar, Execute vector,
                          const Modes& modes) {
    list.append_unary(name, group, model, scalar, vector, modes);
  };
  append("frintn", unary<integral<Rounding::nearest_even>>, HALF_1("frintn"), HALVES_1("frintn", ""),
         without_rounding);
  append("frinta", unary<integral<Rounding::nearest_away>>, HALF_1("frinta"), HALVES_1("frinta", ""),
         without_rounding);
  append("frintp", unary<integral<Rounding::toward_positive>>, HALF_1("frintp"), HALVES_1("frintp", ""),
         without_rounding);
  append("frintm", unary<integral<Rounding::toward_negative>>, HALF_1("frintm"), HALVES_1("frintm", ""),
         without_rounding);
  append("frintz", unary<integral<Rounding::toward_zero>>, HALF_1("frintz"), HALVES_1("frintz", ""),
         without_rounding);
  append("frinti", unary<fp16::round_to_integral<binary16>>, HALF_1("frinti"), HALVES_1("frinti", ""),
         all_modes);
  append("frintx", unary<fp16::round_to_integral_exact<binary16>>, HALF_1("frintx"), HALVES_1("frintx", ""),
         all_modes);
}

void append_wide_sums(List& list) {
  const auto append = [&](std::string name, std::string_view group, const Domain& domain, Model model,
                          NumberType factor, int lanes, Execute execute, std::string_view needs,
                          std::string_view rule, const Modes& modes) {
    list.append({.name = std::move(name),
                 .group = group,
                 .domain = &domain,
                 .model = model,
                 .operands = {factor, factor, single_number},
                 .result = single_number,
                 .lanes = lanes,
                 .execute = execute,
                 .needs = needs,
                 .rule = rule},
                modes);
  };
  constexpr std::string_view halves = "halves added to FP32";
  append("fmlal 4s, 4h, 4h", halves, half_products, widening_fused<false>, half_number, 4,
         SINGLES_ADDED("fmlal"), widening, addend_rule, all_modes);
  append("fmlal2 4s, 4h, 4h", halves, half_products, widening_fused<false>, half_number, 4,
         SINGLES_ADDED_2("fmlal2"), widening, addend_rule, all_modes);
  append("fmlsl 4s, 4h, 4h", halves, half_products, widening_fused<true>, half_number, 4,
         SINGLES_ADDED("fmlsl"), widening, addend_rule, all_modes);
  append("fmlsl2 4s, 4h, 4h", halves, half_products, widening_fused<true>, half_number, 4,
         SINGLES_ADDED_2("fmlsl2"), widening, addend_rule, all_modes);
  constexpr std::string_view brains = "bfloat16 added to FP32";
  constexpr std::string_view dot_rule =
      "every step is rounded to odd, subnormal numbers are zeros, FPCR and FPSR play no part (BFDotAdd)";
  const Modes of_products{plain, upward, downward, truncating, with_default_nan}, of_dots{plain, upward};
  append("bfmlalb 4s, 8h, 8h", brains, bfloat_products, bfloat_fused, bfloats(16), 4,
         BFLOATS_ADDED("bfmlalb", 0), bfloat, addend_rule, of_products);
  append("bfmlalt 4s, 8h, 8h", brains, bfloat_products, bfloat_fused, bfloats(16), 4,
         BFLOATS_ADDED("bfmlalt", 16), bfloat, addend_rule, of_products);
  append("bfdot 4s, 8h, 8h", brains, bfloat_dots_of_2, bfloat_dot<1>, bfloats(32), 4, DOTS_ADDED, bfloat,
         dot_rule, of_dots);
  append("bfmmla 4s, 8h, 8h, diagonal", brains, bfloat_dots_of_4, bfloat_dot<2>, bfloats(64), 2,
         MATRIX_DIAGONAL, bfloat, dot_rule, of_dots);
  append("bfmmla 4s, 8h, 8h, other diagonal", brains, bfloat_dots_of_4, bfloat_dot<2>, bfloats(64), 2,
         MATRIX_OTHER_DIAGONAL, bfloat, dot_rule, of_dots);
}

}  // namespace

const std::vector<Instruction>& aarch64_instructions() {
  static const std::vector<Instruction> rows = [] {
    List list;
    append_arithmetic(list);
    append_fused(list);
    append_extrema(list);
    append_comparisons(list);
    append_float_conversions(list);
    append_integer_conversions(list);
    append_integral(list);
    append_wide_sums(list);
    return list.take();
  }();
  return rows;
}

#ifdef __aarch64__

bool aarch64_has(std::string_view feature) {
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  constexpr unsigned long fphp = 1 << 9, asimdhp = 1 << 10, asimdfhm = 1 << 23,
                          bf16 = 1 << 14;  // <asm/hwcap.h>
  if (feature == half_arithmetic) return (first & fphp) != 0 && (first & asimdhp) != 0;
  if (feature == widening) return (first & asimdfhm) != 0;
  if (feature == bfloat) return (second & bf16) != 0;
  return feature.empty();
}

std::string processor_model() {
  struct Part {
    std::uint64_t maker, part;
    std::string_view name;
  };
  // From Linux's arch/arm64/include/asm/cputype.h; QEMU's `max` calls itself Q of no maker (target/arm/cpu64.c).
  constexpr Part parts[] = {{0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd08, "Cortex-A72"},
                            {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"},
                            {0x41, 0xd40, "Neoverse-V1"}, {0x41, 0xd49, "Neoverse-N2"},
                            {0x41, 0xd4f, "Neoverse-V2"}, {0xc0, 0xac3, "Ampere-1"}};
  const std::uint64_t identity = main_identity(), maker = identity >> 24 & 0xFF, part = identity >> 4 & 0xFFF;
  if (maker == 0 && part == 0x051) return emulator_called("QEMU");
  for (const Part& each : parts) {
    if (each.maker == maker && each.part == part) return std::string(each.name);
  }
  const auto digits = [](std::uint64_t number) {
    constexpr std::string_view hexadecimal = "0123456789abcdef";
    std::string text;
    for (int shift = 8; shift >= 0; shift -= 4) text += hexadecimal[number >> shift & 15];
    return text;
  };
  return "implementer 0x" + digits(maker) + ", part 0x" + digits(part);
}

#else

bool aarch64_has(std::string_view) {
  return false;
}

#endif

}  // namespace experiments::validate_cpu
