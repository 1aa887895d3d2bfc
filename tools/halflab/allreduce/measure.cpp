#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include "experiments/frame/parallel.h"
#include "fp16/exact_accumulator.h"
#include "sim/tensor/tensor.h"
#include "tools/halflab/allreduce/findings.h"
#include "tools/halflab/elements.h"
#include "tools/halflab/inputs.h"

namespace halflab::allreduce {
namespace {

namespace files = experiments::tensor_files;

using Values = std::vector<float>;
using Ranks = std::vector<Values>;
using Doubles = std::vector<std::vector<double>>;  // by rank; none of a rank whose file holds no binary64

std::vector<std::span<const float>> spans_of(const Ranks& ranks) {
  return {ranks.begin(), ranks.end()};
}

/// The exact sum of an element over the ranks, rounded to binary64, divided by their number.
std::vector<double> exact_mean(const Ranks& ranks, int threads) {
  constexpr std::size_t at_a_time = 1 << 14;
  std::vector<double> mean(ranks.front().size());
  const std::size_t parts = (mean.size() + at_a_time - 1) / at_a_time;
  experiments::parallel_for_each(parts, threads, [&](std::size_t part) {
    const std::size_t end = std::min(mean.size(), (part + 1) * at_a_time);
    for (std::size_t i = part * at_a_time; i < end; ++i) {
      fp16::ExactAccumulator<fp16::binary32> sum;
      for (const Values& rank : ranks) sum.add(std::bit_cast<std::uint32_t>(rank[i]));
      mean[i] = std::bit_cast<double>(sum.rounded<fp16::binary64>().bits) / static_cast<double>(ranks.size());
    }
  });
  return mean;
}

sim::Tensor tensor_of(std::span<const double> values) {
  sim::Tensor tensor({values.size()}, fp16::binary64);
  std::ranges::copy(values, tensor.elements<double>().begin());
  return tensor;
}

/// One tensor of all ranks.
class Reduction {
 public:
  /// `stored` is what the files hold of the ranks, where that is more.
  Reduction(Ranks ranks, const Doubles& stored, Findings& found, int threads)
      : ranks_(std::move(ranks)), threads_(threads) {
    leave_out_nonfinite(stored, found);
    for (const Values& rank : ranks_)
      found.nonzero_inputs += static_cast<std::uint64_t>(rank.size()) -
                              static_cast<std::uint64_t>(std::ranges::count(rank, 0.0f));
    exact_ = tensor_of(exact_mean(ranks_, threads));
    for (Sent& format : found.sent) {
      if (found.is_told(format)) cast_.push_back(cast_to(format));
    }
  }

  void add_to(std::vector<Reduced>& kinds) const {
    experiments::parallel_for_each(kinds.size(), threads_, [&](std::size_t i) {
      Reduced& kind = kinds[i];
      const fp16::Format& format = sim::wire_format(kind.how.precision);
      const auto cast = std::ranges::find_if(
          cast_, [&](const Cast& one) { return sim::wire_format(one.precision) == format; });
      const bool is_cast = cast != cast_.end();
      const sim::AllReducedMean mean =
          sim::all_reduce_mean(spans_of(is_cast ? cast->ranks : ranks_), kind.how);
      kind.loss += sim::compare(sim::Tensor::from({mean.values.size()}, mean.values), 1, exact_, {});
      if (is_cast) kind.inputs_flushed += cast->flushed + mean.predivision.flushed;
    });
  }

 private:
  /// The ranks' values as they are sent.
  struct Cast {
    sim::AllReducePrecision precision;
    Ranks ranks;
    std::uint64_t flushed = 0;
  };

  Cast cast_to(Sent& format) const {
    Cast cast{.precision = format.precision, .ranks = ranks_};
    fp16::RoundingCounts counts;
    for (Values& rank : cast.ranks) sim::round_to_wire(format.precision, rank, &counts);
    cast.flushed = counts.flushed;
    format.overflow += counts.overflowed;
    format.holds_all &= counts.inexact == 0 && counts.overflowed == 0;
    format.one_rounding +=
        sim::compare(sim::rounded(exact_, sim::wire_format(format.precision)), 1, exact_, {});
    return cast;
  }

