#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "experiments/gradient_histogram/findings.h"
#include "experiments/gradient_histogram/paper3.h"
#include "experiments/training/counted_gradients.h"
#include "sim/precision/precision_policy.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/tensor/log2.h"

namespace experiments::gradient_histogram {

using fp16::ExponentHistogram;
using sim::GradientSite;

namespace {

std::size_t octave_index(int exponent) {
  return static_cast<std::size_t>(exponent - ExponentHistogram::min_exponent);
}

}  // namespace

void Pooled::add(std::span<const float> gradients) {
  exponents.add(gradients);
  cast_at_scale_1 += sim::count_casts(gradients, 0);
  for (const float g : gradients) {
    const double squared = static_cast<double>(g) * g;
    square += squared;
    flushed_square += std::fabs(g) <= 0x1p-25f ? squared : 0;
    if (g != 0 && std::isfinite(g)) octave_squares[octave_index(std::ilogb(g))] += squared;
  }
}

Pooled& Pooled::operator+=(const Pooled& other) {
  exponents += other.exponents;
  cast_at_scale_1 += other.cast_at_scale_1;
  square += other.square;
  flushed_square += other.flushed_square;
  std::ranges::transform(octave_squares, other.octave_squares, octave_squares.begin(), std::plus());
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

double Pooled::percent_at(int exponent) const {
  return percent_of(exponents, exponents.octave(exponent).total);
}

double Pooled::square_at(int exponent) const {
  return octave_squares[octave_index(exponent)];
}

double Pooled::peak_percent() const {
  double peak = 0;
  for (int e = ExponentHistogram::min_exponent; e <= ExponentHistogram::max_exponent; ++e)
    peak = std::max(peak, percent_at(e));
  return peak;
}

bool Findings::prediction_is_exact() const {
  const sim::CastCounts& cast = all_gradients.cast_at_scale_1;
  const ExponentHistogram& exponents = all_gradients.exponents;
  return cast.flushed == exponents.flushed_at_scale(0) && cast.subnormal == exponents.subnormal_at_scale(0) &&
         cast.overflowed == exponents.overflowed_at_scale(0);
}

namespace {

Pooled& named(std::vector<Pooled>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Pooled::name);
  return found != list.end() ? *found : list.emplace_back(Pooled{.name = std::string(name)});
}

/// A network while it is trained.
struct Subject {
  const TrainingSetup& setup;
  sim::Trainer& trainer;
  std::uint64_t seed;
  int threads;

  sim::RecordedStep record_next() const {
    return sim::record_step(setup.model(), trainer.state(), trainer.next_batch(),
                            sim::find_precision_policy("fp32"),
                            {.seed = seed, .step = trainer.steps_done(), .threads = threads});
  }
};

/// Adds the gradients of the next batch to those before it.
void pool_batch(Findings& found, const Subject& subject) {
  const sim::RecordedStep step = subject.record_next();
  const sim::Tape& tape = step.tape;
  const auto add_to_operation = [&](sim::Variable variable, const sim::Tensor& gradient) {
    const std::string_view operation = tape.name_of(variable).operation;
    if (operation != "parameter") named(found.operations, operation).add(gradient.elements<float>());
  };
  const sim::SiteGradients gradients =
      tape.backward(step.forward.loss, {.count_rounding = true, .observe = add_to_operation});
  // An FP32 pass is its own twin; only the verdict on rounding noise is wanted.
  const std::vector<sim::TwinComparison> comparisons = sim::compare_sites(tape.sites(), gradients, gradients);
  found.sites.resize(tape.sites().size());
  for (std::size_t i = 0; i < found.sites.size(); ++i) {
    PooledSite& site = found.sites[i];
    site.name = tape.sites()[i].name;
    site.kind = tape.sites()[i].kind;
    site.is_rounding_noise &= comparisons[i].is_rounding_noise;
    site.add(gradients.gradients[i].elements<float>());
  }
}

/// Makes the next step, and adds the weights and what it changes in them.
void pool_update(Findings& found, sim::Trainer& trainer, Progress& progress) {
  const std::vector<sim::Tensor> before = trainer.state().weights;
  train(trainer, 1, progress);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::span<const float> old_values = before[i].elements<float>();
    const std::span<const float> new_values = trainer.state().weights[i].elements<float>();
    std::vector<float> changes(old_values.size());
    std::ranges::transform(new_values, old_values, changes.begin(), std::minus<>());
    found.weights.add(old_values);
    found.updates.add(changes);
  }
}

Moment moment_of(const Subject& subject) {
  const sim::RecordedStep step = subject.record_next();
  const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {});
  Moment moment{.step = subject.trainer.steps_done(),
                .loss = step.tape.value(step.forward.loss).element(0),
                .activation_gradients = {.name = "activation gradients"},
                .weight_gradients = {.name = "weight gradients"}};
  for (std::size_t i = 0; i < gradients.gradients.size(); ++i) {
    const bool of_weight = step.tape.sites()[i].kind == GradientSite::Kind::weight;
    (of_weight ? moment.weight_gradients : moment.activation_gradients)
        .add(gradients.gradients[i].elements<float>());
  }
  return moment;
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

Findings measure(const TrainingSetup& setup, sim::Trainer& trainer, const Options& options, Run& run) {
  const Subject subject{setup, trainer, options.training.seed, run.threads()};
  Progress progress =
      run.progress("training in FP32", static_cast<std::size_t>(setup.steps() + options.pool));
  Findings found{.weights = {.name = "weights"}, .updates = {.name = "updates"}};
  for (int i = 0; i < options.moments; ++i) {
    const int last = std::max(options.moments - 1, 1), step = setup.steps() * i / last;
    if (i > 0 && found.moments.back().step == static_cast<std::size_t>(step)) continue;
    train(trainer, step - static_cast<int>(trainer.steps_done()), progress);
    found.moments.push_back(moment_of(subject));
  }
  train(trainer, setup.steps() - static_cast<int>(trainer.steps_done()), progress);
  for (int batch = 0; batch < options.pool; ++batch) {
    pool_batch(found, subject);
    pool_update(found, trainer, progress);
  }
  found.activation_gradients = sum_of(found.sites, "activation gradients", GradientSite::Kind::activation);
  found.weight_gradients = sum_of(found.sites, "weight gradients", GradientSite::Kind::weight);
  found.all_gradients = sum_of(found.sites, "all gradients");
  found.recommended_scale_log2 = recommended_scale_log2(found.all_gradients.exponents);
  found.evaluation = sim::evaluate(setup.model(), setup.dataset(), trainer.state(), run.threads());
  return found;
}

}  // namespace experiments::gradient_histogram
