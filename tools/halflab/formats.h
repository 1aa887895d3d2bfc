#pragma once
/// Formats by any of their names: fp16's, numpy's, ml_dtypes', PyTorch's and safetensors'.

#include <string>
#include <string_view>

#include "fp16/block.h"
#include "fp16/formats.h"

namespace halflab {

/// Throws std::invalid_argument with the names there are.
const fp16::NamedFormat& scalar_format(std::string_view name);

/// The scalar format that --format names where block formats are allowed, too: these are among the names of the error.
const fp16::NamedFormat& scalar_format_where_blocks_are(std::string_view name);

/// Null where no block format is called so, in small or capital letters.
const fp16::BlockFormat* block_format(std::string_view name);

/// The names of all scalar formats, and of all block formats: "a, b, c".
std::string scalar_format_names();
std::string block_format_names();

/// Calls visit.template operator()<F>() for the row of fp16's table that equals `format`; what it returns.
template <class Visit>
auto with_format(const fp16::Format& format, Visit&& visit) {
  using Result = decltype(visit.template operator()<fp16::binary32>());
  if constexpr (std::is_void_v<Result>) {
    fp16::for_each_format([&]<const fp16::Format & F>() {
      if (F == format) visit.template operator()<F>();
    });
  } else {
    Result result{};
    fp16::for_each_format([&]<const fp16::Format & F>() {
      if (F == format) result = visit.template operator()<F>();
    });
    return result;
  }
}

}  // namespace halflab
