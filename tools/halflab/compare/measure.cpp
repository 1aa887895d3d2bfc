#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "experiments/frame/parallel.h"
#include "fp16/bulk.h"
#include "fp16/comparison.h"
#include "tools/halflab/compare/findings.h"
#include "tools/halflab/compare/pair_reader.h"
#include "tools/halflab/elements.h"
#include "tools/halflab/formats.h"

namespace halflab::compare {
namespace {

namespace files = experiments::tensor_files;
using fp16::Bits;

/// The numbers of a block; doubles where one of its formats is binary64.
template <class Number>
struct Numbers {
  std::vector<Number> a, b;

  Numbers(const PairFound& pair, const PairReader::Block& block) : a(block.count), b(block.count) {
    decode_elements(block.a, *pair.a->type, a);
    decode_elements(block.b, *pair.b->type, b);
  }
};

template <class Visit>
void with_numbers(const PairFound& pair, const PairReader::Block& block, Visit&& visit) {
  if (pair.a->type->bits == 64 || pair.b->type->bits == 64) {
    visit(Numbers<double>(pair, block));
  } else {
    visit(Numbers<float>(pair, block));
  }
}

/// The codes of numbers in F, to nearest even.
template <const fp16::Format& F, class Number>
std::vector<Bits<F>> codes_of(std::span<const Number> numbers) {
  std::vector<Bits<F>> codes(numbers.size());
  if constexpr (std::same_as<Number, float>) {
    fp16::encode<F>(numbers, codes);
  } else {
    std::ranges::transform(numbers, codes.begin(), [](double value) { return fp16::encode<F>(value).bits; });
  }
  return codes;
}

/// The codes of elements stored as F, one each.
template <const fp16::Format& F>
std::vector<Bits<F>> codes_of(files::Bytes elements, const files::ElementType& type, std::uint64_t count) {
  std::vector<Bits<F>> codes(count);
  if constexpr (F.width() % 8 == 0) {
    std::memcpy(codes.data(), elements.data(), count * sizeof(Bits<F>));
  } else {
    for (std::uint64_t i = 0; i < count; ++i) codes[i] = static_cast<Bits<F>>(code_at(elements, type, i));
  }
  return codes;
}

/// What elements differ in, as codes of a format that holds both exactly.
template <const fp16::Format& F>
void add_difference(Bits<F> a, Bits<F> b, Counts& counts) {
  const bool nan_a = fp16::is_nan<F>(a), nan_b = fp16::is_nan<F>(b);
  const bool infinite_a = fp16::is_infinite<F>(a), infinite_b = fp16::is_infinite<F>(b);
  counts.nan_bits += nan_a && nan_b;
  counts.one_nan += nan_a != nan_b;
  if (nan_a || nan_b) return;
  const bool zero_a = fp16::is_zero<F>(a), zero_b = fp16::is_zero<F>(b);
  counts.zero_signs += zero_a && zero_b;
  counts.flushed_a += zero_a && fp16::is_subnormal<F>(b);
  counts.flushed_b += zero_b && fp16::is_subnormal<F>(a);
  counts.one_infinite += infinite_a || infinite_b;
  counts.largest = std::max(counts.largest, std::fabs(fp16::decode<F>(a) - fp16::decode<F>(b)));
}

/// A number's place among those of the format of comparison.
struct Place {
  bool is_nan;
  std::int64_t ordinal;  ///< of no NaN
};

template <const fp16::Format& F>
Place place_of(Bits<F> stored) {
  const bool is_nan = fp16::is_nan<F>(stored);
  return {is_nan, is_nan ? 0 : fp16::ordinal<F>(stored)};
}

/// The place of a number by its code in F, which is a NaN also where F has no infinity and the number is too large.
template <const fp16::Format& F, class Number>
Place place_of(Bits<F> code, Number number) {
  if (std::isnan(number)) return {true, 0};
  if (!fp16::is_nan<F>(code)) return {false, fp16::ordinal<F>(code)};
  const std::int64_t beyond = fp16::ordinal<F>(fp16::max_finite_bits<F>) + 1;
  return {false, std::signbit(number) ? -beyond : beyond};
}

/// Whether they are farther apart than is allowed.
bool add_distance(Place a, Place b, std::uint64_t allowed, Counts& counts) {
  if (a.is_nan != b.is_nan) {
    ++counts.beyond;
    return true;
  }
  const auto x = static_cast<std::uint64_t>(a.ordinal), y = static_cast<std::uint64_t>(b.ordinal);
  const std::uint64_t distance = a.ordinal < b.ordinal ? y - x : x - y;
  counts.by_ulp.add(distance);
  counts.beyond += distance > allowed;
  return distance > allowed;
}

/// One pair's elements, counted.
class Counter {
 public:
  Counter(const PairFound& pair, const PairReader& reader, const Findings& found)
      : pair_(pair), reader_(reader), allowed_(found.ulp), asks_bits_(found.asks_bits) {}

