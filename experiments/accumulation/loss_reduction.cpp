#include "experiments/accumulation/loss_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "experiments/frame/parallel.h"
#include "fp16/arithmetic.h"
#include "fp16/bulk.h"
#include "fp16/codec.h"
#include "fp16/sign.h"
#include "fp16/sum.h"
#include "sim/tensor/random.h"

namespace experiments::accumulation {
namespace {

using fp16::binary16;
using Codes = std::vector<std::uint16_t>;

std::uint16_t half_loss(Loss loss, std::uint16_t prediction, std::uint16_t target) {
  const std::uint16_t difference = fp16::subtract<binary16>(prediction, target).bits;
  return loss == Loss::l1 ? fp16::magnitude<binary16>(difference)
                          : fp16::multiply<binary16>(difference, difference).bits;
}

template <class Real>
Real real_loss(Loss loss, std::uint16_t prediction, std::uint16_t target) {
  const Real difference =
      static_cast<Real>(fp16::half_bits_to_float(prediction)) - fp16::half_bits_to_float(target);
  return loss == Loss::l1 ? std::fabs(difference) : difference * difference;
}

double half_mean(const MeanMethod& method, std::span<const std::uint16_t> losses) {
  const auto sum = method.reduction == Reduction::fp16_pairwise ? fp16::sum_pairwise<binary16>
                                                                : fp16::sum_sequential<binary16>;
  const std::uint16_t factor = fp16::double_to_half_bits(1.0 / static_cast<double>(losses.size()));
  if (method.normalisation == Normalisation::sum_then_divide)
    return fp16::decode<binary16>(fp16::multiply<binary16>(sum(losses, {}).bits, factor).bits);
  Codes shares(losses.size());
  fp16::multiply<binary16>(losses, Codes(losses.size(), factor), shares);
  return fp16::decode<binary16>(sum(shares, {}).bits);
}

double float_mean(const MeanMethod& method, std::span<const float> losses) {
  const float factor = 1.0f / static_cast<float>(losses.size());
  const bool first = method.normalisation == Normalisation::divide_first;
  float sum = 0;
  for (const float loss : losses) sum += first ? loss * factor : loss;
  return first ? sum : sum * factor;
}

template <class Value, class LossOf>
std::vector<Value> losses_of(const Codes& predictions, const Codes& targets, LossOf loss_of) {
  std::vector<Value> losses(predictions.size());
  std::ranges::transform(predictions, targets, losses.begin(), loss_of);
  return losses;
}

/// mean(first n losses) for n = 1, 2, 4 ...
template <class Value, class Mean>
std::vector<double> means_by_batch(const std::vector<Value>& losses, Mean mean) {
  std::vector<double> means;
  for (std::size_t batch = 1; batch <= losses.size(); batch *= 2)
    means.push_back(mean(std::span<const Value>(losses).first(batch)));
  return means;
}

Codes draw_halves(std::uint64_t seed, std::string_view purpose, std::size_t repeat) {
  const sim::RandomStream stream(seed, fmt::format("accumulation.loss.{}{}", purpose, repeat));
  Codes codes(std::size_t{1} << max_batch_log2);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = fp16::float_to_half_bits(stream.normal(i));
  return codes;
}

/// The means of one repeat, indexed [method][batch].
struct Repeat {
  std::vector<std::vector<double>> computed;
  std::vector<std::vector<double>> exact;
};

Repeat measure_repeat(std::uint64_t seed, std::size_t repeat) {
  const Codes predictions = draw_halves(seed, "prediction", repeat),
              targets = draw_halves(seed, "target", repeat);
  Repeat result;
  for (const MeanMethod& method : mean_methods()) {
    result.computed.push_back(means_of_prefixes(method, predictions, targets));
    result.exact.push_back(exact_means_of_prefixes(method.loss, predictions, targets));
  }
  return result;
}

MeanError error_at(const std::vector<Repeat>& repeats, std::size_t method, std::size_t batch) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  MeanError result{.batch_log2 = static_cast<int>(batch), .error = {}};
  std::vector<double> errors;
  for (const Repeat& repeat : repeats) {
    const double computed = repeat.computed[method][batch], exact = repeat.exact[method][batch];
    const bool finite = std::isfinite(computed);
    result.not_finite += !finite;
    result.ratio += (finite ? computed / exact : infinity) / static_cast<double>(repeats.size());
    errors.push_back(finite ? std::fabs(computed - exact) / exact : infinity);
  }
  result.error = estimate(errors);
  result.largest = std::ranges::max(errors);
  return result;
}

}  // namespace

