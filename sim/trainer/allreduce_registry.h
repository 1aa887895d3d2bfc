#pragma once
/// Orders of an all-reduce by name, with their options in one word: "ring:precision=fp16:division=before".

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trainer/allreduce.h"

namespace sim {

struct AllReduceRow {
  std::string_view name;  ///< that of the enumerator
  std::string_view description;
  AllReduceAlgorithm algorithm;
};

/// All orders, as they are listed.
std::span<const AllReduceRow> all_reduce_orders();

/// An order with its options (fp16/names.h), of which those that are not given are AllReduce's own. Throws
/// std::invalid_argument, naming what is allowed, for an unknown order, option or value, and for chunks of an order
/// that has none.
AllReduce make_all_reduce(std::string_view spec);

/// An option of an order in words.
struct AllReduceOption {
  std::string name;
  std::string value;    ///< in force
  std::string allowed;  ///< "fp16, fp32_accumulation, fp32"
  std::string meaning;  ///< of each that is allowed
};
std::vector<AllReduceOption> options_of(const AllReduce& how);

/// The spec of which make_all_reduce makes it, with every option it has.
std::string spec_of(const AllReduce& how);

}  // namespace sim
