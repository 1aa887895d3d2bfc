file(GLOB command_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/halflab/*_test.cpp)
halflab_test(halflab_command_test ${command_tests}
  LIBRARIES halflab_command nlohmann_json::nlohmann_json ZLIB::ZLIB mpfr gmp)
target_compile_definitions(halflab_command_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}")
add_test(NAME "halflab: bash completes its commands and options" COMMAND
  ${CMAKE_CURRENT_LIST_DIR}/halflab/completion_test.sh ${PROJECT_SOURCE_DIR}/tools/halflab/completion.bash
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties("halflab: bash completes its commands and options" PROPERTIES LABELS quick)
add_test(NAME "halflab: files that numpy and safetensors write" COMMAND sh -c
  "command -v \"\${HALFLAB_TORCH_PYTHON:=python3}\" >/dev/null || exit 3; exec \"$HALFLAB_TORCH_PYTHON\" '${CMAKE_CURRENT_LIST_DIR}/halflab/written_files_test.py' '$<TARGET_FILE:halflab>'")
set_tests_properties("halflab: files that numpy and safetensors write" PROPERTIES LABELS "quick;torch" SKIP_RETURN_CODE 3
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
# The bits of the release, on every vector path that the processor has.
foreach(path portable avx2_f16c avx512 neon neon_fp16)
  add_test(NAME "halflab: selftest of numbers on the path ${path}" COMMAND halflab selftest --numbers)
  set_tests_properties("halflab: selftest of numbers on the path ${path}" PROPERTIES LABELS quick
    ENVIRONMENT HALFLAB_VECTOR_PATH=${path} SKIP_REGULAR_EXPRESSION "is not available on this processor")
endforeach()
add_test(NAME "halflab: selftest with trainings and the demo" COMMAND halflab selftest)
set_tests_properties("halflab: selftest with trainings and the demo" PROPERTIES LABELS quick COST 100
  FAIL_REGULAR_EXPRESSION "[Nn]ot run")
if(NOT CMAKE_CROSSCOMPILING)
  set_property(TEST "halflab: selftest with trainings and the demo" PROPERTY TIMEOUT 60)
endif()
if(HALFLAB_PYTHON)
  foreach(part checks documentation errors floating_environment formats functions histogram networks numpy2 operations random_calls records report report_arrays report_skips scalers sums tensors)
    add_test(NAME python:${part} COMMAND ${CMAKE_COMMAND} -E env
      "PYTHONPATH=${PROJECT_BINARY_DIR}/python" "HALFLAB_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" PYTHONDONTWRITEBYTECODE=1
      ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/python/${part}_test.py)
    set_tests_properties(python:${part} PROPERTIES LABELS quick)
  endforeach()
  add_test(NAME python:solutions COMMAND ${CMAKE_COMMAND} -E env "PYTHONPATH=${PROJECT_BINARY_DIR}/python" PYTHONDONTWRITEBYTECODE=1
    ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/notebooks/solutions.py)
  set_tests_properties(python:solutions PROPERTIES LABELS quick)
  set_tests_properties(python:numpy2 PROPERTIES SKIP_REGULAR_EXPRESSION "OK \\(skipped=1\\)")
  # With the Python that HALFLAB_TORCH_PYTHON names, and skipped where that has no torch.
  foreach(part arrays autocast causes counts ddp emulate gpu input ledger memory networks page report reveal scaler tensors watch)
    add_test(NAME torch:${part} COMMAND sh -c
      "command -v \"\${HALFLAB_TORCH_PYTHON:=python3}\" >/dev/null || exit 3; exec \"$HALFLAB_TORCH_PYTHON\" '${CMAKE_CURRENT_LIST_DIR}/python/torch/${part}_test.py'")
    set_tests_properties(torch:${part} PROPERTIES LABELS "quick;torch" SKIP_RETURN_CODE 3 ENVIRONMENT
      "PYTHONPATH=${PROJECT_BINARY_DIR}/python;HALFLAB_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
  set_tests_properties(torch:ddp torch:gpu torch:networks PROPERTIES LABELS torch COST 100)  # half a minute and more
endif()
