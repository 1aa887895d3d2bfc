#include "experiments/common/glossary.h"

#include <algorithm>
#include <array>

namespace experiments {
namespace {

struct Entry {
  std::string_view column;
  std::string_view meaning;
};

constexpr std::array entries{
    Entry{"swallowed", "updates that left the weight as it was, since rounding undid them"},
    Entry{"late", "swallowed updates of the last tenth of the steps"},
    Entry{"progress",
          "how far the change of all weights went along the exact update; 100 % with FP32 masters"},
    Entry{"at the cast", "those of the flushed that their own rounding to FP16 made zero"},
    Entry{"upstream", "those that FP16 could hold, but an operation before them handed on a zero"},
    Entry{"of the norm", "the norm of the flushed values, as a share of the whole gradient's"},
    Entry{"relative error", "||gradient / S - FP32's|| / ||FP32's||, both of the same weights and batch"},
    Entry{"headroom", "octaves by which the operands may grow before FP16 no longer suffices"},
    Entry{"fails by", "what no longer suffices then"},
    Entry{"at operand", "the largest operand at which that happens"},
};

}  // namespace

std::string_view meaning_of(std::string_view column) {
  const auto entry = std::ranges::find(entries, column, &Entry::column);
  return entry == entries.end() ? std::string_view() : entry->meaning;
}

}  // namespace experiments
