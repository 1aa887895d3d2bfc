#include "experiments/frame/tensor_files/file_format.h"

#include <algorithm>
#include <array>

#include "experiments/frame/tensor_files/npy.h"
#include "experiments/frame/tensor_files/npz.h"
#include "experiments/frame/tensor_files/raw.h"
#include "experiments/frame/tensor_files/safetensors.h"

namespace experiments::tensor_files {
namespace {

constexpr std::array formats{
    FileFormat{".npy", false, parse_npy},
    FileFormat{".npz", true, parse_npz},
    FileFormat{".safetensors", true, parse_safetensors},
    FileFormat{"", false, parse_raw},
};

}  // namespace

const FileFormat& file_format_of(const std::filesystem::path& file) {
  const auto found = std::ranges::find(formats, file.extension().string(), &FileFormat::extension);
  return found == formats.end() ? formats.back() : *found;
}

bool has_known_extension(const std::filesystem::path& file) {
  return !file_format_of(file).extension.empty();
}

}  // namespace experiments::tensor_files
