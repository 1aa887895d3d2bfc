#pragma once
/// What `halflab selftest` hashes. A group is a file and a row of groups.cpp; its rows come from the registries of the
/// library, so that a new format or function has hashes of its own without being named here.

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halflab::selftest {

/// The hash of a result, or those of several that one run gives, which have names of their own.
class Hashes {
 public:
  struct Named {
    std::string name;
    std::uint64_t hash;
  };

  Hashes(std::uint64_t hash) : all_{{.name = {}, .hash = hash}} {}
  Hashes(std::vector<Named> all) : all_(std::move(all)) {}

  const std::vector<Named>& all() const { return all_; }

 private:
  std::vector<Named> all_;
};

/// What has a hash. What a name stands for never changes: other operands or attributes take a new name. Several results
/// are called by the row's name and their own, with a blank between them.
struct Row {
  std::string name;
  std::function<Hashes()> hash;  ///< throws NotRun
};

/// Why a result cannot be made here, as where a program is not installed.
struct NotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Group {
  std::string_view name;
  std::string_view what;  ///< is hashed, for the table
  bool is_of_numbers;     ///< and needs neither networks nor other programs
  std::vector<Row> (*rows)();
};

std::span<const Group> groups();

// Rows of the numbers, by files.
std::vector<Row> array_rows();
std::vector<Row> block_rows();
std::vector<Row> conversion_rows();
std::vector<Row> format_rows();
std::vector<Row> function_rows();
std::vector<Row> operation_rows();
std::vector<Row> product_rows();
std::vector<Row> random_rows();
std::vector<Row> sum_rows();
std::vector<Row> tensor_core_rows();
std::vector<Row> text_rows();
// Rows of runs.
std::vector<Row> demo_rows();
std::vector<Row> training_rows();

}  // namespace halflab::selftest
