#include <Imath/half.h>

#include "tests/bench/scalar_loops.h"

namespace bench {
namespace {

struct Imath {
  using Number = ::half;
  static Number from_bits(Half bits) { return Number(Number::FromBits, bits); }
  static Half to_bits(Number x) { return x.bits(); }
};

}  // namespace

const HalfLoops imath = ScalarLoops<Imath>::loops("imath");

}  // namespace bench
