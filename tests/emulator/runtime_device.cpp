/// The runtime's functions for the device, errors, events and streams.

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>

#include "tests/emulator/device.h"

using emulator::ApiError;
using emulator::Device;

// Whoever holds one of these holds a pointer to it.
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
};
struct CUstream_st {};

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration",
     "__global__ function call is not configured"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
};

const ErrorText& text_of(cudaError_t error) {
  static constexpr ErrorText unknown{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  for (const ErrorText& text : error_texts) {
    if (text.error == error) return text;
  }
  return unknown;
}

constexpr unsigned char uuid_bytes[16] = {0x45, 0x6d, 0x75, 0x6c, 0x61, 0x74, 0x65, 0x64,
                                          0x2d, 0x73, 0x6d, 0x5f, 0x39, 0x30, 0x00, 0x01};

int attribute_value(const emulator::Settings& settings, cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return settings.compute_capability / 10;
    case cudaDevAttrComputeCapabilityMinor:
      return settings.compute_capability % 10;
    case cudaDevAttrMultiProcessorCount:
      return settings.multiprocessors;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 0xffff;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return 1 << 10;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return 1 << 16;
    case cudaDevAttrL2CacheSize:
      return 50 << 20;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      return 1'000'000;  // kHz
    case cudaDevAttrGlobalMemoryBusWidth:
      return 64;
    case cudaDevAttrUnifiedAddressing:
      return 1;
    default:
      return 0;
  }
}

void check_device(int device) {
  if (device != 0) throw ApiError{cudaErrorInvalidDevice};
}

cudaError_t nothing() {
  return Device::instance().call([] {});
}
cudaError_t wait() {
  return Device::instance().waiting_call([] {});
}

cudaDeviceProp properties() {
  const emulator::Settings& settings = Device::instance().settings;
  cudaDeviceProp result{};
  const std::string name = "emulated sm_" + std::to_string(settings.compute_capability);
  std::memcpy(result.name, name.c_str(), name.size() + 1);
  std::memcpy(result.uuid.bytes, uuid_bytes, sizeof uuid_bytes);
  const auto value = [&](cudaDeviceAttr attribute) { return attribute_value(settings, attribute); };
  result.totalGlobalMem = settings.memory_bytes;
  result.sharedMemPerBlock = 48 << 10;
  result.sharedMemPerBlockOptin = 227 << 10;
  result.sharedMemPerMultiprocessor = 228 << 10;
  result.reservedSharedMemPerBlock = 1 << 10;
  result.regsPerBlock = result.regsPerMultiprocessor = 1 << 16;
  result.warpSize = 32;
  result.maxThreadsPerBlock = 1024;
  result.maxThreadsPerMultiProcessor = 2048;
  result.maxBlocksPerMultiProcessor = 32;
  result.maxThreadsDim[0] = result.maxThreadsDim[1] = 1024;
  result.maxThreadsDim[2] = 64;
  result.maxGridSize[0] = value(cudaDevAttrMaxGridDimX);
  result.maxGridSize[1] = result.maxGridSize[2] = value(cudaDevAttrMaxGridDimY);
  result.totalConstMem = 64 << 10;
  result.major = settings.compute_capability / 10;
  result.minor = settings.compute_capability % 10;
  result.multiProcessorCount = settings.multiprocessors;
  result.l2CacheSize = value(cudaDevAttrL2CacheSize);
  result.memoryBusWidth = value(cudaDevAttrGlobalMemoryBusWidth);
  result.unifiedAddressing = 1;
  return result;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return Device::instance().call([&] { *count = 1; });
}
cudaError_t cudaGetDevice(int* device) {
  return Device::instance().call([&] { *device = 0; });
}
cudaError_t cudaSetDevice(int device) {
  return Device::instance().call([&] { check_device(device); });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* result, int device) {
  return Device::instance().call([&] {
    check_device(device);
    *result = properties();
  });
}
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* result, int device) {
  return cudaGetDeviceProperties(result, device);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Device::instance().call([&] {
    check_device(device);
    *value = attribute_value(Device::instance().settings, attribute);
  });
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = Device::instance().settings.old_driver ? 12000 : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return wait();
}
cudaError_t cudaDeviceReset() {
  Device::instance().forget_errors();
  return nothing();
}

cudaError_t cudaGetLastError() {
  return Device::instance().take_last_error();
}
cudaError_t cudaPeekAtLastError() {
  return Device::instance().last_error();
}
const char* cudaGetErrorName(cudaError_t error) {
  return text_of(error).name;
}
/// With what is known of it, for as long as the device lasts.
const char* cudaGetErrorString(cudaError_t error) {
  const char* const detail = Device::instance().detail_of(error);
  if (*detail == 0) return text_of(error).text;
  thread_local std::string text;
  text = std::string(text_of(error).text) + " (" + detail + ")";
  return text.c_str();
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return Device::instance().call([&] { *event = new CUevent_st; });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return nothing();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return Device::instance().waiting_call([&] {
    if (event == nullptr) throw ApiError{cudaErrorInvalidResourceHandle};
    event->time = std::chrono::steady_clock::now();
    event->recorded = true;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return wait();
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return wait();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  return Device::instance().waiting_call([&] {
    if (start == nullptr || stop == nullptr || !start->recorded || !stop->recorded)
      throw ApiError{cudaErrorInvalidResourceHandle};
    *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return Device::instance().call([&] { *stream = new CUstream_st; });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return nothing();
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return wait();
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  return wait();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return wait();
}

}  // extern "C"
