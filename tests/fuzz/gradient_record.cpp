#include "experiments/training/gradient_record.h"

#include <algorithm>
#include <fstream>

#include "tests/fuzz/fuzz.h"

/// The input's first byte says which of the three files it is; the others are whole.
HALFLAB_FUZZ(input) {
  if (input.empty()) return;
  static const std::filesystem::path folder = [] {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("halflab-fuzz-record-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
  const char* const names[] = {"manifest.json", "steps.csv", "exponents.csv"};
  const auto chosen = static_cast<std::size_t>(input.front()) % 3;
  const std::string_view text(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  experiments::write_gradient_record(
      folder, {.source = "", .scaler = "", .exponents_every = 1, .steps = {{.step = 0}}});
  std::ofstream(folder / names[chosen], std::ios::binary) << text;
  fuzz::allow_refusal([&] { experiments::read_gradient_record(folder); });
}
