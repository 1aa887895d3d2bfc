#include "experiments/allreduce_precision/gradients.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/frame/parallel.h"
#include "fp16/bulk.h"
#include "sim/tape/gradients.h"
#include "sim/tensor/random.h"

namespace experiments::allreduce_precision {
namespace {

std::vector<float> rounded_to_half(std::vector<float> values) {
  std::vector<std::uint16_t> codes(values.size());
  fp16::float_to_half(values, codes);
  fp16::half_to_float(codes, values);
  return values;
}

struct Moments {
  double mean;
  double deviation;  ///< sample standard deviation; 0 of a single value
};

Moments moments(std::span<const std::vector<float>> samples, std::size_t element) {
  const auto count = static_cast<double>(samples.size());
  double sum = 0, square = 0;
  for (const std::vector<float>& sample : samples) sum += static_cast<double>(sample[element]);
  const double mean = sum / count;
  for (const std::vector<float>& sample : samples) {
    const double difference = static_cast<double>(sample[element]) - mean;
    square += difference * difference;
  }
  return {.mean = mean, .deviation = count > 1 ? std::sqrt(square / (count - 1)) : 0};
}

}  // namespace

std::string_view name_of(Source source) {
  return source == Source::network ? "network" : "normal";
}

GradientPool::GradientPool(const TrainingSetup& setup, const sim::Trainer& trainer,
                           const sim::PrecisionPolicy& policy, const PoolOptions& options)
    : options_(options) {
  record(setup, trainer, policy);
  choose_elements();
  std::vector<std::vector<float>> twins(steps_.size());
  parallel_for_each(twins.size(), options_.threads, [&](std::size_t i) {
    const sim::RecordedStep& step = steps_[i];
    twins[i] = chosen(step.tape.backward(step.forward.loss, {.loss_scale = 1, .twin = fp16::binary32}));
  });
  draw_normal(twins);
  for (const std::vector<float>& twin : twins) exponents_.add(twin);
  for (const std::vector<float>& worker : normal_) exponents_.add(worker);
}

void GradientPool::record(const TrainingSetup& setup, const sim::Trainer& trainer,
                          const sim::PrecisionPolicy& policy) {
  sim::BatchSampler batches(setup.dataset(), options_.seed, options_.examples);
  for (std::size_t i = 0; i < options_.micro_batches; ++i) {
    const std::uint64_t step = trainer.steps_done() + i;
    steps_.push_back(sim::record_step(setup.model(), trainer.state(), batches.batch(step), policy,
                                      {.seed = options_.seed, .step = step}));
  }
}

void GradientPool::choose_elements() {
  const sim::Tape& tape = steps_.front().tape;
  std::size_t total = 0;
  for (const sim::GradientSite& site : tape.sites()) {
    if (sim::is_weight(site)) total += tape.value(site.variable).size();
  }
  elements_ = sim::permutation(sim::RandomStream(options_.seed, "allreduce_precision.elements"),
                               static_cast<std::uint32_t>(total));
  elements_.resize(std::min(options_.elements, total));
  std::ranges::sort(elements_);
}

std::vector<float> GradientPool::chosen(const sim::SiteGradients& gradients) const {
  const std::vector<sim::GradientSite>& sites = steps_.front().tape.sites();
  std::vector<float> all, values;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!sim::is_weight(sites[i])) continue;
    const std::vector<float> tensor = gradients.gradients[i].to_floats();
    all.insert(all.end(), tensor.begin(), tensor.end());
  }
  for (const std::uint32_t element : elements_) values.push_back(all[element]);
  return values;
}

void GradientPool::draw_normal(std::span<const std::vector<float>> twins) {
  const std::size_t elements = elements_.size();
  std::vector<float> means(elements), deviations(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const Moments fitted = moments(twins, i);
    means[i] = static_cast<float>(fitted.mean);
    deviations[i] = static_cast<float>(fitted.deviation);
  }
  const sim::RandomStream stream(options_.seed, "allreduce_precision.normal");
  normal_.assign(options_.workers, std::vector<float>(elements));
  parallel_for_each(normal_.size(), options_.threads, [&](std::size_t worker) {
    std::vector<std::uint32_t> bits(elements);
    stream.fill_bits(worker * elements, bits);
    for (std::size_t i = 0; i < elements; ++i)
      normal_[worker][i] = means[i] + deviations[i] * sim::RandomStream::normal_from_bits(bits[i]);
  });
}

WorkerGradients GradientPool::gradients(Source source, int scale_log2) const {
  const float scale = std::ldexp(1.0f, scale_log2);
  const bool from_network = source == Source::network;
  WorkerGradients made{
      .arrays = std::vector<std::vector<float>>(from_network ? steps_.size() : normal_.size()),
      .workers = {}};
  parallel_for_each(made.arrays.size(), options_.threads, [&](std::size_t i) {
    std::vector<float> values;
    if (from_network) {
      values = chosen(steps_[i].tape.backward(steps_[i].forward.loss, {.loss_scale = scale}));
    } else {
      values = normal_[i];
      for (float& value : values) value *= scale;
    }
    made.arrays[i] = rounded_to_half(std::move(values));
  });
  const sim::RandomStream draws(options_.seed, "allreduce_precision.workers");
  for (std::size_t worker = 0; worker < options_.workers; ++worker) {
    const std::size_t count = made.arrays.size();
    made.workers.push_back(made.arrays[worker < count ? worker : draws.below(worker, count)]);
  }
  return made;
}

}  // namespace experiments::allreduce_precision
