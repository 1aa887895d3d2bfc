#pragma once
/// Colours, lines and fonts of all figures, as gnuplot takes them.

#include <string_view>

namespace experiments::figure_style {

/// Every figure begins with it. The colours are those of Okabe and Ito (2008), which colour-blind readers can
/// tell apart; scripts use them by their names.
inline constexpr std::string_view lines_and_colours = R"(reset
set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing NaN
blue = "#0072B2"; vermillion = "#D55E00"; green = "#009E73"; purple = "#CC79A7"
orange = "#E69F00"; sky = "#56B4E9"; yellow = "#F0E442"; black = "#000000"; grey = "#777777"
set linetype 1 linecolor rgb blue linewidth 2 pointtype 7 pointsize 0.6
set linetype 2 linecolor rgb vermillion linewidth 2 pointtype 5 pointsize 0.6
set linetype 3 linecolor rgb green linewidth 2 pointtype 9 pointsize 0.8
set linetype 4 linecolor rgb purple linewidth 2 pointtype 13 pointsize 0.8
set linetype 5 linecolor rgb orange linewidth 2 pointtype 11 pointsize 0.8
set linetype 6 linecolor rgb sky linewidth 2 pointtype 4 pointsize 0.6
set linetype 7 linecolor rgb black linewidth 2 pointtype 6 pointsize 0.6
set linetype cycle 7
set border 3 linecolor rgb "#444444" linewidth 1
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set grid xtics ytics linetype 1 linecolor rgb "#E3E3E3" linewidth 0.75
set format "%h"
set key at graph 0, graph 1.03 left bottom horizontal Left reverse maxcols 5 width -1 samplen 2.6 font ",12" textcolor rgb "#222222"
set style fill solid 1.0 noborder
)";

/// The scale of heat maps, from light to dark (viridis).
inline constexpr std::string_view palette =
    "0 '#FDE725', 1 '#7AD151', 2 '#22A884', 3 '#2A788E', 4 '#414487', 5 '#440154'";

/// What lies beyond where a heat map has an answer.
inline constexpr std::string_view beyond_range = "#D9D9D9";

}  // namespace experiments::figure_style
