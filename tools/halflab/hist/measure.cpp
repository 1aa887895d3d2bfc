#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "experiments/frame/parallel.h"
#include "fp16/bulk.h"
#include "fp16/code_histogram.h"
#include "tools/halflab/elements.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/hist/findings.h"
#include "tools/halflab/inputs.h"

namespace halflab::hist {
namespace {

namespace files = experiments::tensor_files;

constexpr std::size_t lanes = 16;

/// The sum of the squares of the finite values: 16 sums of every sixteenth value, added up in their order.
FP16_VECTOR_CLONES double square_sum(const float* values, std::size_t count) {
  double sums[lanes] = {};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i + lane]);
      const std::uint32_t finite = (bits & 0x7f800000u) == 0x7f800000u ? 0 : bits;
      const double value = std::bit_cast<float>(finite);
      sums[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (std::size_t i = whole; i < count; ++i) {
    const double value = std::isfinite(values[i]) ? values[i] : 0;
    sum += value * value;
  }
  return sum;
}

/// What one pass over a piece tells.
struct Counted {
  Exponents exponents;
  SquareSum squares;
  std::optional<CodesInUse> codes = {};
};

/// Codes of 16 bits: all of them are counted, and all else follows from the counts.
template <const fp16::Format& F>
void add_codes(Counted& counted, std::span<const std::uint16_t> codes) {
  fp16::CodeHistogram histogram;
  histogram.add(codes);
  counted.exponents.add(histogram, F);
  if (!counted.codes) counted.codes.emplace();
  for (std::uint32_t code = 0; code < fp16::CodeHistogram::code_count; ++code) {
    const std::uint64_t count = histogram.count(static_cast<std::uint16_t>(code));
    if (count == 0) continue;
    counted.codes->set(code);
    const double value = fp16::decode<F>(static_cast<std::uint16_t>(code));
    if (std::isfinite(value)) counted.squares.add(value, static_cast<double>(count));
  }
}

/// Both passes over a part while it is in the second-level cache.
void add_floats(Counted& counted, std::span<const float> values) {
  constexpr std::size_t at_a_time = std::size_t{1} << 17;
  for (std::size_t done = 0; done < values.size(); done += at_a_time) {
    const std::span<const float> part = values.subspan(done, std::min(at_a_time, values.size() - done));
    counted.exponents.add(part);
    counted.squares += SquareSum(square_sum(part.data(), part.size()));
  }
}

Counted count(const files::Piece& piece) {
  Counted counted;
  const bool is_binary16 = format_of(*piece.tensor) == fp16::binary16;
  read_numbers(piece,
               {.floats = [&](std::span<const float> values, std::uint64_t) { add_floats(counted, values); },
                .doubles =
                    [&](std::span<const double> values, std::uint64_t) {
                      counted.exponents.add(values);
                      for (const double value : values) {
                        if (std::isfinite(value)) counted.squares.add(value);
                      }
                    },
                .codes =
                    [&](std::span<const std::uint16_t> codes, std::uint64_t) {
                      is_binary16 ? add_codes<fp16::binary16>(counted, codes)
                                  : add_codes<fp16::bfloat16>(counted, codes);
                    }});
  return counted;
}

/// The product with the scale may leave the range of binary64, as may the scale.
template <const fp16::Format& F>
void add_outcome(double value, int scale_log2, CastCounts& counts) {
  if (value == 0 || !std::isfinite(value)) return;
  const double scaled = std::ldexp(value, scale_log2);
  const fp16::Result<F> result = fp16::encode<F>(scaled);
  counts.flushed += fp16::is_zero<F>(result.bits);
  counts.subnormal += fp16::is_subnormal<F>(result.bits);
  counts.overflowed += result.flags.overflow || std::isinf(scaled);
}

/// The counts of a cast of floats, whose products with the scale are floats, too.
template <const fp16::Format& F>
CastCounts cast_floats(std::span<const float> values, float scale) {
  constexpr std::size_t at_a_time = 1 << 14;
  std::vector<float> scaled(std::min(at_a_time, values.size()));
  std::vector<fp16::Bits<F>> codes(scaled.size());
  fp16::RoundingCounts counts;
  for (std::size_t done = 0; done < values.size(); done += at_a_time) {
    const std::span<const float> part = values.subspan(done, std::min(at_a_time, values.size() - done));
    std::ranges::transform(part, scaled.begin(), [scale](float value) { return value * scale; });
    fp16::encode<F>(std::span<const float>(scaled).first(part.size()), std::span(codes).first(part.size()),
                    {}, {.counts = &counts});
  }
  // An infinity raises overflow where the format has none.
  const auto is_infinite = [](float value) { return std::isinf(value); };
  if constexpr (!F.has_infinity())
    counts.overflowed -= static_cast<std::uint64_t>(std::ranges::count_if(values, is_infinite));
  return {counts.flushed, counts.subnormal, counts.overflowed};
}

/// The counts of a cast at a scale of the stored values, each rounded once. `largest` is the largest magnitude of all.
template <const fp16::Format& F>
CastCounts cast(const files::Piece& piece, int scale_log2, double largest) {
  CastCounts counts;
  const double scale = std::ldexp(1.0, scale_log2);
  const bool scales_exactly =
      F.width() <= 19 && scale_log2 >= 0 && largest * scale <= std::numeric_limits<float>::max();
  const auto one_by_one = [&](auto values) {
    for (const double value : values) add_outcome<F>(value, scale_log2, counts);
  };
  const auto floats = [&](std::span<const float> values, std::uint64_t) {
    if (scales_exactly) {
      counts += cast_floats<F>(values, static_cast<float>(scale));
    } else {
      one_by_one(values);
    }
  };
  read_numbers(piece, {.floats = floats, .doubles = [&](std::span<const double> values, std::uint64_t) {
                         one_by_one(values);
                       }});
  return counts;
}

std::vector<files::Piece> pieces_of(const files::TensorSet& set) {
  std::vector<files::Piece> pieces;
  for (const files::StoredTensor& tensor : set.tensors())
    std::ranges::copy(files::pieces_of(tensor), std::back_inserter(pieces));
  return pieces;
}

/// All pieces, on all threads. `merge` gets what `compute` made of each, in the order of the pieces of a tensor.
template <class Compute, class Merge>
void for_each_piece(const files::TensorSet& set, experiments::Run& run, const char* label, Compute&& compute,
                    Merge&& merge) {
  const std::vector<files::Piece> pieces = pieces_of(set);
  using Result = decltype(compute(pieces.front()));
  std::vector<std::unique_ptr<Result>> results(pieces.size());
  std::size_t next = 0;
  std::mutex mutex;
  experiments::Progress progress = run.progress(label, pieces.size());
  experiments::parallel_for_each(pieces.size(), run.threads(), [&](std::size_t i) {
    auto result = std::make_unique<Result>(compute(pieces[i]));
    progress.tick();
    const std::scoped_lock lock(mutex);
    results[i] = std::move(result);
    for (; next < results.size() && results[next]; ++next) {
      merge(static_cast<std::size_t>(pieces[next].tensor - set.tensors().data()), *results[next]);
      results[next].reset();
    }
  });
}

void count_exponents(const files::TensorSet& set, experiments::Run& run, Findings& found) {
  for_each_piece(set, run, "count", count, [&](std::size_t tensor, const Counted& counted) {
    found.tensors[tensor].exponents += counted.exponents;
    found.tensors[tensor].squares += counted.squares;
    if (!counted.codes) return;
    if (!found.tensors[tensor].codes) found.tensors[tensor].codes.emplace();
    *found.tensors[tensor].codes |= *counted.codes;
  });
  for (const TensorFound& tensor : found.tensors) {
    found.total.exponents += tensor.exponents;
    found.total.squares += tensor.squares;
  }
}

void count_casts(const files::TensorSet& set, experiments::Run& run, Findings& found) {
  const int at_one = -found.scaled_by_log2, at_shown = found.shown_log2 - found.scaled_by_log2;
  if (found.format.format == fp16::binary16 && found.total.exponents.are_within_binary32()) {
    for (TensorFound& tensor : found.tensors) {
      const fp16::ExponentHistogram exponents = tensor.exponents.in_binary32();
      tensor.at_one = forecast_binary16(exponents, at_one);
      tensor.at_shown = forecast_binary16(exponents, at_shown);
    }
  } else {
    using Both = std::pair<CastCounts, CastCounts>;
    const double largest = found.total.exponents.max_abs();
    for_each_piece(
        set, run, "cast",
        [&](const files::Piece& piece) {
          return with_format(found.format.format, [&]<const fp16::Format & F>() {
            return Both{cast<F>(piece, at_one, largest), cast<F>(piece, at_shown, largest)};
          });
        },
        [&](std::size_t tensor, const Both& counts) {
          found.tensors[tensor].at_one += counts.first;
          found.tensors[tensor].at_shown += counts.second;
        });
  }
  for (const TensorFound& tensor : found.tensors) {
    found.total.at_one += tensor.at_one;
    found.total.at_shown += tensor.at_shown;
  }
}

}  // namespace

