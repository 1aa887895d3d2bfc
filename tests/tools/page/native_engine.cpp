/// The engine of the page as this processor runs it: prints "name hash" of every operation, and what show finds of the
/// expressions of the command line. native_engine SAMPLES [FORMAT EXPRESSION]...

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>

#include "tools/page/engine/engine.h"

int main(int argc, char** argv) {
  const std::uint64_t samples = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const auto operations = nlohmann::json::parse(engine_operations());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::uint64_t count = operations[i].at("is_countable").get<bool>() ? 65536 : samples;
    std::printf("%s %016" PRIx64 "\n", operations[i].at("name").get<std::string>().c_str(),
                engine_hash(i, 0, count));
  }
  for (int i = 2; i + 1 < argc; i += 2) {
    try {
      std::printf("%s\n", engine_show(argv[i], argv[i + 1]));
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
  }
}
