/// RISC-V's half instructions (Zfh), each in the five roundings, and how registers box halves.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/inputs.h"
#include "experiments/cpu/instructions/riscv64_rules.h"

#ifdef __riscv
#include <setjmp.h>
#include <signal.h>

#include <fstream>

#include "experiments/cpu/instructions/executed.h"
#endif

namespace experiments::validate_cpu {
namespace {

using namespace riscv64;
using fp16::binary32;
using fp16::binary64;
using fp16::Predicate;
using fp16::Rounding;
using validation::domain_called;
using validation::half_number;
using validation::NumberKind;
using validation::truth;

#ifdef __riscv

std::uint64_t field_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero:
      return 1;
    case Rounding::toward_negative:
      return 2;
    case Rounding::toward_positive:
      return 3;
    case Rounding::nearest_away:
      return 4;
    default:
      return 0;
  }
}

/// fcsr: frm above fflags (F, Floating-Point Control and Status Register).
class Control {
 public:
  explicit Control(const Mode& mode) : Control(field_of(mode.rounding)) {}
  ~Control() { asm volatile("fscsr %0" : : "r"(before_)); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void clear() const { asm volatile("fsflags zero"); }
  Exceptions raised() const {
    std::uint64_t flags = 0;
    asm volatile("frflags %0" : "=r"(flags));
    constexpr std::pair<int, Exceptions> bits[] = {
        {0, inexact}, {1, underflow}, {2, overflow}, {3, divide_by_zero}, {4, invalid}};
    Exceptions raised = 0;
    for (const auto& [bit, exception] : bits)
      raised |= static_cast<Exceptions>((flags >> bit & 1) * exception);
    return raised;
  }

 protected:
  explicit Control(std::uint64_t frm) {
    asm volatile("frcsr %0" : "=r"(before_));
    asm volatile("fsrm %0" : : "r"(frm));
  }

 private:
  std::uint64_t before_ = 0;
};

/// For instructions with a rounding of their own: the register has another one.
class OtherControl : public Control {
 public:
  explicit OtherControl(const Mode& mode) : Control((field_of(mode.rounding) + 1) % 5) {}
};

using Half = std::uint16_t;
using Word = std::uint32_t;
using Long = std::uint64_t;

/// A register with these bits.
double held(Long bits) {
  double content;
  asm volatile("fmv.d.x %0, %1" : "=f"(content) : "r"(bits));
  return content;
}

Long bits_of(double content) {
  Long bits;
  asm volatile("fmv.x.d %0, %1" : "=r"(bits) : "f"(content));
  return bits;
}

#define ZFH(text) ".option push\n\t.option arch, +zfh\n\t" text "\n\t.option pop"
#define EXECUTE(Control, ...) executed<Control, 1, [] __VA_ARGS__>
#else
#define EXECUTE(Control, ...) nullptr
#endif

// Instructions by what they take and give. In registers halves are boxed unless a row is about that; Out is Half for a result
// as software reads it and Long for the whole register.
// clang-format off
#define FLOAT_1(Control, Out, text, in) EXECUTE(Control, (Half a) { \
  double y; asm volatile(ZFH(text) : "=f"(y) : "f"(held(in(a)))); return static_cast<Out>(bits_of(y)); })
#define FLOAT_2(Control, Out, text, first, second) EXECUTE(Control, (Half a, Half b) { \
  double y; asm volatile(ZFH(text) : "=f"(y) : "f"(held(first(a))), "f"(held(second(b)))); \
  return static_cast<Out>(bits_of(y)); })
#define FLOAT_3(Control, Out, text, third) EXECUTE(Control, (Half a, Half b, Half c) { \
  double y; asm volatile(ZFH(text) : "=f"(y) : "f"(held(boxed(a))), "f"(held(boxed(b))), "f"(held(third(c)))); \
  return static_cast<Out>(bits_of(y)); })
