/// The engine of the page as this processor runs it: prints "name hash" of every operation, and the answer to each question,
/// which is an array of JSON, ["show", "binary16", "2048+1"]. native_engine SAMPLES [QUESTION]...

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/page/engine/engine.h"

namespace {

using Json = nlohmann::json;

std::string text(const Json& question, std::size_t place) {
  return question.at(place).get<std::string>();
}

double number(const Json& question, std::size_t place) {
  return question.at(place).get<double>();
}

const std::map<std::string, const char* (*)(const Json&)> functions{
    {"formats", [](const Json&) { return engine_formats(); }},
    {"show", [](const Json& q) { return engine_show(text(q, 1).c_str(), text(q, 2).c_str()); }},
    {"draws",
     [](const Json& q) {
       return engine_draws(text(q, 1).c_str(), text(q, 2).c_str(), number(q, 3), number(q, 4));
     }},
    {"ways", [](const Json& q) { return engine_ways(text(q, 1).c_str(), text(q, 2).c_str()); }},
    {"series", [](const Json&) { return engine_series(); }},
    {"sums",
     [](const Json& q) {
       return engine_sums(text(q, 1).c_str(), text(q, 2).c_str(), text(q, 3).c_str(), number(q, 4),
                          number(q, 5), number(q, 6));
     }},
    {"sum_curve",
     [](const Json& q) {
       return engine_sum_curve(text(q, 1).c_str(), text(q, 2).c_str(), text(q, 3).c_str(), number(q, 4),
                               number(q, 5), text(q, 6).c_str(), text(q, 7).c_str());
     }},
    {"block_formats", [](const Json&) { return engine_block_formats(); }},
    {"blocks",
     [](const Json& q) {
       return engine_blocks(text(q, 1).c_str(), text(q, 2).c_str(), text(q, 3).c_str(), number(q, 4),
                            number(q, 5));
     }},
    {"random_row", [](const Json& q) { return engine_random_row(number(q, 1)); }},
    {"quiz", [](const Json& q) { return engine_quiz(number(q, 1)); }},
    {"lines",
     [](const Json& q) {
       return engine_lines(text(q, 1).c_str(), number(q, 2), number(q, 3), number(q, 4));
     }},
};

const char* answer(const char* question) {
  const Json parts = Json::parse(question);
  return functions.at(text(parts, 0))(parts);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t samples = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const Json operations = Json::parse(engine_operations());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::uint64_t count = operations[i].at("is_countable").get<bool>() ? 65536 : samples;
    std::printf("%s %016" PRIx64 "\n", operations[i].at("name").get<std::string>().c_str(),
                engine_hash(i, 0, count));
  }
  for (int i = 2; i < argc; ++i) {
    try {
      std::printf("%s\n", answer(argv[i]));
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
  }
}
