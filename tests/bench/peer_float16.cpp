#include "tests/bench/scalar_loops.h"
#include "tests/oracle/compilers_half.h"

namespace bench {
namespace {

struct Float16 {
  using Number = oracle::CompilersHalf;
  static Number from_bits(Half bits) { return std::bit_cast<Number>(bits); }
  static Half to_bits(Number x) { return std::bit_cast<Half>(x); }
};

}  // namespace

const HalfLoops float16 = ScalarLoops<Float16>::loops("float16");

}  // namespace bench
