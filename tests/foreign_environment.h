#pragma once
/// Floating-point environments that programs linked with -ffast-math have, and others that are not the default one.

#include <array>
#include <cfenv>
#include <string_view>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace test {

struct Environment {
  std::string_view name;
  int direction;
  bool flushes = false;  ///< FTZ and DAZ, where there is an SSE register for them
};
constexpr std::array environments{Environment{"FTZ and DAZ", FE_TONEAREST, true},
                                  Environment{"upward", FE_UPWARD}, Environment{"downward", FE_DOWNWARD},
                                  Environment{"toward zero", FE_TOWARDZERO},
                                  Environment{"upward with FTZ and DAZ", FE_UPWARD, true}};

/// In this environment while it lives.
class Inside {
 public:
  explicit Inside(const Environment& environment) {
    std::fegetenv(&before_);
    std::fesetround(environment.direction);
#ifdef __SSE__
    constexpr unsigned ftz_and_daz = 0x8040;
    if (environment.flushes) _mm_setcsr(_mm_getcsr() | ftz_and_daz);
#endif
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    std::fesetenv(&before_);
  }

 private:
  std::fenv_t before_;
};

}  // namespace test
