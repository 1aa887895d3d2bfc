#include "tests/fp16/mma_mutants.h"

#include <algorithm>
#include <cmath>

namespace oracle::mma {
namespace {

constexpr auto fp32 = Output::binary32;
constexpr auto fp16 = Output::binary16;
const std::vector<Output> both{fp32, fp16};

std::uint32_t sign_of(Output format) {
  return format == fp32 ? 0x80000000 : 0x8000;
}
std::uint32_t infinity_of(Output format) {
  return format == fp32 ? 0x7f800000 : 0x7c00;
}
std::uint32_t flushed(Output format, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & ~sign_of(format);
  return magnitude < (format == fp32 ? 0x00800000u : 0x0400u) ? bits & sign_of(format) : bits;
}
bool is_nan(Output format, std::uint32_t bits) {
  return std::isnan(value_of(format, bits));
}

struct Step {
  const Model& model;
  Output output;
  std::vector<std::uint16_t> a, b;
  std::uint32_t c;

  std::uint32_t result();

 private:
  Direction output_rounding() const {
    return output == fp32 ? model.binary32_rounding : model.binary16_rounding;
  }

  void flush_operands();
  double product_value(std::size_t k) const;
  std::uint32_t nan_code() const;
  std::optional<std::uint32_t> special() const;

  Term product_term(std::size_t k) const;
  Term addend_term() const;
  int top_exponent(std::span<const Term> products, const Term& addend) const;
  Fixed sum(std::span<const Term> products, const Term& addend) const;
  Fixed fused_sum(std::span<const Term> products, const Term& addend) const;
  Fixed running_sum(std::span<const Term> products, const Term& addend) const;
  Fixed pairwise_sum(std::span<const Fixed> values) const;
  Fixed partial(const Fixed& value) const;
  std::uint32_t rounded(const Fixed& total) const;
  bool only_negative_zeros() const;
};

void Step::flush_operands() {
  for (std::vector<std::uint16_t>* operands : {&a, &b})
    for (std::uint16_t& bits : *operands) bits = static_cast<std::uint16_t>(flushed(fp16, bits));
}

double Step::product_value(std::size_t k) const {
  const double x = value_of(fp16, a[k]), y = value_of(fp16, b[k]);
  if (model.infinity_times_zero_is_zero && (x == 0 || y == 0) && !std::isnan(x) && !std::isnan(y)) return 0;
  if (model.overflow_binary16_products && output == fp16 && std::abs(x * y) >= 65520)
    return std::copysign(INFINITY, x * y);
  return x * y;
}

std::uint32_t Step::nan_code() const {
  if (model.nan == NanCode::without_payload) return output == fp32 ? 0x7fc00000 : 0x7e00;
  if (model.nan == NanCode::of_addend && is_nan(output, c)) return c;
  return sign_of(output) - 1;
}

std::optional<std::uint32_t> Step::special() const {
  double sum = value_of(output, c);
  std::optional<double> first_infinity;
  if (std::isinf(sum)) first_infinity = sum;
  bool nan_term = std::isnan(sum);
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double product = product_value(k);
    if (std::isinf(product) && !first_infinity) first_infinity = product;
    nan_term |= std::isnan(product);
    sum += product;
  }
  if (std::isfinite(sum)) return std::nullopt;
  const bool infinity_chosen =
      first_infinity && ((model.infinity_beats_nan && nan_term) || (model.first_infinity_wins && !nan_term));
  if (infinity_chosen) sum = *first_infinity;
  if (std::isnan(sum)) return nan_code();
  return infinity_of(output) | (sum < 0 ? sign_of(output) : 0);
}

Term Step::product_term(std::size_t k) const {
  if (product_value(k) == 0 && !model.zero_products_align) return {};
  Term term = product(a[k], b[k]);
  if (term.value == 0) return term;
  if (model.round_products)
    term.value = round_to_multiple(term.value, exponent_of(term.value) - 10, Direction::nearest_even);
  if (model.normalise_products) term.exponent = exponent_of(term.value);
  if (model.normalise_subnormal_operands)
    term.exponent = exponent_of(operand(fp16, a[k]).value) + exponent_of(operand(fp16, b[k]).value);
  return term;
}

Term Step::addend_term() const {
  Term term = operand(output, c);
  if (model.normalise_subnormal_addend && term.value != 0) term.exponent = exponent_of(term.value);
  return term;
}

int Step::top_exponent(std::span<const Term> products, const Term& addend) const {
  int top = output == fp32 ? model.binary32_floor : model.binary16_floor;
  for (const Term& term : products) {
    if (term.value != 0 || model.zero_products_align) top = std::max(top, term.exponent);
  }
  const bool addend_aligns = (addend.value != 0 || model.zero_addend_aligns) && !model.addend_apart;
  return addend_aligns ? std::max(top, addend.exponent) : top;
}

Fixed Step::fused_sum(std::span<const Term> products, const Term& addend) const {
  const int top = top_exponent(products, addend);
  const int quantum_exponent = top - model.fraction_bits;
  const bool addend_exact = model.addend_apart || !model.truncate_addend;
  Fixed total =
      addend_exact ? addend.value : round_to_multiple(addend.value, quantum_exponent, model.term_rounding);
  for (const Term& term : products)
    total += round_to_multiple(term.value, quantum_exponent, model.term_rounding);
  if (!model.integer_bits) return total;
  return Fixed(total % fixed_power(top + *model.integer_bits));
}

Fixed Step::running_sum(std::span<const Term> products, const Term& addend) const {
  Fixed total = 0;
  int top = output == fp32 ? model.binary32_floor : model.binary16_floor;
  const auto add = [&](const Term& term) {
    if (term.value == 0) return;
    top = std::max(top, term.exponent);
    const int quantum_exponent = top - model.fraction_bits;
    total = round_to_multiple(total, quantum_exponent, Direction::toward_zero) +
            round_to_multiple(term.value, quantum_exponent, Direction::toward_zero);
  };
  for (const Term& term : products) add(term);
  add(addend);
  return total;
}

/// Rounded as the output is, without overflow.
Fixed Step::partial(const Fixed& value) const {
  if (value == 0) return value;
  const int ulp_exponent =
      std::max(exponent_of(value) - (output == fp32 ? 23 : 10), output == fp32 ? -149 : -24);
  return round_to_multiple(value, ulp_exponent, output_rounding());
}

Fixed Step::pairwise_sum(std::span<const Fixed> values) const {
  if (values.size() == 1) return values[0];
  const std::size_t half = (values.size() + 1) / 2;
  return partial(pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half)));
}

