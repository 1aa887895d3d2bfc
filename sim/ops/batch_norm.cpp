#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/ops/groups.h"
#include "sim/ops/normalisation.h"

namespace sim {
namespace {

/// The channels of an NCHW tensor: image n holds `pixels` contiguous elements of channel c.
struct Channels {
  std::size_t images, channels, pixels;

  explicit Channels(const Tensor& x)
      : images(x.shape()[0]), channels(x.shape()[1]), pixels(x.size() / (images * channels)) {}

  std::size_t size() const { return images * pixels; }
  std::size_t offset(std::size_t image, std::size_t channel) const {
    return (image * channels + channel) * pixels;
  }

  /// One channel, image after image.
  template <class Real>
  void gather(const Tensor& x, std::size_t channel, std::span<Real> values) const {
    for (std::size_t image = 0; image < images; ++image) {
      const std::span<Real> plane = values.subspan(image * pixels, pixels);
      const Real* stored = read(x, offset(image, channel), pixels, plane);
      if (stored != plane.data()) std::copy_n(stored, pixels, plane.data());
    }
  }
  template <class Real>
  void scatter(const RoundedOutput& out, std::size_t channel, std::span<const Real> values) const {
    for (std::size_t image = 0; image < images; ++image)
      store(out, offset(image, channel), values.subspan(image * pixels, pixels));
  }
};

/// Where the statistics come from: the batch in training, and wherever there are no running ones.
bool uses_batch_statistics(const OperationOptions& options, bool training) {
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
Statistics<Real> running_statistics(const OperationOptions& options, std::size_t channel) {
  Real mean, variance;
  return {*read(*options.running_mean, channel, 1, std::span(&mean, 1)),
          *read(*options.running_variance, channel, 1, std::span(&variance, 1))};
}

/// Mean and biased variance of a channel, both values of `reductions`; in training the running statistics
/// move towards them, that of the variance towards the unbiased one.
template <class Real>
Statistics<Real> batch_statistics(const OperationCall& call, std::size_t channel,
                                  std::span<const Real> values) {
  const fp16::Format reductions = call.arithmetic.reductions;
  const auto [mean, sum_of_squares] = deviations_of(values.data(), values.size(), reductions);
  const auto count = static_cast<Real>(values.size());
  if (call.training) {
    update_running(call.options.running_mean, channel, mean, call.options.momentum);
    update_running(call.options.running_variance, channel,
                   rounded_to(reductions, sum_of_squares / (count - 1)), call.options.momentum);
  }
  return {mean, rounded_to(reductions, sum_of_squares / count)};
}

/// inputs: x (N x C x ...), weight and bias (C); options.epsilon, momentum, running_mean, running_variance.
/// y = (x - mean) * inverse * weight + bias, where inverse = 1 / sqrt(variance + epsilon), per channel: of
/// the batch in training, else the running ones. Batch statistics take two passes, each summed in the
/// interleaved order through the pixels of the images, in ascending order. Saved: the channels' means and
/// their inverses.
Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const Channels layout(x);
  const bool from_batch = uses_batch_statistics(call.options, call.training);
  if (call.training && layout.size() == 1) {
    throw std::invalid_argument("batch_norm: one value per channel in training; at least two are needed");
  }
  const double epsilon = checked_epsilon(batch_norm, call.options);
  checked_option<double>(batch_norm.name, "momentum", call.options.momentum, closed_interval(0, 1));
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> weight_buffer(layout.channels), bias_buffer(layout.channels);
    const Real* weights = read(*call.inputs[1], 0, layout.channels, std::span(weight_buffer));
    const Real* biases = read(*call.inputs[2], 0, layout.channels, std::span(bias_buffer));
    call.saved.assign(2, Tensor({layout.channels}, format_of<Real>));
    const std::span<Real> means = call.saved[0].elements<Real>(), inverses = call.saved[1].elements<Real>();
    for_each_part_of_groups(
        call.into(output), layout.channels, layout.size(), call.arithmetic.threads,
        [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
          std::vector<Real> values(layout.size());
          for (std::size_t c = first; c < last; ++c) {
            layout.gather(x, c, std::span(values));
            const auto [mean, variance] = from_batch
                                              ? batch_statistics(call, c, std::span<const Real>(values))
                                              : running_statistics<Real>(call.options, c);
            means[c] = mean;
            inverses[c] = 1 / std::sqrt(variance + static_cast<Real>(epsilon));
            apply_in_place([mean = mean, inverse = inverses[c], w = weights[c],
                            b = biases[c]](Real value) { return (value - mean) * inverse * w + b; },
                           values.size(), values.data());
            layout.scatter(part, c, std::span<const Real>(values));
          }
        });
  });
  return output;
}

