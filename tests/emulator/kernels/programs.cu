#include <cuda_runtime.h>

#include <stdexcept>

#include "tests/emulator/kernels/programs.h"

namespace programs {

namespace {

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int launches = 0;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

/// Values on the device.
template <typename Value>
struct Array {
  explicit Array(std::size_t size) : size(size) { check(cudaMalloc(&data, size * sizeof(Value))); }
  explicit Array(const std::vector<Value>& values) : Array(values.size()) {
    check(cudaMemcpy(data, values.data(), size * sizeof(Value), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
  ~Array() { cudaFree(data); }
  std::vector<Value> values() const {
    std::vector<Value> result(size);
    check(cudaMemcpy(result.data(), data, size * sizeof(Value), cudaMemcpyDeviceToHost));
    return result;
  }
  std::size_t size;
  Value* data = nullptr;
};

__device__ __noinline__ float weighted_sum(float value, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += weights[i & 3] * value;
  return sum;
}

__global__ void exchange(float* values, int count) {
  extern __shared__ float shared[];
  shared[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = weighted_sum(shared[threadIdx.x ^ 1], count);
  if (threadIdx.x == 0) atomicAdd(&launches, 1);
}

__global__ void pick(const float* values, int index, int size, float* result) {
  float local[20];
  for (int i = 0; i < size; ++i) local[i] = values[i];
  *result = local[index];
}

__global__ void add_up(const float* values, unsigned count, float* total) {
  float sum = threadIdx.x < count ? values[threadIdx.x] : 0;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

__global__ void classify(const int* values, int* classes) {
  const int value = values[threadIdx.x];
  int result = 0;
  switch (value % 7) {
    case 0:
      result = value / 7;
      break;
    case 1:
      result = value * 3;
      break;
    case 2:
      result = ~value;
      break;
    case 3:
      result = value << 4;
      break;
    case 4:
      result = __popc(value);
      break;
    case 5:
      result = __brev(value);
      break;
    default:
      result = -1;
  }
  classes[threadIdx.x] = result;
}

__global__ void binomial(int k, int* results) {
  const int n = static_cast<int>(threadIdx.x);
  long long result = n >= k ? 1 : 0;
  for (int i = 1; i <= k && i <= n; ++i) {
    if (n - k + i <= 0) continue;
    result = result * (n - k + i) / i;
  }
  results[n] = static_cast<int>(result);
}

__global__ void write_at(float* values, std::size_t index) {
  values[index] = 1;
}

}  // namespace

std::vector<float> weighted_neighbours(const std::vector<float>& values, int count) {
  const Array<float> array(values);
  exchange<<<1, static_cast<unsigned>(values.size()), values.size() * sizeof(float)>>>(array.data, count);
  check(cudaGetLastError());
  return array.values();
}

int launches_on_device() {
  int result = 0;
  check(cudaMemcpyFromSymbol(&result, launches, sizeof result));
  return result;
}

void set_weights(const std::vector<float>& values) {
  check(cudaMemcpyToSymbol(weights, values.data(), 4 * sizeof(float)));
}

float element_of_local_array(const std::vector<float>& values, int index) {
  const Array<float> array(values), result(1);
  pick<<<1, 1>>>(array.data, index, static_cast<int>(values.size()), result.data);
  check(cudaGetLastError());
  return result.values()[0];
}

float sum(const std::vector<float>& values) {
  const Array<float> array(values), total(std::vector<float>{0});
  const auto threads = static_cast<unsigned>((values.size() + 31) / 32 * 32);
  add_up<<<1, threads>>>(array.data, static_cast<unsigned>(values.size()), total.data);
  check(cudaGetLastError());
  return total.values()[0];
}

std::vector<int> classes_of(const std::vector<int>& values) {
  const Array<int> array(values), classes(values.size());
  classify<<<1, static_cast<unsigned>(values.size())>>>(array.data, classes.data);
  check(cudaGetLastError());
  return classes.values();
}

std::vector<int> binomials(int threads, int k) {
  const Array<int> results(static_cast<std::size_t>(threads));
  binomial<<<1, static_cast<unsigned>(threads)>>>(k, results.data);
  check(cudaGetLastError());
  return results.values();
}

const char* write_behind_the_end(std::size_t size) {
  const Array<float> array(size);
  write_at<<<1, 1>>>(array.data, size);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return cudaGetErrorString(error);
  return cudaGetErrorString(cudaDeviceSynchronize());
}

const char* launch_with(unsigned threads, std::size_t dynamic_shared_bytes) {
  const Array<float> array(1024);
  write_at<<<1, threads, dynamic_shared_bytes>>>(array.data, 0);
  return cudaGetErrorString(cudaGetLastError());
}

}  // namespace programs
