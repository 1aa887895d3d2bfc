#pragma once
/// Parsers of tensor files, and the elements that they find.

#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/file_format.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

inline void read_all(Input input, decltype(experiments::tensor_files::FileFormat::parse) parse) {
  namespace files = experiments::tensor_files;
  static const files::RawLayout bytes{.type = files::type_of_format("e4m3")};
  allow_refusal([&] {
    std::uint64_t sum = 0;
    const files::Contents contents = parse(input, "input", bytes);
    for (const files::StoredTensor& tensor : contents.tensors) {
      for (const files::Piece& piece : files::pieces_of(tensor)) {
        files::read_piece(piece, [&](files::Bytes elements, std::uint64_t first) {
          for (const std::byte element : elements) sum += static_cast<std::uint64_t>(element) + first;
        });
      }
      if (tensor.elements > 0) sum += files::index_text(tensor, tensor.elements - 1).size();
    }
    static volatile std::uint64_t sink;
    sink = sum;
  });
}

}  // namespace fuzz
