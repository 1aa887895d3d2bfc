#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "fp16/bulk.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"

namespace bench {
namespace {

using fp16::ArrayOptions;
using fp16::Attributes;
using fp16::Rounding;

/// Operands in one format, N(0, 1); the cases share them. Those of roots are not negative.
template <const fp16::Format& F>
struct Operands {
  using Codes = std::vector<fp16::Bits<F>>;
  Codes a = codes("a"), b = codes("b"), c = codes("c"), magnitudes = a, out = Codes(array_size);
  std::vector<std::uint32_t> random = std::vector<std::uint32_t>(array_size);

  Operands() {
    for (fp16::Bits<F>& code : magnitudes) code = fp16::magnitude<F>(code);
    fp16::fill_bits({.key = 0, .stream = 1}, 0, random);
  }

  static Codes codes(std::string_view purpose) {
    Codes codes(array_size);
    fp16::encode<F>(normal_values(array_size, purpose), codes, {.saturate = true});
    return codes;
  }
};

/// An operation over arrays, and over one element of each.
template <const fp16::Format& F>
struct Operation {
  void (*array)(Operands<F>&, const Attributes&, const ArrayOptions&);
  fp16::Result<F> (*element)(const Operands<F>&, std::size_t, const Attributes&);
};

/// In the order of half_loop_names.
template <const fp16::Format& F>
constexpr std::array<Operation<F>, half_loop_names.size()> operations{
    Operation<F>{[](auto& x, auto& at, auto& o) { fp16::add<F>(x.a, x.b, x.out, at, o); },
                 [](auto& x, auto i, auto& at) { return fp16::add<F>(x.a[i], x.b[i], at); }},
    Operation<F>{[](auto& x, auto& at, auto& o) { fp16::multiply<F>(x.a, x.b, x.out, at, o); },
                 [](auto& x, auto i, auto& at) { return fp16::multiply<F>(x.a[i], x.b[i], at); }},
    Operation<F>{[](auto& x, auto& at, auto& o) { fp16::divide<F>(x.a, x.b, x.out, at, o); },
                 [](auto& x, auto i, auto& at) { return fp16::divide<F>(x.a[i], x.b[i], at); }},
    Operation<F>{[](auto& x, auto& at, auto& o) { fp16::sqrt<F>(x.magnitudes, x.out, at, o); },
                 [](auto& x, auto i, auto& at) { return fp16::sqrt<F>(x.magnitudes[i], at); }},
    Operation<F>{[](auto& x, auto& at, auto& o) { fp16::fma<F>(x.a, x.b, x.c, x.out, at, o); },
                 [](auto& x, auto i, auto& at) { return fp16::fma<F>(x.a[i], x.b[i], x.c[i], at); }},
};

struct NamedAttributes {
  std::string_view name;
  Attributes attributes;
};

/// The operations of a format under some attributes: "add_bfloat16_stochastic"; binary16 is not named.
template <const fp16::Format& F>
void add_operations(std::vector<Case>& cases, std::span<const NamedAttributes> rows) {
  const auto data = std::make_shared<Operands<F>>();
  for (std::size_t operation = 0; operation < half_loop_names.size(); ++operation) {
    const std::string_view plain = half_loop_names[operation];
    std::vector<std::string> limits;
    for (const HalfLoops* loops : {&avx2_limit, &avx512_limit})
      if (F == fp16::binary16 && loops->operations[operation] != nullptr)
        limits.push_back(fmt::format("{}_{}", loops->name, plain));
    for (const auto& [suffix, attributes] : rows) {
      const std::string name =
          fmt::format("{}{}{}", plain, F == fp16::binary16 ? "" : fmt::format("_{}", name_of(F)), suffix);
      const bool draws = attributes.rounding == Rounding::stochastic;
      const auto work = [=, at = attributes] {
        operations<F>[operation].array(*data, at,
                                       draws ? ArrayOptions{.random_bits_32 = data->random} : ArrayOptions{});
      };
      work();
      for (std::size_t i = 0; i < array_size; i += 101) {
        Attributes each = attributes;
        each.random_bits = data->random[i] * std::uint64_t{0x100000001};
        require(data->out[i] == operations<F>[operation].element(*data, i, each).bits, name);
      }
      cases.push_back(Case{name, array_size, work, limits}.moving(
          arrays_of_operation(operation) * sizeof(fp16::Bits<F>) + (draws ? sizeof(std::uint32_t) : 0),
          operations_of_operation(operation)));
    }
  }
}

}  // namespace

void add_attribute_cases(std::vector<Case>& cases) {
  static constexpr std::array of_binary16{
      NamedAttributes{"_saturate", {.saturate = true}},
      NamedAttributes{"_flush_to_zero", {.flush_to_zero = true}},
      NamedAttributes{"_denormals_are_zero", {.denormals_are_zero = true}},
      NamedAttributes{"_canonical_nan", {.nan_policy = fp16::NanPolicy::canonical_nvidia}},
      NamedAttributes{"_toward_positive", {Rounding::toward_positive}},
      NamedAttributes{"_to_odd", {Rounding::to_odd}},
      NamedAttributes{"_stochastic", {Rounding::stochastic}}};
  static constexpr std::array of_others{NamedAttributes{"", {}},
                                        NamedAttributes{"_stochastic", {Rounding::stochastic}}};
  add_operations<fp16::binary16>(cases, of_binary16);
  fp16::for_each_format([&]<const fp16::Format & F>() {
    if constexpr (F == fp16::bfloat16 || F == fp16::e4m3 || F == fp16::e5m2 || F == fp16::e2m1)
      add_operations<F>(cases, of_others);
  });
}

}  // namespace bench
