#include <sys/mman.h>

#include <iostream>
#include <sstream>
#include <string>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/shard_trials.h"
#include "experiments/cpu/runner/runner.h"

namespace experiments::validate_cpu {

std::string introduction(const std::string& model) {
  std::ostringstream text;
  text << "model " << model << '\n';
  for (const Family& family : families()) {
    if (family.processor != this_processor()) continue;
    text << "family " << family.name << ' ' << list_identity(family) << '\n';
    for (const std::string_view feature : features_of(family)) {
      if (!family.has(feature)) text << "without " << family.name << ' ' << feature << '\n';
    }
  }
  return text.str();
}

int serve(int memory) {
  void* const mapped = ::mmap(nullptr, ShardMemory::size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) {
    std::cerr << "--serve: file descriptor " << memory << " cannot be mapped\n";
    return 2;
  }
  const ShardMemory shard(static_cast<std::byte*>(mapped));
  std::cout << introduction(processor_name()) << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, family_name;
    std::size_t row = 0, count = 0;
    bool with_exceptions = false;
    words >> verb >> family_name >> row >> count >> with_exceptions;
    const Family* const family = family_called(family_name);
    if (!words || verb != "execute" || family == nullptr || row >= family->instructions().size() ||
        count > ShardMemory::most_trials) {
      std::cerr << "--serve: '" << line
                << "' is not allowed; allowed: execute FAMILY ROW TRIALS EXCEPTIONS\n";
      return 2;
    }
    const Instruction& instruction = family->instructions()[row];
    instruction.execute(shard.batch(count, with_exceptions), instruction.mode);
    std::cout << "done" << std::endl;
  }
  return 0;
}

}  // namespace experiments::validate_cpu
