#include "tools/halflab/validate/deviations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <utility>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/elementary.h"
#include "fp16/rounding_names.h"
#include "tools/halflab/formats.h"

namespace halflab::validate {
namespace {

using fp16::Attributes;
using fp16::Format;
using fp16::NanPolicy;
using fp16::Rounding;

/// Collects what a function does otherwise.
class Collector {
 public:
  Collector(const Function& function, const Format& operands, const Format& result,
            const Attributes& attributes, bool any_nan)
      : function_(function),
        operands_(operands),
        result_(result),
        attributes_(attributes),
        any_nan_(any_nan) {}

  std::vector<Deviation> deviations() && { return std::move(deviations_); }

  /// It computes as with these attributes.
  void add(std::string text, const Attributes& attributes) {
    const Evaluate evaluate = function_.in(operands_, result_, attributes.rounding);
    if (attributes == attributes_ || !evaluate) return;
    add(std::move(text), evaluate, attributes, attributes.rounding != attributes_.rounding);
    deviations_.back().change = [from = attributes_, to = attributes](Attributes& changed) {
      const auto change = [&](auto Attributes::*member) {
        if (to.*member != from.*member) changed.*member = to.*member;
      };
      change(&Attributes::rounding);
      change(&Attributes::saturate);
      change(&Attributes::flush_to_zero);
      change(&Attributes::denormals_are_zero);
      change(&Attributes::tininess);
    };
  }

  /// It computes this function instead.
  void add(std::string text, Evaluate other, const Attributes& attributes, bool is_rounding = false) {
    if (!other) return;
    const auto is_nan = questions_of(result_).is_nan;
    deviations_.push_back({.text = std::move(text),
                           .explains =
                               [=](const Operands& codes, std::uint64_t expected, std::uint64_t result) {
                                 const std::uint64_t found = other(codes, attributes);
                                 return found == result ||
                                        (is_nan(found) && is_nan(result) && !is_nan(expected));
                               },
                           .contradicts =
                               [=, any_nan = any_nan_](const Operands& codes, std::uint64_t result) {
                                 const std::uint64_t found = other(codes, attributes);
                                 return found != result && !(any_nan && is_nan(found) && is_nan(result));
                               },
                           .is_rounding = is_rounding});
  }

  void add(std::string text, decltype(Deviation::explains) explains,
           decltype(Deviation::contradicts) contradicts) {
    deviations_.push_back(
        {.text = std::move(text), .explains = std::move(explains), .contradicts = std::move(contradicts)});
  }

  void add_subnormals() {
    add("it keeps subnormal numbers", flushing(false, false));
    add("it flushes subnormal results to zero", flushing(true, false));
    add("it reads subnormal operands as zeros", flushing(false, true));
    add("it reads subnormal operands as zeros and flushes subnormal results", flushing(true, true));
    for (const bool operands : {false, true}) {
      Attributes before = flushing(true, operands);
      before.tininess = fp16::Tininess::before_rounding;
      add(fmt::format("it {}flushes results that are below the normal numbers before they are rounded",
                      operands ? "reads subnormal operands as zeros and " : ""),
          before);
    }
    const Evaluate flushed = with_flushed(in(function_.name));
    add("it flushes results that are subnormal once they are rounded", flushed, flushing(false, false));
    add("it reads subnormal operands as zeros and flushes results that are subnormal once they are rounded",
        flushed, flushing(false, true));
  }

  void add_roundings() {
    constexpr std::pair<Rounding, const char*> names[]{
        {Rounding::toward_zero, "it truncates (rounds toward zero)"},
        {Rounding::nearest_even, "it rounds to nearest, ties to even"},
        {Rounding::nearest_away, "it rounds ties away from zero"},
        {Rounding::toward_positive, "it rounds up"},
        {Rounding::toward_negative, "it rounds down"},
        {Rounding::to_odd, "it rounds to odd"}};
    for (const auto& [rounding, text] : names) {
      Attributes attributes = attributes_;
      attributes.rounding = rounding;
      add(text, attributes);
    }
    Attributes truncating = flushing(true, true);
    truncating.rounding = Rounding::toward_zero;
    add("it truncates, reads subnormal operands as zeros and flushes subnormal results", truncating);
    add_saturation();
  }