  /// What is not finite at one rank becomes zero at all.
  void leave_out_nonfinite(const Doubles& stored, Findings& found) {
    for (std::size_t i = 0; i < ranks_.front().size(); ++i) {
      const auto is_finite = [i](const Values& rank) { return std::isfinite(rank[i]); };
      if (std::ranges::all_of(ranks_, is_finite)) {
        add_first_rounding(stored, i, found.first_rounding);
        continue;
      }
      ++(is_finite_in_files(stored, i) ? found.first_rounding.places_beyond : found.nonfinite_places);
      for (Values& rank : ranks_) rank[i] = 0;
    }
  }

  double stored_at(const Doubles& stored, std::size_t rank, std::size_t i) const {
    return stored[rank].empty() ? double{ranks_[rank][i]} : stored[rank][i];
  }

  bool is_finite_in_files(const Doubles& stored, std::size_t i) const {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!std::isfinite(stored_at(stored, rank, i))) return false;
    }
    return true;
  }

  void add_first_rounding(const Doubles& stored, std::size_t i, FirstRounding& sum) const {
    if (std::ranges::all_of(stored, &std::vector<double>::empty)) return;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const double value = stored_at(stored, rank, i), rounded = ranks_[rank][i];
      sum.squares.add(value);
      sum.error_squares.add(value - rounded);
      sum.flushed += value != 0 && rounded == 0;
    }
  }

  Ranks ranks_;
  int threads_;
  std::vector<Cast> cast_;
  sim::Tensor exact_;
};

/// A rank's tensor that goes with the first rank's.
const files::StoredTensor& counterpart(const files::StoredTensor& tensor, const files::TensorSet& first,
                                       const files::TensorSet& rank, std::size_t number) {
  const auto& tensors = rank.tensors();
  const bool is_only_one = first.tensors().size() == 1 && tensors.size() == 1;
  const auto found =
      is_only_one ? tensors.begin() : std::ranges::find(tensors, tensor.name, &files::StoredTensor::name);
  if (found == tensors.end())
    throw std::invalid_argument(
        fmt::format("rank {} has no tensor '{}', which rank 0 has", number, tensor.name));
  if (found->shape != tensor.shape)
    throw std::invalid_argument(fmt::format("tensor '{}' has the shape {} at rank {} and {} at rank 0",
                                            tensor.name, files::text_of(found->shape), number,
                                            files::text_of(tensor.shape)));
  return *found;
}

void require_as_many(const std::vector<files::TensorSet>& ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].tensors().size() != ranks.front().tensors().size())
      throw std::invalid_argument(fmt::format("rank {} has {} tensors and rank 0 {}; allowed: the same", rank,
                                              ranks[rank].tensors().size(), ranks.front().tensors().size()));
  }
}

}  // namespace

const Sent* Findings::sent_in(sim::AllReducePrecision precision) const {
  const auto found = std::ranges::find_if(sent, [&](const Sent& format) {
    return sim::wire_format(format.precision) == sim::wire_format(precision);
  });
  return found == sent.end() ? nullptr : &*found;
}

bool Findings::is_asked(const Sent& format) const {
  return std::ranges::any_of(kinds,
                             [&](const Reduced& kind) { return sent_in(kind.how.precision) == &format; });
}

Findings measure(const std::vector<files::TensorSet>& ranks, const std::vector<sim::AllReduce>& kinds,
                 experiments::Run& run) {
  require_as_many(ranks);
  Findings found{.paths = {}, .ranks = ranks.size(), .tensors = ranks.front().tensors().size()};
  for (const sim::AllReduce& how : kinds) found.kinds.push_back({.how = how});
  experiments::Progress progress = run.progress("all-reduce", found.tensors);
  for (const files::StoredTensor& tensor : ranks.front().tensors()) {
    Ranks values;
    Doubles stored;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const files::StoredTensor& part =
          rank == 0 ? tensor : counterpart(tensor, ranks.front(), ranks[rank], rank);
      values.push_back(floats_of(part));
      stored.push_back(format_of(part) == fp16::binary64 ? doubles_of(part) : std::vector<double>());
    }
    found.elements += tensor.elements;
    Reduction(std::move(values), stored, found, run.threads()).add_to(found.kinds);
    progress.tick();
  }
  found.remark = remark_on_integers(ranks.front());
  return found;
}

}  // namespace halflab::allreduce
