#include "tools/halflab/show/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/show/page_fragment.h"

namespace halflab::show {
namespace {

using namespace experiments;

std::string power_of_two(int exponent) {
  return fmt::format("2^{}", exponent);
}

/// "1" for a set bit.
std::optional<int> bit_of(const Findings& found, bool Discarded::*bit) {
  return found.discarded ? std::optional<int>((*found.discarded).*bit) : std::nullopt;
}

std::optional<std::string> part_of(const std::optional<Description>& number, std::string Description::*part) {
  return number ? std::optional((*number).*part) : std::nullopt;
}

/// The result where it is rounded, and a number that lies in it exactly where not.
bool has_error(const Findings& found) {
  return found.is_rounded() && found.exact && found.is_finite();
}

const SummaryOf<Findings> summary{
    {{"input", "what was asked about", &Findings::input},
     {"format", "what it is rounded to", &Findings::format_name},
     {"code", "of the result", [](auto& f) { return f.result.code_text; }},
     {"fields", "its sign, exponent and significand in binary", [](auto& f) { return f.result.fields; }},
     {"kind", "normal, subnormal, zero, infinity, quiet NaN or signalling NaN",
      [](auto& f) { return f.result.kind; }},
     {"value", "the shortest decimal that reads back", [](auto& f) { return f.result.shortest; }},
     {"value_exact", "every digit", [](auto& f) { return f.result.exact; }},
     {"value_hexadecimal", "with a power of two", [](auto& f) { return f.result.hexadecimal; }},
     {"ulp_log2", "log2 of the unit in the last place of the result, where it is finite",
      &Findings::ulp_exponent},
     {"next_down_code", "of the next number below",
      [](auto& f) { return part_of(f.below, &Description::code_text); }},
     {"next_down", "its value", [](auto& f) { return part_of(f.below, &Description::shortest); }},
     {"next_up_code", "of the next number above",
      [](auto& f) { return part_of(f.above, &Description::code_text); }},
     {"next_up", "its value", [](auto& f) { return part_of(f.above, &Description::shortest); }},
     {"exact", "what is rounded, in decimal; \"about\" where its digits do not end",
      [](auto& f) { return f.exact ? std::optional(f.exact_text) : std::nullopt; }},
     {"exact_hexadecimal", "the same with a power of two",
      [](auto& f) { return f.exact ? std::optional(f.exact->hexadecimal()) : std::nullopt; }},
     {"guard", "the first bit of it below the last place",
      [](auto& f) { return bit_of(f, &Discarded::guard); }},
     {"round", "the second", [](auto& f) { return bit_of(f, &Discarded::round); }},
     {"sticky", "1 where any further bit is set", [](auto& f) { return bit_of(f, &Discarded::sticky); }},
     {"flags", "that the rounding raised, or none", [](auto& f) { return text_of(f.flags); }},
     {"error_ulp", "result less exact, in units of the result's last place",
      [](auto& f) { return has_error(f) ? std::optional(f.error_in_ulps()) : std::nullopt; }},
     {"page_state", "the fragment of the address that shows it in the teaching page (./lab page)",
      [](auto& f) { return page_fragment(f); }}}};

const TableOf<Step> steps_table{
    .name = "steps",
    .rows = "each operation, in its order",
    .columns = {{"operation", "", &Step::text},
                {"exact", "1", [](auto& s) { return s.exact ? s.exact->decimal() : ""; }},
                {"code", "", [](auto& s) { return s.result.code_text; }},
                {"value", "1", [](auto& s) { return s.result.shortest; }},
                {"flags", "", [](auto& s) { return text_of(s.flags); }}}};

const TableOf<RoundedSo> roundings_table{
    .name = "roundings",
    .rows = "each rounding of what is rounded; stochastic with both of its results where these differ",
    .columns = {{"rounding", "", &RoundedSo::rounding},
                {"code", "", [](auto& r) { return r.result.code_text; }},
                {"value", "1", [](auto& r) { return r.result.shortest; }},
                {"flags", "", [](auto& r) { return text_of(r.flags); }},
                {"chance", "1", &RoundedSo::chance}}};

const TableOf<InFormat> formats_table{
    .name = "formats",
    .rows = "each format, with what is rounded (of a code: its value) rounded to nearest even",
    .columns = {{"format", "", &InFormat::format},
                {"code", "", [](auto& r) { return r.number.code_text; }},
                {"value", "1", [](auto& r) { return r.number.shortest; }},
                {"value_exact", "1", [](auto& r) { return r.number.exact; }},
                {"relative_error", "1",
                 [](auto& r) { return r.relative_error ? Value(*r.relative_error) : Value(""); }},
                {"flags", "", [](auto& r) { return text_of(r.flags); }}}};

constexpr std::size_t longest_digits = 60;

/// All digits where they are few, else the leading ones.
std::string shortened(const std::string& digits, const std::string& leading) {
  if (digits.size() <= longest_digits) return digits;
  return fmt::format("{} ({} characters in full, which --json has)", leading, digits.size());
}

std::string shortened(const ExactNumber& exact, const std::string& digits) {
  return shortened(digits, exact.decimal(longest_digits));
}

/// "0.0244 % too small".
std::string deviation(double relative_error) {
  return fmt::format("{} too {}", percent(std::fabs(relative_error)), relative_error < 0 ? "small" : "large");
}

/// A share that is neither all, nothing nor one half, in so many digits that it is not read as such.
std::string share_of_way(double share) {
  for (const int digits : {3, 5, 8, 12}) {
    const std::string text = fmt::format("{:.{}g}", 100 * share, digits);
    if (text != "100" && text != "50") return text + " %";
  }
  return share < 0.5 ? "almost 50 %" : share < 0.75 ? "a little more than 50 %" : "almost 100 %";
}

/// The next number away from zero: beyond the largest one, that which would follow with more exponents.
std::string outer_neighbour(const Findings& found, std::uint64_t inner) {
  const bool is_negative = found.exact->is_negative();
  const std::uint64_t outer =
      round(*found.format, *found.exact,
            {.rounding = is_negative ? fp16::Rounding::toward_negative : fp16::Rounding::toward_positive})
          .code;
  if (outer != inner && exact_value(*found.format, outer)) return describe(*found.format, outer).brief;
  return (*exact_value(*found.format, inner) + ExactNumber(is_negative, {1}, found.discarded->ulp_exponent))
             .decimal() +
         ", which would follow";
}

std::string rounded_sentence(const Findings& found) {
  const Discarded& discarded = *found.discarded;
  const std::uint64_t inner_code =
      round(*found.format, *found.exact, {.rounding = fp16::Rounding::toward_zero}).code;
  const std::string inner = describe(*found.format, inner_code).brief,
                    outer = outer_neighbour(found, inner_code);
  const std::string is = fmt::format("{} is {} in {}", found.input, found.result.brief, found.format_name);
  if (discarded.is_tie())
    return fmt::format("{}: {} lies halfway between {} and {}, and the code of {} is the even one.", is,
                       shortened(*found.exact, found.exact_text), inner, outer, found.result.brief);
  const double error = ratio(*exact_value(*found.format, found.result.code) + -*found.exact, *found.exact);
  if (inner_code == found.result.code && error > 0)
    return fmt::format("{}, {}: no number of the format is smaller.", is, deviation(error));
  return fmt::format("{}, {}: it lies {} of the way from {} to {}.", is, deviation(error),
                     share_of_way(discarded.fraction), inner, outer);
}

std::string answer(const Findings& found) {
  const std::string& format = std::string(found.format_name);
  if (!found.is_rounded())
    return fmt::format("{} is {} in {}: {} {}{}.", found.input, found.result.brief, format,
                       found.result.kind == "infinity" ? "an" : "a", found.result.kind,
                       found.result.kind.ends_with("normal") ? " number" : "");
  if (found.flags.invalid)
    return fmt::format("{} has no value in {} and becomes {}, with the flag invalid.", found.input, format,
                       found.result.brief);
  if (found.flags.overflow)
    return fmt::format("{} overflows in {} and becomes {}: the largest number is {}.", found.input, format,
                       found.result.brief, describe(*found.format, found.format->max_finite_code()).brief);
  if (found.flags.divide_by_zero)
    return fmt::format("{} is {} in {}, with the flag divide by zero.", found.input, found.result.brief,
                       format);
  if (!found.exact) return fmt::format("{} is {} in {}.", found.input, found.result.brief, format);
  if (!found.flags.inexact)
    return found.result.brief == found.result.exact
               ? fmt::format("{} is exactly {} in {}.", found.input, found.result.brief, format)
               : fmt::format("{} is a number of {}, about {}.", found.input, format, found.result.brief);
  if (!found.discarded)
    return fmt::format("{} has no zero: {} becomes {}, its smallest positive number.", format, found.input,
                       found.result.brief);
  if (found.result.kind == "zero")
    return fmt::format("{} becomes {} in {}: it is {} of the smallest positive number, {:.3g}.", found.input,
                       found.result.brief, format, percent(found.discarded->fraction),
                       found.format->min_subnormal());
  return rounded_sentence(found);
}

TextTable numbers_table(const Findings& found) {
  TextTable table{
      .columns = {"number", "code", "bits", "value", "kind"},
      .rows = {},
      .notes = {"value: all digits where they are few, else as many as tell the format's numbers apart."}};
  const auto add = [&](const std::string& name, const Description& number) {
    table.rows.push_back({name, number.code_text, number.fields, number.brief, number.kind});
  };
  for (const Part& part : found.operands) add(part.name, part.number);
  add("result", found.result);
  if (found.below) add("next below", *found.below);
  if (found.above) add("next above", *found.above);
  return table;
}

TextTable properties_table(const Findings& found) {
  TextTable table{.columns = {"property", "value"}, .rows = {}, .notes = {}};
  const auto add = [&](const char* name, std::string value) {
    table.rows.push_back({name, std::move(value)});
  };
  add("result", shortened(found.result.exact, found.result.brief));
  if (found.result.hexadecimal != found.result.exact) add("in hexadecimal", found.result.hexadecimal);
  if (found.is_finite())
    add("one ulp",
        fmt::format("{} = {:.6g}", power_of_two(*found.ulp_exponent), std::ldexp(1, *found.ulp_exponent)));
  if (found.is_rounded()) {
    if (found.exact) add("exact result", shortened(*found.exact, found.exact_text));
    if (found.exact) add("exact, in hexadecimal", found.exact->hexadecimal());
    if (const auto& bits = found.discarded) {
      add("kept bits",
          fmt::format("{}, the last one worth {}", bits->kept, power_of_two(bits->ulp_exponent)));
      add("guard, round, sticky", fmt::format("{:d} {:d} {:d}", bits->guard, bits->round, bits->sticky));
    }
    add("flags", text_of(found.flags));
    if (has_error(found))
      add("error", found.flags.inexact ? fmt::format("{:.3g} ulp", found.error_in_ulps()) : "0");
  }
  return table;
}

TextTable steps_text(const Findings& found) {
  TextTable table{.columns = {"operation", "exact", "rounded", "flags"}, .rows = {}, .notes = {}};
  for (const Step& step : found.steps)
    table.rows.push_back({step.text, step.exact ? shortened(*step.exact, step.exact->decimal()) : "-",
                          step.result.brief, text_of(step.flags)});
  return table;
}

TextTable roundings_text(const Findings& found) {
  TextTable table{.columns = {"rounding", "code", "value", "flags"}, .rows = {}, .notes = {}};
  for (const RoundedSo& row : found.roundings) {
    const std::string name =
        row.chance == 1
            ? std::string(row.rounding)
            : fmt::format("{}, {}", row.rounding, row.chance == 0.5 ? "50 %" : share_of_way(row.chance));
    table.rows.push_back({name, row.result.code_text, row.result.brief, text_of(row.flags)});
  }
  return table;
}

std::string error_text(const InFormat& row) {
  if (!row.relative_error) return text_of(row.flags) == "none" ? "-" : text_of(row.flags);
  if (*row.relative_error == 0) return "exact";
  const std::string error = percent(std::fabs(*row.relative_error));
  return row.flags.overflow ? error + ", overflow" : error;
}

TextTable formats_text(const Findings& found) {
  TextTable table{.columns = {"format", "code", "value", "relative error"}, .rows = {}, .notes = {}};
  if (!found.operands.empty() && found.is_rounded())
    table.notes.push_back(fmt::format("The exact result of these {} operands, rounded once to each format.",
                                      found.format_name));
  for (const InFormat& row : found.formats)
    table.rows.push_back({std::string(row.format), row.number.code_text, row.number.brief, error_text(row)});
  return table;
}

}  // namespace

Outputs outputs() {
  return outputs_of(steps_table, roundings_table, formats_table, summary);
}

void report(Run& run, const Findings& found) {
  RunRecord& record = run.record();
  steps_table.write(record, found.steps);
  roundings_table.write(record, found.roundings);
  formats_table.write(record, found.formats);
  summary.write(record, found);
  const std::string first = found.rounded_first.empty()
                                ? ""
                                : fmt::format(" Rounded to {} before that: {}.", found.format_name,
                                              fmt::join(found.rounded_first, ", "));
  record.verdict(answer(found) + first);
  if (found.steps.size() > 1) record.verdict(steps_text(found).text());
  record.verdict(numbers_table(found).text());
  record.verdict(properties_table(found).text());
  if (found.is_rounded()) record.verdict(roundings_text(found).text());
  record.verdict(formats_text(found).text());
  record.verdict(fmt::format("In the teaching page (./lab page): halflab.html{}", page_fragment(found)));
}

}  // namespace halflab::show
