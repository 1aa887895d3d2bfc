#include "experiments/frame/text_width.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace experiments {
namespace {

/// Advances from the space to the tilde in thousandths of the font's size, of DejaVu Sans or Arial whichever is
/// more.
constexpr int first_character = 0x20;
constexpr std::array advances{318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
                              636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 556,
                              1015, 684, 686, 722, 770, 667, 611, 778, 752, 295, 500, 667, 557, 863, 748, 787,
                              667,  787, 722, 667, 611, 732, 684, 989, 685, 667, 685, 390, 337, 390, 838, 556,
                              500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
                              635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};
static_assert(advances.size() == 0x7F - first_character);

/// The advance of the square of a key, wider than arrows and signs.
constexpr int widest_symbol = 945;

double ems(const std::string& text) {
  int sum = 0;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    const bool goes_on = (byte & 0xC0) == 0x80;  // within a character of UTF-8
    if (byte >= 0x80)
      sum += goes_on ? 0 : widest_symbol;
    else if (byte >= first_character)
      sum += advances[static_cast<std::size_t>(byte - first_character)];
  }
  return sum / 1000.0;
}

}  // namespace

int text_width(std::span<const std::string> texts, double size) {
  double longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, ems(text));
  return static_cast<int>(std::ceil(longest * size));
}

}  // namespace experiments
