#include "experiments/frame/tensor_files/element_type.h"

#include <algorithm>

namespace experiments::tensor_files {
namespace {

const ElementType* find(std::string_view ElementType::*member, std::string_view name) {
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find(element_types, name, member);
  return found == element_types.end() ? nullptr : &*found;
}

}  // namespace

const ElementType* type_of_format(std::string_view format) {
  return find(&ElementType::format, format);
}
const ElementType* type_of_safetensors(std::string_view dtype) {
  return find(&ElementType::safetensors, dtype);
}
const ElementType* type_of_npy(std::string_view descr) {
  return find(&ElementType::npy, descr);
}

std::string readable_formats() {
  std::string names;
  for (const ElementType& type : element_types) {
    if (!type.format.empty()) names.append(names.empty() ? "" : ", ").append(type.format);
  }
  return names;
}

}  // namespace experiments::tensor_files
