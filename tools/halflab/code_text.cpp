#include "tools/halflab/code_text.h"

#include <fmt/format.h>

#include "fp16/text.h"
#include "tools/halflab/formats.h"

namespace halflab {

std::string value_text(const fp16::Format& format, std::uint64_t code) {
  return with_format(format, [code]<const fp16::Format & F>() {
    return fp16::to_shortest<F>(static_cast<fp16::Bits<F>>(code));
  });
}

std::string code_text(const fp16::Format& format, std::uint64_t code) {
  return fmt::format("0x{:0{}x}", code, (format.width() + 3) / 4);
}

}  // namespace halflab
