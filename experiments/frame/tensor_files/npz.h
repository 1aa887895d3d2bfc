#pragma once
/// NumPy's .npz files: ZIP archives (PKWARE APPNOTE 6.3, ZIP64 included) of .npy files, stored or deflated.

#include <filesystem>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// A tensor for each member NAME.npy. Stored members are read where they lie; deflated ones are unpacked a piece at a
/// time. Throws std::runtime_error, naming the file and the member.
Contents parse_npz(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw);

}  // namespace experiments::tensor_files
