#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>

#include "fp16/bulk.h"
#include "fp16/dot.h"
#include "fp16/exact_sums.h"
#include "fp16/math.h"
#include "fp16/philox.h"
#include "fp16/sum.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"

namespace bench {
namespace {

using fp16::binary16;

/// One set of operands; the cases share it, so it lives as long as they do.
struct Data {
  std::string suffix;
  std::vector<float> floats;
  std::vector<Half> a, b, c;
  std::vector<std::uint32_t> random_bits = std::vector<std::uint32_t>(array_size);
  std::vector<Half> halves = std::vector<Half>(array_size);
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(array_size);
  std::vector<std::uint32_t> words = std::vector<std::uint32_t>(array_size);
  std::vector<float> back = std::vector<float>(array_size);
};

std::vector<Half> halves_of(const std::vector<float>& floats) {
  std::vector<Half> halves(floats.size());
  fp16::float_to_half(floats, halves);
  return halves;
}

std::shared_ptr<Data> make_data(std::string suffix,
                                std::vector<float> (*values)(std::size_t, std::string_view)) {
  auto data = std::make_shared<Data>(Data{.suffix = std::move(suffix),
                                          .floats = values(array_size, "floats"),
                                          .a = halves_of(values(array_size, "a")),
                                          .b = halves_of(values(array_size, "b")),
                                          .c = halves_of(values(array_size, "c"))});
  fp16::fill_bits({.key = 0}, 0, data->random_bits);
  return data;
}

constexpr std::array all_loops{&avx2_limit, &avx512_limit, &imath, &eigen_half, &float16};

bool is_limit(const HalfLoops* loops) {
  return loops == &avx2_limit || loops == &avx512_limit;
}

/// Adds the limits and peers that have `loop`, and returns the names of the limits.
template <typename Make>
std::vector<std::string> add_loops(std::vector<Case>& cases, const std::string& name, Make make) {
  std::vector<std::string> limits;
  for (const HalfLoops* loops : all_loops) {
    const std::function<void()> work = make(*loops);
    if (work == nullptr) continue;
    const std::string full_name = fmt::format("{}_{}", loops->name, name);
    cases.push_back({full_name, array_size, work, {}, true});
    if (is_limit(loops)) limits.push_back(full_name);
  }
  return limits;
}

/// The case called `plain` again, with flags and with counts, as NAME_flags and NAME_counts + suffix.
template <typename Work>
void add_observed(std::vector<Case>& cases, const std::string& plain, std::string_view name,
                  std::string_view suffix, Work work) {
  cases.push_back({.name = fmt::format("{}_flags{}", name, suffix),
                   .items = array_size,
                   .work =
                       [=] {
                         fp16::Flags flags;
                         work({.flags = &flags});
                         benchmark::DoNotOptimize(flags);
                       },
                   .needs = {plain},
                   .is_observed = true});
  cases.push_back({.name = fmt::format("{}_counts{}", name, suffix),
                   .items = array_size,
                   .work =
                       [=] {
                         fp16::RoundingCounts counts;
                         work({.counts = &counts});
                         benchmark::DoNotOptimize(counts);
                       },
                   .needs = {plain},
                   .is_observed = true});
}

void add_conversions(std::vector<Case>& cases, const std::shared_ptr<Data>& d) {
  const auto limits =
      add_loops(cases, "float_to_half" + d->suffix, [&](const HalfLoops& loops) -> std::function<void()> {
        if (loops.float_to_half == nullptr) return nullptr;
        return [d, loop = loops.float_to_half] { loop(d->floats.data(), d->halves.data(), array_size); };
      });
  const auto to_half = [d](const fp16::Attributes& attributes, const fp16::ArrayOptions& options) {
    fp16::float_to_half(d->floats, d->halves, attributes, options);
  };
  const auto check = [&](const fp16::Attributes& attributes) {
    for (std::size_t i = 0; i < array_size; i += 101) {
      fp16::Attributes each = attributes;
      each.random_bits = d->random_bits[i];
      require(d->halves[i] == fp16::encode<binary16>(d->floats[i], each).bits, "float_to_half");
    }
  };
  to_half({}, {});
  check({});
  cases.push_back(Case{"float_to_half" + d->suffix, array_size, [=] { to_half({}, {}); }, limits}.moving(6));
  add_observed(cases, "float_to_half" + d->suffix, "encode", d->suffix,
               [=](const fp16::ArrayOptions& options) { to_half({}, options); });
  cases.push_back(Case{
      "portable_float_to_half" + d->suffix, array_size, [=] {
        to_half({}, {.path = fp16::VectorPath::portable});
      }}.moving(6));

  const fp16::Attributes stochastic{fp16::Rounding::stochastic};
  to_half(stochastic, {.random_bits_32 = d->random_bits});
  check(stochastic);
  cases.push_back(Case{"stochastic" + d->suffix, array_size,
                       [=] { to_half(stochastic, {.random_bits_32 = d->random_bits}); }, limits}
                      .moving(10));
  if (has_avx2())
    cases.push_back(Case{
        "stochastic_avx2" + d->suffix,
        array_size,
        [=] { to_half(stochastic, {.path = fp16::VectorPath::avx2_f16c, .random_bits_32 = d->random_bits}); },
        {"avx2_float_to_half" +
         d->suffix}}.moving(10));
  cases.push_back(Case{"stochastic_philox" + d->suffix, array_size,
                       [=] { to_half(stochastic, {.random = fp16::PhiloxSequence{{.key = 1}}}); }, limits}
                      .moving(6));

  const auto wide_limits =
      add_loops(cases, "half_to_float" + d->suffix, [&](const HalfLoops& loops) -> std::function<void()> {
        if (loops.half_to_float == nullptr) return nullptr;
        return [d, loop = loops.half_to_float] { loop(d->a.data(), d->back.data(), array_size); };
      });
  fp16::half_to_float(d->a, d->back);
  for (std::size_t i = 0; i < array_size; i += 101)
    require(d->back[i] == fp16::half_bits_to_float(d->a[i]), "half_to_float");
  cases.push_back(
      Case{"half_to_float" + d->suffix, array_size, [d] { fp16::half_to_float(d->a, d->back); }, wide_limits}
          .moving(6));
}

void compute(std::size_t operation, Data& d, const std::vector<Half>& a,
             const fp16::ArrayOptions& options = {}) {
  switch (operation) {
    case 0:
      return fp16::add<binary16>(a, d.b, d.halves, {}, options);
    case 1:
      return fp16::multiply<binary16>(a, d.b, d.halves, {}, options);
    case 2:
      return fp16::divide<binary16>(a, d.b, d.halves, {}, options);
    case 3:
      return fp16::sqrt<binary16>(a, d.halves, {}, options);
    default:
      return fp16::fma<binary16>(a, d.b, d.c, d.halves, {}, options);
  }
}

Half compute_one(std::size_t operation, Half a, Half b, Half c) {
  switch (operation) {
    case 0:
      return fp16::add<binary16>(a, b).bits;
    case 1:
      return fp16::multiply<binary16>(a, b).bits;
    case 2:
      return fp16::divide<binary16>(a, b).bits;
    case 3:
      return fp16::sqrt<binary16>(a).bits;
    default:
      return fp16::fma<binary16>(a, b, c).bits;
  }
}

void add_operations(std::vector<Case>& cases, const std::shared_ptr<Data>& d) {
  auto magnitudes = std::make_shared<std::vector<Half>>(d->a);
  for (Half& code : *magnitudes) code &= 0x7fff;
  for (std::size_t operation = 0; operation < half_loop_names.size(); ++operation) {
    const std::string name = std::string(half_loop_names[operation]) + d->suffix;
    const auto a =
        half_loop_names[operation] == "sqrt" ? magnitudes : std::shared_ptr<std::vector<Half>>(d, &d->a);
    const auto limits = add_loops(cases, name, [&](const HalfLoops& loops) -> std::function<void()> {
      const HalfLoop loop = loops.operations[operation];
      if (loop == nullptr) return nullptr;
      return [=] { loop(a->data(), d->b.data(), d->c.data(), d->halves.data(), array_size); };
    });
    compute(operation, *d, *a);
    for (std::size_t i = 0; i < array_size; i += 101)
      require(d->halves[i] == compute_one(operation, (*a)[i], d->b[i], d->c[i]), name);
    cases.push_back(Case{name, array_size, [=] { compute(operation, *d, *a); }, limits}.moving(
        arrays_of_operation(operation) * sizeof(Half), operations_of_operation(operation)));
    add_observed(cases, name, half_loop_names[operation], d->suffix,
                 [=](const fp16::ArrayOptions& options) { compute(operation, *d, *a, options); });
  }
}

template <const fp16::Format& F>
std::vector<fp16::Bits<F>>& codes_of(Data& d) {
  if constexpr (sizeof(fp16::Bits<F>) == 1) {
    return d.bytes;
  } else if constexpr (sizeof(fp16::Bits<F>) == 2) {
    return d.halves;
  } else {
    return d.words;
  }
}

void add_encoders(std::vector<Case>& cases, const std::shared_ptr<Data>& d) {
  fp16::for_each_format([&]<const fp16::Format & F>() {
    if constexpr (F.width() < 32 && F.has_arithmetic() && F != binary16) {
      const fp16::Attributes saturating{.saturate = true};
      const auto encode = [d, saturating](const fp16::ArrayOptions& options = {}) {
        fp16::encode<F>(d->floats, codes_of<F>(*d), saturating, options);
      };
      const std::string name = fmt::format("encode_{}{}", fp16::name_of(F), d->suffix);
      encode();
      for (std::size_t i = 0; i < array_size; i += 101)
        require(codes_of<F>(*d)[i] == fp16::encode<F>(d->floats[i], saturating).bits, name);
      cases.push_back(
          Case{name, array_size, [=] { encode(); }}.moving(sizeof(float) + sizeof(fp16::Bits<F>)));
      if (F == fp16::bfloat16 || F == fp16::e4m3) add_observed(cases, name, name, "", encode);
    }
  });
}

void add_functions(std::vector<Case>& cases, const std::shared_ptr<Data>& d) {
  for (const fp16::math::UnaryFunction* function : fp16::math::unary_functions()) {
    const auto apply = [=] { fp16::math::apply(*function, d->a, d->halves); };
    apply();
    for (std::size_t i = 0; i < array_size; i += 101)
      require(d->halves[i] == (*function)(d->a[i]).bits, function->name());
    cases.push_back(Case{fmt::format("unary_{}", function->name()), array_size, apply}.moving(4));
  }
}

/// Held against reading the halves alone.
void add_exact_sums(std::vector<Case>& cases, const std::shared_ptr<Data>& d) {
  using Accumulator = fp16::ExactAccumulator<binary16>;
  const auto sum = [d] {
    Accumulator exact;
    fp16::add_values(exact, d->a);
    return exact.rounded<fp16::binary64>().bits;
  };
  const auto dot = [d] {
    Accumulator exact;
    fp16::add_products(exact, d->a, d->b);
    return exact.rounded<fp16::binary64>().bits;
  };
  require(sum() == fp16::sum_exact<fp16::binary64, binary16>(d->a).bits, "exact_sum");
  require(dot() == fp16::dot_exact<fp16::binary64, binary16>(d->a, d->b).bits, "exact_dot");
  std::vector<std::string> limits;
  for (const HalfLoops* loops : all_loops) {
    if (is_limit(loops) && loops->half_to_float != nullptr)
      limits.push_back(fmt::format("{}_half_to_float", loops->name));
  }
  cases.push_back(Case{"exact_sum", array_size, [=] { benchmark::DoNotOptimize(sum()); }, limits}.moving(2));
  cases.push_back(
      Case{"exact_dot", array_size, [=] { benchmark::DoNotOptimize(dot()); }, limits}.moving(4, 2));
}

/// Held against the products of its ten rounds alone, two for a block of four words in each.
void add_random_bits(std::vector<Case>& cases, const std::shared_ptr<Data>& d) {
  constexpr fp16::Philox philox{.key = 3};
  const auto fill = [=] { fp16::fill_bits(philox, 0, d->words); };
  fill();
  for (std::size_t i = 0; i < array_size; i += 101) require(d->words[i] == philox.bits(i), "philox");
  constexpr std::size_t products = array_size / 4 * 2 * fp16::detail::philox_rounds;
  cases.push_back({"philox_products",
                   array_size,
                   [] { benchmark::DoNotOptimize(widening_products(products)); },
                   {},
                   true});
  cases.push_back(Case{"philox", array_size, fill, {"philox_products"}}.moving(4));
}

}  // namespace

void add_number_cases(std::vector<Case>& cases) {
  const auto normal = make_data("", normal_values);
  for (const auto& data : {normal, make_data("_gradient_like", gradient_like_values)}) {
    add_conversions(cases, data);
    add_operations(cases, data);
  }
  add_encoders(cases, normal);
  add_exact_sums(cases, normal);
  add_functions(cases, normal);
  add_random_bits(cases, normal);
}

}  // namespace bench
