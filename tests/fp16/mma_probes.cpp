#include "tests/fp16/mma_probes.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace oracle::mma {
namespace {

// The published numbers of each generation, on their own: F bits kept below 2^e_max, L products a step, the
// binary16 accumulator's floor E.
struct Generation {
  std::vector<std::string> cores;
  int L, F, E;
};
const std::vector<Generation> generations{{{"volta"}, 4, 23, -19},
                                          {{"turing", "ampere", "ada"}, 8, 24, -20},
                                          {{"hopper", "blackwell"}, 16, 25, -21}};

constexpr std::uint16_t minus = 0x8000;
constexpr std::uint16_t zero = 0, one = 0x3c00, infinity = 0x7c00, nan = 0x7e01;
constexpr std::uint16_t two_to_minus_23 = 0x0002, two_to_minus_24 = 0x0001;
constexpr auto fp32 = Output::binary32;
constexpr auto fp16 = Output::binary16;

struct Factors {
  std::uint16_t a, b;
  int k = -1;  ///< position in the sum; one further than the factors before if not given
};

/// 2^exponent as a binary16 code (-24 <= exponent <= 15).
constexpr std::uint16_t half_power(int exponent) {
  return static_cast<std::uint16_t>(exponent >= -14 ? (exponent + 15) << 10 : 1 << (exponent + 24));
}
/// 2^exponent as a normal binary32 code.
constexpr std::uint32_t single_power(int exponent) {
  return static_cast<std::uint32_t>(exponent + 127) << 23;
}
/// Factors of 2^exponent. Down to 2^-28 both are normal and the product's alignment exponent is `exponent`;
/// below, both are subnormal and it is -28.
constexpr Factors power(int exponent) {
  return {half_power(exponent / 2), half_power(exponent - exponent / 2)};
}
constexpr Factors negative(Factors factors) {
  return {static_cast<std::uint16_t>(factors.a ^ minus), factors.b, factors.k};
}
constexpr Factors at(int k, Factors factors) {
  return {factors.a, factors.b, k};
}

class Literals {
 public:
  explicit Literals(const Generation& generation) : generation_(generation) {}

  void add(const std::string& name, Output output, std::vector<Factors> products, std::uint32_t c,
           std::uint32_t expected) {
    std::vector<std::uint16_t> a, b;
    for (const Factors& product : products) {
      const std::size_t k = product.k < 0 ? a.size() : static_cast<std::size_t>(product.k);
      a.resize(k + 1, zero);
      b.resize(k + 1, zero);
      a[k] = product.a;
      b[k] = product.b;
    }
    for (const std::string& core : generation_.cores)
      probes_.push_back({.name = name + (output == fp32 ? ", binary32" : ", binary16"),
                         .core = core,
                         .output = output,
                         .a = a,
                         .b = b,
                         .c = c,
                         .expected = expected});
  }
  std::vector<Probe> take() { return std::move(probes_); }