double Findings::share(const TensorFound& tensor, std::uint64_t count) const {
  const std::uint64_t nonzero = tensor.exponents.nonzero_finite();
  return nonzero == 0 ? 0 : static_cast<double>(count) / static_cast<double>(nonzero);
}

std::vector<const TensorFound*> Findings::by_loss() const {
  std::vector<const TensorFound*> sorted;
  for (const TensorFound& tensor : tensors) {
    if (tensor.exponents.nonzero_finite() > 0) sorted.push_back(&tensor);
  }
  std::ranges::stable_sort(sorted, std::greater(), [this](const TensorFound* tensor) {
    return std::pair(share(*tensor, tensor->at_one.flushed + tensor->at_one.overflowed),
                     -tensor->exponents.max_abs());
  });
  return sorted;
}

Findings measure(const files::TensorSet& set, const Options& options, experiments::Run& run) {
  const fp16::NamedFormat& format = scalar_format_where_blocks_are(options.format);
  if (!format.format.has_zero())
    throw std::invalid_argument(
        fmt::format("--format: {} has no zero; it is a format of scales alone", format.name));
  Findings found{.format = format,
                 .scaled_by_log2 = scale_log2("--scaled-by", options.scaled_by),
                 .total = {.name = "all tensors"}};
  const std::optional<int> asked = shown_scale_log2(options);
  found.remark = remark_on_integers(set);
  for (const files::StoredTensor& tensor : set.tensors())
    found.tensors.push_back({.name = tensor.name,
                             .stored_as = std::string(tensor.type->format),
                             .shape = files::text_of(tensor.shape)});
  count_exponents(set, run, found);
  if (const std::optional<int> headroom = found.forecast(found.total).headroom_log2())
    found.recommended_log2 = *headroom - 1;
  found.shown_log2 = asked.value_or(found.recommended_log2.value_or(0));
  count_casts(set, run, found);
  return found;
}

}  // namespace halflab::hist
