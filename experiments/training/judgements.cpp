#include "experiments/training/judgements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace experiments {

std::string listed(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

void Judgements::add(const std::string& name, const Estimate& difference, bool less_is_better) {
  if (!difference.is_judged() || !difference.excludes_zero()) {
    open.push_back(name);
  } else {
    (less_is_better == (difference.mean < 0) ? better : worse).push_back(name);
  }
}

std::string Judgements::text(std::string_view others) const {
  std::vector<std::string> clauses;
  const auto add = [&](const std::vector<std::string>& names, std::string_view one, std::string_view several,
                       std::string_view than) {
    if (!names.empty())
      clauses.push_back(fmt::format("{} {}{}", listed(names), names.size() == 1 ? one : several, than));
  };
  const std::string from = fmt::format(" from {}", others);
  add(worse, "ends", "end", fmt::format(" worse than {}", others));
  add(diverged, "leaves", "leave", " no finite loss");
  add(incomparable, "has", "have", fmt::format(" no finite loss of {} to be held against", others));
  add(open, "cannot be told", "cannot be told", from);
  add(better, "ends", "end", fmt::format(" better than {}", others));
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace experiments
