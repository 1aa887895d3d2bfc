#pragma once
/// From the sweeps of fp16/cuda what rows say of them.

#include <cstdint>
#include <functional>
#include <vector>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/driver.h"

namespace experiments::validate_gpu {

/// Those that the sweep kept; of the types only the number of operands is not asked for.
std::vector<Example> examples_of(const probes::Sweep& sweep, const ExampleTypes& types,
                                 const probes::SweepResult& result);

/// Where all examples are NaNs of other bits though there are other values, too: puts examples of these before them.
/// Parts of `range`, the whole shard, are asked for until there is one.
void prepend_value_examples(RowAnswer& row, probes::Range range,
                            const std::function<RowAnswer(probes::Range part)>& ask);

/// With examples of other values, if there are any.
RowAnswer row_answer(const probes::Sweep& sweep, const ExampleTypes& types, std::uint32_t shard,
                     const probes::SweepResult& result);

/// What a function answers, of a packed one in the first lane. The sweep must exhaust its operands.
std::vector<std::uint64_t> answers_at(const probes::Sweep& sweep, const std::vector<Operands>& operands);

}  // namespace experiments::validate_gpu
