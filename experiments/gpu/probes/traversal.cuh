#pragma once
/// The one way that all sweeps go: every input to the software operation and to the native function, on the
/// device, and the answers compared.

#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "experiments/gpu/probes/device_operations.h"
#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/probes/report.cuh"
#include "experiments/gpu/probes/sweep.h"
#include "fp16/ops.h"

namespace experiments::probes {

inline constexpr unsigned threads_per_block = 256;

inline constexpr unsigned most_blocks = 4096;

/// Enough for `count` threads, but not more than `most_blocks`.
inline unsigned blocks_for(std::uint64_t count) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>((count + threads_per_block - 1) / threads_per_block, most_blocks));
}

inline __device__ __half native_operand(half a) {
  return __ushort_as_half(a.bits());
}
template <typename Value>
__device__ Value native_operand(Value a) {
  return a;
}
inline __device__ __half2 native_operand(HalfPair a) {
  return __halves2half2(native_operand(a.first), native_operand(a.second));
}
inline __device__ __half2 packed_operand(half first, half second) {
  return __halves2half2(native_operand(first), native_operand(second));
}
inline __device__ float2 packed_operand(float first, float second) {
  return make_float2(first, second);
}

inline __device__ std::uint64_t code_of(half a) {
  return a.bits();
}
inline __device__ std::uint64_t code_of(__half a) {
  return __half_as_ushort(a);
}
inline __device__ std::uint64_t code_of(float a) {
  return std::bit_cast<std::uint32_t>(a);
}
inline __device__ std::uint64_t code_of(double a) {
  return std::bit_cast<std::uint64_t>(a);
}
inline __device__ std::uint64_t code_of(bool a) {
  return a;
}
inline __device__ std::uint64_t code_of(MemorySum a) {
  return std::bit_cast<std::uint32_t>(a);
}
inline __device__ std::uint64_t code_of(HalfPair a) {
  return std::bit_cast<std::uint32_t>(a);
}
template <std::integral Integer>
__device__ std::uint64_t code_of(Integer a) {
  return static_cast<std::make_unsigned_t<Integer>>(a);
}

/// The first number is in the lower half of a word.
inline __device__ std::uint32_t word_of(__half2 pair) {
  return std::bit_cast<std::uint32_t>(static_cast<__half2_raw>(pair));
}
inline __device__ __half2 pair_of(std::uint32_t word) {
  return std::bit_cast<__half2_raw>(word);
}

using CodePair = std::array<std::uint64_t, 2>;

template <typename Value>
__device__ CodePair codes_of(Value a) {
  return {code_of(a), 0};
}
inline __device__ CodePair codes_of(__half2 a) {
  return {code_of(__low2half(a)), code_of(__high2half(a))};
}
inline __device__ CodePair codes_of(CodePair a) {
  return a;
}
inline __device__ CodePair codes_of(float2 a) {
  return {code_of(a.x), code_of(a.y)};
}

/// What the native function should answer for the operation's result.
template <Pipe pipe, typename Value>
__device__ std::uint64_t expected_code(Value result) {
  if constexpr (std::is_same_v<Value, bool> && pipe == Pipe::packed) return result ? 0x3c00 : 0;
  if constexpr (pipe == Pipe::mask) return result ? 0xffff : 0;
  return code_of(result);
}

/// The code, but the same one for every NaN.
template <typename Value>
__device__ std::uint64_t value_code(std::uint64_t code) {
  if constexpr (std::is_same_v<Value, half>) {
    return is_nan<binary16>(code & 0xffff) ? code | 0xffff : code;
  } else if constexpr (std::is_same_v<Value, float>) {
    return is_nan<binary32>(code & 0xffffffff) ? code | 0xffffffff : code;
  } else if constexpr (std::is_same_v<Value, MemorySum>) {
    return value_code<half>(code);
  } else if constexpr (std::is_same_v<Value, HalfPair>) {
    return value_code<half>(code & 0xffff) | value_code<half>(code >> 16) << 16;
  } else {
    return code;
  }
}

/// Which of the operand's two numbers a number of a packed answer comes from, -1 for none: the one in the same
/// lane, unless Native::lanes says otherwise.
template <typename Native>
__device__ constexpr int source_lane(int lane) {
  if constexpr (requires { Native::lanes; }) {
    constexpr int first = Native::lanes[0], second = Native::lanes[1];
    return lane == 0 ? first : second;
  } else {
    return lane;
  }
}

template <typename Operation, typename Native, Pipe pipe, typename = ops::SignatureOf<Operation>>
struct Call;

/// One call of the native function, and what the operation says of it.
template <typename Operation, typename Native, Pipe pipe, typename Value, typename... Operands>
struct Call<Operation, Native, pipe, Value(Operands...)> {
  CodePair expected;
  CodePair found;

  static constexpr int bits = index_bits<Value(Operands...)>;

  __device__ explicit Call(std::uint64_t index) : Call(index, std::index_sequence_for<Operands...>{}) {}

  // Not operator== of std::array, with which nvcc 13 drops the whole loop of `compare`.
  __device__ bool agrees() const { return expected[0] == found[0] && expected[1] == found[1]; }
  /// Whether nothing differs but the bits of NaNs.
  __device__ bool agrees_in_value() const { return same_value(0) && same_value(1); }

