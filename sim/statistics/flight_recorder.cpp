#include "sim/statistics/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/tensor/log2.h"

namespace sim {
namespace {

Shape index_in(const Shape& shape, std::size_t element) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

SkipRecord record_of_value(const Tape& tape, Variable variable) {
  const Tensor& tensor = tape.value(variable);
  ValueName name = tape.name_of(variable);
  const std::size_t element = *first_nonfinite(tensor);
  return {.place = SkipRecord::Place::forward,
          .operation = std::string(name.operation),
          .layer = std::move(name.layer),
          .element = element,
          .index = index_in(tensor.shape(), element),
          .value = tensor.element(element)};
}

SkipRecord record_of_gradient(const Tape& tape, Variable loss, const NonfiniteGradient& found,
                              fp16::Format twin_format, float mean_over) {
  double twin_value = 0;
  const auto read_element = [&](Variable variable, const Tensor& gradient) {
    if (variable.index == found.variable.index) twin_value = gradient.element(found.element);
  };
  const SiteGradients twin = tape.backward(
      loss, {.mean_over = mean_over, .twin = twin_format, .find_nonfinite = true, .observe = read_element});
  ValueName name = tape.name_of(found.variable);
  return {.place = SkipRecord::Place::gradient,
          .operation = std::string(name.operation),
          .layer = std::move(name.layer),
          .consumer = std::string(tape.name_of(found.consumer).operation),
          .element = found.element,
          .index = index_in(tape.value(found.variable).shape(), found.element),
          .value = found.value,
          .tensor_scale = found.scale,
          .twin_value = twin_value,
          .twin_finite = !twin.first_nonfinite.has_value()};
}

std::string sentence_of_sum(const SkipRecord& r) {
  return fmt::format("the gradient of {} is {} at ({}), summed over {} whose own are finite", r.layer,
                     r.value, fmt::join(r.index, ", "),
                     r.is_sum_over_ranks ? fmt::format("{} ranks", r.ranks) : "micro-batches");
}

std::string step_text(const SkipRecord& r) {
  return fmt::format("Step {} at S = 2^{:.4g}", r.step, log2_of(r.loss_scale));
}

std::string sentence_of_gradient(const SkipRecord& r) {
  const std::string where = fmt::format("the gradient of {} {} is {} at ({}), computed by the backward of {}",
                                        r.operation, r.layer, r.value, fmt::join(r.index, ", "), r.consumer);
  if (!r.twin_finite)
    return fmt::format("{}; its twin is not finite either: no loss scale cures that", where);
  const std::string twin = r.twin_value == 0 ? "0"
                                             : fmt::format("2^{:.1f}, 2^{:.1f} when scaled",
                                                           log2_of(r.twin_value), r.log2_scaled());
  return fmt::format("{}, where the twin has {}: a smaller scale cures that", where, twin);
}

}  // namespace

std::string_view name_of(SkipRecord::Place place) {
  switch (place) {
    case SkipRecord::Place::forward:
      return "forward";
    case SkipRecord::Place::gradient:
      return "gradient";
    case SkipRecord::Place::sum:
      return "sum";
    case SkipRecord::Place::nowhere:
      return "nowhere";
  }
  return {};
}

double SkipRecord::log2_scaled() const {
  return log2_of(twin_value * tensor_scale);
}

int SkipRecord::twin_exponent() const {
  return twin_value == 0 || !std::isfinite(twin_value) ? 0 : std::ilogb(twin_value);
}

SkipRecord find_cause(const Tape& tape, Variable loss, const SiteGradients& run, fp16::Format twin_format,
                      float mean_over) {
  if (const std::optional<Variable> value = tape.first_nonfinite_value())
    return record_of_value(tape, *value);
  return run.first_nonfinite ? record_of_gradient(tape, loss, *run.first_nonfinite, twin_format, mean_over)
                             : SkipRecord{};
}

SkipRecord record_of_sum(const std::string& name, const Tensor& sum) {
  const std::size_t element = *first_nonfinite(sum);
  return {.place = SkipRecord::Place::sum,
          .operation = "parameter",
          .layer = name,
          .element = element,
          .index = index_in(sum.shape(), element),
          .value = sum.element(element)};
}

std::string describe(const SkipRecord& r) {
  const bool is_of_rank = r.ranks > 1 && (r.place == SkipRecord::Place::forward || r.has_twin_value());
  const std::string step = step_text(r) + (is_of_rank ? fmt::format(" on rank {}", r.rank) : "");
  switch (r.place) {
    case SkipRecord::Place::forward:
      return fmt::format("{}: already in the forward pass {} {} is {} at ({}): no loss scale cures that.",
                         step, r.operation, r.layer, r.value, fmt::join(r.index, ", "));
    case SkipRecord::Place::gradient:
      return fmt::format("{}: {}.", step, sentence_of_gradient(r));
    case SkipRecord::Place::sum:
      return fmt::format("{}: {}: a smaller scale cures that.", step, sentence_of_sum(r));
    case SkipRecord::Place::nowhere:
      return fmt::format("{}: everything was finite; the scaler went by its own rule.", step);
  }
  return step;
}

std::string describe_applied(const SkipRecord& sum) {
  return fmt::format(
      "{}: {}, and was applied unseen, as each rank looks into its own alone: a smaller scale prevents that.",
      step_text(sum), sentence_of_sum(sum));
}

}  // namespace sim
