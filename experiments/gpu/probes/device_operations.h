#pragma once
/// What functions of cuda_fp16.h do beyond the operations of ops.h, as functors of the same kind.

#include <cstdint>
#include <string>

#include "fp16/ops.h"

namespace experiments::probes {

using fp16::half;  // not the global one of cuda_fp16.h
namespace ops = fp16::ops;

/// The code, every bit as it was.
struct Copy {
  static std::string name() { return "copy"; }
  FP16_HD constexpr std::uint16_t operator()(half a) const { return a.bits(); }
};

/// a + 1
struct Increment {
  static std::string name() { return "increment"; }
  FP16_HD constexpr half operator()(half a) const { return ops::Add{}(a, half(1.0f)); }
};

/// a - 1
struct Decrement {
  static std::string name() { return "decrement"; }
  FP16_HD constexpr half operator()(half a) const { return ops::Subtract{}(a, half(1.0f)); }
};

/// What an addition in memory leaves there, and what was there, every bit of it.
struct MemorySum {
  half after;
  half before;
};

struct AddInMemory {
  static std::string name() { return "add in memory"; }
  FP16_HD constexpr MemorySum operator()(half memory, half a) const {
    return {ops::Add{}(memory, a), memory};
  }
};

/// A half2; as a complex number, the real part first.
struct HalfPair {
  half first;
  half second;
};

/// a * b + c of complex numbers in four fused multiply-adds: to the real part of c first a.re * b.re is added
/// and then -a.im * b.im, to the imaginary part first a.re * b.im and then a.im * b.re.
struct ComplexMultiplyAdd {
  static std::string name() { return "complex multiply-add"; }
  FP16_HD constexpr HalfPair operator()(HalfPair a, HalfPair b, HalfPair c) const {
    constexpr ops::FusedMultiplyAdd fma;
    return {fma(ops::Negate{}(a.second), b.second, fma(a.first, b.first, c.first)),
            fma(a.second, b.first, fma(a.first, b.second, c.second))};
  }
};

}  // namespace experiments::probes
