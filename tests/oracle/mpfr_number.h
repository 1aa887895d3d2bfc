#pragma once

#include <mpfr.h>

namespace oracle::mpfr {

/// A number of MPFR's that clears itself; a NaN at first.
class Number {
 public:
  explicit Number(mpfr_prec_t precision) { mpfr_init2(value_, precision); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;

  operator mpfr_ptr() { return value_; }
  operator mpfr_srcptr() const { return value_; }

 private:
  mpfr_t value_;
};

}  // namespace oracle::mpfr
