#include "experiments/accumulation/accumulators.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "fp16/bulk.h"
#include "fp16/codec.h"
#include "fp16/mma.h"
#include "sim/precision/arithmetic.h"

namespace experiments::accumulation {
namespace {

using fp16::binary16;
using fp16::binary32;

constexpr std::uint16_t one = 0x3c00;

double value_of(const Accumulator& accumulator, std::uint32_t sum) {
  return accumulator.format == binary32 ? fp16::decode<binary32>(sum)
                                        : fp16::decode<binary16>(static_cast<std::uint16_t>(sum));
}

/// Products of halves are binary32 numbers, so that the addition is the step's only rounding.
std::uint32_t fp32_step(std::uint32_t sum, Halves a, Halves b) {
  const float product = fp16::half_bits_to_float(a[0]) * fp16::half_bits_to_float(b[0]);
  return std::bit_cast<std::uint32_t>(std::bit_cast<float>(sum) + product);
}

std::uint32_t fp16_fma_step(std::uint32_t sum, Halves a, Halves b) {
  return fp16::fma<binary16>(a[0], b[0], static_cast<std::uint16_t>(sum)).bits;
}

std::uint32_t fp16_mul_add_step(std::uint32_t sum, Halves a, Halves b) {
  return fp16::add<binary16>(static_cast<std::uint16_t>(sum), fp16::multiply<binary16>(a[0], b[0]).bits).bits;
}

Accumulator one_by_one(std::string name, const fp16::Format& format, Step step) {
  return {.name = std::move(name),
          .format = format,
          .step = std::move(step),
          .step_error = format.unit_roundoff()};
}

template <const fp16::Format& F>
Accumulator on_tensor_core(std::string name, const fp16::TensorCore& core) {
  constexpr bool truncates = F == binary32;
  const double alignment = (core.products_per_step + 1) * std::ldexp(1.0, -core.fraction_bits);
  return {.name = std::move(name),
          .format = F,
          .step = [core](std::uint32_t sum, Halves a, Halves b) -> std::uint32_t {
            return fp16::mma_step<F>(core, a, b, static_cast<fp16::Bits<F>>(sum));
          },
          .products_per_step = static_cast<std::size_t>(core.products_per_step),
          .step_error = alignment + (truncates ? 2 : 1) * F.unit_roundoff(),
          .truncates = truncates};
}

Accumulator registered_chain(const std::string& name) {
  const sim::ProductAccumulation products = sim::find_product_accumulation(name);
  if (products.tensor_core) {
    const fp16::TensorCore& core = products.tensor_core->core;
    return products.ends_in_binary16() ? on_tensor_core<binary16>(name, core)
                                       : on_tensor_core<binary32>(name, core);
  }
  switch (products.chain) {
    case fp16::Accumulation::fp32_fma_chain:
      return one_by_one(name, binary32, fp32_step);
    case fp16::Accumulation::fp16_fma_chain:
      return one_by_one(name, binary16, fp16_fma_step);
    case fp16::Accumulation::fp16_mul_add_chain:
      return one_by_one(name, binary16, fp16_mul_add_step);
    case fp16::Accumulation::fp64_fma_chain:
      break;
  }
  throw std::logic_error("accumulation '" + name + "' has no step here");
}

/// Additions on the longest way to the root of a tree whose nodes have that many leaves each.
double tree_depth(int width_log2, std::size_t length) {
  const int length_log2 = std::bit_width(length - 1);
  return width_log2 * ((length_log2 + width_log2 - 1) / width_log2);
}

/// Roundings on the longest way from a product to the sum, that of the product included; NaN where they make
/// up for each other.
double roundings(std::string_view order, std::size_t length) {
  if (order == "pairwise") return 1 + tree_depth(1, length);
  if (order == "blocked_tree_32") return 1 + tree_depth(5, length);
  if (order == "blocked_tree_256") return 1 + tree_depth(8, length);
  if (order == "exact") return 2;
  return std::numeric_limits<double>::quiet_NaN();
}

SumOfOnes chain_of_ones(const Accumulator& accumulator) {
  const std::vector<std::uint16_t> ones(accumulator.products_per_step, one);
  std::uint32_t sum = 0;
  for (std::uint64_t count = 0;; count += ones.size()) {
    const std::uint32_t next = accumulator.step(sum, ones, ones);
    const double value = value_of(accumulator, sum);
    if (!std::isfinite(value_of(accumulator, next)))
      return {SumOfOnes::Outcome::overflows, value, count + ones.size()};
    if (next == sum) return {SumOfOnes::Outcome::stagnates, value, count};
    sum = next;
  }
}

SumOfOnes ordered_ones(const Accumulator& accumulator) {
  double last = 0;
  for (std::size_t count = 1;; count *= 2) {
    const double sum =
        value_of(accumulator, accumulator.order->sum(std::vector<std::uint16_t>(count, one), {}).bits);
    if (!std::isfinite(sum)) return {SumOfOnes::Outcome::overflows, last, count};
    if (sum == last) return {SumOfOnes::Outcome::stagnates, last, count / 2};
    last = sum;
  }
}

}  // namespace

std::vector<Accumulator> accumulators() {
  std::vector<Accumulator> all;
  for (const std::string& name : sim::product_accumulation_names()) all.push_back(registered_chain(name));
  for (const fp16::SumOrder<binary16>& order : fp16::sum_orders<binary16>) {
    if (order.name == "sequential") continue;
    all.push_back({.name = "fp16_" + std::string(order.name), .format = binary16, .order = &order});
  }
  return all;
}

std::vector<Accumulator> directed_additions() {
  using fp16::Rounding;
  constexpr std::array directions{
      std::pair{"nearest_away", Rounding::nearest_away}, std::pair{"toward_zero", Rounding::toward_zero},
      std::pair{"toward_positive", Rounding::toward_positive},
      std::pair{"toward_negative", Rounding::toward_negative}, std::pair{"to_odd", Rounding::to_odd}};
  std::vector<Accumulator> all;
  for (const auto& [name, rounding] : directions) {
    const fp16::Attributes attributes{.rounding = rounding};
    Step step = [attributes](std::uint32_t sum, Halves a, Halves) -> std::uint32_t {
      return fp16::add<binary16>(static_cast<std::uint16_t>(sum), a[0], attributes).bits;
    };
    all.push_back(one_by_one("fp16_" + std::string(name), binary16, std::move(step)));
  }
  return all;
}

std::vector<double> dots_of_prefixes(const Accumulator& accumulator, Halves a, Halves b,
                                     std::span<const std::size_t> lengths) {
  std::vector<double> dots;
  if (accumulator.order != nullptr) {
    std::vector<std::uint16_t> products(a.size());
    fp16::multiply<binary16>(a, b, products);
    for (const std::size_t length : lengths)
      dots.push_back(
          value_of(accumulator, accumulator.order->sum(std::span(products).first(length), {}).bits));
    return dots;
  }
  const std::size_t in_step = accumulator.products_per_step;
  std::uint32_t sum = 0;
  std::size_t done = 0;
  for (const std::size_t length : lengths) {
    for (; done + in_step <= length; done += in_step)
      sum = accumulator.step(sum, a.subspan(done, in_step), b.subspan(done, in_step));
    const std::size_t left = length - done;
    dots.push_back(value_of(
        accumulator, left == 0 ? sum : accumulator.step(sum, a.subspan(done, left), b.subspan(done, left))));
  }
  return dots;
}

ErrorBounds error_bounds(const Accumulator& accumulator, std::size_t length) {
  if (accumulator.order != nullptr) {
    const double count = roundings(accumulator.order->name, length), u = accumulator.format.unit_roundoff();
    return {.worst_case = count * u, .probabilistic = std::sqrt(count) * u};
  }
  const std::size_t in_step = accumulator.products_per_step;
  const auto steps = static_cast<double>((length + in_step - 1) / in_step);
  return {.worst_case = steps * accumulator.step_error,
          .probabilistic = accumulator.truncates ? std::numeric_limits<double>::quiet_NaN()
                                                 : std::sqrt(steps) * accumulator.step_error};
}

std::string_view name_of(SumOfOnes::Outcome outcome) {
  return outcome == SumOfOnes::Outcome::stagnates ? "stagnates" : "overflows";
}

SumOfOnes sum_of_ones(const Accumulator& accumulator) {
  return accumulator.order != nullptr ? ordered_ones(accumulator) : chain_of_ones(accumulator);
}

}  // namespace experiments::accumulation
