#pragma once
/// The only file of fp16/ outside cuda/ that looks at compiler macros.

#if __cplusplus < 202002L
#error "Halflab needs C++20: compile with -std=c++20 or newer"
#include "the errors that would follow"  // thousands, from which the reason above would scroll away
#endif

#ifdef __CUDACC__
#define FP16_HD __host__ __device__
#else
#define FP16_HD
#endif

/// Before the definition of a function that is one hot loop: compiles it for several levels of x86-64 and
/// lets the loader choose. The results are equal, because nothing is contracted, reassociated or
/// approximated. The thread sanitizer is not yet there when the loader asks, and crashes.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && \
    !defined(__SANITIZE_THREAD__)
#define FP16_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FP16_VECTOR_CLONES
#endif

/// The compiler's own binary16 type. In device code nvcc has none, nor has GCC 12 for AArch64 in C++.
#if defined(__FLT16_MANT_DIG__) && !defined(__CUDACC__) && \
    !(defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13)
#define FP16_HAS_NATIVE_HALF
#endif

/// Whether functions may throw: -fno-exceptions leaves out those that do.
#ifdef __cpp_exceptions
#define FP16_HAS_EXCEPTIONS
#endif

/// Whether std::fma of floats is an instruction. Elsewhere it is a call that takes some ten times as long.
#ifdef FP_FAST_FMAF
#define FP16_HAS_FMA true
#else
#define FP16_HAS_FMA false
#endif
