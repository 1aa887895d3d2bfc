#pragma once
/// Runs held against others by what the intervals of their differences tell, in words.

#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/confidence.h"

namespace experiments {

/// "static, dynamic and adaptive".
std::string listed(const std::vector<std::string>& names);

struct Judgements {
  std::vector<std::string> worse = {}, better = {}, open = {}, diverged = {};
  std::vector<std::string> incomparable = {};  ///< whose others diverged

  /// Adds a name by the interval of its difference to the others; without evidence it is open.
  void add(const std::string& name, const Estimate& difference, bool less_is_better);

  std::size_t judged() const { return worse.size() + better.size() + open.size(); }
  /// "O3 and fp8 end worse than FP32; O1 cannot be told from FP32".
  std::string text(std::string_view others) const;
};

}  // namespace experiments
