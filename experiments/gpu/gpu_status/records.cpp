#include "experiments/gpu/gpu_status/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "experiments/validation/proofs.h"
#include "experiments/validation/record_files.h"

namespace experiments::gpu_status {
namespace {

namespace fs = std::filesystem;
using validation::CsvTable;
using validation::read_object;

std::string text_of(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found && found->is_string() ? found->string() : "";
}

std::string where_of(const Json& gpu, const fs::path& manifest) {
  return fmt::format("{}, driver {}, {}", text_of(gpu, "name"), text_of(gpu, "driver"),
                     validation::day_and_revision(manifest));
}

std::vector<KernelTime> kernel_times(const fs::path& file) {
  std::vector<KernelTime> kernels;
  const std::optional<CsvTable> table = CsvTable::read(file);
  for (std::size_t i = 0; table && i < table->size(); ++i)
    kernels.push_back({.kernel = table->cell(i, "row"),
                       .size = table->cell(i, "size"),
                       .unit = table->cell(i, "unit"),
                       .rate = table->real(i, "rate_per_s"),
                       .limit = table->cell(i, "limit"),
                       .ratio = table->real(i, "ratio"),
                       .target = table->cell(i, "target")});
  return kernels;
}

/// Nothing for a folder without a record of ./lab gpu.
std::optional<Record> read_record(const fs::path& folder) {
  const Json manifest = read_object(folder / "manifest.json");
  if (text_of(manifest, "experiment") != "gpu") return std::nullopt;
  const Json gpu = manifest.value("gpu");
  for (const char* key : {"name", "driver", "uuid"}) {
    if (text_of(gpu, key).empty())
      throw std::runtime_error(fmt::format(
          "record '{}': manifest.json: gpu must have a name, a driver and a uuid, and is {}; only what "
          "ran on a GPU is a proof",
          folder.string(), gpu.to_text()));
  }
  return Record{.gpu = text_of(gpu, "name"),
                .where = where_of(gpu, folder / "manifest.json"),
                .summary = read_object(folder / "summary.json"),
                .rows = validation::row_proofs(folder / "verdicts.csv"),
                .kernels = kernel_times(folder / "throughput.csv")};
}

}  // namespace

std::vector<RecordedGpu> read_gpus(const fs::path& records) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(records, error)) folders.push_back(entry.path());
  if (error)
    throw std::runtime_error(
        fmt::format("folder '{}' cannot be read ({})", records.string(), error.message()));
  std::ranges::sort(folders);
  std::vector<RecordedGpu> gpus;
  for (const fs::path& folder : folders) {
    std::optional<Record> record = read_record(folder);
    if (!record) continue;
    auto gpu = std::ranges::find(gpus, record->gpu, &RecordedGpu::name);
    if (gpu == gpus.end()) gpu = gpus.insert(gpu, {.name = record->gpu, .records = {}});
    gpu->records.push_back(std::move(*record));
  }
  return gpus;
}

}  // namespace experiments::gpu_status