Fixed Step::sum(std::span<const Term> products, const Term& addend) const {
  switch (model.summation) {
    case Summation::fused:
      break;
    case Summation::running_alignment:
      return running_sum(products, addend);
    case Summation::addend_last: {
      const Term none{0, addend.exponent};
      return partial(fused_sum(products, none)) + addend.value;
    }
    case Summation::chain: {
      Fixed total = addend.value;
      for (const Term& term : products) total = partial(total + term.value);
      return total;
    }
    case Summation::pairwise: {
      std::vector<Fixed> values{addend.value};
      for (const Term& term : products) values.push_back(term.value);
      return pairwise_sum(values);
    }
  }
  return fused_sum(products, addend);
}

bool Step::only_negative_zeros() const {
  bool negative = c == sign_of(output);
  for (std::size_t k = 0; k < a.size(); ++k) negative &= ((a[k] ^ b[k]) & sign_of(fp16)) != 0;
  return negative;
}

std::uint32_t Step::rounded(const Fixed& total) const {
  if (total == 0) {
    const bool negative = (model.zero_takes_sign_of_addend && (c & sign_of(output)) != 0) ||
                          (model.negative_zeros_add_to_negative_zero && only_negative_zeros());
    return negative ? sign_of(output) : 0;
  }
  Fixed value = total;
  if (output == fp16 && model.by_way_of_binary32)
    value = fixed(value_of(fp32, round_to_format(total, fp32, *model.by_way_of_binary32)));
  std::uint32_t bits = round_to_format(value, output, output_rounding());
  const std::uint32_t magnitude = bits & ~sign_of(output);
  if (model.saturate && magnitude == infinity_of(output)) --bits;
  if (model.flush_subnormal_results) bits = flushed(output, bits);
  if (!model.underflow_to_negative_zero && magnitude == 0) bits = 0;
  return bits;
}

