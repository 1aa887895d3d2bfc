# Instructions of processors: their models, what this one and QEMU execute, and the programs that do.
halflab_test(validate_cpu_test
  experiments/cpu/instructions_test.cpp
  experiments/cpu/riscv64_test.cpp
  experiments/cpu/x86_rules_test.cpp
  LIBRARIES halflab_cpu_instructions)
halflab_test(cpu_status_test experiments/cpu/cpu_status_test.cpp
  LIBRARIES cpu_status_parts nlohmann_json::nlohmann_json)
target_compile_definitions(cpu_status_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}")
halflab_test(validate_cpu_program_test experiments/cpu/validate_cpu_program_test.cpp
  LIBRARIES halflab_cpu_instructions nlohmann_json::nlohmann_json)
halflab_test(validate_cpu_emulated_test experiments/cpu/emulated_test.cpp
  LIBRARIES halflab_cpu_instructions nlohmann_json::nlohmann_json LABEL qemu)
if(HALFLAB_LINKS_STATICALLY AND NOT HALFLAB_SANITIZE)
  target_compile_definitions(validate_cpu_program_test PRIVATE HALFLAB_STATIC_PROGRAMS)
endif()
foreach(test validate_cpu_program_test validate_cpu_emulated_test)
  target_compile_definitions(${test} PRIVATE HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  add_dependencies(${test} validate_cpu)
endforeach()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  add_test(NAME "validate_cpu: half instructions of x86-64 in Bochs" COMMAND
    ${CMAKE_CURRENT_LIST_DIR}/x86_64_in_bochs.sh ${PROJECT_BINARY_DIR})
  set_tests_properties("validate_cpu: half instructions of x86-64 in Bochs" PROPERTIES LABELS bochs SKIP_RETURN_CODE 3)
endif()
