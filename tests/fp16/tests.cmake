# What tests are held to, compiled once: slow, exact, and without code of what it judges. Sweeps are sharded over threads and
# resumable.
find_package(Threads REQUIRED)
add_library(oracle STATIC EXCLUDE_FROM_ALL
  oracle/exact_half.cpp oracle/exact_format.cpp oracle/exact_operations.cpp oracle/fast_half.cpp oracle/fast_half_agreement.cpp
  oracle/mpfr_arithmetic.cpp oracle/mpfr_half.cpp oracle/sweep.cpp fp16/mma_oracle.cpp)
target_link_libraries(oracle PUBLIC halflab::fp16 Boost::headers Threads::Threads mpfr gmp)

# The scalar number type and its bulk conversions.
halflab_test(fp16_number_tests oracle/exact_half_test.cpp
  fp16/formats_test.cpp fp16/bits_test.cpp fp16/rounding_test.cpp fp16/unpacked_test.cpp fp16/codec_test.cpp fp16/arithmetic_test.cpp
  fp16/arithmetic_hardware_test.cpp fp16/half_test.cpp fp16/half_functions_test.cpp
  LIBRARIES oracle)
halflab_test(fp16_bulk_tests fp16/philox_test.cpp fp16/vector/bulk_test.cpp fp16/vector/operations_test.cpp
  fp16/vector/outcomes_test.cpp
  LIBRARIES halflab::fp16_bulk)
# The fast oracle of half is held to exact rationals and MPFR first.
halflab_test(oracle_tests oracle/sweep_test.cpp oracle/fast_half_test.cpp LIBRARIES oracle)
halflab_test(oracle_exhaustive_tests oracle/fast_half_exhaustive_test.cpp LIBRARIES oracle LABEL exhaustive)
halflab_test(fp16_codec_exhaustive_tests fp16/codec_exhaustive_test.cpp LIBRARIES halflab::fp16_bulk oracle LABEL exhaustive)
halflab_test(fp16_arithmetic_exhaustive_tests fp16/arithmetic_exhaustive_test.cpp
  LIBRARIES halflab::fp16_bulk oracle LABEL exhaustive)

# The elementary functions; their bits must not depend on how they were compiled.
halflab_test(fp16_elementary_tests fp16/elementary_test.cpp fp16/elementary_bits_test.cpp LIBRARIES halflab::fp16)
halflab_test(fp16_elementary_unoptimised_tests fp16/elementary_bits_test.cpp LIBRARIES halflab::fp16)
target_compile_options(fp16_elementary_unoptimised_tests PRIVATE -O0)
halflab_test(fp16_elementary_native_tests fp16/elementary_bits_test.cpp LIBRARIES halflab::fp16)
target_compile_options(fp16_elementary_native_tests PRIVATE -O3 -march=${instruction_set})
halflab_test(fp16_elementary_exhaustive_tests fp16/elementary_exhaustive_test.cpp LIBRARIES oracle LABEL exhaustive)

halflab_test(fp16_gemm_tests fp16/vector/gemm_test.cpp fp16/vector/gemm_tensor_core_test.cpp
  LIBRARIES halflab::fp16_bulk Eigen3::Eigen)

# Text: in and out, for every format.
halflab_test(fp16_text_tests fp16/parse_test.cpp fp16/text_test.cpp fp16/half_text_test.cpp LIBRARIES oracle)
halflab_test(fp16_fmt_tests fp16/fmt_test.cpp fp16/std_format_test.cpp LIBRARIES halflab::fp16 fmt::fmt)
halflab_test(fp16_eigen_tests fp16/eigen_test.cpp LIBRARIES halflab::fp16 Eigen3::Eigen)

# Block formats, sums and dot products.
halflab_test(fp16_block_tests fp16/block_test.cpp LIBRARIES halflab::fp16 Boost::headers)
halflab_test(fp16_sum_tests fp16/sum_test.cpp fp16/dot_test.cpp fp16/reveal_order_test.cpp LIBRARIES oracle)

