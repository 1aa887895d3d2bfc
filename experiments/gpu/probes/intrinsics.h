#pragma once
/// The functions of cuda_fp16.h beside the operations they are held to, as lists for the preprocessor: plain
/// C++ reads them for names, device code for calls. row(function, pipe, operation of ops.h).

// clang-format off
#define FP16_ARITHMETIC_INTRINSICS(row) \
  row(__hadd, scalar, Add)              row(__hadd2, packed, Add) \
  row(__hadd_rn, scalar, Add)           row(__hadd2_rn, packed, Add) \
  row(__hadd_sat, scalar, Saturated<Add>)      row(__hadd2_sat, packed, Saturated<Add>) \
  row(__hsub, scalar, Subtract)         row(__hsub2, packed, Subtract) \
  row(__hsub_rn, scalar, Subtract)      row(__hsub2_rn, packed, Subtract) \
  row(__hsub_sat, scalar, Saturated<Subtract>) row(__hsub2_sat, packed, Saturated<Subtract>) \
  row(__hmul, scalar, Multiply)         row(__hmul2, packed, Multiply) \
  row(__hmul_rn, scalar, Multiply)      row(__hmul2_rn, packed, Multiply) \
  row(__hmul_sat, scalar, Saturated<Multiply>) row(__hmul2_sat, packed, Saturated<Multiply>) \
  row(__hdiv, scalar, Divide)           row(__h2div, packed, Divide) \
  row(__hmin, scalar, MinimumNumber)    row(__hmin2, packed, MinimumNumber) \
  row(__hmax, scalar, MaximumNumber)    row(__hmax2, packed, MaximumNumber) \
  row(__hneg, scalar, Negate)           row(__hneg2, packed, Negate) \
  row(__habs, scalar, Absolute)         row(__habs2, packed, Absolute)

#define FP16_FMA_INTRINSICS(row) \
  row(__hfma, scalar, FusedMultiplyAdd)                row(__hfma2, packed, FusedMultiplyAdd) \
  row(__hfma_sat, scalar, Saturated<FusedMultiplyAdd>) row(__hfma2_sat, packed, Saturated<FusedMultiplyAdd>)

