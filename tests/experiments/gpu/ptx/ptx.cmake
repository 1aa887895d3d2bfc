# One test for each source and each target that has its instructions: it compiles the source to PTX and holds the
# instructions of every kernel to instructions.txt. Needs nvcc and no GPU; the checker's own test needs neither.
find_program(SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT SYSTEM_PYTHON)
  find_program(SYSTEM_PYTHON python3 REQUIRED)
endif()
add_test(NAME check_ptx_test COMMAND ${SYSTEM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_ptx_test.py)
set_tests_properties(check_ptx_test PROPERTIES LABELS quick)
if(NOT HALFLAB_HAS_CUDA)
  return()
endif()
# Every function of cuda_fp16.h is in one of the lists, or left out for a stated reason.
add_test(NAME cuda_fp16_inventory
  COMMAND ${SYSTEM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/inventory.py
    --header ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}/cuda_fp16.h
    --intrinsics ${PROJECT_SOURCE_DIR}/experiments/gpu/probes/intrinsics.h)
set_tests_properties(cuda_fp16_inventory PROPERTIES LABELS quick)
find_program(CUOBJDUMP cuobjdump HINTS /usr/local/cuda/bin)
execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE known_targets)

set(since_sm_75 75 80 86 89 90 90a 100 120)
set(since_sm_80 80 86 89 90 90a 100 120)
set(only_sm_90a 90a)
# source, targets, kernels whose machine code must have no fused multiply-add
set(probes experiments/gpu/probes)
set(kernels fp16/cuda)
set(ptx_table
  "${probes}/sweep_arithmetic|since_sm_75|__hadd_rn,__hsub_rn,__hmul_rn"
  "${probes}/sweep_fma|since_sm_75|"
  "${probes}/sweep_operators|since_sm_75|"
  "${probes}/sweep_moves|since_sm_75|"
  "${probes}/sweep_atomics|since_sm_75|"
  "${probes}/fma_sweep|since_sm_75|"
  "${probes}/sweep_comparison|since_sm_75|"
  "${probes}/sweep_conversion|since_sm_75|"
  "${probes}/sweep_integral|since_sm_75|"
  "${probes}/tabulate|since_sm_75|"
  "${kernels}/reductions|since_sm_75|SumInput,DotInput"
  "${kernels}/streaming|since_sm_75|"
  "${kernels}/histogram|since_sm_75|"
  "${kernels}/gemm_fma_chain|since_sm_75|"
  "${probes}/tensor_core_m16n8k8|since_sm_75|"
  "${probes}/tensor_core_m16n8k16|since_sm_80|"
  "${probes}/tensor_core_wmma|since_sm_75|"
  "${probes}/tensor_core_wgmma|only_sm_90a|"
  "${kernels}/gemm_wmma|since_sm_75|"
  "${kernels}/gemm_mma_sync|since_sm_75|"
  "${kernels}/gemm_wgmma|only_sm_90a|")

foreach(row ${ptx_table})
  string(REPLACE "|" ";" cells "${row}")
  list(GET cells 0 path)
  cmake_path(GET path FILENAME source)
  list(GET cells 1 targets)
  list(GET cells 2 unfused)
  string(REPLACE "," ";" unfused "${unfused}")
  foreach(target ${${targets}})
    string(REGEX REPLACE "[a-z]" "" capability ${target})
    if(NOT known_targets MATCHES "compute_${capability}\n")
      continue()
    endif()
    add_test(NAME ptx:${source}:sm_${target}
      COMMAND ${SYSTEM_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/check_ptx.py
        --table ${CMAKE_CURRENT_LIST_DIR}/instructions.txt --source ${PROJECT_SOURCE_DIR}/${path}.cu
        --target ${target} --nvcc ${CMAKE_CUDA_COMPILER} "--options=-std=c++20;${HALFLAB_CUDA_OPTIONS}"
        --include ${PROJECT_SOURCE_DIR} "--cuobjdump=$<$<BOOL:${CUOBJDUMP}>:${CUOBJDUMP}>" --unfused ${unfused})
    set_tests_properties(ptx:${source}:sm_${target} PROPERTIES LABELS ptx)
  endforeach()
endforeach()
