#pragma once
/// Small CUDA programs, as nvcc compiles them, for the tests of the emulated runtime.

#include <cstddef>
#include <vector>

namespace programs {

/// For each value the weighted sum of `count` terms, by a called function, tables in constant memory and an exchange
/// through dynamic shared memory between neighbours. `launches` counts on the device.
std::vector<float> weighted_neighbours(const std::vector<float>& values, int count);
int launches_on_device();

/// Sets the weights in constant memory.
void set_weights(const std::vector<float>& weights);

/// values[index] of a local array that is filled from `values`, at most 20.
float element_of_local_array(const std::vector<float>& values, int index);

/// The sum of a block of threads, by warp shuffles and one atomic addition a warp.
float sum(const std::vector<float>& values);

/// Classes 0 ... 6 of numbers, by a switch.
std::vector<int> classes_of(const std::vector<int>& values);

/// For each thread n the binomial coefficient n over k, by recursion unrolled as a loop that ends at another time in
/// each thread.
std::vector<int> binomials(int threads, int k);

/// Writes one value behind the end of an allocation of `size` floats, and waits. Returns what cudaGetErrorString says.
const char* write_behind_the_end(std::size_t size);

/// Launches with these numbers of threads and of bytes; returns what cudaGetErrorString says.
const char* launch_with(unsigned threads, std::size_t dynamic_shared_bytes);

}  // namespace programs