#define INTEGER_1(Control, Out, text, in) EXECUTE(Control, (Half a) { \
  Long y; asm volatile(ZFH(text) : "=r"(y) : "f"(held(in(a)))); return static_cast<Out>(y); })
#define INTEGER_2(text, first) EXECUTE(Control, (Half a, Half b) { \
  Long y; asm volatile(ZFH(text) : "=r"(y) : "f"(held(first(a))), "f"(held(boxed(b)))); return static_cast<Half>(y); })
#define FROM_INTEGER(Control, Out, In, text) EXECUTE(Control, (In a) { \
  double y; asm volatile(ZFH(text) : "=f"(y) : "r"(a)); return static_cast<Out>(bits_of(y)); })
#define NARROWED(Control, Out, In, text) EXECUTE(Control, (In a) { \
  double y; asm volatile(ZFH(text) : "=f"(y) : "f"(a)); return static_cast<Out>(bits_of(y)); })
#define WIDENED(Out, text, in) EXECUTE(Control, (Half a) { \
  Out y; asm volatile(ZFH(text) : "=f"(y) : "f"(held(in(a)))); return y; })
#define LOADED EXECUTE(Control, (Half a) { \
  double y; asm volatile(ZFH("flh %0, %1") : "=f"(y) : "m"(a)); return bits_of(y); })
#define STORED(in) EXECUTE(Control, (Half a) { \
  Half y; asm volatile(ZFH("fsh %1, %0") : "=m"(y) : "f"(held(in(a)))); return y; })
// clang-format on

constexpr Mode nearest_even{};
constexpr Mode rtz{.name = "rtz", .rounding = Rounding::toward_zero};
constexpr Mode rdn{.name = "rdn", .rounding = Rounding::toward_negative};
constexpr Mode rup{.name = "rup", .rounding = Rounding::toward_positive};
constexpr Mode rmm{.name = "rmm", .rounding = Rounding::nearest_away};

using Modes = std::vector<Mode>;
const Modes unrounded{nearest_even};
const Modes roundings{nearest_even, rtz, rdn, rup, rmm};

constexpr std::string_view invalid_rule =
    "an infinity times a zero is invalid even where a quiet NaN is added (F, fused multiply-add)";
constexpr std::string_view integer_rule =
    "a NaN becomes the largest integer; 32 bits, unsigned ones too, extend their sign (F, conversions)";
constexpr std::string_view box_rule =
    "a half whose register has other than ones above it counts as the canonical NaN (D, NaN boxing)";

constexpr std::string_view whole = "Zfh", moves = "Zfhmin";

constexpr NumberType signed_long{NumberKind::signed_integer, 64}, signed_word{NumberKind::signed_integer, 32},
    unsigned_word{NumberKind::unsigned_integer, 32}, unsigned_long{NumberKind::unsigned_integer, 64};
constexpr NumberType wide_register{NumberKind::unsigned_integer, 64};
constexpr NumberType single_number{.bits = 32}, double_number{.bits = 64};

using Rows = std::vector<Instruction>;

/// A row for each mode.
void append(Rows& rows, const Instruction& instruction, const Modes& modes) {
  for (const Mode& mode : modes) {
    rows.push_back(instruction);
    rows.back().mode = mode;
    if (!mode.name.empty()) rows.back().name += ", " + std::string(mode.name);
  }
}

