# The probes: their lists, inputs and references without a device, then what a device answers.
halflab_test(gpu_probes_tests
  experiments/gpu/probes/fma_sweep_test.cpp experiments/gpu/probes/sweep_test.cpp
  LIBRARIES halflab::probes oracle)
halflab_test(gpu_probes_tensor_core_tests fp16/mma_mutants.cpp experiments/gpu/probes/tensor_core_test.cpp
  LIBRARIES halflab::probes oracle)
set(probes_gpu_tests experiments/gpu/probes/sweep_gpu_test.cpp experiments/gpu/probes/tensor_core_gpu_test.cpp)
halflab_test(gpu_probes_gpu_tests ${probes_gpu_tests} LIBRARIES halflab::probes LABEL gpu)
include(experiments/gpu/ptx/ptx.cmake)

halflab_test(gpu_throughput_test experiments/gpu/gpu_throughput_test.cpp
  LIBRARIES gpu_throughput_parts nlohmann_json::nlohmann_json)
halflab_test(gpu_throughput_device_test experiments/gpu/gpu_throughput_device_test.cpp
  LIBRARIES gpu_throughput_parts LABEL gpu)

halflab_test(gpu_status_test experiments/gpu/gpu_status_test.cpp
  LIBRARIES gpu_status_parts nlohmann_json::nlohmann_json)
target_compile_definitions(gpu_status_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}")

# A library in cuBLAS's place that computes on the CPU and tells what it was asked for; the old one lacks a function.
foreach(fake fake_cublas old_fake_cublas)
  add_library(${fake} MODULE experiments/gpu/fake_cublas.cpp)
endforeach()
target_compile_definitions(old_fake_cublas PRIVATE FAKE_CUBLAS_IS_OLD)
halflab_test(cublas_test
  experiments/gpu/cublas_test.cpp
  experiments/explain_gemm_census_test.cpp
  experiments/gpu/fake_cublas_calls.cpp
  LIBRARIES explain_gemm_parts)
target_compile_definitions(cublas_test PRIVATE
  HALFLAB_FAKE_CUBLAS="$<TARGET_FILE:fake_cublas>" HALFLAB_OLD_FAKE_CUBLAS="$<TARGET_FILE:old_fake_cublas>")
add_dependencies(cublas_test fake_cublas old_fake_cublas)

# On an emulated device.
if(NOT HALFLAB_HAS_CUDA)
  return()
endif()
halflab_emulated_test(gpu_probes_emulated_tests ${probes_gpu_tests}
  experiments/gpu/probes/fma_sweep_test.cpp experiments/gpu/probes/sweep_test.cpp
  LIBRARIES halflab::probes oracle)
halflab_emulated_test(gpu_probes_report_emulated_test experiments/gpu/probes/report_emulated_test.cpp
  LIBRARIES halflab_emulator_programs)
halflab_emulated_test(gpu_throughput_emulated_test experiments/gpu/gpu_throughput_device_test.cpp
  LIBRARIES gpu_throughput_parts)
add_executable(validate_gpu_emulated ${PROJECT_SOURCE_DIR}/experiments/gpu/validate_gpu/main.cpp)
target_link_libraries(validate_gpu_emulated PRIVATE validate_gpu_parts)
halflab_emulate(validate_gpu_emulated)
halflab_test(validate_gpu_emulated_test experiments/gpu/validate_gpu_emulated_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json)
target_compile_definitions(validate_gpu_emulated_test PRIVATE
  HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(validate_gpu_emulated_test validate_gpu_emulated)