  void add_saturation() {
    Attributes attributes = attributes_;
    attributes.saturate = !attributes.saturate;
    add(attributes.saturate ? "it saturates: what would be infinite becomes the largest finite number"
                            : "it does not saturate",
        attributes);
    attributes.saturate = false;
    const Evaluate truncated = function_.in(operands_, result_, Rounding::toward_zero);
    if (!result_.has_infinity() || !truncated) return;
    // Toward zero an overflow ends at the largest finite number, and an exact infinity stays one.
    add(
        "it saturates what overflows alone: infinities of operands and of divisions by zero stay",
        [truncated, evaluate = in(function_.name), is_infinite = questions_of(result_).is_infinite](
            const Operands& codes, const Attributes& with) {
          const std::uint64_t code = evaluate(codes, with);
          Attributes toward_zero = with;
          toward_zero.rounding = Rounding::toward_zero;
          return is_infinite(code) ? truncated(codes, toward_zero) : code;
        },
        attributes);
  }

  void add_nans() {
    const auto is_nan = questions_of(result_).is_nan;
    for (const auto& [policy, name] : {std::pair{NanPolicy::canonical_nvidia, "NVIDIA's"},
                                       std::pair{NanPolicy::canonical_riscv, "RISC-V's"}}) {
      const auto nan = with_format(result_, [policy = policy]<const Format & F>() -> std::uint64_t {
        if constexpr (F.has_nan()) return fp16::default_nan<F>(policy);
        return 0;
      });
      add(
          fmt::format("its NaNs are all 0x{:x} ({} rule)", nan, name),
          [nan, is_nan](const Operands&, std::uint64_t expected, std::uint64_t result) {
            return is_nan(expected) && is_nan(result) && result == nan;
          },
          [nan, is_nan](const Operands&, std::uint64_t result) { return is_nan(result) && result != nan; });
    }
    if (function_.arity == 2 && operands_ == result_) {
      const auto are_nans = [is_nan](const Operands& codes) { return is_nan(codes[0]) && is_nan(codes[1]); };
      const auto second = [evaluate = in(function_.name), attributes = attributes_](const Operands& codes) {
        return evaluate(swapped(codes), attributes);
      };
      add(
          "of two NaNs it takes the second",
          [=](const Operands& codes, std::uint64_t, std::uint64_t result) {
            return are_nans(codes) && result == second(codes);
          },
          [=](const Operands& codes, std::uint64_t result) {
            return are_nans(codes) && result != second(codes);
          });
    }
    add(
        "its NaNs have bits of their own",
        [is_nan](const Operands&, std::uint64_t expected, std::uint64_t result) {
          return is_nan(expected) && is_nan(result);
        },
        [is_nan](const Operands&, std::uint64_t result) { return is_nan(result); });
    const auto is_zero = questions_of(result_).is_zero;
    add(
        "its zeros have the wrong sign",
        [is_zero](const Operands&, std::uint64_t expected, std::uint64_t result) {
          return is_zero(expected) && is_zero(result);
        },
        [is_zero](const Operands&, std::uint64_t result) { return is_zero(result); });
    add(
        "its zeros are all +0",
        [is_zero](const Operands&, std::uint64_t expected, std::uint64_t result) {
          return is_zero(expected) && result == 0;
        },
        [is_zero](const Operands&, std::uint64_t result) { return is_zero(result) && result != 0; });
  }