void append_arithmetic(Rows& rows) {
  const auto append_2 = [&](const char* name, Model model, Execute execute) {
    append(rows,
           {.name = name,
            .group = "arithmetic",
            .domain = &domain_called("pairs"),
            .model = model,
            .execute = execute,
            .needs = whole},
           roundings);
  };
  append_2("fadd.h f, f, f", binary<fp16::add<binary16>>,
           FLOAT_2(Control, Half, "fadd.h %0, %1, %2, dyn", boxed, boxed));
  append_2("fsub.h f, f, f", binary<fp16::subtract<binary16>>,
           FLOAT_2(Control, Half, "fsub.h %0, %1, %2, dyn", boxed, boxed));
  append_2("fmul.h f, f, f", binary<fp16::multiply<binary16>>,
           FLOAT_2(Control, Half, "fmul.h %0, %1, %2, dyn", boxed, boxed));
  append_2("fdiv.h f, f, f", binary<fp16::divide<binary16>>,
           FLOAT_2(Control, Half, "fdiv.h %0, %1, %2, dyn", boxed, boxed));
  append(rows,
         {.name = "fsqrt.h f, f",
          .group = "arithmetic",
          .domain = &domain_called("codes"),
          .model = unary<fp16::sqrt<binary16>>,
          .execute = FLOAT_1(Control, Half, "fsqrt.h %0, %1, dyn", boxed),
          .needs = whole},
         roundings);
}

void append_fused(Rows& rows) {
  const auto append_3 = [&](const std::string& name, Model model, Execute execute) {
    Instruction row{.name = name,
                    .group = "fused multiply-add",
                    .domain = &domain_called("triples"),
                    .model = model,
                    .execute = execute,
                    .needs = whole};
    append(rows, row, roundings);
    row.name += ", specials";
    row.domain = &special_triples;
    row.rule = invalid_rule;
    append(rows, row, roundings);
  };
  append_3("fmadd.h f, f, f, f", fused<Negated::none>,
           FLOAT_3(Control, Half, "fmadd.h %0, %1, %2, %3, dyn", boxed));
  append_3("fmsub.h f, f, f, f", fused<Negated::addend>,
           FLOAT_3(Control, Half, "fmsub.h %0, %1, %2, %3, dyn", boxed));
  append_3("fnmsub.h f, f, f, f", fused<Negated::product>,
           FLOAT_3(Control, Half, "fnmsub.h %0, %1, %2, %3, dyn", boxed));
  append_3("fnmadd.h f, f, f, f", fused<Negated::both>,
           FLOAT_3(Control, Half, "fnmadd.h %0, %1, %2, %3, dyn", boxed));
}

void append_choices(Rows& rows) {
  const auto append_2 = [&](const char* name, std::string_view group, Model model, Execute execute,
                            NumberType result = half_number) {
    append(rows,
           {.name = name,
            .group = group,
            .domain = &domain_called("pairs"),
            .model = model,
            .result = result,
            .execute = execute,
            .needs = whole},
           unrounded);
  };
  append_2("fmin.h f, f, f", "minimum, maximum", binary<fp16::minimum_number<binary16>>,
           FLOAT_2(Control, Half, "fmin.h %0, %1, %2", boxed, boxed));
  append_2("fmax.h f, f, f", "minimum, maximum", binary<fp16::maximum_number<binary16>>,
           FLOAT_2(Control, Half, "fmax.h %0, %1, %2", boxed, boxed));
  append_2("feq.h x, f, f", "comparison", compared<Predicate::equal>, INTEGER_2("feq.h %0, %1, %2", boxed),
           truth);
  append_2("flt.h x, f, f", "comparison", compared<Predicate::less>, INTEGER_2("flt.h %0, %1, %2", boxed),
           truth);
  append_2("fle.h x, f, f", "comparison", compared<Predicate::less_equal>,
           INTEGER_2("fle.h %0, %1, %2", boxed), truth);
  append_2("fsgnj.h f, f, f", "signs and classes", sign_injected<Sign::same>,
           FLOAT_2(Control, Half, "fsgnj.h %0, %1, %2", boxed, boxed));
  append_2("fsgnjn.h f, f, f", "signs and classes", sign_injected<Sign::opposite>,
           FLOAT_2(Control, Half, "fsgnjn.h %0, %1, %2", boxed, boxed));
  append_2("fsgnjx.h f, f, f", "signs and classes", sign_injected<Sign::product>,
           FLOAT_2(Control, Half, "fsgnjx.h %0, %1, %2", boxed, boxed));
  append(rows,
         {.name = "fclass.h x, f",
          .group = "signs and classes",
          .domain = &domain_called("codes"),
          .model = classified,
          .result = {NumberKind::unsigned_integer, 16},
          .execute = INTEGER_1(Control, Half, "fclass.h %0, %1", boxed),
          .needs = whole},
         unrounded);
}

