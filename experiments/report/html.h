#pragma once
/// Text and pictures as parts of an HTML page.

#include <string>
#include <string_view>

namespace experiments::report {

/// For text and for attributes in double quotes.
std::string escaped(std::string_view text);

/// Escaped text, with powers such as 2^-24 set as the exponents they are.
std::string typeset(std::string_view text);

/// The `<svg>` element of an SVG file, for a page with several of them: without prolog, gnuplot's own title
/// and description; ids that something refers to begin with `prefix`, in reference and definition, the others
/// are dropped. Throws std::runtime_error when there is no such element.
std::string inline_svg(std::string_view file, std::string_view prefix, std::string_view label);

}  // namespace experiments::report
