#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "fp16/codec.h"
#include "fp16/mma.h"
#include "fp16/names.h"
#include "fp16/sum.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/reveal/boxes.h"

namespace halflab::reveal {
namespace {

using fp16::Bits;
using fp16::Format;

template <const Format& F>
using Codes = std::span<const Bits<F>>;

template <const Format& F>
Bits<F> reversed(Codes<F> codes) {
  std::vector<Bits<F>> turned(codes.rbegin(), codes.rend());
  return fp16::sum_sequential<F>(turned).bits;
}

/// Partial sum k of every lanes-th term from k on, then these in pairs, neighbours first; terms beyond whole rounds last.
template <const Format& F>
Bits<F> interleaved(Codes<F> codes, std::size_t lanes) {
  const std::size_t whole = codes.size() / lanes * lanes;
  if (whole == 0) return fp16::sum_sequential<F>(codes).bits;
  std::vector<Bits<F>> sums(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(lanes));
  for (std::size_t i = lanes; i < whole; ++i) sums[i % lanes] = fp16::add<F>(sums[i % lanes], codes[i]).bits;
  Bits<F> sum = fp16::sum_pairwise<F>(sums).bits;
  for (const Bits<F> rest : codes.subspan(whole)) sum = fp16::add<F>(sum, rest).bits;
  return sum;
}

/// As NumPy up to 128 terms; more are halved, at multiples of 8.
template <const Format& F>
Bits<F> numpy_pairwise(Codes<F> codes) {
  if (codes.size() <= 128) return interleaved<F>(codes, 8);
  const std::size_t half = codes.size() / 2 / 8 * 8;
  return fp16::add<F>(numpy_pairwise<F>(codes.first(half)), numpy_pairwise<F>(codes.subspan(half))).bits;
}

struct Order {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array orders{
    Order{"sequential", "from the first to the last"},
    Order{"reversed", "from the last to the first"},
    Order{"pairwise", "in halves, each found likewise"},
    Order{"blocked_tree", "as a GPU's block of 32 lanes reduces"},
    Order{"interleaved_2", "2 interleaved partial sums, then these in pairs"},
    Order{"interleaved_4", "4 interleaved partial sums, then these in pairs"},
    Order{"interleaved_8", "8 interleaved partial sums, then these in pairs"},
    Order{"interleaved_16", "16 interleaved partial sums, then these in pairs"},
    Order{"interleaved_32", "32 interleaved partial sums, then these in pairs"},
    Order{"numpy", "in halves down to 128 terms, and these as 8 interleaved partial sums"},
};

template <const Format& F>
Bits<F> sum_in(std::string_view order, Codes<F> codes) {
  if (order == "sequential") return fp16::sum_sequential<F>(codes).bits;
  if (order == "reversed") return reversed<F>(codes);
  if (order == "pairwise") return fp16::sum_pairwise<F>(codes).bits;
  if (order == "blocked_tree") return fp16::sum_blocked_tree<F, 32>(codes).bits;
  if (order == "numpy") return numpy_pairwise<F>(codes);
  return interleaved<F>(codes, std::stoul(std::string(order.substr(order.find('_') + 1))));
}

}  // namespace

std::vector<std::string> order_names() {
  return names::names_of(orders);
}

Box order_box(const std::string& name, const fp16::NamedFormat& format) {
  const Order& order = names::find_by_name(orders, "order", name);
  return [order, format](std::span<const double> terms) {
    return with_format(format.format, [&]<const Format & F>() {
      if constexpr (!F.has_arithmetic()) {
        return 0.0;
      } else {
        std::vector<Bits<F>> codes;
        for (const double term : terms) codes.push_back(fp16::encode<F>(term).bits);
        return double{fp16::decode<F>(sum_in<F>(order.name, codes))};
      }
    });
  };
}

}  // namespace halflab::reveal