void append_float_conversions(Rows& rows) {
  const auto append_1 = [&](const char* name, const Domain& domain, Model model, NumberType from,
                            NumberType to, Execute execute, const Modes& modes) {
    append(rows,
           {.name = name,
            .group = "floating-point conversion",
            .domain = &domain,
            .model = model,
            .operands = {from},
            .result = to,
            .execute = execute,
            .needs = moves},
           modes);
  };
  append_1("fcvt.s.h f, f", domain_called("codes"), converted<binary32, binary16>, half_number, single_number,
           WIDENED(float, "fcvt.s.h %0, %1", boxed), unrounded);
  append_1("fcvt.d.h f, f", domain_called("codes"), converted<binary64, binary16>, half_number, double_number,
           WIDENED(double, "fcvt.d.h %0, %1", boxed), unrounded);
  append_1("fcvt.h.s f, f", domain_called("singles"), converted<binary16, binary32>, single_number,
           half_number, NARROWED(Control, Half, float, "fcvt.h.s %0, %1, dyn"), roundings);
  append_1("fcvt.h.d f, f", domain_called("doubles"), converted<binary16, binary64>, double_number,
           half_number, NARROWED(Control, Half, double, "fcvt.h.d %0, %1, dyn"), roundings);
}

void append_integer_conversions(Rows& rows) {
  const auto append_1 = [&](const char* name, const Domain& domain, Model model, NumberType from,
                            NumberType to, Execute execute, std::string_view rule) {
    append(rows,
           {.name = name,
            .group = "integer conversion",
            .domain = &domain,
            .model = model,
            .operands = {from},
            .result = to,
            .execute = execute,
            .needs = whole,
            .rule = rule},
           roundings);
  };
  constexpr const Domain& codes = domain_called("codes");
  constexpr const Domain& words = domain_called("words");
  constexpr const Domain& longs = domain_called("long_words");
  append_1("fcvt.w.h x, f", codes, to_integer<std::int32_t>, half_number, signed_long,
           INTEGER_1(Control, Long, "fcvt.w.h %0, %1, dyn", boxed), integer_rule);
  append_1("fcvt.wu.h x, f", codes, to_integer<std::uint32_t>, half_number, signed_long,
           INTEGER_1(Control, Long, "fcvt.wu.h %0, %1, dyn", boxed), integer_rule);
  append_1("fcvt.l.h x, f", codes, to_integer<std::int64_t>, half_number, signed_long,
           INTEGER_1(Control, Long, "fcvt.l.h %0, %1, dyn", boxed), integer_rule);
  append_1("fcvt.lu.h x, f", codes, to_integer<std::uint64_t>, half_number, unsigned_long,
           INTEGER_1(Control, Long, "fcvt.lu.h %0, %1, dyn", boxed), integer_rule);
  append_1("fcvt.h.w f, x", words, from_integer<std::int32_t>, signed_word, half_number,
           FROM_INTEGER(Control, Half, Word, "fcvt.h.w %0, %1, dyn"), {});
  append_1("fcvt.h.wu f, x", words, from_integer<std::uint32_t>, unsigned_word, half_number,
           FROM_INTEGER(Control, Half, Word, "fcvt.h.wu %0, %1, dyn"), {});
  append_1("fcvt.h.l f, x", longs, from_integer<std::int64_t>, signed_long, half_number,
           FROM_INTEGER(Control, Half, Long, "fcvt.h.l %0, %1, dyn"), {});
  append_1("fcvt.h.lu f, x", longs, from_integer<std::uint64_t>, unsigned_long, half_number,
           FROM_INTEGER(Control, Half, Long, "fcvt.h.lu %0, %1, dyn"), {});
}

