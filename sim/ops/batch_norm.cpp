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

/// The sum over all shards of number `index` of the `count` numbers that each has shown, the shards in their order.
template <class Real>
Real sum_over_shards(std::span<const double> shown, std::size_t count, std::size_t index,
                     fp16::Format reductions) {
  auto sum = static_cast<Real>(shown[index]);
  for (std::size_t i = index + count; i < shown.size(); i += count)
    sum = rounded_to(reductions, sum + static_cast<Real>(shown[i]));
  return sum;
}

/// Statistics of every channel over all shards, from what each shard finds for itself: the mean is that of their means, the sum
/// of squares that of theirs, each about its own mean, and of what the means' distances from the whole one add.
template <class Real>
std::vector<Deviations<Real>> deviations_over_shards(const OperationCall& call, const Channels& layout) {
  const fp16::Format reductions = call.arithmetic.reductions;
  const std::size_t channels = layout.channels;
  std::vector<double> own(2 * channels);
  layout.for_each_block(
      {}, call.arithmetic.threads, [&](const RoundedOutput&, std::size_t first, std::size_t count) {
        thread_local std::vector<Real> values;
        layout.gather(*call.inputs[0], first, count, values);
        for (std::size_t c = 0; c < count; ++c) {
          const auto found = deviations_of(layout.channel(values, c).data(), layout.size(), reductions);
          own[first + c] = static_cast<double>(found.mean);
          own[channels + first + c] = static_cast<double>(found.sum_of_squares);
        }
      });
  const std::vector<double> shown = call.gathering->gather(own);
  std::vector<Deviations<Real>> all;
  for (std::size_t c = 0; c < channels; ++c) {
    const Real mean =
        mean_of_sum(reductions, sum_over_shards<Real>(shown, own.size(), c, reductions), call.shard.count);
    Real squares = sum_over_shards<Real>(shown, own.size(), channels + c, reductions);
    for (std::size_t i = c; i < shown.size(); i += own.size()) {
      const Real distance = static_cast<Real>(shown[i]) - mean;
      squares = rounded_to(reductions, squares + static_cast<Real>(layout.size()) * distance * distance);
    }
    all.push_back({mean, squares});
  }
  return all;
}

/// Mean and biased variance of a channel of `size` values, both values of `reductions`; in training the running
/// statistics move towards them, that of the variance towards the unbiased one.
template <class Real>
Statistics<Real> batch_statistics(const OperationCall& call, std::size_t channel,
                                  const Deviations<Real>& deviations, std::size_t size) {
  const fp16::Format reductions = call.arithmetic.reductions;
  const auto& options = call.options.get<BatchNormOptions>();
  const auto [mean, sum_of_squares] = deviations;
  const auto count = static_cast<Real>(size);
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
  const bool from_shards = call.training && call.gathering;
  const std::size_t batch_size = layout.size() * (from_shards ? call.shard.count : 1);
  if (call.training && batch_size == 1) {
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
    std::vector<Deviations<Real>> of_shards;
    if (from_shards) of_shards = deviations_over_shards<Real>(call, layout);
    const auto deviations = [&](std::size_t channel, std::span<const Real> values) {
      return from_shards ? of_shards[channel]
                         : deviations_of(values.data(), values.size(), call.arithmetic.reductions);
    };
    layout.for_each_block(
        call.into(output), call.arithmetic.threads,
        [&](const RoundedOutput& part, std::size_t first, std::size_t count) {
          thread_local std::vector<Real> values;
          layout.gather(x, first, count, values);
          for (std::size_t c = first; c < first + count; ++c) {
            const auto [mean, variance] =
                from_batch
                    ? batch_statistics(call, c, deviations(c, layout.channel(values, c - first)), batch_size)
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
    take_means(dbias, dweight, xs.size(), reductions);
  }

  void take_means(Real sum_dy, Real sum_dy_xhat, std::size_t size, fp16::Format reductions) {
    mean_dy = mean_of_sum(reductions, sum_dy, size);
    mean_dy_xhat = mean_of_sum(reductions, sum_dy_xhat, size);
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

/// Calls visit(part, first, x, dy, gradients) for blocks of channels from `first` on, which lie in x and dy one after
/// the other.
template <class Real, class Visit>
void for_each_channel_gradient(const OperationGradient& g, const Channels& layout, const RoundedOutput& out,
                               Visit visit) {
  layout.for_each_block(
      out, g.arithmetic.threads, [&](const RoundedOutput& part, std::size_t first, std::size_t count) {
        thread_local std::vector<Real> x, dy;
        layout.gather(*g.inputs[0], first, count, x);
        layout.gather(g.output_gradient, first, count, dy);
        std::vector<ChannelGradient<Real>> channels;
        for (std::size_t c = 0; c < count; ++c)
          channels.emplace_back(g, first + c, layout.channel(x, c), layout.channel(dy, c).data());
        visit(part, first, x, dy, channels);
      });
}

/// The sums of dy and of dy xhat, channel by channel, that all shards find: those of one shard after those of another.
template <class Real>
std::vector<double> gradient_sums_of_shards(const OperationGradient& g, const Channels& layout) {
  std::vector<double> own(2 * layout.channels);
  for_each_channel_gradient<Real>(
      g, layout, {}, [&](const RoundedOutput&, std::size_t first, auto&, auto&, const auto& channels) {
        for (std::size_t c = 0; c < channels.size(); ++c) {
          own[first + c] = static_cast<double>(channels[c].dbias);
          own[layout.channels + first + c] = static_cast<double>(channels[c].dweight);
        }
      });
  return g.gathering->gather(own);
}

/// dweight = sum of dy xhat and dbias = sum of dy, xhat = (x - mean) inverse. dx = inverse weight dy where
/// the running statistics were used; those of the batch are differentiated through:
/// dx = inverse weight (dy - mean of dy - xhat (mean of dy xhat)). Sums as in forward; of the statistics of several
/// shards the means are over all of them, in their order, dweight and dbias this shard's own.
void backward(const OperationGradient& g) {
  const Channels layout(*g.inputs[0]);
  const bool from_batch = uses_batch_statistics(g.options.get<BatchNormOptions>(), g.training);
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> dweight(layout.channels), dbias(layout.channels);
    std::vector<double> of_shards;
    if (g.training && g.gathering) of_shards = gradient_sums_of_shards<Real>(g, layout);
    const auto take_means_over_shards = [&](ChannelGradient<Real>& gradient, std::size_t channel) {
      const fp16::Format reductions = g.arithmetic.reductions;
      const auto sum = [&](std::size_t index) {
        return sum_over_shards<Real>(of_shards, 2 * layout.channels, index, reductions);
      };
      gradient.take_means(sum(channel), sum(layout.channels + channel), layout.size() * g.shard.count,
                          reductions);
    };
    for_each_channel_gradient<Real>(
        g, layout, g.input_gradients[0],
        [&](const RoundedOutput& part, std::size_t first, const std::vector<Real>& x,
            const std::vector<Real>& dy, std::vector<ChannelGradient<Real>>& channels) {
          const std::size_t count = channels.size();
          for (std::size_t c = 0; c < count; ++c) {
            dweight[first + c] = channels[c].dweight;
            dbias[first + c] = channels[c].dbias;
            if (!of_shards.empty()) take_means_over_shards(channels[c], first + c);
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
