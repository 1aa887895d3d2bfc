#include "tools/halflab/elements.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "fp16/packed.h"
#include "tools/halflab/formats.h"

namespace halflab {
namespace {

namespace files = experiments::tensor_files;

template <class Number>
std::span<const Number> as(files::Bytes elements) {
  return {reinterpret_cast<const Number*>(elements.data()), elements.size() / sizeof(Number)};
}

/// How many elements a run of bytes holds, of a tensor that ends within the last byte or behind it.
std::uint64_t elements_in(files::Bytes bytes, const files::Piece& piece, std::uint64_t first, int bits) {
  return std::min(bytes.size() * 8 / static_cast<std::uint64_t>(bits), piece.first + piece.count - first);
}

/// The bytes of so many codes.
std::span<const std::uint8_t> packed(files::Bytes elements, std::uint64_t count, int bits) {
  return as<std::uint8_t>(elements).first(fp16::packed_bytes(count, bits));
}

/// As many elements as there are values, of a format that fits into floats.
template <const fp16::Format& F>
void decode_narrow(files::Bytes elements, std::span<float> values) {
  fp16::decode_packed<F>(packed(elements, values.size(), F.width()), values);
}

template <const fp16::Format& F>
void read_narrow(const files::Piece& piece, const NumberConsumer& consume) {
  constexpr std::uint64_t at_a_time = 1 << 14;  // floats that stay in the cache
  std::vector<float> floats(at_a_time);
  files::read_piece(piece, [&](files::Bytes elements, std::uint64_t first) {
    const std::uint64_t count = elements_in(elements, piece, first, F.width());
    for (std::uint64_t done = 0; done < count; done += at_a_time) {
      const std::span<float> values = std::span(floats).first(std::min(at_a_time, count - done));
      decode_narrow<F>(elements.subspan(done * static_cast<std::uint64_t>(F.width()) / 8), values);
      consume.floats(values, first + done);
    }
  });
}

template <class Number>
std::vector<Number> in_c_order(const files::StoredTensor& tensor, std::vector<Number> stored) {
  if (!tensor.columns_first) return stored;
  std::vector<Number> values(stored.size());
  for (std::uint64_t i = 0; i < values.size(); ++i) values[files::logical_index(tensor, i)] = stored[i];
  return values;
}

}  // namespace

const fp16::Format& format_of(const files::StoredTensor& tensor) {
  return scalar_format(tensor.type->format).format;
}

void read_numbers(const files::Piece& piece, const NumberConsumer& consume) {
  const fp16::Format& format = format_of(*piece.tensor);
  if (format == fp16::binary64) {
    files::read_piece(piece, [&](files::Bytes elements, std::uint64_t first) {
      consume.doubles(as<double>(elements), first);
    });
  } else if (format == fp16::binary32) {
    files::read_piece(piece, [&](files::Bytes elements, std::uint64_t first) {
      consume.floats(as<float>(elements), first);
    });
  } else if (piece.tensor->type->bits == 16 && consume.codes) {
    files::read_piece(piece, [&](files::Bytes elements, std::uint64_t first) {
      consume.codes(as<std::uint16_t>(elements), first);
    });
  } else {
    with_format(format, [&]<const fp16::Format & F>() {
      if constexpr (F.width() <= 16) read_narrow<F>(piece, consume);
    });
  }
}

void decode_elements(files::Bytes elements, const files::ElementType& type, std::span<float> values) {
  const fp16::Format& format = scalar_format(type.format).format;
  if (format == fp16::binary32) {
    std::ranges::copy(as<float>(elements).first(values.size()), values.begin());
  } else {
    with_format(format, [&]<const fp16::Format & F>() {
      if constexpr (F.width() <= 16) decode_narrow<F>(elements, values);
    });
  }
}

void decode_elements(files::Bytes elements, const files::ElementType& type, std::span<double> values) {
  if (scalar_format(type.format).format == fp16::binary64) {
    std::ranges::copy(as<double>(elements).first(values.size()), values.begin());
  } else {
    std::vector<float> floats(values.size());
    decode_elements(elements, type, floats);
    std::ranges::copy(floats, values.begin());
  }
}

std::vector<double> doubles_of(const files::StoredTensor& tensor) {
  std::vector<double> stored(tensor.elements);
  decode_elements(files::read_elements(tensor), *tensor.type, std::span(stored));
  return in_c_order(tensor, std::move(stored));
}

std::vector<float> floats_of(const files::StoredTensor& tensor) {
  if (format_of(tensor) == fp16::binary64) {
    const std::vector<double> doubles = doubles_of(tensor);
    std::vector<float> floats(doubles.size());
    std::ranges::transform(doubles, floats.begin(), [](double value) {
      return std::bit_cast<float>(fp16::encode<fp16::binary32>(value).bits);
    });
    return floats;
  }
  std::vector<float> stored(tensor.elements);
  decode_elements(files::read_elements(tensor), *tensor.type, std::span(stored));
  return in_c_order(tensor, std::move(stored));
}

std::uint64_t code_at(files::Bytes elements, const files::ElementType& type, std::uint64_t i) {
  const std::uint64_t bits = static_cast<std::uint64_t>(type.bits), bit = i * bits;
  std::uint64_t code = 0;
  const std::size_t bytes = static_cast<std::size_t>((bit % 8 + bits + 7) / 8);
  std::memcpy(&code, elements.data() + bit / 8, bytes);
  return bits == 64 ? code : code >> bit % 8 & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace halflab