std::uint32_t Step::result() {
  if (model.flush_subnormal_operands) flush_operands();
  if (model.flush_subnormal_addend) c = flushed(output, c);
  if (const auto bits = special()) return *bits;
  std::vector<Term> products;
  for (std::size_t k = 0; k < a.size(); ++k) products.push_back(product_term(k));
  return rounded(sum(products, addend_term()));
}

}  // namespace

std::uint32_t dot(const Model& model, Output output, std::span<const std::uint16_t> a,
                  std::span<const std::uint16_t> b, std::uint32_t c) {
  const auto length = static_cast<std::size_t>(model.products_per_step);
  std::vector<std::size_t> starts;
  for (std::size_t k = 0; k < a.size(); k += length) {
    if (k + length <= a.size() || k == 0 || !model.drop_incomplete_step) starts.push_back(k);
  }
  if (model.descending_steps) std::ranges::reverse(starts);
  for (const std::size_t start : starts) {
    const auto first = static_cast<std::ptrdiff_t>(start);
    const auto last = static_cast<std::ptrdiff_t>(std::min(start + length, a.size()));
    c = Step{model, output, {a.begin() + first, a.begin() + last}, {b.begin() + first, b.begin() + last}, c}
            .result();
  }
  return c;
}

const std::vector<Mutation> mutants{
    {"one fraction bit less", both, [](Model& m) { --m.fraction_bits; }},
    {"one fraction bit more", both, [](Model& m) { ++m.fraction_bits; }},
    {"sixty fraction bits", both, [](Model& m) { m.fraction_bits = 60; }},
    {"terms rounded to nearest-even", both, [](Model& m) { m.term_rounding = Direction::nearest_even; }},
    {"terms rounded toward -infinity", both, [](Model& m) { m.term_rounding = Direction::toward_negative; }},
    {"lost bits stick to the last one kept", both, [](Model& m) { m.term_rounding = Direction::to_odd; }},
    {"addend not truncated", both, [](Model& m) { m.truncate_addend = false; }},
    {"addend not aligned with the products", both, [](Model& m) { m.addend_apart = true; }},
    {"addend added last, the products' sum rounded", both,
     [](Model& m) { m.summation = Summation::addend_last; }},
    {"alignment runs along with the sum", both, [](Model& m) { m.summation = Summation::running_alignment; }},
    {"chain of fused multiply-adds, rounded as the output", both,
     [](Model& m) { m.summation = Summation::chain; }},
    {"chain of fused multiply-adds, nearest-even",
     {fp32},
     [](Model& m) {
       m.summation = Summation::chain;
       m.binary32_rounding = Direction::nearest_even;
     }},
    {"pairwise tree, rounded as the output", both, [](Model& m) { m.summation = Summation::pairwise; }},
    {"sum of three integer bits wraps", both, [](Model& m) { m.integer_bits = 3; }},
    {"products normalised", both, [](Model& m) { m.normalise_products = true; }},
    {"products rounded to binary16's precision", both, [](Model& m) { m.round_products = true; }},
    {"products beyond binary16 infinite", {fp16}, [](Model& m) { m.overflow_binary16_products = true; }},
    {"subnormal operands normalised", both, [](Model& m) { m.normalise_subnormal_operands = true; }},
    {"subnormal addend normalised", {fp16}, [](Model& m) { m.normalise_subnormal_addend = true; }},
    {"subnormal operands flushed", both, [](Model& m) { m.flush_subnormal_operands = true; }},
    {"subnormal addend flushed", both, [](Model& m) { m.flush_subnormal_addend = true; }},
    {"subnormal results flushed", both, [](Model& m) { m.flush_subnormal_results = true; }},
    {"products of zero take part in the alignment", both, [](Model& m) { m.zero_products_align = true; }},
    {"addend of zero takes part in the alignment", {fp16}, [](Model& m) { m.zero_addend_aligns = true; }},
    {"binary16 floor one higher", {fp16}, [](Model& m) { ++m.binary16_floor; }},
    {"binary16 floor one lower", {fp16}, [](Model& m) { --m.binary16_floor; }},
    {"binary16 floor two lower", {fp16}, [](Model& m) { m.binary16_floor -= 2; }},
    {"no binary16 floor", {fp16}, [](Model& m) { m.binary16_floor = -28; }},
    {"binary32 floor F - 148", {fp32}, [](Model& m) { m.binary32_floor = m.fraction_bits - 148; }},
    {"binary32 result to nearest-even",
     {fp32},
     [](Model& m) { m.binary32_rounding = Direction::nearest_even; }},
    {"binary32 result toward -infinity",
     {fp32},
     [](Model& m) { m.binary32_rounding = Direction::toward_negative; }},
    {"binary16 result toward zero", {fp16}, [](Model& m) { m.binary16_rounding = Direction::toward_zero; }},
    {"binary16 result to nearest-away",
     {fp16},
     [](Model& m) { m.binary16_rounding = Direction::nearest_away; }},
    {"binary16 by way of binary32 toward zero",
     {fp16},
     [](Model& m) { m.by_way_of_binary32 = Direction::toward_zero; }},
    {"binary16 by way of binary32 nearest-even",
     {fp16},
     [](Model& m) { m.by_way_of_binary32 = Direction::nearest_even; }},
    {"overflow saturates", {fp16}, [](Model& m) { m.saturate = true; }},
    {"-0 added to -0 gives -0", both, [](Model& m) { m.negative_zeros_add_to_negative_zero = true; }},
    {"a zero sum takes the addend's sign", both, [](Model& m) { m.zero_takes_sign_of_addend = true; }},
    {"a negative underflow gives -0", {fp16}, [](Model& m) { m.underflow_to_negative_zero = true; }},
    {"NaN without payload", both, [](Model& m) { m.nan = NanCode::without_payload; }},
    {"the addend's NaN passed on", both, [](Model& m) { m.nan = NanCode::of_addend; }},
    {"infinity * 0 is 0", both, [](Model& m) { m.infinity_times_zero_is_zero = true; }},
    {"the first infinity wins", both, [](Model& m) { m.first_infinity_wins = true; }},
    {"an infinity beats a NaN", both, [](Model& m) { m.infinity_beats_nan = true; }},
    {"steps half as long", both, [](Model& m) { m.products_per_step /= 2; }},
    {"steps twice as long", both, [](Model& m) { m.products_per_step *= 2; }},
    {"steps from high k to low", both, [](Model& m) { m.descending_steps = true; }},
    {"a last incomplete step left out", both, [](Model& m) { m.drop_incomplete_step = true; }},
};

