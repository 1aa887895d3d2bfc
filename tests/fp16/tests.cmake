# The scalar number type and its bulk conversions.
halflab_test(fp16_number_tests
  oracle/exact_half.cpp oracle/exact_half_test.cpp
  fp16/formats_test.cpp fp16/rounding_test.cpp fp16/unpacked_test.cpp fp16/codec_test.cpp fp16/arithmetic_test.cpp
  fp16/arithmetic_hardware_test.cpp fp16/half_test.cpp
  LIBRARIES halflab::fp16 Boost::headers)
halflab_test(fp16_bulk_tests fp16/bulk_test.cpp LIBRARIES halflab::fp16_bulk)
find_package(Threads REQUIRED)
halflab_test(fp16_codec_exhaustive_tests fp16/codec_exhaustive_test.cpp
  LIBRARIES halflab::fp16_bulk Threads::Threads LABEL exhaustive)

# The elementary functions; their bits must not depend on how they were compiled.
halflab_test(fp16_elementary_tests fp16/elementary_test.cpp fp16/elementary_bits_test.cpp
  LIBRARIES halflab::fp16)
halflab_test(fp16_elementary_unoptimised_tests fp16/elementary_bits_test.cpp LIBRARIES halflab::fp16)
target_compile_options(fp16_elementary_unoptimised_tests PRIVATE -O0)
halflab_test(fp16_elementary_native_tests fp16/elementary_bits_test.cpp LIBRARIES halflab::fp16)
target_compile_options(fp16_elementary_native_tests PRIVATE -O3 -march=native)
halflab_test(fp16_elementary_exhaustive_tests fp16/elementary_exhaustive_test.cpp
  LIBRARIES halflab::fp16 Threads::Threads LABEL exhaustive)

halflab_test(fp16_gemm_tests fp16/gemm_test.cpp LIBRARIES halflab::fp16_bulk Eigen3::Eigen)

# The tensor-core model: GPU vectors come from HALFLAB_DATA_DIR, the literals need nothing.
halflab_test(fp16_mma_tests
  oracle/exact_half.cpp fp16/mma_oracle.cpp fp16/mma_probes.cpp fp16/mma_mutants.cpp fp16/mma_test.cpp
  LIBRARIES halflab::fp16 Boost::headers)
target_compile_options(fp16_mma_tests PRIVATE $<$<CONFIG:Debug>:-O2>)

# Correctly rounded functions, against MPFR.
halflab_test(fp16_math_tests fp16/math_test.cpp oracle/mpfr_half.cpp oracle/exact_half.cpp
  LIBRARIES halflab::fp16_bulk Boost::headers Threads::Threads mpfr gmp)
halflab_test(fp16_math_exhaustive_tests fp16/math_exhaustive_test.cpp oracle/mpfr_half.cpp oracle/exact_half.cpp
  LIBRARIES halflab::fp16_bulk Boost::headers Threads::Threads mpfr gmp LABEL exhaustive)
