#pragma once
/// What the elements of a stored tensor are. A new type is one row of `element_types`.

#include <array>
#include <string>
#include <string_view>

namespace experiments::tensor_files {

/// A kind of element, as NumPy's .npy files and safetensors name it.
struct ElementType {
  std::string_view
      format;  ///< as fp16's table of formats names it; empty for what is no floating-point number
  int bits;    ///< of one element; those below 8 are read packed, the first in the lowest bits
  std::string_view safetensors;  ///< its dtype; empty where the format has none
  std::string_view npy;          ///< its descr without the byte order; empty where the format has none
};

inline constexpr std::array element_types{
    ElementType{"binary64", 64, "F64", "f8"},
    ElementType{"binary32", 32, "F32", "f4"},
    ElementType{"binary16", 16, "F16", "f2"},
    ElementType{"bfloat16", 16, "BF16", ""},
    ElementType{"e5m2", 8, "F8_E5M2", ""},
    ElementType{"e4m3", 8, "F8_E4M3", ""},
    ElementType{"e5m2_fnuz", 8, "F8_E5M2FNUZ", ""},
    ElementType{"e4m3_fnuz", 8, "F8_E4M3FNUZ", ""},
    ElementType{"e8m0", 8, "F8_E8M0", ""},
    ElementType{"e3m2", 6, "F6_E3M2", ""},
    ElementType{"e2m3", 6, "F6_E2M3", ""},
    ElementType{"e2m1", 4, "F4", ""},
    ElementType{"", 8, "BOOL", "b1"},
    ElementType{"", 8, "U8", "u1"},
    ElementType{"", 8, "I8", "i1"},
    ElementType{"", 16, "U16", "u2"},
    ElementType{"", 16, "I16", "i2"},
    ElementType{"", 32, "U32", "u4"},
    ElementType{"", 32, "I32", "i4"},
    ElementType{"", 64, "U64", "u8"},
    ElementType{"", 64, "I64", "i8"},
    ElementType{"", 64, "C64", "c8"},
    ElementType{"", 128, "", "c16"},
};

/// Null where there is no such type.
const ElementType* type_of_format(std::string_view format);
const ElementType* type_of_safetensors(std::string_view dtype);
const ElementType* type_of_npy(std::string_view descr);

/// The floating-point formats that a file can hold, for errors: "binary64, binary32, ...".
std::string readable_formats();

}  // namespace experiments::tensor_files