 private:
  const Generation& generation_;
  std::vector<Probe> probes_;
};

// Below, q is the quantum 2^(e_max - F) to whose multiples terms are truncated.

void add_alignment(Literals& literals, int F) {
  // e_max = 0 from c = 1, q = 2^-F. 1 - 2^-F is a sum of F bits; its binary32 below 1 has ulp 2^-24:
  // F = 23: 1 - 2^-23. F = 24: 1 - 2^-24. F = 25: toward zero from 1 - 2^-25 to 1 - 2^-24.
  literals.add("1 - q", fp32, {negative(power(-F))}, 0x3f800000, F == 23 ? 0x3f7ffffe : 0x3f7fffff);
  // q/2 is truncated away; a further bit, a sticky bit or rounding toward -infinity would all leave the 1.
  literals.add("1 - q/2", fp32, {negative(power(-F - 1))}, 0x3f800000, 0x3f800000);
  // Truncated before the addition, each by itself: not the q that they are together.
  literals.add("1 - q/2 - q/2", fp32, {negative(power(-F - 1)), negative(power(-F - 1))}, 0x3f800000,
               0x3f800000);
  // The 1 as the last product: what comes first is truncated for what comes later.
  literals.add("- q/2 - q/2 + 1, in this order", fp32,
               {negative(power(-F - 1)), negative(power(-F - 1)), {one, one}}, 0, 0x3f800000);
  // 0.75 q = (1.5 * 2^-12) * 2^(-F+11): nearest would make q of it. 1.5 * 2^-12 = 0x0e00.
  literals.add("1 - 0.75 q", fp32, {{0x0e00 ^ minus, half_power(-F + 11)}}, 0x3f800000, 0x3f800000);
  // The addend is truncated as well: e_max = 3, q >= 2^-22, so -(1 + 2^-23) becomes -1: 8 - 1 = 7. Exact, it
  // would be 7 - 2^-23, and toward zero 7 - 2^-21.
  literals.add("8 - (1 + 2^-23)", fp32, {power(3)}, 0xbf800001, 0x40e00000);

  // e_max = 10 from two products that cancel: what is left is 2^(10-F), or nothing of 2^(9-F).
  literals.add("1024 - 1024 + q", fp32, {power(10), negative(power(10)), power(10 - F)}, 0,
               single_power(10 - F));
  literals.add("1024 - 1024 + q", fp16, {power(10), negative(power(10)), power(10 - F)}, 0,
               half_power(10 - F));
  literals.add("1024 - 1024 + q/2", fp32, {power(10), negative(power(10)), power(9 - F)}, 0, 0);
  literals.add("1024 - 1024 + q/2", fp16, {power(10), negative(power(10)), power(9 - F)}, 0, 0);
  // 1024 + 0.75 q - 1024 and 1024 - 0.75 q - 1024: nothing is left by truncation. 0.75 * 2^(10-F) =
  // 1.5 * 2^-7 (0x2200) times 2^(16-F).
  literals.add("1024 + 0.75 q - 1024", fp16, {power(10), {0x2200, half_power(16 - F)}, negative(power(10))},
               0, 0);
  literals.add("1024 - 0.75 q - 1024", fp16,
               {power(10), {0x2200 ^ minus, half_power(16 - F)}, negative(power(10))}, 0, 0);

  // e_max = 30, q >= 2^5: nothing is left of an addend of 1.
  literals.add("2^30 - 2^30 + 1 as the addend", fp32, {power(30), negative(power(30))}, 0x3f800000, 0);
  literals.add("2^30 - 2^30 + 1 as the addend", fp16, {power(30), negative(power(30))}, one, 0);

  // 48 * 48 = 2.25 * 2^10 keeps the exponent 10 of its factors; normalised it would be 11, and q lost. 48 =
  // 0x5200.
  literals.add("48 * 48 - 48 * 48 + q", fp32, {{0x5200, 0x5200}, {0xd200, 0x5200}, power(10 - F)}, 0,
               single_power(10 - F));
  literals.add("48 * 48 - 48 * 48 + q", fp16, {{0x5200, 0x5200}, {0xd200, 0x5200}, power(10 - F)}, 0,
               half_power(10 - F));
  // A product of zero does not align: 0 * 2^15 would have the exponent -14 + 15 and truncate 2^-28.
  literals.add("2^-28 + 0 * 2^15", fp32, {power(-28), {zero, half_power(15)}}, 0, 0x31800000);
}

void add_subnormals(Literals& literals) {
  literals.add("2^-24 * 1", fp32, {{two_to_minus_24, one}}, 0, 0x33800000);
  literals.add("1 * 2^-24", fp16, {{one, two_to_minus_24}}, 0, 0x0001);
  literals.add("2^-24 as the addend", fp16, {{zero, zero}}, 0x0001, 0x0001);
  // Also the only probe of the binary32 floor: at F - 148 the quantum would be 2^-148 and nothing left.
  literals.add("2^-149 as the addend", fp32, {{zero, zero}}, 0x00000001, 0x00000001);
  // A subnormal is aligned by emin: e_max = -14, q = 2^-37 or less than 2^2 below, so 2^-40 is lost. Aligned
  // by -24 (-23), it would stay: 2^-24 + 2^-40 is a binary32 number, and 2.5 + 2^-16 units of 2^-24 round
  // to 3.
  literals.add("2^-24 * 1 + 2^-40", fp32, {{two_to_minus_24, one}, power(-40)}, 0, 0x33800000);
  literals.add("2^-23 * 1 + 2^-25 + 2^-40", fp16, {{two_to_minus_23, one}, power(-25), power(-40)}, 0,
               0x0002);
  literals.add("2^-23 as the addend + 2^-25 + 2^-40", fp16, {power(-25), power(-40)}, 0x0002, 0x0002);
}

void add_floor(Literals& literals, int F, int E) {
  // c = 0 and exponents of -25 and -28: the floor E decides, q = 2^(E-F). 2^-25 is half the smallest binary16
  // number, a tie that goes to zero unless q is there to break it.
  literals.add("2^-25 + q at the floor", fp16, {power(-25), power(E - F)}, 0, 0x0001);
  literals.add("2^-25 + q at the floor + 0 * 2^15", fp16, {power(-25), power(E - F), {zero, half_power(15)}},
               0, 0x0001);
  literals.add("2^-25 + q/2 at the floor", fp16, {power(-25), power(E - F - 1)}, 0, 0);
}

void add_rounding(Literals& literals, int F) {
  // 2 + 3 * 2^-23 lies halfway between 2 + 2^-22 and 2 + 2^-21 (even). All terms are multiples of 2^-23.
  literals.add("1 + 1 + 3 * 2^-23", fp32, {{one, one}, {one, one}}, 0x34c00000, 0x40000001);
  literals.add("-1 - 1 - 3 * 2^-23", fp32, {{one | minus, one}, {one | minus, one}}, 0xb4c00000, 0xc0000001);
  // 1 + 3 * 2^-11 lies halfway between 1 + 2^-10 and 1 + 2^-9 (even), 1 + 2^-11 between 1 (even) and 1 +
  // 2^-10.
  literals.add("1 + 2^-10 + 2^-11", fp16, {power(-10), power(-11)}, one, 0x3c02);
  literals.add("1 + 2^-11", fp16, {power(-11)}, one, 0x3c00);
  // Just above the tie of 2 and 2 + 2^-9: binary32 has no room for the 2^-23 and would make it the tie.
  literals.add("2 + 2^-10 + 2^-23", fp16, {{one, one}, {0x3c01, one}, power(-23)}, 0, 0x4001);
  // Rounding the products before c is added would lose the first 2^-11.
  literals.add("1 + 2^-11 + 2^-11 as the addend", fp16, {{one, one}, power(-11)}, half_power(-11), 0x3c01);
  // A tie again, because each q/2 is truncated away.
  literals.add("1 as the addend + 2^-11 + q/2 + q/2", fp16, {power(-11), power(-F - 1), power(-F - 1)}, one,
               0x3c00);
  // Added one after the other and truncated each time, every one of the last two would be lost.
  literals.add("3 * 2^-23 as the addend + 1 + 1 + 2^-23", fp32, {{one, one}, {one, one}, power(-23)},
               0x34c00000, 0x40000002);
  // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20 has 21 bits.
  literals.add("(1 + 2^-10)^2", fp32, {{0x3c01, 0x3c01}}, 0, 0x3f804008);
  literals.add("(1 + 2^-10)^2 - (1 + 2^-9)", fp16, {{0x3c01, 0x3c01}}, 0xbc02, 0x0010);
  // 4 * 1.75 * 1.75 = 12.25 with e_max = 0: four bits before the binary point. 1.75 = 0x3f00.
  literals.add("4 * 1.75 * 1.75", fp32, std::vector<Factors>(4, {0x3f00, 0x3f00}), 0, 0x41440000);
  literals.add("4 * 1.75 * 1.75", fp16, std::vector<Factors>(4, {0x3f00, 0x3f00}), 0, 0x4a20);

  // binary16 overflows at the end of a step and only there; 65520 is the tie to the infinity. 300 = 0x5cb0.
  literals.add("300 * 300 - 300 * 300 + 1", fp16, {{0x5cb0, 0x5cb0}, {0xdcb0, 0x5cb0}, {one, one}}, 0, one);
  literals.add("65504 + 16", fp16, {power(4)}, 0x7bff, infinity);
  literals.add("65504 + 15", fp16, {{0x4b80, one}}, 0x7bff, 0x7bff);
  literals.add("-65504 - 65504", fp16, {{0xfbff, one}}, 0xfbff, infinity | minus);
}

void add_steps(Literals& literals, int L) {
  // One step holds L products: 3 * 2^-23 + 1 + 1 + 2^-23 = 2 + 2^-21 comes out exactly when the last product
  // is in the first step, at its middle or at its end...
  literals.add("3 * 2^-23, 1 + 1 and 2^-23 in the middle", fp32,
               {{one, one}, {one, one}, at(L / 2, power(-23))}, 0x34c00000, 0x40000002);
  literals.add("3 * 2^-23, 1 + 1 and 2^-23 at the end", fp32, {{one, one}, {one, one}, at(L - 1, power(-23))},
               0x34c00000, 0x40000002);
  // ... but in the next one it meets 2 + 2^-22, truncated from 2 + 3 * 2^-23, and is lost.
  literals.add("3 * 2^-23, 1 + 1 and 2^-23 in the next step", fp32,
               {{one, one}, {one, one}, at(L, power(-23))}, 0x34c00000, 0x40000001);
  // Likewise 1 + 2^-11 + 2^-11, two ties to even instead of 1 + 2^-10.
  literals.add("1 + 2^-11 in one step", fp16, {power(-11), at(L - 1, power(-11))}, one, 0x3c01);
  literals.add("1 + 2^-11, the same in the next step", fp16, {power(-11), at(L, power(-11))}, one, 0x3c00);
  // 1 + 2^-11 is a tie to 1, then 2^-10 is added; in the other order 1 + 2^-10 + 2^-11 ties to 1 + 2^-9.
  literals.add("1 + 2^-11, 2^-10 in the next step", fp16, {power(-11), at(L, power(-10))}, one, 0x3c01);
  literals.add("a last step of one product", fp32, {at(L, {one, one})}, 0, 0x3f800000);
  literals.add("a last step of one product", fp16, {at(L, {one, one})}, 0, one);
}

void add_specials(Literals& literals) {
  literals.add("NaN * 1", fp32, {{nan | minus, one}}, 0, 0x7fffffff);
  literals.add("1 * NaN", fp16, {{one, nan}}, 0, 0x7fff);
  literals.add("NaN * 0", fp32, {{nan, zero}}, 0, 0x7fffffff);
  literals.add("signalling NaN as the addend", fp32, {{one, one}}, 0xffa00001, 0x7fffffff);
  literals.add("NaN as the addend", fp16, {{one, one}}, nan | minus, 0x7fff);
  literals.add("infinity * 0", fp32, {{infinity, zero}}, 0x3f800000, 0x7fffffff);
  literals.add("0 * infinity", fp16, {{minus, infinity}}, one, 0x7fff);
  literals.add("infinity * 1 - infinity as the addend", fp32, {{infinity, one}}, 0xff800000, 0x7fffffff);
  literals.add("infinity * 1 - infinity * 1", fp16, {{infinity, one}, {one | minus, infinity}}, 0, 0x7fff);
  literals.add("infinity * 1 + NaN as the addend", fp32, {{infinity, one}}, 0x7fc00000, 0x7fffffff);
  literals.add("infinity * 1 + NaN * 1", fp16, {{infinity, one}, {nan, one}}, 0, 0x7fff);
  literals.add("infinity * -2^-24", fp32, {{infinity, two_to_minus_24 | minus}}, 0x7f7fffff, 0xff800000);
  literals.add("-infinity * -infinity + 65504", fp16, {{infinity | minus, infinity | minus}}, 0x7bff,
               infinity);
  literals.add("-infinity as the addend", fp32, {{0x7bff, 0x7bff}}, 0xff800000, 0xff800000);

  literals.add("-0 * 1 - 0", fp32, {{minus, one}}, 0x80000000, 0);
  literals.add("-0 * 1 - 0", fp16, {{minus, one}}, 0x8000, 0);
  literals.add("1 - 1", fp32, {{one, one}}, 0xbf800000, 0);
  literals.add("1 - 1", fp16, {{one, one}}, 0xbc00, 0);
  // Not a sum of zero, but rounded to zero (at the tie of 2^-25, and below it): the sign goes.
  literals.add("-2^-25", fp16, {negative(power(-25))}, 0, 0);
  literals.add("-2^-26", fp16, {negative(power(-26))}, 0, 0);
  literals.add("-2^-25 - 2^-26", fp16, {negative(power(-25)), negative(power(-26))}, 0, 0x8001);
}

std::vector<std::uint32_t> read_row(const std::string& line, std::size_t columns, const std::string& place) {
  std::vector<std::uint32_t> values;
  std::istringstream fields(line);
  for (std::string field; std::getline(fields, field, ',');) {
    std::size_t used = 0;
    unsigned long value = 0;
    try {
      value = std::stoul(field, &used, 16);
    } catch (const std::logic_error&) {
    }
    if (used == 0 || used != field.size() || value > 0xffffffff)
      throw std::runtime_error(place + ": \"" + field + "\" is not a hexadecimal code");
    values.push_back(static_cast<std::uint32_t>(value));
  }
  if (values.size() != columns)
    throw std::runtime_error(place + ": found " + std::to_string(values.size()) + " fields, the header has " +
                             std::to_string(columns));
  return values;
}

}  // namespace