/// The rounding stands in the instruction, and another one in the register.
void append_own_roundings(Rows& rows) {
  const auto append_one = [&](const char* name, const Domain& domain, Model model, NumberType from,
                              NumberType to, Execute execute, Rounding rounding, std::string_view rule = {}) {
    append(rows,
           {.name = name,
            .group = "rounding of the instruction",
            .domain = &domain,
            .model = model,
            .operands = {from, from, from},
            .result = to,
            .execute = execute,
            .needs = whole,
            .rule = rule},
           {Mode{.name = "whatever frm", .rounding = rounding}});
  };
#define OWN_ROUNDING(rm, rounding)                                                                         \
  append_one("fadd.h f, f, f, " rm, domain_called("pairs"), binary<fp16::add<binary16>>, half_number,      \
             half_number, FLOAT_2(OtherControl, Half, "fadd.h %0, %1, %2, " rm, boxed, boxed), rounding);  \
  append_one("fmadd.h f, f, f, f, " rm, domain_called("triples"), fused<Negated::none>, half_number,       \
             half_number, FLOAT_3(OtherControl, Half, "fmadd.h %0, %1, %2, %3, " rm, boxed), rounding);    \
  append_one("fcvt.h.s f, f, " rm, domain_called("singles"), converted<binary16, binary32>, single_number, \
             half_number, NARROWED(OtherControl, Half, float, "fcvt.h.s %0, %1, " rm), rounding);          \
  append_one("fcvt.w.h x, f, " rm, domain_called("codes"), to_integer<std::int32_t>, half_number,          \
             signed_long, INTEGER_1(OtherControl, Long, "fcvt.w.h %0, %1, " rm, boxed), rounding,          \
             integer_rule)
  OWN_ROUNDING("rne", Rounding::nearest_even);
  OWN_ROUNDING("rtz", Rounding::toward_zero);
  OWN_ROUNDING("rdn", Rounding::toward_negative);
  OWN_ROUNDING("rup", Rounding::toward_positive);
  OWN_ROUNDING("rmm", Rounding::nearest_away);
#undef OWN_ROUNDING
}

/// Every instruction that gives a half gives a boxed one.
void append_boxed_results(Rows& rows) {
  const auto append_one = [&](const char* name, const Domain& domain, Model model, NumberType from,
                              Execute execute, std::string_view needs = whole) {
    append(rows,
           {.name = std::string(name) + ", whole register",
            .group = "NaN boxing",
            .domain = &domain,
            .model = model,
            .operands = {from, from, from},
            .result = wide_register,
            .execute = execute,
            .needs = needs},
           unrounded);
  };
  constexpr const Domain& codes = domain_called("codes");
  constexpr const Domain& pairs = domain_called("pairs");
  append_one("fadd.h f, f, f", pairs, boxed_result<binary<fp16::add<binary16>>>, half_number,
             FLOAT_2(Control, Long, "fadd.h %0, %1, %2", boxed, boxed));
  append_one("fmul.h f, f, f", pairs, boxed_result<binary<fp16::multiply<binary16>>>, half_number,
             FLOAT_2(Control, Long, "fmul.h %0, %1, %2", boxed, boxed));
  append_one("fdiv.h f, f, f", pairs, boxed_result<binary<fp16::divide<binary16>>>, half_number,
             FLOAT_2(Control, Long, "fdiv.h %0, %1, %2", boxed, boxed));
  append_one("fmin.h f, f, f", pairs, boxed_result<binary<fp16::minimum_number<binary16>>>, half_number,
             FLOAT_2(Control, Long, "fmin.h %0, %1, %2", boxed, boxed));
  append_one("fsgnj.h f, f, f", pairs, boxed_result<sign_injected<Sign::same>>, half_number,
             FLOAT_2(Control, Long, "fsgnj.h %0, %1, %2", boxed, boxed));
  append_one("fsqrt.h f, f", codes, boxed_result<unary<fp16::sqrt<binary16>>>, half_number,
             FLOAT_1(Control, Long, "fsqrt.h %0, %1", boxed));
  append_one("fmadd.h f, f, f, f", domain_called("triples"), boxed_result<fused<Negated::none>>, half_number,
             FLOAT_3(Control, Long, "fmadd.h %0, %1, %2, %3", boxed));
  append_one("fcvt.h.s f, f", domain_called("singles"), boxed_result<converted<binary16, binary32>>,
             single_number, NARROWED(Control, Long, float, "fcvt.h.s %0, %1"), moves);
  append_one("fcvt.h.d f, f", domain_called("doubles"), boxed_result<converted<binary16, binary64>>,
             double_number, NARROWED(Control, Long, double, "fcvt.h.d %0, %1"), moves);
  append_one("fcvt.h.w f, x", domain_called("words"), boxed_result<from_integer<std::int32_t>>, signed_word,
             FROM_INTEGER(Control, Long, Word, "fcvt.h.w %0, %1"));
  append_one("fmv.h.x f, x", codes, boxed_result<moved>, half_number,
             FROM_INTEGER(Control, Long, Half, "fmv.h.x %0, %1"), moves);
  append_one("flh f, m", codes, boxed_result<moved>, half_number, LOADED, moves);
}

