/// The simulator of the page as this processor runs it. native_training COURSE...: each is an array of JSON, [network, policy,
/// scaler, seed, steps, { step: the scaler from there on }]; prints the answer of each step, and the hash of the products.

#include <cinttypes>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/page/engine/training.h"

namespace {

void run(const nlohmann::json& course) {
  const auto text = [&](std::size_t place) { return course.at(place).get<std::string>(); };
  const int training = engine_begin_training(text(0).c_str(), text(1).c_str(), text(2).c_str(),
                                             course.at(3).get<std::uint64_t>());
  for (int step = 0; step < course.at(4).get<int>(); ++step) {
    const auto next = course.at(5).find(std::to_string(step));
    if (next != course.at(5).end()) engine_replace_scaler(training, next->get<std::string>().c_str());
    std::printf("%s\n", engine_step(training));
  }
  engine_end_training(training);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      run(nlohmann::json::parse(argv[i]));
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
  }
  std::printf("%s\n%016" PRIx64 "\n", engine_networks(), engine_product_hash(1));
}