  Counts counts() && { return std::move(counts_); }

  void add(const PairReader::Block& block) {
    counts_.elements += block.count;
    if (pair_.same_format() && std::memcmp(block.a.data(), block.b.data(), block.a.size()) == 0) {
      counts_.by_ulp.counts[0] += block.count;
    } else if (pair_.same_format()) {
      with_format(format_of(*pair_.a), [&]<const fp16::Format & F>() {
        if constexpr (!(F == fp16::tf32)) add_codes<F>(block);
      });
    } else {
      with_numbers(pair_, block, [&](const auto& numbers) { add_numbers(block, numbers); });
    }
  }

 private:
  /// Of one format.
  template <const fp16::Format& F>
  void add_codes(const PairReader::Block& block) {
    const auto a = codes_of<F>(block.a, *pair_.a->type, block.count),
               b = codes_of<F>(block.b, *pair_.b->type, block.count);
    for (std::uint64_t i = 0; i < block.count; ++i) {
      if (a[i] != b[i]) add_differing<F>(a[i], b[i], block, i);
    }
    if (F == pair_.format->format) {
      for (std::uint64_t i = 0; i < block.count; ++i)
        add_distance(place_of<F>(a[i]), place_of<F>(b[i]), block, i);
    } else {
      with_numbers(pair_, block, [&](const auto& numbers) { add_rounded(block, numbers); });
    }
  }

  /// Of two formats.
  template <class Number>
  void add_numbers(const PairReader::Block& block, const Numbers<Number>& numbers) {
    using Code = std::conditional_t<std::same_as<Number, float>, std::uint32_t, std::uint64_t>;
    for (std::uint64_t i = 0; i < block.count; ++i) {
      const Number a = numbers.a[i], b = numbers.b[i];
      const Code code_a = std::bit_cast<Code>(a), code_b = std::bit_cast<Code>(b);
      if (code_a == code_b || (std::isnan(a) && std::isnan(b))) continue;
      if constexpr (std::same_as<Number, float>) {
        add_differing<fp16::binary32>(code_a, code_b, block, i);
      } else {
        add_differing<fp16::binary64>(code_a, code_b, block, i);
      }
    }
    add_rounded(block, numbers);
  }

  template <class Number>
  void add_rounded(const PairReader::Block& block, const Numbers<Number>& numbers) {
    with_format(pair_.format->format, [&]<const fp16::Format & F>() {
      const auto a = codes_of<F>(std::span<const Number>(numbers.a)),
                 b = codes_of<F>(std::span<const Number>(numbers.b));
      for (std::size_t i = 0; i < a.size(); ++i)
        add_distance(place_of<F>(a[i], numbers.a[i]), place_of<F>(b[i], numbers.b[i]), block, i);
    });
  }

  void add_distance(Place a, Place b, const PairReader::Block& block, std::uint64_t i) {
    if (compare::add_distance(a, b, allowed_, counts_) && !asks_bits_) add_first(block, i);
  }

  template <const fp16::Format& F>
  void add_differing(Bits<F> a, Bits<F> b, const PairReader::Block& block, std::uint64_t i) {
    ++counts_.differing;
    add_difference<F>(a, b, counts_);
    if (asks_bits_) add_first(block, i);
  }

  void add_first(const PairReader::Block& block, std::uint64_t i) {
    const std::uint64_t index = reader_.index(block.first + i);
    if (counts_.first.size() < Counts::most_first || index < counts_.first.back().index)
      counts_.add_first({.index = index,
                         .code_a = code_at(block.a, *pair_.a->type, i),
                         .code_b = code_at(block.b, *pair_.b->type, i)});
  }