  /// What programs make of the function.
  void add_formulas() {
    add("its operands are swapped", function_.arity == 2 ? with_swapped(in(function_.name)) : nullptr,
        attributes_);
    if (operands_ != result_) return;
    if (function_.name == "divide")
      add("it rounds twice: the reciprocal, and then the product", by_reciprocal(), attributes_, true);
    if (function_.name == "fma") {
      add("it rounds twice: the product, and then the sum", in_two_steps(in("multiply")), attributes_, true);
      add("it rounds twice, the product and then the sum, reads subnormal operands as zeros and flushes both",
          in_two_steps(in("multiply")), flushing(true, true), true);
      add("it rounds twice, the product and then the sum, reads subnormal operands as zeros and flushes both "
          "once they are rounded",
          with_flushed(in_two_steps(with_flushed(in("multiply")))), flushing(false, true), true);
    }
    constexpr std::pair<std::string_view, std::string_view> rules[]{{"minimum", "minimum_number"},
                                                                    {"maximum", "maximum_number"}};
    for (const auto& [nan_wins, number_wins] : rules) {
      if (function_.name != nan_wins && function_.name != number_wins) continue;
      if (function_.name == nan_wins)
        add("it takes the number where one operand is a NaN", in(number_wins), attributes_);
      if (function_.name == number_wins)
        add("it takes the NaN where there is one", in(nan_wins), attributes_);
      for (const std::size_t taken : {0u, 1u})
        add(fmt::format("of two zeros it takes the {}", taken == 0 ? "first" : "second"),
            with_zero_of(taken, in(function_.name)), attributes_);
      const bool is_maximum = nan_wins == "maximum";
      const Evaluate choice = by_comparison(is_maximum);
      add(is_maximum ? "it is a > b ? a : b" : "it is a < b ? a : b", choice, attributes_);
      add(is_maximum ? "it is b > a ? b : a" : "it is b < a ? b : a", with_swapped(choice), attributes_);
    }
  }

  /// The result in a wider format first.
  void add_wide() {
    if (function_.name == "cast" && result_.width() < 16) {
      add_detour(fp16::binary16, "binary16");
      add_detour(fp16::bfloat16, "bfloat16");
    }
    const bool narrows_doubles = function_.name == "cast" && operands_ == fp16::binary64;
    if (result_.width() > 16 || (operands_.width() > 16 && !narrows_doubles)) return;
    const Evaluate narrow = find_function("cast").in(fp16::binary32, result_, attributes_.rounding);
    add_detour(fp16::binary32, "float");
    add_approximation(narrow);
  }

 private:
  void add_detour(const Format& by, std::string_view name) {
    const Evaluate wide = function_.in(operands_, by, attributes_.rounding),
                   narrow = find_function("cast").in(by, result_, attributes_.rounding);
    if (operands_ == by || !wide) return;
    add(
        fmt::format("it rounds twice: to {}, and then to the format", name),
        [wide, narrow](const Operands& codes, const Attributes& attributes) {
          return narrow({wide(codes, attributes)}, attributes);
        },
        attributes_, true);
  }

  static Operands swapped(const Operands& codes) { return {codes[1], codes[0]}; }

  static Evaluate with_swapped(Evaluate evaluate) {
    return [evaluate = std::move(evaluate)](const Operands& codes, const Attributes& attributes) {
      return evaluate(swapped(codes), attributes);
    };
  }

  Evaluate by_reciprocal() const {
    return [rcp = in("rcp"), multiply = in("multiply")](const Operands& codes, const Attributes& attributes) {
      return multiply({codes[0], rcp({codes[1]}, attributes)}, attributes);
    };
  }

  Evaluate in_two_steps(Evaluate product) const {
    return
        [product = std::move(product), sum = in("add")](const Operands& codes, const Attributes& attributes) {
          return sum({product(codes, attributes), codes[2]}, attributes);
        };
  }

  /// Zeros for subnormal results, as a program tells them: by their codes.
  Evaluate with_flushed(Evaluate evaluate) const {
    const std::uint64_t sign = result_.is_signed() ? std::uint64_t{1} << (result_.width() - 1) : 0;
    const std::uint64_t smallest_normal = std::uint64_t{1} << result_.trailing_bits();
    return [=, evaluate = std::move(evaluate)](const Operands& codes, const Attributes& attributes) {
      const std::uint64_t code = evaluate(codes, attributes);
      return (code & ~sign) < smallest_normal ? code & sign : code;
    };
  }

