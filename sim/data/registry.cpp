#include "sim/data/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "fp16/names.h"
#include "sim/data/digits.h"
#include "sim/data/generated_text.h"
#include "sim/data/idx.h"
#include "sim/data/scenes.h"
#include "sim/data/text_file.h"

namespace sim {
namespace {

std::unique_ptr<Dataset> load_builtin(const DataRequest& request);

constexpr std::array sources{
    DataSource{.name = "builtin",
               .kind = {},
               .description = "digits, text or scenes, as the model needs",
               .load = load_builtin},
    DataSource{.name = "digits",
               .kind = DataKind::images,
               .description = "28x28 digits drawn with a simulated pen, 8,000 training and 2,000 test images",
               .load = [](const DataRequest&) -> std::unique_ptr<Dataset> {
                 return std::make_unique<ImageDataset>(draw_digits());
               }},
    DataSource{.name = "text",
               .kind = DataKind::text,
               .description = "300,000 bytes of tales, couplets, sums and dialogues, drawn from a grammar",
               .load = [](const DataRequest& request) -> std::unique_ptr<Dataset> {
                 return std::make_unique<TextDataset>(generate_text({.context = request.context}));
               }},
    DataSource{
        .name = "scenes",
        .kind = DataKind::scenes,
        .description = "64x64 colour images of one to three shapes, 1,500 training and 300 test images",
        .load = [](const DataRequest&) -> std::unique_ptr<Dataset> {
          return std::make_unique<SceneDataset>(draw_scenes());
        }},
};
static_assert(names::has_unique_names(sources));

std::unique_ptr<Dataset> load_builtin(const DataRequest& request) {
  return std::ranges::find(sources, std::optional(request.kind), &DataSource::kind)->load(request);
}

/// "builtin, digits, a directory with IDX files".
std::string allowed_for(DataKind kind) {
  std::string allowed;
  for (const DataSource& source : sources) {
    if (source.kind.value_or(kind) == kind)
      allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", source.name);
  }
  switch (kind) {
    case DataKind::images:
      return allowed + ", a directory with IDX files";
    case DataKind::text:
      return allowed + ", a text file, a directory with one .txt file";
    case DataKind::scenes:
      break;
  }
  return allowed;
}

std::string_view what_is_at(std::string_view path) {
  if (std::filesystem::is_directory(path)) return "is a directory";
  return std::filesystem::exists(path) ? "is a file, which is read as text" : "not found";
}

}  // namespace

std::span<const DataSource> data_sources() {
  return sources;
}

std::unique_ptr<Dataset> load_dataset(std::string_view source, const DataRequest& request) {
  const auto row = std::ranges::find(sources, source, &DataSource::name);
  if (row != sources.end()) {
    if (row->kind.value_or(request.kind) == request.kind) return row->load(request);
    throw std::invalid_argument(fmt::format("data '{}' holds {}; allowed for {}: {}", source,
                                            name_of(*row->kind), name_of(request.kind),
                                            allowed_for(request.kind)));
  }
  if (request.kind == DataKind::images && std::filesystem::is_directory(source))
    return std::make_unique<ImageDataset>(read_idx_directory(source));
  if (request.kind == DataKind::text && std::filesystem::exists(source))
    return std::make_unique<TextDataset>(read_text(source, request.context));
  throw std::invalid_argument(fmt::format("data '{}' {}; allowed for {}: {}", source, what_is_at(source),
                                          name_of(request.kind), allowed_for(request.kind)));
}

}  // namespace sim
