#include "tests/emulator/device.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "tests/emulator/fatbin.h"
#include "tests/emulator/memory.h"

namespace emulator {

namespace {

cudaError_t error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::illegal_address:
      return cudaErrorIllegalAddress;
    case FaultKind::misaligned_address:
      return cudaErrorMisalignedAddress;
    default:
      return cudaErrorLaunchFailure;
  }
}

/// name=number, or nothing if `word` is of another name.
bool read_number(std::string_view word, std::string_view name, std::uint64_t& number) {
  if (!word.starts_with(name) || word.size() <= name.size() || word[name.size()] != '=') return false;
  const std::string_view digits = word.substr(name.size() + 1);
  return std::from_chars(digits.data(), digits.data() + digits.size(), number).ptr ==
         digits.data() + digits.size();
}

Settings settings_of_environment() {
  Settings result;
  const char* text = std::getenv("HALFLAB_EMULATOR_FAULT");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    std::uint64_t capability = 0;
    if (word == "no_device")
      result.no_device = true;
    else if (word == "old_driver")
      result.old_driver = true;
    else if (read_number(word, "capability", capability))
      result.compute_capability = static_cast<int>(capability);
    else if (!read_number(word, "memory", result.memory_bytes) &&
             !read_number(word, "launch", result.failing_launch)) {
      std::cerr << "HALFLAB_EMULATOR_FAULT: '" << word
                << "', allowed are no_device, old_driver, capability=N, memory=BYTES, launch=N\n";
      std::exit(2);
    }
  }
  return result;
}

/// The text for the newest target that the device can run; those of its own architecture first.
std::string_view choose_text(const FatBinary& binary, int capability) {
  std::string_view best;
  int best_rank = -1;
  for (const std::string_view text : ptx_texts(binary.wrapper)) {
    const std::size_t at = text.find(".target");
    const ModuleText head = parse_module(without_comments(text.substr(at, text.find('\n', at) - at)));
    const bool fits = head.architecture_specific ? head.target == capability : head.target <= capability;
    const int rank = 2 * head.target + (head.architecture_specific ? 1 : 0);
    if (!fits || rank <= best_rank) continue;
    best = text;
    best_rank = rank;
  }
  return best;
}

bool within(const dim3& size, const Dimensions& limit) {
  return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= limit.x && size.y <= limit.y &&
         size.z <= limit.z;
}

Dimensions as_dimensions(const dim3& size) {
  return {size.x, size.y, size.z};
}

}  // namespace

Device::Device() : settings(settings_of_environment()) {}

Device& Device::instance() {
  static Device* const device = new Device;  // outlives the destructors that unregister
  return *device;
}

cudaError_t Device::availability() const {
  if (settings.old_driver) return cudaErrorInsufficientDriver;
  return settings.no_device ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t Device::remember(cudaError_t error) {
  last_error_ = error;
  return error;
}

cudaError_t Device::take_last_error() {
  const cudaError_t error = last_error_;
  last_error_ = kernel_error_;
  return error;
}

const char* Device::detail_of(cudaError_t error) const {
  const auto found = details_.find(error);
  return found == details_.end() ? "" : found->second.c_str();
}

void Device::forget_errors() {
  last_error_ = kernel_error_ = cudaSuccess;
  details_.clear();
}

Module& Device::module_of(FatBinary& binary) {
  if (binary.module != nullptr && binary.module_capability == settings.compute_capability)
    return *binary.module;
  const std::string_view text = choose_text(binary, settings.compute_capability);
  if (text.empty()) throw ApiError{cudaErrorNoKernelImageForDevice};
  binary.module = std::make_unique<Module>(text);
  binary.module_capability = settings.compute_capability;
  return *binary.module;
}

Kernel& Device::kernel_of(const void* function) {
  const auto found = kernels.find(function);
  if (found == kernels.end()) throw ApiError{cudaErrorInvalidDeviceFunction};
  return found->second;
}

std::byte* Device::variable_address(const void* symbol, std::uint64_t& size) {
  const auto found = variables.find(symbol);
  if (found == variables.end()) throw ApiError{cudaErrorInvalidSymbol};
  size = found->second.size;
  return module_of(*found->second.binary).address_of(found->second.name);
}

void Device::launch(const void* function, dim3 blocks, dim3 threads, void** arguments, std::uint64_t shared) {
  if (kernel_error_ != cudaSuccess) throw ApiError{kernel_error_};
  Kernel& kernel = kernel_of(function);
  const Program& program = program_of(kernel);
  const std::uint64_t count = as_dimensions(threads).count();
  if (!within(blocks, {0x7fffffff, 0xffff, 0xffff}) || !within(threads, {1024, 1024, 64}) || count > 1024)
    throw ApiError{cudaErrorInvalidConfiguration};
  if (count > static_cast<std::uint64_t>(program.max_threads)) throw ApiError{cudaErrorInvalidValue};
  if (shared > kernel.dynamic_shared_limit || program.static_shared_bytes + shared > 227 << 10)
    throw ApiError{cudaErrorInvalidValue};
  std::vector<std::byte> parameters(program.parameter_bytes);
  for (std::size_t i = 0; i < program.parameters.size(); ++i)
    std::memcpy(parameters.data() + program.parameters[i].offset, arguments[i], program.parameters[i].size);
  run({program, as_dimensions(blocks), as_dimensions(threads), shared, std::move(parameters)});
}

void Device::run(const Launch& launch) {
  try {
    if (++counters.launches == settings.failing_launch)
      throw Fault(FaultKind::launch_failure, "kernel " + launch.program.name + ": this launch was to fail");
    for (std::uint32_t z = 0; z < launch.blocks.z; ++z) {
      for (std::uint32_t y = 0; y < launch.blocks.y; ++y) {
        for (std::uint32_t x = 0; x < launch.blocks.x; ++x) {
          Block block(launch, {x, y, z});
          block.run();
          counters.instructions += block.executed;
        }
      }
    }
  } catch (const Fault& fault) {
    kernel_error_ = error_of(fault.kind);
    details_[kernel_error_] = fault.what();
  }
}

void configure(const Settings& settings) {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex);
  device.settings = settings;
  device.counters = {};
  device.forget_errors();
}

Counters counters() {
  Device& device = Device::instance();
  const std::lock_guard lock(device.mutex);
  Counters result = device.counters;
  result.live_bytes = global_memory().live_bytes();
  result.live_allocations = global_memory().live_allocations();
  return result;
}

}  // namespace emulator