  /// The function, but always the same operand of two zeros, whatever their signs.
  Evaluate with_zero_of(std::size_t operand, Evaluate evaluate) const {
    return [=, evaluate = std::move(evaluate), is_zero = questions_of(operands_).is_zero](
               const Operands& codes, const Attributes& attributes) {
      return is_zero(codes[0]) && is_zero(codes[1]) ? codes[operand] : evaluate(codes, attributes);
    };
  }

  /// The first operand where it is the larger (or smaller) one, else the second, whatever that is.
  Evaluate by_comparison(bool is_maximum) const {
    return [=, questions = questions_of(operands_)](const Operands& codes, const Attributes&) {
      if (questions.is_nan(codes[0]) || questions.is_nan(codes[1])) return codes[1];
      const std::int64_t a = questions.ordinal(codes[0]), b = questions.ordinal(codes[1]);
      return (is_maximum ? a > b : a < b) ? codes[0] : codes[1];
    };
  }

  Attributes flushing(bool results, bool operands) const {
    Attributes attributes = attributes_;
    attributes.flush_to_zero = results;
    attributes.denormals_are_zero = operands;
    return attributes;
  }

  Evaluate in(std::string_view name) const {
    return find_function(name).in(operands_, result_, attributes_.rounding);
  }

  void add_approximation(const Evaluate& narrow) {
    const Evaluate to_odd = function_.in(operands_, fp16::binary32, Rounding::to_odd);
    if (!to_odd || function_.name == "cast") return;
    add_in_floats(fmt::format("it computes in floats that are wrong by at most {} ulp, and rounds those",
                              most_float_ulp),
                  to_odd, to_odd, narrow);
    if (function_.name != "gelu") return;
    add_in_floats("it computes x/2 (1 + erf(x / sqrt(2))) in floats", to_odd_of(gelu_by_erf<-1>),
                  to_odd_of(gelu_by_erf<1>), narrow);
    add_in_floats("it is gelu's approximation by tanh, in floats", to_odd_of(gelu_by_tanh<-1>),
                  to_odd_of(gelu_by_tanh<1>), narrow);
    add_in_floats("it is gelu's approximation x sigmoid(1.702 x), in floats", to_odd_of(gelu_by_sigmoid<-1>),
                  to_odd_of(gelu_by_sigmoid<1>), narrow);
  }

  static constexpr std::uint64_t most_float_ulp = 4;

  /// The results between which that of a kernel in floats lies.
  struct Reach {
    std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = -low;
    bool has_nan = false;  ///< the float is one
    bool is_known = true;  ///< not beyond the range of floats, or of the format where that has no infinity
    std::optional<std::uint64_t> zero = {};  ///< what it is where it is zero, if its sign is sure

    bool holds(std::int64_t ordinal, std::uint64_t code) const {
      if (ordinal == 0 && zero && (low == 0 || high == 0)) return code == zero;
      return low <= ordinal && ordinal <= high;
    }
  };

