#include <fstream>

#include "experiments/gpu/gpu_status/merge.h"
#include "tests/fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

/// The input's first byte says which file it is: the list of runs or the GPU that a record is made of, or the packed texts of
/// one; what else these need is whole.
HALFLAB_FUZZ(input) {
  if (input.empty()) return;
  static const fs::path runs = fuzz::folder("runs"), record = fuzz::folder("record");
  const std::string_view text(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const int chosen = static_cast<int>(input.front()) % 3;
  if (chosen == 2) {
    write(record / "manifest.json", R"({"experiment": "gpu"})");
    write(record / "runs.json", text);
    fuzz::allow_refusal([&] { experiments::gpu_status::unpack(record); });
  } else {
    write(runs / "runs", chosen == 0 ? text : "formats not_run 0\n");
    write(runs / "gpu.json", chosen == 1 ? text : "null");
    fuzz::allow_refusal([&] { experiments::gpu_status::merge(runs, record); });
  }
}