std::string_view name_of(Loss loss) {
  return loss == Loss::l1 ? "l1" : "mse";
}

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 3> names{"fp16_sequential", "fp16_pairwise", "fp32_sequential"};
  return names[static_cast<std::size_t>(reduction)];
}

std::string_view name_of(Normalisation normalisation) {
  return normalisation == Normalisation::sum_then_divide ? "sum_then_divide" : "divide_first";
}

std::string_view name_of(Failure::Kind kind) {
  return kind == Failure::Kind::stalls ? "stalls" : "overflows";
}

std::vector<MeanMethod> mean_methods() {
  std::vector<MeanMethod> methods;
  for (const Loss loss : {Loss::l1, Loss::mse}) {
    for (const Reduction reduction :
         {Reduction::fp16_sequential, Reduction::fp16_pairwise, Reduction::fp32_sequential}) {
      for (const Normalisation normalisation : {Normalisation::sum_then_divide, Normalisation::divide_first})
        methods.push_back({loss, reduction, normalisation});
    }
  }
  return methods;
}

std::vector<double> means_of_prefixes(const MeanMethod& method, const Codes& predictions,
                                      const Codes& targets) {
  if (method.reduction == Reduction::fp32_sequential) {
    const auto losses = losses_of<float>(predictions, targets,
                                         [&](auto p, auto t) { return real_loss<float>(method.loss, p, t); });
    return means_by_batch(losses, [&](std::span<const float> batch) { return float_mean(method, batch); });
  }
  const auto losses = losses_of<std::uint16_t>(predictions, targets,
                                               [&](auto p, auto t) { return half_loss(method.loss, p, t); });
  return means_by_batch(losses,
                        [&](std::span<const std::uint16_t> batch) { return half_mean(method, batch); });
}

std::vector<double> exact_means_of_prefixes(Loss loss, const Codes& predictions, const Codes& targets) {
  const auto losses =
      losses_of<double>(predictions, targets, [&](auto p, auto t) { return real_loss<double>(loss, p, t); });
  return means_by_batch(losses, [](std::span<const double> batch) {
    return std::accumulate(batch.begin(), batch.end(), 0.0) / static_cast<double>(batch.size());
  });
}

std::optional<Failure> MeasuredMean::failure() const {
  const auto holds = [](const MeanError& error) { return error.largest <= failing_error; };
  const auto failed = std::find_if(errors.rbegin(), errors.rend(), holds).base();
  if (failed == errors.end()) return std::nullopt;
  return Failure{.kind = failed->not_finite > 0 ? Failure::Kind::overflows : Failure::Kind::stalls,
                 .batch_log2 = failed->batch_log2};
}

std::vector<MeasuredMean> measure_means(std::uint64_t seed, int repeats, Run& run) {
  std::vector<Repeat> results(static_cast<std::size_t>(repeats));
  Progress progress = run.progress("losses", results.size());
  parallel_for_each(results.size(), run.threads(), [&](std::size_t i) {
    results[i] = measure_repeat(seed, i);
    progress.tick();
  });
  std::vector<MeasuredMean> means;
  for (const MeanMethod& method : mean_methods()) {
    MeasuredMean& mean = means.emplace_back(MeasuredMean{.method = method, .errors = {}});
    for (std::size_t batch = 0; batch <= static_cast<std::size_t>(max_batch_log2); ++batch)
      mean.errors.push_back(error_at(results, means.size() - 1, batch));
  }
  return means;
}

}  // namespace experiments::accumulation