/// Operators, by the name of their sign in <functional> or in words; those of half2 end so.
#define FP16_OPERATORS_OF(row, name, Operation) \
  row(operator_##name, scalar, Operation)                 row(operator_##name##_half2, packed, Operation)
#define FP16_OPERATOR_COMPARISONS_OF(row, name, Operation) \
  row(operator_##name, scalar, Operation)                 row(operator_##name##_half2, both, Operation)

#define FP16_OPERATOR_INTRINSICS(row) \
  FP16_OPERATORS_OF(row, plus, Add)                 FP16_OPERATORS_OF(row, plus_assign, Add) \
  FP16_OPERATORS_OF(row, minus, Subtract)           FP16_OPERATORS_OF(row, minus_assign, Subtract) \
  FP16_OPERATORS_OF(row, multiplies, Multiply)      FP16_OPERATORS_OF(row, multiplies_assign, Multiply) \
  FP16_OPERATORS_OF(row, divides, Divide)           FP16_OPERATORS_OF(row, divides_assign, Divide) \
  FP16_OPERATORS_OF(row, increment, Increment)      FP16_OPERATORS_OF(row, postfix_increment, Increment) \
  FP16_OPERATORS_OF(row, decrement, Decrement)      FP16_OPERATORS_OF(row, postfix_decrement, Decrement) \
  FP16_OPERATORS_OF(row, negate, Negate)            FP16_OPERATORS_OF(row, unary_plus, Copy) \
  FP16_OPERATOR_COMPARISONS_OF(row, equal_to, Equal) \
  FP16_OPERATOR_COMPARISONS_OF(row, not_equal_to, NotEqualUnordered) \
  FP16_OPERATOR_COMPARISONS_OF(row, less, Less) \
  FP16_OPERATOR_COMPARISONS_OF(row, less_equal, LessEqual) \
  FP16_OPERATOR_COMPARISONS_OF(row, greater, Greater) \
  FP16_OPERATOR_COMPARISONS_OF(row, greater_equal, GreaterEqual) \
  row(__hcmadd, scalar, ComplexMultiplyAdd)

/// Functions that move codes, and conversions whose operands or answers lie otherwise in a half2 than those of
/// the others. The overload for half2 of a function that has one for half too ends so.
#define FP16_MOVES_OF(row, function) \
  row(function, scalar, Copy)               row(function##_half2, packed, Copy)

#define FP16_MOVE_INTRINSICS(row) \
  row(__half_as_short, scalar, Copy)        row(__half_as_ushort, scalar, Copy) \
  row(__short_as_half, scalar, Copy)        row(__ushort_as_half, scalar, Copy) \
  row(__halves2half2, packed, Copy)         row(make_half2, packed, Copy) \
  row(__half2half2, packed, Copy)           row(__lowhigh2highlow, packed, Copy) \
  row(__low2half, packed, Copy)             row(__high2half, packed, Copy) \
  row(__low2half2, packed, Copy)            row(__high2half2, packed, Copy) \
  row(__lows2half2, packed, Copy)           row(__highs2half2, packed, Copy) \
  row(__low2float, packed, ToFloat)         row(__high2float, packed, ToFloat) \
  row(__float2half2_rn, packed, FP16_FROM_FLOAT) \
  row(__floats2half2_rn, packed, FP16_FROM_FLOAT) \
  FP16_MOVES_OF(row, __ldg)  FP16_MOVES_OF(row, __ldcg) FP16_MOVES_OF(row, __ldca) \
  FP16_MOVES_OF(row, __ldcs) FP16_MOVES_OF(row, __ldlu) FP16_MOVES_OF(row, __ldcv) \
  FP16_MOVES_OF(row, __stwb) FP16_MOVES_OF(row, __stcg) FP16_MOVES_OF(row, __stcs) \
  FP16_MOVES_OF(row, __stwt) \
  FP16_MOVES_OF(row, __shfl_sync)      FP16_MOVES_OF(row, __shfl_up_sync) \
  FP16_MOVES_OF(row, __shfl_down_sync) FP16_MOVES_OF(row, __shfl_xor_sync)
#define FP16_FROM_FLOAT FromFloating<float, rn>

/// One atomicAdd to an address, of a half or half2, in global or shared memory. The other half of a word in
/// which a half is must stay as it was. The _unread ones leave their answer unused, as most callers do, for which a
/// compiler may choose another instruction, and are held to the sum alone.
#define FP16_ATOMIC_INTRINSICS(row) \
  row(atomicAdd_global, scalar, AddInMemory)  row(atomicAdd_global_half2, packed, AddInMemory) \
  row(atomicAdd_shared, scalar, AddInMemory)  row(atomicAdd_shared_half2, packed, AddInMemory) \
  row(atomicAdd_global_unread, scalar, Add)   row(atomicAdd_global_unread_half2, packed, Add)

/// These need sm_80.
#define FP16_SM80_INTRINSICS(row) \
  row(__hfma_relu, scalar, Relu<FusedMultiplyAdd>)     row(__hfma2_relu, packed, Relu<FusedMultiplyAdd>) \
  row(__hmin_nan, scalar, Minimum)                     row(__hmin2_nan, packed, Minimum) \
  row(__hmax_nan, scalar, Maximum)                     row(__hmax2_nan, packed, Maximum)

#define FP16_COMPARISONS_OF(row, suffix, pipe, prefix) \
  row(prefix##eq##suffix, pipe, Equal)                 row(prefix##equ##suffix, pipe, EqualUnordered) \
  row(prefix##ne##suffix, pipe, NotEqualOrdered)       row(prefix##neu##suffix, pipe, NotEqualUnordered) \
  row(prefix##lt##suffix, pipe, Less)                  row(prefix##ltu##suffix, pipe, LessUnordered) \
  row(prefix##le##suffix, pipe, LessEqual)             row(prefix##leu##suffix, pipe, LessEqualUnordered) \
  row(prefix##gt##suffix, pipe, Greater)               row(prefix##gtu##suffix, pipe, GreaterUnordered) \
  row(prefix##ge##suffix, pipe, GreaterEqual)          row(prefix##geu##suffix, pipe, GreaterEqualUnordered)

#define FP16_COMPARISON_INTRINSICS(row) \
  FP16_COMPARISONS_OF(row, , scalar, __h)     FP16_COMPARISONS_OF(row, 2, packed, __h) \
  FP16_COMPARISONS_OF(row, 2_mask, mask, __h) FP16_COMPARISONS_OF(row, 2, both, __hb) \
  row(__hisnan, scalar, IsNan)                row(__hisnan2, packed, IsNan) \
  row(__hisinf, scalar, InfinitySign)

#define FP16_INTEGER_CONVERSIONS_OF(row, name, Integer) \
  row(__##name##2half_rn, scalar, FromInteger<Integer, rn>) \
  row(__##name##2half_rz, scalar, FromInteger<Integer, rz>) \
  row(__##name##2half_ru, scalar, FromInteger<Integer, ru>) \
  row(__##name##2half_rd, scalar, FromInteger<Integer, rd>) \
  row(__half2##name##_rn, scalar, ToInteger<Integer, rn>) \
  row(__half2##name##_rz, scalar, ToInteger<Integer, rz>) \
  row(__half2##name##_ru, scalar, ToInteger<Integer, ru>) \
  row(__half2##name##_rd, scalar, ToInteger<Integer, rd>)

#define FP16_CONVERSION_INTRINSICS(row) \
  row(__float2half, scalar, FromFloating<float, rn>) \
  row(__float2half_rn, scalar, FromFloating<float, rn>) row(__float22half2_rn, packed, FromFloating<float, rn>) \
  row(__float2half_rz, scalar, FromFloating<float, rz>) \
  row(__float2half_ru, scalar, FromFloating<float, ru>) \
  row(__float2half_rd, scalar, FromFloating<float, rd>) \
  row(__double2half, scalar, FromFloating<double, rn>) \
  row(__half2float, scalar, ToFloat)                    row(__half22float2, packed, ToFloat) \
  row(__half2char_rz, scalar, ToInteger<signed char, rz>) \
  row(__half2uchar_rz, scalar, ToInteger<unsigned char, rz>) \
  FP16_INTEGER_CONVERSIONS_OF(row, short, short) \
  FP16_INTEGER_CONVERSIONS_OF(row, ushort, unsigned short) \
  FP16_INTEGER_CONVERSIONS_OF(row, int, int) \
  FP16_INTEGER_CONVERSIONS_OF(row, uint, unsigned) \
  FP16_INTEGER_CONVERSIONS_OF(row, ll, long long) \
  FP16_INTEGER_CONVERSIONS_OF(row, ull, unsigned long long)

/// Functions that have a correctly rounded twin in integers.
#define FP16_INTEGRAL_INTRINSICS(row) \
  row(hrint, scalar, RoundToIntegral<rn>)  row(h2rint, packed, RoundToIntegral<rn>) \
  row(htrunc, scalar, RoundToIntegral<rz>) row(h2trunc, packed, RoundToIntegral<rz>) \
  row(hceil, scalar, RoundToIntegral<ru>)  row(h2ceil, packed, RoundToIntegral<ru>) \
  row(hfloor, scalar, RoundToIntegral<rd>) row(h2floor, packed, RoundToIntegral<rd>) \
  row(hsqrt, scalar, SquareRoot)           row(h2sqrt, packed, SquareRoot) \
  row(hrcp, scalar, Reciprocal)            row(h2rcp, packed, Reciprocal)

#define FP16_SWEPT_INTRINSICS(row) \
  FP16_ARITHMETIC_INTRINSICS(row) FP16_FMA_INTRINSICS(row) FP16_SM80_INTRINSICS(row) \
  FP16_COMPARISON_INTRINSICS(row) FP16_CONVERSION_INTRINSICS(row) FP16_INTEGRAL_INTRINSICS(row) \
  FP16_OPERATOR_INTRINSICS(row) FP16_MOVE_INTRINSICS(row) FP16_ATOMIC_INTRINSICS(row)

/// Functions of one half whose values are read out whole: row(function, pipe).
#define FP16_TABULATED_INTRINSICS(row) \
  row(hexp, scalar)         row(h2exp, packed) \
  row(hexp2, scalar)        row(h2exp2, packed) \
  row(hexp10, scalar)       row(h2exp10, packed) \
  row(hlog, scalar)         row(h2log, packed) \
  row(hlog2, scalar)        row(h2log2, packed) \
  row(hlog10, scalar)       row(h2log10, packed) \
  row(hsin, scalar)         row(h2sin, packed) \
  row(hcos, scalar)         row(h2cos, packed) \
  row(hsqrt, scalar)        row(h2sqrt, packed) \
  row(hrsqrt, scalar)       row(h2rsqrt, packed) \
  row(hrcp, scalar)         row(h2rcp, packed) \
  row(htanh, scalar)        row(h2tanh, packed) \
  row(htanh_approx, scalar) row(h2tanh_approx, packed)
// clang-format on
