#include "experiments/training/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/record.h"
#include "experiments/training/training_setup.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_damaged(const fs::path& summary, std::string_view what) {
  throw std::runtime_error(fmt::format("file '{}' {}; remove it, and the same command makes its run again",
                                       summary.string(), what));
}

}  // namespace

std::string in_file_name(std::string spec) {
  std::ranges::replace(spec, ':', '+');
  return spec;
}

std::vector<Cell> cells_of(const Grid& grid) {
  std::vector<Cell> cells;
  for (const std::string& model : grid.models) {
    for (const std::string& policy : grid.policies) {
      std::vector<std::string> scalers = grid.scalers;
      if (scalers.empty()) {
        scalers.push_back(policy_from_option(policy).scaler_spec());
      } else {
        reject_loss_scale(policy);
      }
      for (const std::string& scaler : scalers) {
        const std::string name =
            fmt::format("{}-{}-{}", in_file_name(model), in_file_name(policy), in_file_name(scaler));
        for (int i = 0; i < grid.seeds; ++i) {
          const std::uint64_t seed = grid.first_seed + static_cast<std::uint64_t>(i);
          cells.push_back({model, policy, scaler, seed, grid.directory / fmt::format("{}-{}", name, seed)});
        }
      }
    }
  }
  return cells;
}

std::string first_key(const SkipKind& kind) {
  return fmt::format("first_{}", kind.key);
}

bool CellResult::has(std::string_view key) const {
  return std::ranges::find(values, key, &std::pair<std::string, double>::first) != values.end();
}

double CellResult::value(std::string_view key) const {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, double>::first);
  if (found == values.end()) throw_damaged(file, fmt::format("has no '{}'", key));
  return found->second;
}

CellResult read_cell(const fs::path& directory) {
  CellResult result{.file = directory / "summary.json"};
  const Json summary = Json::from_text(contents_of(result.file).value_or(""));
  if (!summary.is_object()) throw_damaged(result.file, "is no summary of a run, or was cut off");
  std::map<std::string, std::string, std::less<>> texts;
  for (const auto& [key, value] : summary.members()) {
    const std::string text = value.is_string() ? value.string() : "";
    if (value.is_number()) {
      result.values.emplace_back(key, value.number());
    } else if (text == "nan" || text == "inf" || text == "-inf") {
      result.values.emplace_back(key, std::strtod(text.c_str(), nullptr));
    } else if (value.is_string()) {
      texts[key] = text;
    } else {
      throw_damaged(result.file, fmt::format("has neither a number nor a text for '{}'", key));
    }
  }
  result.abort_reason = texts[std::string(abort_key)];
  result.former_ranks = texts[std::string(former_ranks_key)];
  for (std::size_t i = 0; i < skip_kinds.size(); ++i) {
    result.skips.kinds[i] = {.count = static_cast<std::size_t>(result.value(skip_kinds[i].key)),
                             .first = texts[first_key(skip_kinds[i])]};
  }
  return result;
}

}  // namespace experiments