// No term of a binary32 step has an exponent below -126 or a bit below 2^-149, and truncation keeps a
// multiple of 2^-149 one. With a non-zero product the largest exponent is at least -28; without one, c is the
// whole sum.
const std::vector<Mutation> equivalent_models{
    // c alone is cut at 2^(F - 149 - F) = 2^-149 or at 2^(e - F), F >= 23, and has no bit below either.
    {"binary32 floor F - 149", {fp32}, [](Model& m) { m.binary32_floor = m.fraction_bits - 149; }},
    // c alone is cut at 2^(e - F).
    {"no binary32 floor", {fp32}, [](Model& m) { m.binary32_floor = -126; }},
    // Its exponent, -126, is that of the smallest term.
    {"addend of zero takes part in the alignment", {fp32}, [](Model& m) { m.zero_addend_aligns = true; }},
    // Beside a product a subnormal c is below 2^-126 and truncated away in any case; alone it is cut at
    // 2^(e - F) or, by the floor, at most at 2^-149, and has no bit below either.
    {"subnormal addend normalised", {fp32}, [](Model& m) { m.normalise_subnormal_addend = true; }},
    // Sixteen products are less than 2^36. A sum beyond 2^127 has c beyond 2^126, which cuts every product at
    // 2^(126 - 25) or higher and leaves c as it is.
    {"overflow saturates", {fp32}, [](Model& m) { m.saturate = true; }},
    // A sum that is not zero is a multiple of 2^-149 and does not round to zero.
    {"a negative underflow gives -0", {fp32}, [](Model& m) { m.underflow_to_negative_zero = true; }},
};

}  // namespace oracle::mma
