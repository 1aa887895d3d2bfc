#include "experiments/gradient_histogram/pooled.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/common/counted_gradients.h"
#include "experiments/common/text_table.h"
#include "sim/precision_policy.h"
#include "sim/statistics/log2.h"
#include "sim/statistics/twin_comparison.h"

namespace experiments::gradient_histogram {

using sim::ExponentHistogram;
using sim::GradientSite;

void Pooled::add(std::span<const float> gradients) {
  exponents.add(gradients);
  cast_at_scale_1 += sim::count_casts(gradients, 0);
  for (const float g : gradients) {
    const double squared = static_cast<double>(g) * g;
    square += squared;
    flushed_square += std::fabs(g) <= 0x1p-25f ? squared : 0;
  }
}

Pooled& Pooled::operator+=(const Pooled& other) {
  exponents += other.exponents;
  cast_at_scale_1 += other.cast_at_scale_1;
  square += other.square;
  flushed_square += other.flushed_square;
  return *this;
}

double Pooled::share_of_nonzero(std::uint64_t count) const {
  return experiments::share_of_nonzero(exponents, count);
}

double Pooled::fraction_zero() const {
  return static_cast<double>(exponents.zero()) / static_cast<double>(exponents.total());
}

double Pooled::fraction_below_smallest_subnormal() const {
  std::uint64_t count = 0;
  for (int e = ExponentHistogram::min_exponent; e < -24; ++e) count += exponents.octave(e).total;
  return share_of_nonzero(count);
}

double Pooled::fraction_flushed(int scale_log2) const {
  return share_of_nonzero(exponents.flushed_at_scale(scale_log2));
}

double Pooled::fraction_overflow(int scale_log2) const {
  return share_of_nonzero(exponents.overflowed_at_scale(scale_log2));
}

double Pooled::norm_share_flushed() const {
  return square == 0 ? 0 : std::sqrt(flushed_square / square);
}

double Pooled::max_abs_log2() const {
  return sim::log2_of(exponents.max_abs());
}

double Pooled::peak_percent() const {
  std::uint64_t peak = 0;
  for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent; ++e)
    peak = std::max(peak, exponents.octave(e).total);
  return 100 * static_cast<double>(peak) / static_cast<double>(exponents.total());
}

bool Findings::prediction_is_exact() const {
  return all.cast_at_scale_1.flushed == all.exponents.flushed_at_scale(0) &&
         all.cast_at_scale_1.subnormal == all.exponents.subnormal_at_scale(0) &&
         all.cast_at_scale_1.overflowed == all.exponents.overflowed_at_scale(0);
}

namespace {

/// Of the next batch, added to those before it.
void pool_batch(std::vector<PooledSite>& sites, const sim::Model& model, sim::Trainer& trainer,
                std::uint64_t seed) {
  const sim::RecordedStep step =
      sim::record_step(model, trainer.state(), trainer.next_batch(), sim::find_precision_policy("fp32"),
                       {.seed = seed, .step = trainer.steps_done()});
  const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {.count_rounding = true});
  // An FP32 pass is its own twin; only the verdict on rounding noise is wanted.
  const std::vector<sim::TwinComparison> comparisons =
      sim::compare_sites(step.tape.sites(), gradients, gradients);
  sites.resize(step.tape.sites().size());
  for (std::size_t i = 0; i < sites.size(); ++i) {
    sites[i].name = step.tape.sites()[i].name;
    sites[i].kind = step.tape.sites()[i].kind;
    sites[i].is_rounding_noise &= comparisons[i].is_rounding_noise;
    sites[i].add(gradients.gradients[i].elements<float>());
  }
}

Pooled sum_of(const std::vector<PooledSite>& sites, std::string name,
              std::optional<GradientSite::Kind> kind = {}) {
  Pooled sum{.name = std::move(name)};
  for (const PooledSite& site : sites) {
    if (!kind || site.kind == *kind) sum += site;
  }
  return sum;
}

}  // namespace

Findings pool_gradients(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options,
                        Progress& progress) {
  train(trainer, setup.steps(), progress);
  std::vector<PooledSite> sites;
  for (int batch = 0; batch < options.pool; ++batch) {
    pool_batch(sites, setup.model(), trainer, options.training.seed);
    train(trainer, 1, progress);
  }
  Findings found{.sites = {},
                 .activations = sum_of(sites, "activation gradients", GradientSite::Kind::activation),
                 .weights = sum_of(sites, "weight gradients", GradientSite::Kind::weight),
                 .all = sum_of(sites, "all gradients"),
                 .recommended_scale_log2 = {},
                 .evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state())};
  found.sites = std::move(sites);
  found.recommended_scale_log2 = recommended_scale_log2(found.all.exponents);
  return found;
}

}  // namespace experiments::gradient_histogram
