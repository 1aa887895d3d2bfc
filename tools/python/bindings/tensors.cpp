/// Tensors of files, as arrays of numpy.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/raw.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "fp16/packed.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

namespace files = experiments::tensor_files;

constexpr files::RawLayoutNames arguments{
    .before = "read_tensors: ", .type = "dtype", .shape = "shape", .none = "None"};

bool is_integer(const files::ElementType& type) {
  return !type.npy.empty() && std::string_view("biu").find(type.npy[0]) != std::string_view::npos;
}

/// The tensor's elements in an array of T, in the order of the file; `read` makes some of them of their bytes.
template <class T, class Read>
py::array array_of(const files::StoredTensor& tensor, const Read& read) {
  py::array_t<T> array = new_array<T>({static_cast<py::ssize_t>(tensor.elements)});
  const std::span<T> all = writable(array);
  const auto bits = static_cast<std::uint64_t>(tensor.type->bits);
  for (const files::Piece& piece : files::pieces_of(tensor))
    files::read_piece(piece, [&](files::Bytes elements, std::uint64_t first) {
      const std::uint64_t count = std::min(elements.size() * 8 / bits, piece.first + piece.count - first);
      read(elements, all.subspan(first, count));
    });
  return array;
}

constexpr auto copy_bytes = [](files::Bytes elements, const auto& out) {
  std::memcpy(out.data(), elements.data(), out.size_bytes());
};

std::span<const std::uint8_t> packed(files::Bytes elements, std::size_t count, int bits) {
  return std::span(reinterpret_cast<const std::uint8_t*>(elements.data()), elements.size())
      .first(fp16::packed_bytes(count, bits));
}

/// As unsigned integers of the next larger size.
py::array codes_of(const files::StoredTensor& tensor) {
  switch (const int bits = tensor.type->bits) {
    case 64:
      return array_of<std::uint64_t>(tensor, copy_bytes);
    case 32:
      return array_of<std::uint32_t>(tensor, copy_bytes);
    case 16:
      return array_of<std::uint16_t>(tensor, copy_bytes);
    case 8:
      return array_of<std::uint8_t>(tensor, copy_bytes);
    default:
      return array_of<std::uint8_t>(tensor, [bits](files::Bytes elements, std::span<std::uint8_t> out) {
        fp16::unpack(packed(elements, out.size(), bits), out, bits);
      });
  }
}

/// As numpy's type for them, or decoded to floats where it has none.
py::array values_of(const files::StoredTensor& tensor) {
  if (!tensor.type->npy.empty()) return codes_of(tensor).attr("view")(std::string(tensor.type->npy));
  return array_of<float>(tensor, [&](files::Bytes elements, std::span<float> out) {
    fp16::for_each_format([&]<const Format & F>() {
      if constexpr (fp16::is_packable(F)) {
        if (fp16::name_of(F) == tensor.type->format)
          fp16::decode_packed<F>(packed(elements, out.size(), F.width()), out);
      }
    });
  });
}

/// The row that a name, a numpy dtype or a Format stands for.
py::object format_named(const py::object& format) {
  return py::cast(&format_argument(format), py::return_value_policy::reference);
}

py::object in_shape(const py::array& array, const files::StoredTensor& tensor) {
  return array.attr("reshape")(py::cast(tensor.shape), py::arg("order") = tensor.columns_first ? "F" : "C");
}

/// Those for which wanted(names) gives a true value, in the order of the files: arrays, or pairs of a Format and codes.
py::dict read_tensors(const std::vector<std::string>& paths, const py::object& dtype, const py::object& shape,
                      const py::function& wanted, bool codes) {
  const files::TensorSet set = [&] {
    try {
      const files::RawLayout raw =
          files::raw_layout(dtype.is_none() ? std::string_view() : format_argument(dtype).name,
                            checked_cast<std::optional<files::Shape>>("read_tensors: shape", shape,
                                                                      "sizes, as (128, 64); None"),
                            arguments);
      files::TensorSet read(paths, raw);
      files::require_use_of(raw, read.tensors(), arguments);
      return read;
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(experiments::one_line(error.what()));
    } catch (const std::runtime_error& error) {  // names of files may hold anything
      throw std::runtime_error(experiments::one_line(error.what()));
    }
  }();
  std::vector<const files::StoredTensor*> tensors;
  for (const files::StoredTensor& tensor : set.tensors()) tensors.push_back(&tensor);
  for (const files::StoredTensor& tensor : set.passed_over()) {
    if (!codes && is_integer(*tensor.type)) tensors.push_back(&tensor);
  }
  py::list names;
  for (const files::StoredTensor* const tensor : tensors) names.append(tensor->name);
  const py::set chosen(wanted(names));
  py::dict result;
  for (const files::StoredTensor* const tensor : tensors) {
    if (!chosen.contains(tensor->name)) continue;
    if (codes) {
      result[py::str(tensor->name)] = py::make_tuple(format_named(py::str(std::string(tensor->type->format))),
                                                     in_shape(codes_of(*tensor), *tensor));
    } else {
      result[py::str(tensor->name)] = in_shape(values_of(*tensor), *tensor);
    }
  }
  return result;
}

}  // namespace

void bind_tensors(py::module_& module) {
  module.def("format_named", &format_named);
  module.def("read_tensors", [](const std::vector<std::string>& paths, const py::object& dtype,
                                const py::object& shape, const py::function& wanted, bool codes) {
    try {
      return read_tensors(paths, dtype, shape, wanted, codes);
    } catch (const py::error_already_set&) {
      throw;
    } catch (const std::runtime_error& error) {  // a file's faults, a ValueError like all others
      throw std::invalid_argument(error.what());
    }
  });
}

}  // namespace halflab_python