  const PairFound& pair_;
  const PairReader& reader_;
  const std::uint64_t allowed_;
  const bool asks_bits_;
  Counts counts_;
};

/// Calls compute(reader, pair) for all pieces of the pairs that `wanted` accepts, on all threads, and merge(pair, what it
/// gave), one at a time and in any order.
template <class Wanted, class Compute, class Merge>
void for_each_piece(Findings& found, experiments::Run& run, const char* label, Wanted&& wanted,
                    Compute&& compute, Merge&& merge) {
  std::vector<PairPiece> pieces;
  for (std::size_t i = 0; i < found.pairs.size(); ++i) {
    const PairFound& pair = found.pairs[i];
    if (pair.same_shape() && wanted(pair))
      std::ranges::copy(pieces_of(i, *pair.a, *pair.b), std::back_inserter(pieces));
  }
  std::mutex mutex;
  experiments::Progress progress = run.progress(label, pieces.size());
  experiments::parallel_for_each(pieces.size(), run.threads(), [&](std::size_t i) {
    PairFound& pair = found.pairs[pieces[i].pair];
    PairReader reader(pieces[i], *pair.a, *pair.b);
    const auto result = compute(reader, pair);
    progress.tick();
    const std::scoped_lock lock(mutex);
    merge(pair, result);
  });
}

void compare_elements(Findings& found, experiments::Run& run) {
  for_each_piece(
      found, run, "compare", [](const PairFound&) { return true; },
      [&](PairReader& reader, const PairFound& pair) {
        Counter counter(pair, reader, found);
        for (auto block = reader.next(); block.count > 0; block = reader.next()) counter.add(block);
        return std::move(counter).counts();
      },
      [](PairFound& pair, const Counts& counts) { pair.counts += counts; });
}

void look_for_rounding(Findings& found, experiments::Run& run) {
  for (PairFound& pair : found.pairs)
    pair.rounding.applies = coarser_than(format_of(*pair.a), format_of(*pair.b));
  for_each_piece(
      found, run, "explain", [](const PairFound& pair) { return pair.counts.differing > 0; },
      [](PairReader& reader, const PairFound& pair) {
        RoundingFound rounding;
        rounding.applies = pair.rounding.applies;
        for (auto block = reader.next(); block.count > 0; block = reader.next())
          with_numbers(pair, block, [&]<class Number>(const Numbers<Number>& numbers) {
            rounding.add(std::span<const Number>(numbers.a), std::span<const Number>(numbers.b));
          });
        return rounding;
      },
      [](PairFound& pair, const RoundingFound& rounding) { pair.rounding += rounding; });
}

Class class_of(const PairFound& pair, bool asks_bits) {
  if (!pair.same_shape()) return Class::different;
  if (pair.same_format() && pair.counts.differing == 0) return Class::equal;
  return !asks_bits && pair.counts.beyond == 0 ? Class::within : Class::different;
}

/// Of two stored formats the one with fewer digits, then bits.
const fp16::NamedFormat& coarser(const fp16::NamedFormat& a, const fp16::NamedFormat& b) {
  const auto size = [](const fp16::Format& format) { return std::pair(format.precision, format.width()); };
  return size(b.format) < size(a.format) ? b : a;
}

using ByName = std::map<std::string, const files::StoredTensor*>;

ByName by_name(const std::vector<files::StoredTensor>& all, const std::string& path) {
  ByName tensors;
  for (const files::StoredTensor& tensor : all) {
    if (!tensors.emplace(tensor.name, &tensor).second)
      throw std::runtime_error(fmt::format("'{}' has two tensors called '{}'", path, tensor.name));
  }
  return tensors;
}

/// Calls add(tensor of A, tensor of B) for those of one name, whatever it is where each side holds one alone; the others'
/// names go to the lists.
template <class Add>
void match(const std::vector<files::StoredTensor>& a, const std::vector<files::StoredTensor>& b,
           Findings& found, Add&& add) {
  if (found.has_one_each && a.size() == 1 && b.size() == 1) return add(a.front(), b.front());
  const ByName of_a = by_name(a, found.a), of_b = by_name(b, found.b);
  for (const files::StoredTensor& tensor : a) {
    const auto other = of_b.find(tensor.name);
    if (other == of_b.end()) {
      found.only_a.push_back(tensor.name);
    } else {
      add(tensor, *other->second);
    }
  }
  for (const files::StoredTensor& tensor : b) {
    if (!of_a.contains(tensor.name)) found.only_b.push_back(tensor.name);
  }
}

void match_numbers(const files::TensorSet& a, const files::TensorSet& b, Findings& found) {
  match(a.tensors(), b.tensors(), found, [&](const files::StoredTensor& x, const files::StoredTensor& y) {
    found.pairs.push_back({.name = x.name,
                           .a = &x,
                           .b = &y,
                           .format = &coarser(scalar_format(x.type->format), scalar_format(y.type->format))});
  });
}

bool same_bits(const files::StoredTensor& a, const files::StoredTensor& b) {
  if (a.type != b.type || a.shape != b.shape) return false;
  return std::ranges::all_of(pieces_of(0, a, b), [&](const PairPiece& piece) {
    PairReader reader(piece, a, b);
    for (auto block = reader.next(); block.count > 0; block = reader.next()) {
      if (!std::ranges::equal(block.a, block.b)) return false;
    }
    return true;
  });
}

void compare_others(const files::TensorSet& a, const files::TensorSet& b, Findings& found) {
  match(a.passed_over(), b.passed_over(), found,
        [&](const files::StoredTensor& x, const files::StoredTensor& y) {
          found.others.push_back({.name = x.name, .elements = x.elements, .is_equal = same_bits(x, y)});
        });
}

void judge(Findings& found) {
  found.found = found.only_a.empty() && found.only_b.empty() ? Class::equal : Class::different;
  for (PairFound& pair : found.pairs) {
    pair.found = class_of(pair, found.asks_bits);
    found.found = std::max(found.found, pair.found);
    found.total += pair.counts;
    if (pair.counts.differing > 0) found.rounding += pair.rounding;
  }
  if (!std::ranges::all_of(found.others, &OtherFound::is_equal)) found.found = Class::different;
}

}  // namespace

std::string_view name_of(Class found) {
  return found == Class::equal ? "equal" : found == Class::within ? "within" : "different";
}

Counts& Counts::operator+=(const Counts& other) {
  elements += other.elements;
  differing += other.differing;
  nan_bits += other.nan_bits;
  zero_signs += other.zero_signs;
  one_nan += other.one_nan;
  one_infinite += other.one_infinite;
  flushed_a += other.flushed_a;
  flushed_b += other.flushed_b;
  beyond += other.beyond;
  largest = std::max(largest, other.largest);
  by_ulp += other.by_ulp;
  for (const Difference& difference : other.first) add_first(difference);
  return *this;
}

void Counts::add_first(const Difference& difference) {
  first.insert(std::ranges::upper_bound(first, difference.index, {}, &Difference::index), difference);
  if (first.size() > most_first) first.pop_back();
}

std::size_t Findings::count(Class of) const {
  return static_cast<std::size_t>(std::ranges::count(pairs, of, &PairFound::found));
}

Findings measure(const files::TensorSet& a, const files::TensorSet& b, const Options& options,
                 experiments::Run& run) {
  Findings found{.a = options.inputs.paths[0], .b = options.inputs.paths[1]};
  found.ulp = static_cast<std::uint64_t>(options.ulp.value_or(0));
  found.asks_bits = options.as.empty() && !options.ulp;
  found.has_one_each = a.holds_one() && b.holds_one();
  match_numbers(a, b, found);
  if (options.inputs.select.empty()) compare_others(a, b, found);
  if (!options.as.empty()) {
    const fp16::NamedFormat* const format =
        experiments::from_option("--as", [&] { return &scalar_format(options.as); });
    if (!format->format.has_zero())
      throw std::invalid_argument(
          fmt::format("--as: {} has no zero; it is a format of scales alone", format->name));
    for (PairFound& pair : found.pairs) pair.format = format;
  }
  compare_elements(found, run);
  look_for_rounding(found, run);
  judge(found);
  return found;
}

}  // namespace halflab::compare