std::vector<Probe> literal_probes() {
  std::vector<Probe> probes;
  for (const Generation& generation : generations) {
    Literals literals(generation);
    add_alignment(literals, generation.F);
    add_subnormals(literals);
    add_floor(literals, generation.F, generation.E);
    add_rounding(literals, generation.F);
    add_steps(literals, generation.L);
    add_specials(literals);
    for (Probe& probe : literals.take()) probes.push_back(std::move(probe));
  }
  return probes;
}

std::vector<Probe> gpu_vectors(const std::string& file, std::string_view core) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) throw std::runtime_error(file + ": cannot be read");
  const std::size_t columns = static_cast<std::size_t>(std::ranges::count(line, ',')) + 1;
  if (!line.ends_with(",c_f32,d_f32,d_f16") || columns % 2 == 0)
    throw std::runtime_error(file + ": the header is not a0..,b0..,c_f32,d_f32,d_f16");
  const auto products = static_cast<std::ptrdiff_t>((columns - 3) / 2);

  std::vector<Probe> probes;
  for (int row = 1; std::getline(stream, line); ++row) {
    const std::string place = file.substr(file.rfind('/') + 1) + " row " + std::to_string(row);
    const std::vector<std::uint32_t> values = read_row(line, columns, place);
    const auto b = values.begin() + products;
    const auto c = b + products;
    Probe probe{.name = place + ", binary32",
                .core = std::string(core),
                .output = fp32,
                .a = {values.begin(), b},
                .b = {b, c},
                .c = c[0],
                .expected = c[1]};
    probes.push_back(probe);
    probe.name = place + ", binary16";
    probe.output = fp16;
    probe.c = from_binary32(c[0])[0].bits;
    probe.expected = c[2];
    probes.push_back(std::move(probe));
  }
  return probes;
}

}  // namespace oracle::mma
