if(HALFLAB_PYTHON)
  foreach(part documentation errors floating_environment formats functions histogram networks numpy2 operations records scalers sums)
    add_test(NAME python:${part} COMMAND ${CMAKE_COMMAND} -E env
      "PYTHONPATH=${PROJECT_BINARY_DIR}/python" "HALFLAB_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" PYTHONDONTWRITEBYTECODE=1
      ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/python/${part}_test.py)
    set_tests_properties(python:${part} PROPERTIES LABELS quick)
  endforeach()
  set_tests_properties(python:numpy2 PROPERTIES SKIP_REGULAR_EXPRESSION "OK \\(skipped=1\\)")
endif()
