#include "sim/trainer/data_parallel.h"

#include <algorithm>
#include <numeric>

#include "fp16/bulk.h"
#include "sim/tape/gradients.h"
#include "sim/tensor/tensor_contents.h"

namespace sim {
namespace {

/// Calls visit(site) for every parameter.
template <class Visit>
void for_each_weight(std::span<const GradientSite> sites, Visit visit) {
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (is_weight(sites[site])) visit(site);
  }
}

/// What a rank sends.
std::vector<float> message_of(std::span<const GradientSite> sites, const SiteGradients& gradients,
                              AllReducePrecision precision) {
  std::vector<float> message;
  for_each_weight(sites, [&](std::size_t site) {
    const Tensor& gradient = gradients.gradients[site];
    const std::vector<float> values =
        is_binary64(gradient) ? rounded(gradient, fp16::binary32).to_floats() : gradient.to_floats();
    message.insert(message.end(), values.begin(), values.end());
  });
  if (precision != AllReducePrecision::fp32) {
    std::vector<std::uint16_t> codes(message.size());
    fp16::float_to_half(message, codes);
    fp16::half_to_float(codes, message);
  }
  return message;
}

/// The means over the ranks of `count` numbers that each has shown.
template <class Real>
std::vector<Real> mean_of(const std::vector<double>& all, std::size_t count, std::size_t ranks) {
  std::vector<Real> mean(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto sum = static_cast<Real>(all[i]);
    for (std::size_t rank = 1; rank < ranks; ++rank) sum += static_cast<Real>(all[rank * count + i]);
    mean[i] = sum / static_cast<Real>(ranks);
  }
  return mean;
}

/// Numbers that are as many for every histogram, and add up to those of the sum but for the last, its largest
/// magnitude.
std::vector<double> numbers_of(const fp16::ExponentHistogram& histogram) {
  std::vector<double> numbers;
  for (int e = fp16::ExponentHistogram::min_exponent; e <= fp16::ExponentHistogram::max_exponent; ++e) {
    const auto& [total, powers_of_two, near_next, top] = histogram.octave(e);
    for (const std::uint64_t count : {total, powers_of_two, near_next, top})
      numbers.push_back(static_cast<double>(count));
  }
  for (const std::uint64_t count : {histogram.zero(), histogram.infinite(), histogram.nan()})
    numbers.push_back(static_cast<double>(count));
  numbers.push_back(histogram.max_abs());
  return numbers;
}

fp16::ExponentHistogram histogram_of(std::span<const double> numbers) {
  std::vector<fp16::ExponentHistogram::Octave> octaves;
  const auto count = [&numbers](std::size_t i) { return static_cast<std::uint64_t>(numbers[i]); };
  const std::size_t rest = numbers.size() - 4;
  for (std::size_t i = 0; i < rest; i += 4)
    octaves.push_back({count(i), count(i + 1), count(i + 2), count(i + 3)});
  return {fp16::ExponentHistogram::min_exponent,
          octaves,
          {count(rest), count(rest + 1), count(rest + 2), numbers.back()}};
}

}  // namespace

void all_reduce_gradients(std::span<const GradientSite> sites, std::span<SiteGradients* const> own,
                          const AllReduce& how, Exchange& exchange) {
  std::vector<std::vector<float>> messages;
  for (const SiteGradients* gradients : own) messages.push_back(message_of(sites, *gradients, how.precision));
  const std::vector<std::span<const float>> views(messages.begin(), messages.end());
  const std::vector<float> mean = exchange.all_reduce(views, how);
  std::size_t first = 0;
  for_each_weight(sites, [&](std::size_t site) {
    Tensor& gradient = own.front()->gradients[site];
    store({&gradient}, 0, std::span(mean).subspan(first, gradient.size()));
    first += gradient.size();
  });
}

void average_twins(std::span<const GradientSite> sites, std::span<SiteGradients* const> own,
                   Exchange& exchange) {
  for_each_weight(sites, [&](std::size_t site) {
    std::vector<double> shown;
    for (const SiteGradients* twin : own) {
      const std::vector<double> values = values_of<double>(twin->gradients[site]);
      shown.insert(shown.end(), values.begin(), values.end());
    }
    Tensor& twin = own.front()->gradients[site];
    const std::vector<double> all = exchange.gather(shown);
    if (is_binary64(twin)) {
      store({&twin}, 0, std::span<const double>(mean_of<double>(all, twin.size(), exchange.ranks())));
    } else {
      store({&twin}, 0, std::span<const float>(mean_of<float>(all, twin.size(), exchange.ranks())));
    }
  });
}

fp16::ExponentHistogram exponents_over_ranks(std::span<const GradientSite> sites,
                                             std::span<SiteGradients* const> own, Exchange& exchange) {
  fp16::ExponentHistogram sum;
  for_each_weight(sites, [&](std::size_t site) { add_exponents(sum, own.front()->gradients[site]); });
  std::vector<double> shown;
  for (const SiteGradients* gradients : own) {
    fp16::ExponentHistogram histogram;
    for (std::size_t site = 0; site < sites.size(); ++site) {
      if (!is_weight(sites[site])) add_exponents(histogram, gradients->gradients[site]);
    }
    const std::vector<double> numbers = numbers_of(histogram);
    shown.insert(shown.end(), numbers.begin(), numbers.end());
  }
  const std::size_t length = shown.size() / own.size();
  const std::vector<double> all = exchange.gather(shown);
  for (std::size_t first = 0; first < all.size(); first += length)
    sum += histogram_of(std::span(all).subspan(first, length));
  return sum;
}

double mean_over_ranks(std::span<const double> own, Exchange& exchange) {
  const std::vector<double> all = exchange.gather(own);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

bool any_rank(const std::vector<bool>& own, Exchange& exchange) {
  const std::vector<double> found(own.begin(), own.end());
  return exchange.maximum(found) != 0;
}

}  // namespace sim
