#include "experiments/frame/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>

#include "fp16/names.h"

namespace experiments {
namespace {

const Family& find_family(Families families, std::string_view name) {
  return names::find_by_name(families, "family", name);
}

using Row = std::array<std::string, 4>;

/// The cells in columns, two spaces apart; a column that is empty throughout takes no space.
std::string in_columns(const std::vector<Row>& lines) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Row& line : lines) {
    std::string padded;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (widths[i] > 0) padded += fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    padded.erase(padded.find_last_not_of(' ') + 1);
    text += padded + '\n';
  }
  return text;
}

std::string variant_listing(const Family& family, std::string_view name) {
  const std::vector<Variant> variants = family.variants();
  const auto variant = std::ranges::find(variants, name, &Variant::name);
  if (variant == variants.end())
    throw std::invalid_argument(
        names::unknown_name_message(family.name, name, names::names_of(std::span(variants))));
  std::string text = in_columns({{variant->name, variant->kind, variant->description, ""}});
  std::vector<Row> lines;
  if (family.details != nullptr) {
    for (const VariantDetail& detail : family.details(name))
      lines.push_back({"  " + detail.name, detail.value, detail.allowed, detail.meaning});
  }
  return text + (lines.empty() ? "  no options\n" : in_columns(lines));
}

}  // namespace

std::vector<std::string> names_in(Families families, std::string_view family) {
  return names::names_of(std::span<const Variant>(find_family(families, family).variants()));
}

std::string names_by_kind(Families families, std::string_view family) {
  std::string text, kind;
  for (const Variant& variant : find_family(families, family).variants()) {
    if (variant.kind != kind) {
      text += fmt::format("\n{}: {}", variant.kind, variant.name);
      kind = variant.kind;
    } else {
      text += (text.empty() ? "" : ", ") + variant.name;
    }
  }
  return text;
}

std::string listing(Families families, std::string_view text) {
  const std::size_t colon = text.find(':');
  const Family& family = find_family(families, text.substr(0, colon));
  if (colon != std::string_view::npos) return variant_listing(family, text.substr(colon + 1));
  std::vector<Row> lines;
  for (const Variant& variant : family.variants())
    lines.push_back({variant.name, variant.kind, variant.description, ""});
  return in_columns(lines);
}

}  // namespace experiments
