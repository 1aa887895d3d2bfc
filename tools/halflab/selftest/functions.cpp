#include <fmt/format.h>

#include <array>

#include "fp16/elementary_pow.h"
#include "fp16/math.h"
#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

/// Every half, in one direction: by the array, and one of 16 by itself under all attributes, with flags.
std::uint64_t hash_of(const fp16::math::UnaryFunction& function, fp16::Rounding rounding) {
  std::vector<std::uint16_t> all(fp16::math::code_count), out(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  Fnv1a hash;
  if (rounding != fp16::Rounding::stochastic) {
    fp16::math::apply(function, all, out, {.rounding = rounding});
    hash.add(std::span<const std::uint16_t>(out));
  }
  constexpr std::size_t stride = 17;
  for (fp16::Attributes attributes : borders_of(rounding)) {
    for (std::size_t i = 0; i < all.size(); i += stride) {
      attributes.random_bits = std::uint64_t{draws[2 * i]} << 32 | draws[2 * i + 1];
      const auto [bits, flags] = function(all[i], attributes);
      hash.add(bits, fp16::binary16.width());
      hash.add(flags);
    }
  }
  return hash.value();
}

/// A function of elementary.h. Training uses those of floats.
struct Elementary {
  std::string_view name;
  float (*of_float)(float);
  double (*of_double)(double);
};

constexpr std::array elementary{Elementary{"exp", fp16::exp<float>, fp16::exp<double>},
                                Elementary{"expm1", fp16::expm1<float>, fp16::expm1<double>},
                                Elementary{"log", fp16::log<float>, fp16::log<double>},
                                Elementary{"log1p", fp16::log1p<float>, fp16::log1p<double>},
                                Elementary{"sigmoid", fp16::sigmoid<float>, fp16::sigmoid<double>},
                                Elementary{"softplus", fp16::softplus<float>, fp16::softplus<double>},
                                Elementary{"tanh", fp16::tanh<float>, fp16::tanh<double>},
                                Elementary{"erf", fp16::erf<float>, fp16::erf<double>},
                                Elementary{"normal_cdf", fp16::normal_cdf<float>, fp16::normal_cdf<double>}};

/// Operands of any bits, and of a few binades around 1.
template <class Real, class Function>
std::uint64_t hash_of_reals(Function function) {
  using RealBits = fp16::elementary::RealBits<Real>;
  constexpr std::size_t count = 16'384;
  const std::vector<double> moderate = moderate_numbers(2 * count, 1);
  const fp16::Philox random{.key = 47};
  Fnv1a hash;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [a, b, c, d] = random.block(i);
    const auto any = [](std::uint64_t low, std::uint64_t high) {
      return std::bit_cast<Real>(static_cast<RealBits>(high << 32 | low));
    };
    for (const Real result :
         {function(any(a, b), any(c, d)),
          function(static_cast<Real>(moderate[i]), static_cast<Real>(moderate[count + i]))})
      hash.add(std::bit_cast<RealBits>(result), 8 * sizeof(Real));
  }
  return hash.value();
}

void add_elementary_rows(std::vector<Row>& rows) {
  for (const Elementary& each : elementary) {
    rows.push_back({fmt::format("{} of float", each.name),
                    [&] { return hash_of_reals<float>([&](float x, float) { return each.of_float(x); }); }});
    rows.push_back({fmt::format("{} of double", each.name), [&] {
                      return hash_of_reals<double>([&](double x, double) { return each.of_double(x); });
                    }});
  }
  rows.push_back({"pow of float", [] { return hash_of_reals<float>(fp16::pow<float>); }});
  rows.push_back({"pow of double", [] { return hash_of_reals<double>(fp16::pow<double>); }});
}

}  // namespace

std::vector<Row> function_rows() {
  std::vector<Row> rows;
  for (const fp16::math::UnaryFunction* function : fp16::math::unary_functions()) {
    for (const fp16::NamedRounding& rounding : fp16::named_roundings)
      rows.push_back({fmt::format("{} {}", function->name(), rounding.name),
                      [function, &rounding] { return hash_of(*function, rounding.rounding); }});
  }
  add_elementary_rows(rows);
  return rows;
}

}  // namespace halflab::selftest