  __device__ static OperandCodes operand_codes(std::uint64_t index) {
    return operand_codes(index, std::index_sequence_for<Operands...>{});
  }

 private:
  template <std::size_t... i>
  __device__ Call(std::uint64_t index, std::index_sequence<i...>) {
    const Value result = Operation{}(operand_at<Operands, i>(index)...);
    if constexpr (pipe == Pipe::scalar) {
      expected = {expected_code<pipe>(result), 0};
      found = codes_of(Native{}(native_operand(operand_at<Operands, i>(index))...));
    } else {
      const std::uint64_t second = partner(index, bits);
      const Value second_result = Operation{}(operand_at<Operands, i>(second)...);
      const auto answer =
          Native{}(packed_operand(operand_at<Operands, i>(index), operand_at<Operands, i>(second))...);
      if constexpr (pipe == Pipe::both) {
        expected = {result && second_result, 0};
        found = {answer, 0};
      } else {
        const auto expected_from = [&](int lane) -> std::uint64_t {
          return lane < 0 ? 0 : expected_code<pipe>(lane == 0 ? result : second_result);
        };
        expected = {expected_from(source_lane<Native>(0)), expected_from(source_lane<Native>(1))};
        if constexpr (pipe == Pipe::mask) {
          found = {answer & 0xffff, answer >> 16};
        } else {
          found = codes_of(answer);
        }
      }
    }
  }

  template <std::size_t... i>
  __device__ static OperandCodes operand_codes(std::uint64_t index, std::index_sequence<i...>) {
    return {code_of(operand_at<Operands, i>(index))...};
  }

  template <typename Operand, std::size_t i>
  __device__ static Operand operand_at(std::uint64_t index) {
    constexpr std::array<int, sizeof...(Operands)> widths{operand_index_bits<Operands>...};
    constexpr int shift = [&] {
      int sum = 0;
      for (std::size_t later = i + 1; later < widths.size(); ++later) sum += widths[later];
      return sum;
    }();
    return operand<Operand>((index >> shift) & ((std::uint64_t{1} << widths[i]) - 1));
  }

  __device__ bool same_value(int lane) const {
    return value_code<Value>(expected[lane]) == value_code<Value>(found[lane]);
  }
};

template <typename Operation, typename Native, Pipe pipe>
__global__ void __launch_bounds__(threads_per_block) compare(Range range, Report* report) {
  ThreadCounts counts;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < range.count; i += stride) {
    const std::uint64_t index = range.first + i;
    const Call<Operation, Native, pipe> call(index);
    counts.digest += digest_of(index, call.found[0], call.found[1]);
    if (call.agrees()) continue;
    ++(call.agrees_in_value() ? counts.nan_mismatches : counts.mismatches);
    // A thread's indices ascend.
    if (counts.mismatches + counts.nan_mismatches <= max_counterexamples) report->keep_lowest(index);
  }
  report->add(counts);
}

/// Fills in the calls whose indices are given, one a thread.
template <typename Operation, typename Native, Pipe pipe>
__global__ void __launch_bounds__(threads_per_block) explain(Counterexample* calls, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Counterexample& result = calls[i];
  using This = Call<Operation, Native, pipe>;
  const This call(result.index);
  result.expected = call.expected;
  result.found = call.found;
  result.operands[0] = This::operand_codes(result.index);
  if (pipe != Pipe::scalar) result.operands[1] = This::operand_codes(partner(result.index, This::bits));
}

/// A sweep's device code.
struct SweepKernels {
  std::string_view function;
  const void* compare;
  const void* explain;
  const void* prepare = nullptr;  ///< run before with 65,536 threads and no arguments, if there is one
};

template <typename Operation, typename Native, Pipe pipe>
SweepKernels sweep_kernels(std::string_view function) {
  return {.function = function,
          .compare = reinterpret_cast<const void*>(&compare<Operation, Native, pipe>),
          .explain = reinterpret_cast<const void*>(&explain<Operation, Native, pipe>)};
}

/// But for `inputs` and `milliseconds`. `explain` fills in counterexamples; its last two arguments are added here.
SweepResult result_of(const Report& report, const void* explain, std::vector<void*> arguments = {});

// One function for each list of intrinsics.h.
std::vector<SweepKernels> arithmetic_kernels();
std::vector<SweepKernels> fma_kernels();
std::vector<SweepKernels> comparison_kernels();
std::vector<SweepKernels> conversion_kernels();
std::vector<SweepKernels> integral_kernels();
std::vector<SweepKernels> operator_kernels();
std::vector<SweepKernels> move_kernels();
std::vector<SweepKernels> atomic_kernels();

}  // namespace experiments::probes

/// A type that stands for a function of cuda_fp16.h, native_<function>.
#define FP16_NATIVE(function, ...)                           \
  struct native_##function {                                 \
    template <typename... Operands>                          \
    __device__ auto operator()(Operands... operands) const { \
      return function(operands...);                          \
    }                                                        \
  };

#define FP16_SWEEP_KERNELS(function, pipe, ...) \
  sweep_kernels<__VA_ARGS__, native_##function, Pipe::pipe>(#function),
