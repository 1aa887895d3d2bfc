#pragma once
/// How wide texts are in figures.

#include <span>
#include <string>

namespace experiments {

/// Pixels of tics, labels and axes; keys and remarks are a pixel smaller.
constexpr double font_size = 13;

/// Pixels that the longest of the texts takes in the wider of DejaVu Sans and Arial, letter by letter: an SVG is
/// shown in the font of its reader's machine, most others of which are narrower than one of the two. A character
/// beyond ASCII counts as the widest of those in use. Markup such as 2^{10} is measured as it is written, which is
/// too much.
int text_width(std::span<const std::string> texts, double size = font_size);

}  // namespace experiments
