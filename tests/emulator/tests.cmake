halflab_test(emulator_ptx_tests
  emulator/integer_instructions_test.cpp emulator/floating_instructions_test.cpp
  emulator/control_instructions_test.cpp emulator/memory_instructions_test.cpp emulator/warp_instructions_test.cpp
  emulator/mma_instructions_test.cpp emulator/wgmma_instructions_test.cpp
  emulator/asynchronous_copy_instructions_test.cpp
  LIBRARIES halflab::ptx_interpreter)
if(NOT HALFLAB_HAS_CUDA)
  return()
endif()
halflab_emulated_test(emulator_runtime_tests emulator/runtime_test.cpp LIBRARIES halflab_emulator_programs)

# The library's own tests for a GPU, which are shorter there.
halflab_emulated_test(fp16_cuda_emulated_tests fp16/cuda/gemm_gpu_test.cpp fp16/cuda/reductions_gpu_test.cpp
  LIBRARIES halflab::fp16_cuda halflab::fp16_bulk)
halflab_emulated_test(sim_cuda_emulated_tests sim/cuda/streaming_gpu_test.cpp LIBRARIES halflab::fp16_cuda halflab::sim)
