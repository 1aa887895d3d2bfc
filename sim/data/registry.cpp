#include "sim/data/registry.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "sim/data/digits.h"
#include "sim/data/idx.h"
#include "sim/registry.h"

namespace sim {
namespace {

constexpr std::array sources{
    DataSource{.name = "builtin",
               .description = "28x28 digits drawn with a simulated pen, 8,000 training and 2,000 test images",
               .load = [] { return draw_digits(); }},
};
static_assert(has_unique_names(sources));

}  // namespace

std::span<const DataSource> data_sources() {
  return sources;
}

Dataset load_dataset(std::string_view source_or_directory) {
  const auto source = std::ranges::find(sources, source_or_directory, &DataSource::name);
  if (source != sources.end()) return source->load();
  if (!std::filesystem::is_directory(source_or_directory)) {
    std::string message =
        "data '" + std::string(source_or_directory) + "' not found; allowed: a directory with IDX files";
    for (const std::string& name : names_of(sources)) message += ", " + name;
    throw std::invalid_argument(message);
  }
  return read_idx_directory(source_or_directory);
}

}  // namespace sim
