# Builds the PROGRAMS of the project in SOURCE in the new folder BINARY, against the package under PREFIX or with the
# repository HALFLAB as a part of it, and holds what they print against what is right.
file(REMOVE_RECURSE ${BINARY})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${PREFIX} -D HALFLAB=${HALFLAB} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  -D INSTRUCTION_SET=${INSTRUCTION_SET}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D CMAKE_CXX_FLAGS=${FLAGS}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BINARY} --target ${PROGRAMS} COMMAND_ERROR_IS_FATAL ANY)

set(expected_headers_only [[
1/3 = 0.3332519531, upwards 0.3334960938
an MXFP4 number has 4.25 bits
exp(3.05957) = 0x1.551826p+4
]])
set(expected_arrays [[
3c00 0000 7bff 7c00 flushed 1, overflowed 1
e = 4170
19 22 43 50
]])
set(expected_coexistence "65536 of 65536 codes have the same value\n")
foreach(program ${PROGRAMS})
  execute_process(COMMAND ${BINARY}/${program} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output STREQUAL expected_${program})
    message(FATAL_ERROR "${program} printed:\n${output}instead of:\n${expected_${program}}")
  endif()
endforeach()
