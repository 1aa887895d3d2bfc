#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "fp16/format_names.h"
#include "fp16/formats.h"
#include "tools/halflab/show/findings.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"
#include "tools/page/engine/exact_text.h"
#include "tools/page/engine/named.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;

Json of(const show::Description& number) {
  return {{"code", number.code_text},    {"fields", number.fields}, {"kind", number.kind},
          {"shortest", number.shortest}, {"exact", number.exact},   {"hexadecimal", number.hexadecimal},
          {"brief", number.brief}};
}

Json of(const std::optional<show::Description>& number) {
  return number ? of(*number) : Json();
}

Json of(const std::optional<show::ExactNumber>& number) {
  return number ? Json{{"decimal", number->decimal()}, {"hexadecimal", number->hexadecimal()}} : Json();
}

Json of(const std::optional<show::Discarded>& discarded) {
  if (!discarded) return {};
  return {{"ulp_log2", discarded->ulp_exponent}, {"kept", discarded->kept},
          {"guard", discarded->guard},           {"round", discarded->round},
          {"sticky", discarded->sticky},         {"fraction", discarded->fraction}};
}

/// Calls of() for each element.
template <class Elements, class Of>
Json each(const Elements& elements, Of of) {
  Json rows = Json::array();
  for (const auto& element : elements) rows.push_back(of(element));
  return rows;
}

Json of(const show::Findings& found) {
  return {{"input", found.input},
          {"format", found.format_name},
          {"result", of(found.result)},
          {"flags", show::text_of(found.flags)},
          {"exact", of(found.exact)},
          {"exact_text", exact_text(found)},
          {"discarded", of(found.discarded)},
          {"ulp_log2", optional(found.ulp_exponent)},
          {"below", of(found.below)},
          {"above", of(found.above)},
          {"operands", each(found.operands,
                            [](const show::Part& part) {
                              return Json{{"name", part.name}, {"number", of(part.number)}};
                            })},
          {"steps", each(found.steps,
                         [](const show::Step& step) {
                           return Json{{"text", step.text},
                                       {"exact", of(step.exact)},
                                       {"result", of(step.result)},
                                       {"flags", show::text_of(step.flags)}};
                         })},
          {"roundings", each(found.roundings,
                             [](const show::RoundedSo& rounded) {
                               return Json{{"rounding", rounded.rounding},
                                           {"result", of(rounded.result)},
                                           {"flags", show::text_of(rounded.flags)},
                                           {"chance", rounded.chance}};
                             })},
          {"formats", each(found.formats, [](const show::InFormat& in) {
             return Json{{"format", in.format},
                         {"number", of(in.number)},
                         {"flags", show::text_of(in.flags)},
                         {"relative_error", optional(in.relative_error)}};
           })}};
}

/// The format's name with the last of its other ones: "binary16 (fp16)".
std::string text_of(const fp16::NamedFormat& row) {
  std::string text(row.name);
  for (const fp16::NamedFormat& alias : fp16::format_aliases)
    if (alias.format == row.format) text = fmt::format("{} ({})", row.name, alias.name);
  return text;
}

Json of(const fp16::NamedFormat& row) {
  const fp16::Format& format = row.format;
  return {{"name", row.name},
          {"text", text_of(row)},
          {"bits", format.width()},
          {"exponent_bits", format.exponent_bits},
          {"trailing_bits", format.trailing_bits()},
          {"is_signed", format.is_signed()},
          {"largest", format.max()},
          {"smallest_normal", format.min_normal()},
          {"smallest", format.min_subnormal()},
          {"epsilon", format.epsilon()},
          {"has_infinity", format.has_infinity()},
          {"has_nan", format.has_nan()},
          {"has_arithmetic", format.has_arithmetic()}};
}

}  // namespace
}  // namespace halflab::page

const char* engine_formats() {
  using namespace halflab::page;
  return answer(each(fp16::formats, [](const fp16::NamedFormat& row) { return of(row); }));
}

const char* engine_show(const char* format, const char* text) {
  using namespace halflab;
  return page::answer(page::of(show::measure(text, page::format_named(format))));
}
