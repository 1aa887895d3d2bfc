#pragma once
/// A kernel of the tests' own around Report::keep_lowest (experiments/gpu/probes/report.cuh).

#include <vector>

namespace programs {

/// What a report keeps of these indices, given by the threads of one block.
std::vector<unsigned long long> lowest_kept(const std::vector<unsigned long long>& indices);

}  // namespace programs
