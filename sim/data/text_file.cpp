#include "sim/data/text_file.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/data/input_file.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

fs::path only_text_in(const fs::path& directory) {
  fs::path found;
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".txt") continue;
    found = entry.path();
    ++count;
  }
  if (count != 1)
    throw_about(directory, fmt::format("{} files named *.txt found, exactly 1 is needed", count));
  return found;
}

}  // namespace

TextDataset read_text(const fs::path& path, std::size_t context) {
  const fs::path file = fs::is_directory(path) ? only_text_in(path) : path;
  std::string bytes = read_file(file, TextDataset::longest_text);
  if (bytes.size() < TextDataset::shortest_text(context)) {
    throw_about(file, fmt::format("{} bytes found, at least {} are needed for a context of {} tokens",
                                  bytes.size(), TextDataset::shortest_text(context), context));
  }
  return TextDataset({.name = file.filename().string(), .text = std::move(bytes), .context = context});
}

}  // namespace sim