  /// The result is a float between `from` and `to`, which are given to odd, or a few ulp beyond, and rounded then.
  void add_in_floats(std::string text, const Evaluate& from, const Evaluate& to, const Evaluate& narrow) {
    const CodeQuestions wide = questions_of(fp16::binary32), questions = questions_of(result_);
    // An error of a float may turn a zero of a function, but sums and products are rounded once.
    const bool is_signed_right = function_.arity > 1;
    const auto reach_of = [=, attributes = attributes_](const Operands& codes) {
      Reach reach;
      for (const Evaluate& bound : {from, to}) {
        const std::uint64_t value = bound(codes, {.rounding = Rounding::to_odd});
        reach.has_nan = reach.has_nan || wide.is_nan(value);
        reach.is_known = reach.is_known && !reach.has_nan && !wide.is_infinite(value);
        if (!reach.is_known) return reach;
        const std::uint64_t sign = value & 0x80000000u, magnitude = value & 0x7fffffffu;
        const std::uint64_t error = wide.is_zero(value) ? 0 : most_float_ulp;
        for (const std::uint64_t end : {magnitude - std::min(magnitude, error), magnitude + error}) {
          const std::uint64_t code = narrow({sign | end}, attributes);
          reach.is_known = reach.is_known && !questions.is_nan(code);
          if (!reach.is_known) return reach;
          if (is_signed_right && questions.is_zero(code)) reach.zero = code;
          reach.low = std::min(reach.low, questions.ordinal(code));
          reach.high = std::max(reach.high, questions.ordinal(code));
        }
      }
      return reach;
    };
    add(
        std::move(text),
        [=](const Operands& codes, std::uint64_t expected, std::uint64_t result) {
          const Reach reach = reach_of(codes);
          if (reach.has_nan || questions.is_nan(result))
            return reach.has_nan && questions.is_nan(result) && !questions.is_nan(expected);
          return reach.is_known && reach.holds(questions.ordinal(result), result);
        },
        [=](const Operands& codes, std::uint64_t result) {
          if (questions.is_nan(result)) return false;
          const Reach reach = reach_of(codes);
          return reach.is_known && !reach.holds(questions.ordinal(result), result);
        });
    deviations_.back().is_rounding = deviations_.back().is_range = true;
  }

  /// x/2 (1 + y). Of y near -1 a float is off by up to four units in its last place, unless it is -1.
  template <int direction>
  static double half_of_both(double x, double y) {
    constexpr double error = 0x1p-22, surely_minus_one = 0x1p-40;
    const double sum = 1 + y;
    if (!std::isfinite(x)) return 0.5 * x * sum;
    return 0.5 * x *
           (direction < 0            ? std::max(sum - error, 0.0)
            : sum < surely_minus_one ? sum
                                     : sum + error);
  }
  template <int direction>
  static double gelu_by_erf(double x) {
    return half_of_both<direction>(x, fp16::erf(x / std::numbers::sqrt2));
  }
  /// PyTorch's approximate="tanh".
  template <int direction>
  static double gelu_by_tanh(double x) {
    constexpr double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return half_of_both<direction>(x, fp16::tanh(factor * (x + 0.044715 * x * x * x)));
  }
  /// An exponential's relative error is the absolute one of its operand, here one rounding of 1.702 x.
  template <int direction>
  static double gelu_by_sigmoid(double x) {
    const double error = std::isfinite(x) ? direction * 0x1p-23 * std::fabs(x) : 0;
    return x * fp16::sigmoid(1.702 * x) * (1 + error);
  }

  /// The formula on the value of the operand, which is exact in binary64.
  Evaluate to_odd_of(double (*formula)(double)) const {
    return with_format(operands_, [&]<const Format & F>() -> Evaluate {
      return [formula](const Operands& codes, const Attributes& attributes) -> std::uint64_t {
        const double x{fp16::decode<F>(static_cast<fp16::Bits<F>>(codes[0]))};
        return fp16::encode<fp16::binary32>(formula(x), attributes).bits;
      };
    });
  }

  const Function& function_;
  const Format operands_, result_;
  const Attributes attributes_;
  const bool any_nan_;
  std::vector<Deviation> deviations_;
};

}  // namespace

bool has_range(const std::vector<Deviation>& deviations, const std::vector<std::size_t>& chosen) {
  return std::ranges::any_of(chosen, [&](std::size_t i) { return deviations[i].is_range; });
}

std::vector<Deviation> deviations_of(const Function& function, const Format& operands, const Format& result,
                                     const Attributes& attributes, bool any_nan) {
  Collector collector(function, operands, result, attributes, any_nan);
  collector.add_nans();
  collector.add_subnormals();
  collector.add_roundings();
  collector.add_wide();
  collector.add_formulas();
  std::vector<Deviation> deviations = std::move(collector).deviations();
  if (deviations.size() > most_deviations)
    throw std::logic_error(fmt::format("{}: {} deviations are known, of which sets hold {}", function.name,
                                       deviations.size(), most_deviations));
  return deviations;
}

}  // namespace halflab::validate
