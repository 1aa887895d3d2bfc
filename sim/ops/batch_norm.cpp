#include "sim/ops/batch_norm.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/ops/channels.h"
#include "sim/ops/normalisation.h"

namespace sim {
namespace {

/// Where the statistics come from: the batch in training, and wherever there are no running ones.
bool uses_batch_statistics(const BatchNormOptions& options, bool training) {
  return training || options.running_mean == nullptr || options.running_variance == nullptr;
}

/// running = (1 - momentum) running + momentum statistic, rounded once more to the running one's format.
template <class Real>
void update_running(Tensor* running, std::size_t channel, Real statistic, double momentum) {
  if (running == nullptr) return;
  Real buffer;
  const Real before = *read(*running, channel, 1, std::span(&buffer, 1));
  const auto weight = static_cast<Real>(momentum);
  const Real after = (1 - weight) * before + weight * statistic;
  store({running}, channel, std::span(&after, 1));
}

template <class Real>
struct Statistics {
  Real mean, variance;
};

template <class Real>
Statistics<Real> running_statistics(const BatchNormOptions& options, std::size_t channel) {
  Real mean, variance;
  return {*read(*options.running_mean, channel, 1, std::span(&mean, 1)),
          *read(*options.running_variance, channel, 1, std::span(&variance, 1))};
}

/// Mean and biased variance of a channel, both values of `reductions`; in training the running statistics
/// move towards them, that of the variance towards the unbiased one.
template <class Real>
Statistics<Real> batch_statistics(const OperationCall& call, std::size_t channel, std::span<Real> values) {
  const fp16::Format reductions = call.arithmetic.reductions;
  const auto& options = call.options.get<BatchNormOptions>();
  const auto [mean, sum_of_squares] = deviations_of(values.data(), values.size(), reductions);
  const auto count = static_cast<Real>(values.size());
  if (call.training) {
    update_running(options.running_mean, channel, mean, options.momentum);
    update_running(options.running_variance, channel, rounded_to(reductions, sum_of_squares / (count - 1)),
                   options.momentum);
  }
  return {mean, rounded_to(reductions, sum_of_squares / count)};
}

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const Channels layout(x);
  const auto& options = call.options.get<BatchNormOptions>();
  const bool from_batch = uses_batch_statistics(options, call.training);
  if (call.training && layout.size() == 1) {
    throw std::invalid_argument("batch_norm: one value per channel in training; at least two are needed");
  }
  const double epsilon = checked_epsilon(batch_norm, options.epsilon);
  names::checked_option<double>(batch_norm.name, "momentum", options.momentum, names::closed_interval(0, 1));
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> weight_buffer(layout.channels), bias_buffer(layout.channels);
    const Real* weights = read(*call.inputs[1], 0, layout.channels, std::span(weight_buffer));
    const Real* biases = read(*call.inputs[2], 0, layout.channels, std::span(bias_buffer));
    call.saved.assign(2, Tensor({layout.channels}, format_of<Real>));
    const std::span<Real> means = call.saved[0].elements<Real>(), inverses = call.saved[1].elements<Real>();
    layout.for_each_block(
        call.into(output), call.arithmetic.threads,
        [&](const RoundedOutput& part, std::size_t first, std::size_t count) {
          thread_local std::vector<Real> values;
          layout.gather(x, first, count, values);
          for (std::size_t c = first; c < first + count; ++c) {
            const auto [mean, variance] = from_batch
                                              ? batch_statistics(call, c, layout.channel(values, c - first))
                                              : running_statistics<Real>(options, c);
            means[c] = mean;
            inverses[c] = 1 / std::sqrt(variance + static_cast<Real>(epsilon));
          }
          layout.scatter<Real>(part, first, count, [&](std::size_t c, std::size_t from, Real* y) {
            apply_to_each([mean = means[c], inverse = inverses[c], w = weights[c],
                           b = biases[c]](Real value) { return (value - mean) * inverse * w + b; },
                          layout.pixels, y, values.data() + from);
          });
        });
  });
  return output;
}

