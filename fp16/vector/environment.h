#pragma once
/// The floating-point environment that the compiled parts compute in, whatever the caller's. Internal.

#ifdef __SSE__
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include "fp16/rounding.h"

namespace fp16::detail {

/// While it lives, this thread rounds to nearest, keeps subnormals and traps nothing. Afterwards its
/// environment, status flags included, is what it was.
class DefaultEnvironment {
 public:
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;

#ifdef __SSE__
  // Reading the register costs next to nothing, writing it some ten cycles: it is written where it must be.
  DefaultEnvironment() : callers_(_mm_getcsr()) {
    if ((callers_ & ~status_flags) != default_control) _mm_setcsr(default_control);
  }
  ~DefaultEnvironment() {
    if (_mm_getcsr() != callers_) _mm_setcsr(callers_);
  }

 private:
  static constexpr unsigned status_flags = 0x3f;
  static constexpr unsigned default_control = 0x1f80;  ///< all traps masked, nearest, no FTZ, no DAZ
  unsigned callers_;
#else
  DefaultEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() {
    std::fesetenv(&callers_);
  }

 private:
  std::fenv_t callers_;
#endif
};

/// work(), in the default environment. It is called through a pointer that the compiler cannot see
/// through, lest it computes before the environment is set or after it is restored.
template <typename Work>
auto in_default_environment(const Work& work) {
  using Result = decltype(work());
  Result (*volatile call)(const Work&) = [](const Work& called) -> Result { return called(); };
  const DefaultEnvironment environment;
  return call(work);
}

/// Makes this thread forget which exceptions its floating-point instructions have raised.
inline void clear_raised_flags() {
#ifdef __SSE__
  constexpr unsigned status_flags = 0x3f;
  if ((_mm_getcsr() & status_flags) != 0) _mm_setcsr(_mm_getcsr() & ~status_flags);
#else
  std::feclearexcept(FE_ALL_EXCEPT);
#endif
}

/// The exceptions that this thread's instructions have raised since, tininess as the processor detects it. Of what the
/// compiler computes, or leaves out, it knows nothing: for calls that it cannot see through.
inline Flags raised_flags() {
#ifdef __SSE__
  const unsigned raised = _mm_getcsr();
  return {.inexact = (raised & _MM_EXCEPT_INEXACT) != 0,
          .underflow = (raised & _MM_EXCEPT_UNDERFLOW) != 0,
          .overflow = (raised & _MM_EXCEPT_OVERFLOW) != 0,
          .divide_by_zero = (raised & _MM_EXCEPT_DIV_ZERO) != 0,
          .invalid = (raised & _MM_EXCEPT_INVALID) != 0};
#elif defined(FE_INEXACT)
  return {.inexact = std::fetestexcept(FE_INEXACT) != 0,
          .underflow = std::fetestexcept(FE_UNDERFLOW) != 0,
          .overflow = std::fetestexcept(FE_OVERFLOW) != 0,
          .divide_by_zero = std::fetestexcept(FE_DIVBYZERO) != 0,
          .invalid = std::fetestexcept(FE_INVALID) != 0};
#else
  return {};
#endif
}

/// When this processor's instructions take a result for tiny, as far as there are kernels that ask them.
#ifdef __aarch64__
inline constexpr Tininess processors_tininess = Tininess::before_rounding;
#else
inline constexpr Tininess processors_tininess = Tininess::after_rounding;
#endif

/// Whether there are exceptions for raised_flags() to find: WebAssembly's instructions raise none.
#if defined(__SSE__) || defined(FE_INEXACT)
inline constexpr bool has_raised_flags = true;
#else
inline constexpr bool has_raised_flags = false;
#endif

}  // namespace fp16::detail
