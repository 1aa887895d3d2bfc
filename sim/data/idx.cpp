#include "sim/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/data/gzip_file.h"
#include "sim/data/input_file.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t unsigned_byte_type = 0x08;
constexpr std::uint32_t max_count = 1'000'000'000;
constexpr std::uint32_t max_side = 4096;

/// Magic number and dimensions.
std::vector<std::uint32_t> read_header(GzipFile& reader, std::size_t dimensions) {
  const auto next_word = [&](std::string_view what) {
    std::array<std::uint8_t, 4> word{};
    if (const std::size_t count = reader.read(word); count < word.size()) {
      throw_about(reader.path(),
                  fmt::format("truncated in the header: {} bytes of the {} found, 4 needed", count, what));
    }
    return word;
  };
  const auto [first, second, type, count] = next_word("magic number");
  if (first != 0 || second != 0) {
    throw_about(reader.path(),
                fmt::format("bad magic number: first bytes {:02x} {:02x}, an IDX file starts with 00 00",
                            first, second));
  }
  if (type != unsigned_byte_type) {
    throw_about(reader.path(),
                fmt::format("element type {:02x} found, only {:02x} (unsigned byte) is allowed", type,
                            unsigned_byte_type));
  }
  if (count != dimensions) {
    throw_about(reader.path(), fmt::format("{} dimensions found, {} needed", count, dimensions));
  }
  std::vector<std::uint32_t> sizes;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const auto [a, b, c, d] = next_word("dimensions");
    sizes.push_back(std::uint32_t{a} << 24 | std::uint32_t{b} << 16 | std::uint32_t{c} << 8 | d);
    const std::uint32_t largest = i == 0 ? max_count : max_side;
    if (sizes.back() < 1 || sizes.back() > largest) {
      throw_about(reader.path(), fmt::format("{} {} found, allowed are 1 .. {}",
                                             i == 0 ? "count" : "image side", sizes.back(), largest));
    }
  }
  return sizes;
}

std::vector<std::uint8_t> read_values(GzipFile& reader, std::uint64_t expected) {
  constexpr std::uint64_t chunk_size = 1 << 20;
  std::vector<std::uint8_t> values;
  while (values.size() < expected) {
    const std::size_t begin = values.size();
    values.resize(begin + std::min(chunk_size, expected - begin));
    const std::size_t count = reader.read(std::span(values).subspan(begin));
    if (begin + count < values.size()) {
      throw_about(reader.path(),
                  fmt::format("truncated: {} data bytes found, its header says {}", begin + count, expected));
    }
  }
  if (std::array<std::uint8_t, 1> extra{}; reader.read(extra) != 0) {
    throw_about(reader.path(),
                fmt::format("trailing bytes after the {} data bytes its header says", expected));
  }
  return values;
}

fs::path find_file(const fs::path& directory, std::string_view stem, std::string_view suffix) {
  for (std::string_view separator : {"-", "."}) {
    for (std::string_view compression : {"", ".gz"}) {
      const fs::path path = directory / fmt::format("{}{}{}{}", stem, separator, suffix, compression);
      if (fs::exists(path)) return path;
    }
  }
  throw_about(directory,
              fmt::format("no file {0}-{1} found; {0}-{1} or {0}.{1} is needed, plain or .gz", stem, suffix));
}

struct ImageFiles {
  ImageShape shape;
  LabelledImages images;
};

ImageFiles read_set(const fs::path& directory, std::string_view set) {
  const fs::path image_path = find_file(directory, fmt::format("{}-images", set), "idx3-ubyte");
  const fs::path label_path = find_file(directory, fmt::format("{}-labels", set), "idx1-ubyte");
  IdxFile images = read_idx(image_path, 3);
  IdxFile labels = read_idx(label_path, 1);
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw_about(label_path, fmt::format("{} labels found, {} needed for the images of {}",
                                        labels.dimensions[0], images.dimensions[0], image_path.string()));
  }
  return {.shape = {.channels = 1,
                    .height = static_cast<int>(images.dimensions[1]),
                    .width = static_cast<int>(images.dimensions[2])},
          .images = {.pixels = std::move(images.values), .labels = std::move(labels.values)}};
}

}  // namespace

IdxFile read_idx(const fs::path& path, std::size_t dimensions) {
  GzipFile reader(path);
  IdxFile file{.dimensions = read_header(reader, dimensions), .values = {}};
  std::uint64_t size = 1;
  for (std::uint32_t dimension : file.dimensions) size *= dimension;
  file.values = read_values(reader, size);
  return file;
}

ImageDataset read_idx_directory(const fs::path& directory) {
  if (!fs::is_directory(directory))
    throw_about(directory, "no such directory; one with four IDX files is needed");
  ImageFiles training = read_set(directory, "train");
  ImageFiles test = read_set(directory, "t10k");
  if (training.shape != test.shape) {
    throw_about(
        directory,
        fmt::format("training images are {}x{}, test images {}x{}; they must be of one size",
                    training.shape.height, training.shape.width, test.shape.height, test.shape.width));
  }
  const int largest = std::max(*std::ranges::max_element(training.images.labels),
                               *std::ranges::max_element(test.images.labels));
  return ImageDataset({.name = directory.string(),
                       .image_shape = training.shape,
                       .classes = std::max(largest + 1, 2),
                       .training = std::move(training.images),
                       .test = std::move(test.images)});
}

}  // namespace sim
