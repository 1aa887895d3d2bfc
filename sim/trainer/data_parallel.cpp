#include "sim/trainer/data_parallel.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>

#include "sim/tape/gradients.h"
#include "sim/tensor/fingerprint.h"
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
  std::size_t size = 0;
  for_each_weight(sites, [&](std::size_t site) { size += gradients.gradients[site].size(); });
  std::vector<float> message;
  message.reserve(size);
  for_each_weight(sites, [&](std::size_t site) {
    const Tensor& gradient = gradients.gradients[site];
    const std::vector<float> values =
        is_binary64(gradient) ? rounded(gradient, wire_format(precision)).to_floats() : gradient.to_floats();
    message.insert(message.end(), values.begin(), values.end());
  });
  round_to_wire(precision, message);
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

/// All that a record has, in the order of its members.
void visit_members(auto& record, auto&& visit) {
  for (auto* number : {&record.step, &record.rank, &record.ranks, &record.element}) visit(*number);
  for (auto* number : {&record.loss_scale, &record.value, &record.tensor_scale, &record.twin_value})
    visit(*number);
  visit(record.place);
  visit(record.twin_finite);
  visit(record.is_sum_over_ranks);
  for (auto* text : {&record.operation, &record.layer, &record.consumer}) visit(*text);
  visit(record.index);
}

std::string bytes_of(const SkipRecord& record) {
  std::string bytes;
  const auto append = [&bytes](const void* first, std::size_t size) {
    bytes.append(static_cast<const char*>(first), size);
  };
  visit_members(record, [&](const auto& member) {
    if constexpr (requires { member.data(); }) {
      const std::size_t count = member.size();
      append(&count, sizeof count);
      append(member.data(), count * sizeof *member.data());
    } else {
      append(&member, sizeof member);
    }
  });
  return bytes;
}

SkipRecord skip_record_of(std::string_view bytes) {
  SkipRecord record;
  const auto take = [&bytes](void* first, std::size_t size) {
    std::memcpy(first, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  visit_members(record, [&](auto& member) {
    if constexpr (requires { member.data(); }) {
      std::size_t count = 0;
      take(&count, sizeof count);
      member.resize(count);
      take(member.data(), count * sizeof *member.data());
    } else {
      take(&member, sizeof member);
    }
  });
  return record;
}

}  // namespace

void all_reduce_gradients(std::span<const GradientSite> sites, std::span<SiteGradients* const> own,
                          const AllReduce& how, Exchange& exchange) {
  std::vector<std::vector<float>> messages;
  for (const SiteGradients* gradients : own) messages.push_back(message_of(sites, *gradients, how.precision));
  const std::vector<std::span<const float>> views(messages.begin(), messages.end());
  const std::span<const float> mean = exchange.all_reduce(views, how);
  std::size_t first = 0;
  for_each_weight(sites, [&](std::size_t site) {
    Tensor& gradient = own.front()->gradients[site];
    store({&gradient}, 0, mean.subspan(first, gradient.size()));
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

void share_maxima(TensorScaler& scaler, Exchange& exchange) {
  std::vector<float> maxima = scaler.step_maxima();
  const std::vector<double> own(maxima.begin(), maxima.end());
  const std::vector<double> all = exchange.gather(own);
  for (std::size_t i = 0; i < all.size(); ++i) {
    float& maximum = maxima[i % maxima.size()];
    maximum = std::max(maximum, static_cast<float>(all[i]));
  }
  scaler.set_step_maxima(maxima);
}

std::optional<SkipRecord> first_over_ranks(const std::optional<SkipRecord>& own, std::size_t pass,
                                           Exchange& exchange) {
  constexpr double none = std::numeric_limits<double>::infinity();
  const std::vector<double> passes = exchange.gather(std::vector{own ? static_cast<double>(pass) : none});
  const auto first = std::ranges::min_element(passes);
  if (*first == none) return std::nullopt;
  const auto rank = static_cast<std::size_t>(first - passes.begin());
  return skip_record_of(exchange.broadcast(own ? bytes_of(*own) : std::string(), rank));
}

std::vector<std::size_t> odd_ranks(std::span<const double> of_each_rank) {
  double usual = of_each_rank[0];
  const auto count = [&](double value) { return std::ranges::count(of_each_rank, value); };
  for (const double value : of_each_rank) {
    if (count(value) > count(usual)) usual = value;
  }
  std::vector<std::size_t> odd;
  for (std::size_t rank = 0; rank < of_each_rank.size(); ++rank) {
    if (of_each_rank[rank] != usual) odd.push_back(rank);
  }
  return odd;
}

std::string ranks_text(std::span<const std::size_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

void require_same_gradients(std::span<const GradientSite> sites, const SiteGradients& gradients,
                            bool found_nonfinite, std::size_t step, Exchange& exchange) {
  Fingerprint fingerprint;
  for_each_weight(sites, [&](std::size_t site) { fingerprint.add(gradients.gradients[site]); });
  const std::vector<double> all =
      exchange.gather(std::vector{found_nonfinite ? 1.0 : 0.0, fingerprint.value()});
  std::vector<double> found, fingerprints;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    found.push_back(all[i]);
    fingerprints.push_back(all[i + 1]);
  }
  const std::string at = " in step " + std::to_string(step);
  if (const std::vector<std::size_t> odd = odd_ranks(found); !odd.empty()) {
    const bool finds = found[odd.front()] == 1;
    throw RanksDiffer(ranks_text(odd) + " alone " + (odd.size() == 1 ? "would " : "would each ") +
                      (finds ? "skip" : "apply") + " what the others " + (finds ? "apply" : "skip") + at +
                      ": their gradients are not the same after the all-reduce");
  }
  if (const std::vector<std::size_t> odd = odd_ranks(fingerprints); !odd.empty())
    throw RanksDiffer(ranks_text(odd) + (odd.size() == 1 ? " has" : " have") +
                      " other gradients than the others" + at + ", after the all-reduce");
}

}  // namespace sim