/// A half that is not boxed is the canonical NaN, but for what moves bits.
void append_unboxed_operands(Rows& rows) {
  const auto append_one = [&](const char* name, const Domain& domain, Model model, NumberType to,
                              Execute execute, std::string_view needs = whole,
                              std::string_view rule = box_rule) {
    append(rows,
           {.name = name,
            .group = "NaN boxing",
            .domain = &domain,
            .model = model,
            .result = to,
            .execute = execute,
            .needs = needs,
            .rule = rule},
           unrounded);
  };
  constexpr const Domain& codes = domain_called("codes");
  constexpr const Domain& pairs = domain_called("pairs");
  append_one("fadd.h f, unboxed, f", pairs, with_unboxed<binary<fp16::add<binary16>>, 0>, half_number,
             FLOAT_2(Control, Half, "fadd.h %0, %1, %2", unboxed, boxed));
  append_one("fadd.h f, f, unboxed", pairs, with_unboxed<binary<fp16::add<binary16>>, 1>, half_number,
             FLOAT_2(Control, Half, "fadd.h %0, %1, %2", boxed, unboxed));
  append_one("fmul.h f, unboxed, f", pairs, with_unboxed<binary<fp16::multiply<binary16>>, 0>, half_number,
             FLOAT_2(Control, Half, "fmul.h %0, %1, %2", unboxed, boxed));
  append_one("fmin.h f, unboxed, f", pairs, with_unboxed<binary<fp16::minimum_number<binary16>>, 0>,
             half_number, FLOAT_2(Control, Half, "fmin.h %0, %1, %2", unboxed, boxed));
  append_one("fsgnj.h f, unboxed, f", pairs, with_unboxed<sign_injected<Sign::same>, 0>, half_number,
             FLOAT_2(Control, Half, "fsgnj.h %0, %1, %2", unboxed, boxed));
  append_one("fsgnj.h f, f, unboxed", pairs, with_unboxed<sign_injected<Sign::same>, 1>, half_number,
             FLOAT_2(Control, Half, "fsgnj.h %0, %1, %2", boxed, unboxed));
  append_one("feq.h x, unboxed, f", pairs, with_unboxed<compared<Predicate::equal>, 0>, truth,
             INTEGER_2("feq.h %0, %1, %2", unboxed));
  append_one("flt.h x, unboxed, f", pairs, with_unboxed<compared<Predicate::less>, 0>, truth,
             INTEGER_2("flt.h %0, %1, %2", unboxed));
  append_one("fmadd.h f, f, f, unboxed", domain_called("triples"), with_unboxed<fused<Negated::none>, 2>,
             half_number, FLOAT_3(Control, Half, "fmadd.h %0, %1, %2, %3", unboxed));
  append_one("fsqrt.h f, unboxed", codes, with_unboxed<unary<fp16::sqrt<binary16>>, 0>, half_number,
             FLOAT_1(Control, Half, "fsqrt.h %0, %1", unboxed));
  append_one("fclass.h x, unboxed", codes, with_unboxed<classified, 0>, {NumberKind::unsigned_integer, 16},
             INTEGER_1(Control, Half, "fclass.h %0, %1", unboxed));
  append_one("fcvt.w.h x, unboxed", codes, with_unboxed<to_integer<std::int32_t>, 0>, signed_long,
             INTEGER_1(Control, Long, "fcvt.w.h %0, %1", unboxed));
  append_one("fcvt.s.h f, unboxed", codes, with_unboxed<converted<binary32, binary16>, 0>, single_number,
             WIDENED(float, "fcvt.s.h %0, %1", unboxed), moves);
  append_one("fmv.x.h x, f", codes, moved_to_integer, signed_long,
             INTEGER_1(Control, Long, "fmv.x.h %0, %1", boxed), moves, {});
  append_one("fmv.x.h x, unboxed", codes, moved_to_integer, signed_long,
             INTEGER_1(Control, Long, "fmv.x.h %0, %1", unboxed), moves, {});
  append_one("fsh f, m", codes, moved, half_number, STORED(boxed), moves, {});
  append_one("fsh unboxed, m", codes, moved, half_number, STORED(unboxed), moves, {});
}

}  // namespace

