// Calls every function template of the headers, so that a compiler looks at what a user of them would make it look at.
#include <halflab/fp16/bulk.h>
#include <halflab/fp16/math.h>
#include <halflab/fp16/numbers.h>

#include <vector>

namespace {

using namespace fp16;

template <const Format& F>
void convert_and_write() {
  const Bits<F> a = encode<F>(0.5f).bits;
  (void)encode<F>(0.5);
  (void)decode<F>(a);
  (void)convert<binary16, F>(a);
  (void)compare<F>(a, a);
  (void)compare_quiet<F>(a, Predicate::less, a);
  (void)compare_signalling<F>(a, Predicate::less, a);
  (void)total_order_mag<F>(a, a);
  (void)copy_sign<F>(a, negate<F>(a));
  (void)classify<F>(a);
  (void)ulp_distance<F>(a, a);
  (void)to_integer<int, F>(a);
  (void)from_integer<F>(1);
  const std::string text = to_shortest<F>(a) + to_exact<F>(a) + to_hex<F>(a);
  (void)parse<F>(text);
  (void)parse_fields<F>(to_fields<F>(a));
}

template <const Format& F>
void compute() {
  if constexpr (F.has_arithmetic()) {
    const Bits<F> a = encode<F>(0.5f, {.rounding = Rounding::stochastic, .random_bits = 1}).bits;
    (void)add<F>(a, a);
    (void)subtract<F>(a, a);
    (void)multiply<F>(a, a);
    (void)divide<F>(a, a);
    (void)sqrt<F>(a);
    (void)fma<F>(a, a, a);
    (void)remainder<F>(a, a);
    (void)fmod<F>(a, a);
    (void)minimum<F>(a, a);
    (void)maximum_magnitude_number<F>(a, a);
    (void)next_up<F>(a);
    (void)next_after<F>(a, a);
    (void)round_to_integral_exact<F>(a);
    (void)modf<F>(a);
    (void)scalb<F>(a, 1);
    (void)ilogb<F>(a);
    (void)logb<F>(a);
    (void)frexp<F>(a);
  }
}

template <const Format& F>
void use_arrays() {
  std::vector<Bits<F>> codes(3);
  const std::span<Bits<F>> out(codes);
  const std::span<const Bits<F>> in(codes);
  if constexpr (contains(binary32, F)) {
    std::vector<float> floats(3);
    encode<F>(floats, out);
    decode<F>(in, floats);
  }
  if constexpr (F.has_arithmetic()) {
    add<F>(in, in, out);
    sqrt<F>(in, out);
    fma<F>(in, in, in, out);
    for (const auto& row : sum_orders<F>) (void)row.sum(in, {});
    if constexpr (contains(binary32, F)) {
      for (const auto& row : dot_orders<F>) (void)row.dot(in, in, {});
    }
  }
}

}  // namespace

int main() {
  for_each_format([]<const Format & F>() {
    convert_and_write<F>();
    compute<F>();
    use_arrays<F>();
  });
  for_each_block_format([]<const BlockFormat & B>() {
    (void)encode_element<B>(0.5f, 1);
    (void)decode_element<B>(1, 1);
  });
  half h = parse_half("0.5");
  h += 1;
  return static_cast<int>(tanh(h) * half(1.0L) / 2 + 2 * hypot(h, h));
}
