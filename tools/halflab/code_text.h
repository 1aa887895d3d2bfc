#pragma once
/// Codes of any format as texts.

#include <cstdint>
#include <string>

#include "fp16/formats.h"

namespace halflab {

/// The value as the shortest decimal that reads back.
std::string value_text(const fp16::Format& format, std::uint64_t code);

/// "0x3c00", with as many digits as the format needs.
std::string code_text(const fp16::Format& format, std::uint64_t code);

}  // namespace halflab
