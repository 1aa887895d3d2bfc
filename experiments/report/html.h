#pragma once
/// Text and pictures as parts of an HTML page.

#include <string>
#include <string_view>

namespace experiments::report {

/// For text and for attributes in double quotes.
std::string escaped(std::string_view text);

/// Escaped text, with powers such as 2^-24 set as the exponents they are.
std::string typeset(std::string_view text);

/// A path or a text as a part of an address that stands in double quotes.
std::string percent_encoded(std::string_view text);

/// The `<svg>` element of an SVG file as an image, in which no browser runs or loads anything: a record may come from
/// anyone. Throws std::runtime_error when there is no such element.
std::string image_of(std::string_view svg, std::string_view label);

}  // namespace experiments::report
