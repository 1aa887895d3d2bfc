#include "tests/bench/scalar_loops.h"

namespace bench {
namespace {

struct Float16 {
  using Number = _Float16;
  static Number from_bits(Half bits) { return std::bit_cast<Number>(bits); }
  static Half to_bits(Number x) { return std::bit_cast<Half>(x); }
};

}  // namespace

const HalfLoops float16 = ScalarLoops<Float16>::loops("float16");

}  // namespace bench