/// What backward knows of one channel.
template <class Real>
struct ChannelGradient {
  Real factor;  ///< inverse * weight
  Real dweight, dbias;

  /// gradients = factor (dy - mean of dy - xhat (mean of dy xhat)), from dy.
  void through_statistics(std::span<Real> gradients, const Real* xhat, fp16::Format reductions) const {
    const auto count = static_cast<Real>(gradients.size());
    const Real mean_dy = rounded_to(reductions, dbias / count),
               mean_dy_xhat = rounded_to(reductions, dweight / count);
    apply_in_place(
        [=, factor = factor](Real dy, Real x) { return factor * (dy - mean_dy - x * mean_dy_xhat); },
        gradients.size(), gradients.data(), xhat);
  }
};

/// dweight = sum of dy xhat and dbias = sum of dy, xhat = (x - mean) inverse. dx = inverse weight dy where
/// the running statistics were used; those of the batch are differentiated through. Sums as in forward.
void backward(const OperationGradient& g) {
  const Channels layout(*g.inputs[0]);
  const bool from_batch = uses_batch_statistics(g.options, g.training);
  const fp16::Format reductions = g.arithmetic.reductions;
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> dweight(layout.channels), dbias(layout.channels);
    for_each_part_of_groups(
        g.input_gradients[0], layout.channels, layout.size(), g.arithmetic.threads,
        [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
          const std::size_t count = layout.size();
          std::vector<Real> xhat(count), gradients(count);
          for (std::size_t c = first; c < last; ++c) {
            layout.gather(*g.inputs[0], c, std::span(xhat));
            layout.gather(g.output_gradient, c, std::span(gradients));
            const auto mean = static_cast<Real>(g.saved[0].element(c)),
                       inverse = static_cast<Real>(g.saved[1].element(c)),
                       weight = static_cast<Real>(g.inputs[1]->element(c));
            apply_in_place([=](Real value) { return (value - mean) * inverse; }, count, xhat.data());
            const Real *x = xhat.data(), *dy = gradients.data();
            dweight[c] =
                interleaved_sum<Real>(reductions, count, [=](std::size_t i) { return dy[i] * x[i]; });
            dbias[c] = interleaved_sum<Real>(reductions, count, [=](std::size_t i) { return dy[i]; });
            if (!part.tensor) continue;
            const ChannelGradient<Real> channel{inverse * weight, dweight[c], dbias[c]};
            if (from_batch) {
              channel.through_statistics(gradients, x, reductions);
            } else {
              apply_in_place([factor = channel.factor](Real gradient) { return factor * gradient; }, count,
                             gradients.data());
            }
            layout.scatter(part, c, std::span<const Real>(gradients));
          }
        });
    if (g.input_gradients[1].tensor) store(g.input_gradients[1], 0, std::span<const Real>(dweight));
    if (g.input_gradients[2].tensor) store(g.input_gradients[2], 0, std::span<const Real>(dbias));
  });
}

}  // namespace

constinit const Operation batch_norm{
    .name = "batch_norm",
    .description = "each channel to mean 0 and variance 1, then times a weight plus a bias",
    .keeps_first_format = true,
    .forward = forward,
    .backward = backward};

}  // namespace sim
