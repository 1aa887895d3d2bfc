#pragma once
/// A program that executes instructions, in a process of its own, on this processor or in an emulator.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/shard_trials.h"

namespace experiments::validate_cpu {

/// What it tells of itself when it starts.
struct Introduction {
  std::string model;                                      ///< of the processor, as the program sees it
  std::map<std::string, std::string> families;            ///< list_identity() by name
  std::set<std::pair<std::string, std::string>> lacking;  ///< features of families that it has not
};

class Program {
 public:
  /// Starts the command with the words for serving. Throws std::runtime_error, naming the command, where it cannot be
  /// started or does not introduce itself, here and below in one line.
  explicit Program(const std::vector<std::string>& command);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Introduction& introduction() const { return introduction_; }
  ShardMemory memory() const { return ShardMemory(static_cast<std::byte*>(mapped_)); }

  /// Executes the family's instruction of that number on the first operands in memory(). Throws std::runtime_error where
  /// the program ends instead.
  void execute(std::string_view family, std::size_t instruction, std::size_t count, bool with_exceptions);

 private:
  void start(const std::vector<std::string>& command, int memory);
  void introduce();
  std::string line();
  [[noreturn]] void fail();

  std::string name_;
  void* mapped_ = nullptr;
  int socket_ = -1;
  int process_ = -1;
  std::string received_;
  Introduction introduction_;
};

}  // namespace experiments::validate_cpu
