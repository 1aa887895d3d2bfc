# gpu_programs: the folder that `./lab gpu` carries to a machine with a GPU and runs there, stripped.
find_package(doctest REQUIRED)

file(GLOB gpu_test_sources CONFIGURE_DEPENDS
  tests/fp16/cuda/*_gpu_test.cpp tests/sim/cuda/*_gpu_test.cpp tests/experiments/gpu/probes/*_gpu_test.cpp)
add_executable(gpu_tests ${gpu_test_sources} tests/main.cpp)
target_link_libraries(gpu_tests PRIVATE doctest::doctest halflab::probes halflab::sim)

# The larger part of each program, which these neither time nor wait for: the simulator's registries, options, records.
target_compile_options(halflab_sim PRIVATE -Os)
target_compile_options(halflab_frame PRIVATE -Os)
target_compile_options(halflab_experiments PRIVATE -Os)

set(programs gpu_tests gpu_status validate_gpu gpu_throughput explain_gemm)
install(TARGETS ${programs} DESTINATION . COMPONENT gpu_programs EXCLUDE_FROM_ALL)
set(folder ${PROJECT_BINARY_DIR}/programs)
add_custom_target(gpu_programs
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component gpu_programs --prefix ${folder} --strip
  COMMAND ${folder}/gpu_status --build ${folder}/build.json
  DEPENDS ${programs}
  VERBATIM)