const std::vector<Instruction>& riscv64_instructions() {
  static const std::vector<Instruction> all = [] {
    Rows rows;
    append_arithmetic(rows);
    append_fused(rows);
    append_choices(rows);
    append_float_conversions(rows);
    append_integer_conversions(rows);
    append_own_roundings(rows);
    append_boxed_results(rows);
    append_unboxed_operands(rows);
    return rows;
  }();
  return all;
}

#ifdef __riscv

namespace {

sigjmp_buf before_trial;

/// Whether the processor takes the instruction. Linux tells of Zfh only from 6.8 on, and emulators of their own way.
bool takes(void (*instruction)()) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = [](int) { siglongjmp(before_trial, 1); };
  sigaction(SIGILL, &action, &old);
  const bool was_illegal = sigsetjmp(before_trial, 1) != 0;
  if (!was_illegal) instruction();
  sigaction(SIGILL, &old, nullptr);
  return !was_illegal;
}

}  // namespace

bool riscv64_has(std::string_view feature) {
  static const bool has_moves = takes([] { asm volatile(ZFH("fmv.h.x f0, zero") : : : "f0"); });
  static const bool has_whole = takes([] { asm volatile(ZFH("fadd.h f0, f0, f0") : : : "f0"); });
  if (feature == whole) return has_whole;
  if (feature == moves) return has_moves;
  return feature.empty();
}

/// The processor as /proc/cpuinfo names it. QEMU 8.2 calls itself qemu there; older ones show the file of the processor below.
std::string processor_model() {
  std::ifstream information("/proc/cpuinfo");
  bool is_riscv = false;
  for (std::string line; std::getline(information, line);) {
    const std::string name = line.substr(0, line.find_first_of("\t :"));
    is_riscv |= name == "isa" || name == "hart";
    if (name == "uarch" && line.find("qemu") == std::string::npos) return line.substr(line.find(':') + 2);
    if (name == "uarch") is_riscv = false;
  }
  return is_riscv ? "unnamed RISC-V processor" : emulator_called("QEMU");
}

#else

bool riscv64_has(std::string_view) {
  return false;
}

#endif

}  // namespace experiments::validate_cpu
