#include <sstream>

#include "experiments/cpu/instructions/result_file.h"
#include "tests/fuzz/fuzz.h"

using namespace experiments::validate_cpu;

namespace {

std::string text_of(const ResultFile& file) {
  std::ostringstream text;
  std::string introduction = "model " + file.model + "\n";
  for (const auto& [name, identity] : file.families) introduction += "family " + name + " " + identity + "\n";
  write_header(text, introduction, file.version);
  for (const auto& [name, results] : file.rows) write_row(text, name.first, name.second, results);
  text << "end\n";
  return text.str();
}

ResultFile read(const std::string& text) {
  std::istringstream stream(text);
  return read_results(stream);
}

}  // namespace

/// What is read has a text, which reads back to the same text.
HALFLAB_FUZZ(input) {
  fuzz::allow_refusal([&] {
    const std::string text =
        text_of(read(std::string(reinterpret_cast<const char*>(input.data()), input.size())));
    if (text_of(read(text)) != text) throw "its own text is not read back";
  });
}
