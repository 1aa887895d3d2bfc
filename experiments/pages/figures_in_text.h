#pragma once
/// Measured figures in text: `{RECORD:KEY}` becomes the figure that the record's summary has under the key.
///
/// A placeholder is `{TERM}` or `{TERM|FORMAT}`. A term is an operand, or two with ` / `, ` - ` or ` * `
/// between them; an operand is RECORD:KEY or a number. The words of a format, in any order:
///   ±      the half width of the 95 % interval behind the figure, by the keys KEY_lower and KEY_upper, or
///          KEY_half_width: "0.0467 ± 0.0017"
///          of shares, with x100, only where the interval stays within 0 to 100
///   []     a difference with its interval: "+0.8 [-3.7, 5.2]"
///   %      of one: "72.2 %"          x100   the same without the sign, for points and columns of per cent
///   2^     the figure is an exponent: "2^-31.3"       log2   its binary logarithm is meant
///   si     with k, M, G or T: "13.7 G"                MiB    of bytes: "1280 MiB"
///   +      with its sign
/// Everything is rounded to three significant digits, exact figures of fewer excepted; counts are whole; a
/// half width has two digits, its figure as many places, four digits at most; differences in per cent have
/// one or two. Figures below 10^-4 have a power of ten. Units stand behind a space that is not broken.

#include <string>
#include <string_view>

#include "experiments/pages/records.h"

namespace experiments::pages {

/// Three significant digits: "0.0467", "13.7", "16700", "4.27 x 10^-7"; "18" for 18. NaN and infinity by
/// name.
std::string three_digits(double figure);

/// The text with every placeholder filled. Throws std::invalid_argument that shows the placeholder and says
/// what is wrong with it.
std::string filled(std::string_view text, const Records& records);

/// Whether a condition, `TERM > TERM` (or <, >=, <=, ==; == compares texts too), holds in the records. A
/// figure that is no number fulfils no order. Throws as filled() does.
bool holds(std::string_view condition, const Records& records);

}  // namespace experiments::pages