# The tensor-core model: GPU vectors come from HALFLAB_DATA_DIR, the literals need nothing.
halflab_test(fp16_mma_tests fp16/mma_probes.cpp fp16/mma_mutants.cpp fp16/mma_test.cpp LIBRARIES oracle)

# Correctly rounded functions, against MPFR.
halflab_test(fp16_math_tests fp16/vector/math_test.cpp LIBRARIES halflab::fp16_bulk oracle)
halflab_test(fp16_math_exhaustive_tests fp16/vector/math_exhaustive_test.cpp
  LIBRARIES halflab::fp16_bulk oracle LABEL exhaustive)

# Every operation in every format, against an oracle that enumerates the format.
halflab_test(fp16_format_tests oracle/exact_format_test.cpp oracle/exact_operations_test.cpp
  fp16/small_formats_test.cpp fp16/sign_test.cpp fp16/classification_test.cpp
  fp16/comparison_test.cpp fp16/min_max_test.cpp fp16/neighbours_test.cpp
  fp16/integral_test.cpp fp16/exponent_test.cpp fp16/remainder_test.cpp
  LIBRARIES oracle)
halflab_test(fp16_format_exhaustive_tests
  fp16/small_formats_exhaustive_test.cpp fp16/remainder_exhaustive_test.cpp
  LIBRARIES oracle LABEL exhaustive)
halflab_test(fp16_elementary_pow_tests fp16/elementary_pow_test.cpp LIBRARIES halflab::fp16)
halflab_test(fp16_elementary_double_tests fp16/elementary_double_test.cpp LIBRARIES halflab::fp16 mpfr gmp)
halflab_test(fp16_elementary_double_exhaustive_tests fp16/elementary_double_exhaustive_test.cpp
  LIBRARIES oracle LABEL exhaustive)
halflab_test(fp16_packed_tests fp16/vector/packed_test.cpp LIBRARIES halflab::fp16_bulk)
halflab_test(fp16_array_contract_tests fp16/vector/array_contract_test.cpp LIBRARIES halflab::fp16_bulk)
halflab_test(fp16_block_arrays_tests fp16/vector/block_arrays_test.cpp LIBRARIES halflab::fp16_bulk)
# Such an environment is what the compiler takes for granted that nobody sets.
halflab_test(fp16_environment_tests fp16/vector/environment_test.cpp LIBRARIES halflab::fp16_bulk)
target_compile_options(fp16_environment_tests PRIVATE -frounding-math)
halflab_test(fp16_threads_tests fp16/vector/threads_test.cpp LIBRARIES halflab::fp16_bulk Threads::Threads)
target_compile_definitions(fp16_threads_tests PRIVATE $<$<BOOL:${CMAKE_CROSSCOMPILING}>:HALFLAB_IS_EMULATED>)

halflab_test(fp16_ops_tests fp16/ops_test.cpp LIBRARIES halflab::fp16)
halflab_test(fp16_cuda_tests fp16/cuda/gemm_test.cpp fp16/cuda/reductions_test.cpp fp16/cuda/streaming_test.cpp
  LIBRARIES halflab::fp16_cuda)
halflab_test(fp16_cuda_gpu_tests fp16/cuda/gemm_gpu_test.cpp fp16/cuda/reductions_gpu_test.cpp
  LIBRARIES halflab::fp16_cuda halflab::fp16_bulk LABEL gpu)

halflab_test(fp16_names_tests fp16/names/registry_test.cpp fp16/names/options_test.cpp fp16/names/spec_test.cpp
  LIBRARIES halflab::names)
halflab_test(fp16_exact_sums_tests fp16/vector/exact_sums_test.cpp LIBRARIES halflab::fp16_bulk)
halflab_test(fp16_code_histogram_tests fp16/vector/code_histogram_test.cpp LIBRARIES halflab::fp16_bulk)
halflab_test(fp16_exponent_histogram_tests fp16/vector/exponent_histogram_test.cpp LIBRARIES halflab::sim)

# Compiled in other ways than the rest.
set_target_properties(fp16_elementary_unoptimised_tests fp16_elementary_native_tests fp16_environment_tests
  PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
