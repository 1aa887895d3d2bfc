#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <bit>
#include <numeric>
#include <string>
#include <vector>

#include "tests/emulator/emulator.h"
#include "tests/emulator/kernels/programs.h"

using doctest::Contains;

namespace {

/// A device without faults or counts, at the beginning and at the end of a test.
struct FreshDevice {
  explicit FreshDevice(const emulator::Settings& settings = {}) { emulator::configure(settings); }
  ~FreshDevice() { emulator::configure({}); }
};

std::string error_of(cudaError_t error) {
  return cudaGetErrorString(error);
}

}  // namespace

TEST_CASE("programs run as nvcc compiled them") {
  const FreshDevice fresh;
  std::vector<float> values(70);
  std::iota(values.begin(), values.end(), 0.0f);
  const int before = programs::launches_on_device();
  const auto neighbours = programs::weighted_neighbours(values, 5);
  for (int i = 0; i < 70; ++i)
    CHECK(neighbours[static_cast<std::size_t>(i)] == static_cast<float>(i ^ 1) * (1 + 2 + 3 + 4 + 1));
  programs::set_weights({10, 0, 0, 1});
  CHECK(programs::weighted_neighbours(values, 4)[1] == 0);
  CHECK(programs::weighted_neighbours(values, 4)[0] == 11);
  programs::set_weights({1, 2, 3, 4});
  CHECK(programs::launches_on_device() == before + 3);
  values.resize(20);
  CHECK(programs::element_of_local_array(values, 13) == 13);
  values.assign(100, 0.5f);
  CHECK(programs::sum(values) == 50);
  CHECK(emulator::counters().launches == 5);
  CHECK(emulator::counters().instructions > 1000);
  CHECK(emulator::counters().live_bytes == 0);
  CHECK(emulator::counters().live_allocations == 0);
}

TEST_CASE("threads take their own ways through switches and loops") {
  const FreshDevice fresh;
  std::vector<int> values(96);
  std::iota(values.begin(), values.end(), 1000);
  const auto classes = programs::classes_of(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int value = values[i];
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (static_cast<unsigned>(value) >> bit & 1) << (31 - bit);
    const int expected[] = {value / 7,
                            value * 3,
                            ~value,
                            value << 4,
                            std::popcount(static_cast<unsigned>(value)),
                            static_cast<int>(reversed),
                            -1};
    CHECK(classes[i] == expected[value % 7]);
  }
  const auto binomials = programs::binomials(20, 4);
  CHECK(binomials[3] == 0);
  CHECK(binomials[4] == 1);
  CHECK(binomials[10] == 210);
  CHECK(binomials[19] == 3876);
}

TEST_CASE("a kernel's error names kernel, instruction and address, and stays") {
  const FreshDevice fresh;
  const std::string error = programs::write_behind_the_end(16);
  CHECK(error.starts_with(
      "an illegal memory access was encountered (kernel programs::(anonymous namespace)::write_at"));
  CHECK(error.find("block (0, 0, 0), warp 0, \"st.global.") != std::string::npos);
  CHECK(error.find("4 bytes, is in no live allocation") != std::string::npos);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 4) == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  emulator::configure({});
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
}

TEST_CASE("launches beyond the device's limits are refused") {
  const FreshDevice fresh;
  CHECK(std::string(programs::launch_with(32, 0)) == "no error");
  CHECK(std::string(programs::launch_with(0, 0)) == "invalid configuration argument");
  CHECK(std::string(programs::launch_with(2000, 0)) == "invalid configuration argument");
  CHECK(std::string(programs::launch_with(32, 100'000)) == "invalid argument");
}

TEST_CASE("a machine without a device, and with an old driver") {
  int count = 7;
  {
    const FreshDevice none({.no_device = true});
    CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
    CHECK(count == 0);
    CHECK(error_of(cudaGetLastError()) == "no CUDA-capable device is detected");
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK_THROWS_WITH(programs::sum({1}), "no CUDA-capable device is detected");
  }
  const FreshDevice old({.old_driver = true});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
  CHECK_THROWS_WITH(programs::sum({1}), "CUDA driver version is insufficient for CUDA runtime version");
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  CHECK(driver < runtime);
}

TEST_CASE("an older device has no image of the kernels") {
  const FreshDevice turing({.compute_capability = 75});
  CHECK_THROWS_WITH(programs::sum({1}), "no kernel image is available for execution on the device");
  cudaDeviceProp properties{};
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(std::string(properties.name) == "emulated sm_75");
  CHECK(properties.major == 7);
  CHECK(properties.minor == 5);
}

TEST_CASE("memory ends, launches fail on demand, leaks show") {
  {
    const FreshDevice small({.memory_bytes = 1000});
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 1001) == cudaErrorMemoryAllocation);
    CHECK(memory == nullptr);
    CHECK(cudaMalloc(&memory, 600) == cudaSuccess);
    CHECK(emulator::counters().live_bytes == 600);
    std::size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
    CHECK(free == 400);
    CHECK(total == 1000);
    void* more = nullptr;
    CHECK(cudaMalloc(&more, 401) == cudaErrorMemoryAllocation);
    CHECK(cudaFree(memory) == cudaSuccess);
    CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  }
  const FreshDevice failing({.failing_launch = 2});
  CHECK(programs::sum({1, 2}) == 3);
  CHECK_THROWS_WITH(programs::sum({1, 2}), Contains("this launch was to fail"));
  CHECK(emulator::counters().live_allocations == 0);
}

TEST_CASE("copies are checked, time goes on") {
  const FreshDevice fresh;
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  const std::vector<std::uint8_t> bytes(32);
  CHECK(cudaMemcpy(memory, bytes.data(), 16, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(memory, bytes.data(), 17, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(error_of(cudaGetLastError()).find("17 bytes, is not within one live allocation") !=
        std::string::npos);
  CHECK(cudaMemset(memory, 1, 32) == cudaErrorInvalidValue);
  CHECK(cudaFree(memory) == cudaSuccess);
  cudaEvent_t start{}, stop{};
  float milliseconds = -1;
  CHECK(cudaEventCreate(&start) == cudaSuccess);
  CHECK(cudaEventCreate(&stop) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(start, nullptr) == cudaSuccess);
  CHECK(cudaEventRecord(stop, nullptr) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaEventDestroy(stop) == cudaSuccess);
}
