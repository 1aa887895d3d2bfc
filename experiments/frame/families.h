#pragma once
/// Families of named variants, as options choose from them and `--list` prints them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace experiments {

/// One of a family, as its registry describes it; empty where that says nothing.
struct Variant {
  std::string name;
  std::string kind;
  std::string description;
};

/// An option of a variant, or what a variant consists of.
struct VariantDetail {
  std::string name;
  std::string value;    ///< of an option its default
  std::string allowed;  ///< of an option: "numbers in (1, inf)"
  std::string meaning;  ///< where its name and what is allowed do not say it
};

struct Family {
  std::string_view name;                                    ///< as in `--list formats`
  std::vector<Variant> (*variants)();                       ///< in the order of their registry
  std::vector<VariantDetail> (*details)(std::string_view);  ///< of the variant of that name; or null
};

using Families = std::span<const Family>;

/// The names of a family's variants. Throws std::invalid_argument, naming the families, for an unknown one.
std::vector<std::string> names_in(Families families, std::string_view family);

/// The names for people: "a, b, c"; of a family with kinds a line for each, "\nglobal: a, b\nlayer: c".
std::string names_by_kind(Families families, std::string_view family);

/// What `--list` prints. Of "scalers" a line for each variant: name, kind and description, as far as there
/// are any, in columns; of "scalers:dynamic" the variant's description and a line for each option or role:
/// name, default or value, and what is allowed. Throws std::invalid_argument for an unknown family or variant.
std::string listing(Families families, std::string_view text);

}  // namespace experiments
