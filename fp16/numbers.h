#pragma once
/// The numbers: the front page of the library. It includes what works on one number at a time, headers alone
/// (halflab::fp16), and says what else there is.
///
///   half h = parse_half("0.1");                                             // 0.1 rounded once: 0x1.998p-4
///   auto sum = add<binary16>(0x3c00, 0x0001, {Rounding::toward_positive});  // {0x3c01, inexact}
///   auto code = encode<e4m3>(500.0f, {.saturate = true});                   // {0x7e, inexact, overflow}
///
/// A *format* is a value and a template argument: binary16, e4m3. A *code* is the bits of a number, in the low bits of
/// the integer Bits<F>; what takes a code refuses a value. *Attributes* say how to round, what to do at the borders of
/// the format and which NaN to return. An operation returns a Result<F>, {bits, flags}.
///
/// What every operation keeps to:
/// - The result is the exact one rounded once (of a sum in a stated order: each step), with the special values and
///   flags of IEEE 754-2019.
/// - There is no global state: attributes go in, flags come out, and threads may share everything.
/// - Bits depend neither on the compiler and the processor nor on the caller's floating-point environment. Each
///   header says under "How it is known" what was compared with what.
/// - NaNs, infinities and overflow are results. Nothing throws, but parse_half at text that is no number.
/// - It works in constant expressions, and but for text in CUDA device code.

// What a number is: formats as data, how they round, codes and their fields.
#include "bits.h"      // Bits<F>, Code<F>, is_nan, is_zero, negate
#include "formats.h"   // binary64/32/16, tf32, bfloat16, e5m2, e4m3, their fnuz kin, e3m2, e2m3, e2m1, e8m0
#include "rounding.h"  // Rounding, Attributes, Flags

// From and to other numbers and text.
#include "codec.h"     // encode<F>(value), decode<F>(code), convert<To, From>(code)
#include "integral.h"  // from_integer, to_integer, round_to_integral, modf
#include "parse.h"     // parse<F>(text), of any length
#include "text.h"      // to_shortest, to_exact, to_hex, to_fields

// Operations on codes of any format: name<F>(operands..., attributes).
#include "arithmetic.h"      // add, subtract, multiply, divide, sqrt, fma
#include "classification.h"  // classify
#include "comparison.h"      // compare, compare_quiet, compare_signalling, total_order
#include "exponent.h"        // scalb, ilogb, logb, frexp
#include "min_max.h"         // minimum, maximum, minimum_number, ... as each standard has them
#include "neighbours.h"      // next_up, next_down, next_after, ulp_distance
#include "remainder.h"       // remainder, fmod
#include "sign.h"            // abs, copy_sign

// binary16 as a type.
#include "half.h"            // half: operators, numeric_limits, hash
#include "half_functions.h"  // those of <cmath> that need no approximation
#include "half_text.h"       // 1.5_h, parse_half, streams

// Many numbers to one, in an order that is part of the result.
#include "block.h"  // MXFP8, MXFP6, MXFP4, NVFP4
#include "dot.h"    // dot_fma, dot_mul_add, dot_binary32, dot_exact
#include "mma.h"    // mma_dot: a tensor core, step by step
#include "sum.h"    // sum_sequential, sum_pairwise, sum_blocked_tree, sum_kahan, sum_neumaier, sum_exact

// Compiled, in halflab::fp16_bulk:
//   math.h                31 functions of half (exp, tanh, ...), pow, hypot, atan2, rounded once in every direction
//   bulk.h                conversions and operations over arrays, on threads, with counts of what rounding lost
//   philox.h              random bits from a key, a stream and an index
//   gemm.h                matrix products: FP32, FP16 and FP64 chains, tensor cores
//   block_arrays.h        block formats over arrays
//   exact_sums.h          sums and dot products of arrays of halves, exact
//   code_histogram.h      how often each code of 16 bits occurs
//   exponent_histogram.h  where values lie, and what a cast would do to them at every power-of-two scale
//   vector_path.h         which instruction set serves; the bits are the same
// Headers for those who want them:
//   elementary.h          exp, log, tanh ... of float and double, overloads of <cmath>'s: the same bits everywhere
//   reveal_order.h        the tree in which a black box sums, from its results alone
//   ops.h operations.h    the operations as functors of CPU and GPU code, and by name
//   eigen.h fmt.h std_format.h   half in Eigen, {fmt} and std::format