/// What the gradient of one channel is made of.
template <class Real>
struct ChannelGradient {
  Real mean, inverse, weight;
  Real dweight, dbias;
  Real mean_dy, mean_dy_xhat;

  ChannelGradient(const OperationGradient& g, std::size_t channel, std::span<const Real> xs, const Real* dy)
      : mean(static_cast<Real>(g.saved[0].element(channel))),
        inverse(static_cast<Real>(g.saved[1].element(channel))),
        weight(static_cast<Real>(g.inputs[1]->element(channel))) {
    const fp16::Format reductions = g.arithmetic.reductions;
    dweight = interleaved_sum<Real>(
        reductions,
        [mean = mean, inverse = inverse](Real upstream, Real x) { return upstream * ((x - mean) * inverse); },
        xs.size(), dy, xs.data());
    dbias = interleaved_sum(reductions, std::span(dy, xs.size()));
    mean_dy = mean_of_sum(reductions, dbias, xs.size());
    mean_dy_xhat = mean_of_sum(reductions, dweight, xs.size());
  }

  void through_batch_statistics(std::size_t count, Real* dx, const Real* dys, const Real* xs) const {
    apply_to_each(
        [*this, factor = inverse * weight](Real dy, Real x) {
          return factor * (dy - mean_dy - (x - mean) * inverse * mean_dy_xhat);
        },
        count, dx, dys, xs);
  }
  void through_running_statistics(std::size_t count, Real* dx, const Real* dys) const {
    apply_to_each([factor = inverse * weight](Real dy) { return factor * dy; }, count, dx, dys);
  }
};

/// dweight = sum of dy xhat and dbias = sum of dy, xhat = (x - mean) inverse. dx = inverse weight dy where
/// the running statistics were used; those of the batch are differentiated through:
/// dx = inverse weight (dy - mean of dy - xhat (mean of dy xhat)). Sums as in forward.
void backward(const OperationGradient& g) {
  const Channels layout(*g.inputs[0]);
  const bool from_batch = uses_batch_statistics(g.options.get<BatchNormOptions>(), g.training);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> dweight(layout.channels), dbias(layout.channels);
    layout.for_each_block(
        g.input_gradients[0], g.arithmetic.threads,
        [&](const RoundedOutput& part, std::size_t first, std::size_t count) {
          thread_local std::vector<Real> x, dy;
          layout.gather(*g.inputs[0], first, count, x);
          layout.gather(g.output_gradient, first, count, dy);
          std::vector<ChannelGradient<Real>> channels;
          for (std::size_t c = 0; c < count; ++c) {
            channels.emplace_back(g, first + c, layout.channel(x, c), layout.channel(dy, c).data());
            dweight[first + c] = channels[c].dweight;
            dbias[first + c] = channels[c].dbias;
          }
          if (!part.tensor) return;
          layout.scatter<Real>(part, first, count, [&](std::size_t c, std::size_t from, Real* dx) {
            const ChannelGradient<Real>& channel = channels[c - first];
            if (from_batch) {
              channel.through_batch_statistics(layout.pixels, dx, dy.data() + from, x.data() + from);
            } else {
              channel.through_running_statistics(layout.pixels, dx, dy.data() + from);
            }
          });
        });
    if (g.input_gradients[1].tensor) store(g.input_gradients[1], 0, std::span<const Real>(dweight));
    if (g.input_gradients[2].tensor) store(g.input_gradients[2], 0, std::span<const Real>(dbias));
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const Tensor& x = *call.inputs[0];
  return call.rule.norm(x.size() / x.shape()[1]);
}

}  // namespace

constinit const Operation batch_norm{
    .name = "batch_norm",
    .description = "each channel to mean 0 and variance 1, then times a weight plus a bias",
    .casts = on_no_list,
    .keeps_first_format = true,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
