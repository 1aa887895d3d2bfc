# Builds the project in SOURCE against the package under PREFIX, in the new folder BINARY, and holds what its programs
# print against what is right.
file(REMOVE_RECURSE ${BINARY})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D CMAKE_CXX_FLAGS=${FLAGS}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BINARY} COMMAND_ERROR_IS_FATAL ANY)

function(expect_output program expected)
  execute_process(COMMAND ${BINARY}/${program} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${program} printed:\n${output}instead of:\n${expected}")
  endif()
endfunction()

expect_output(headers_only [[
1/3 = 0.3332519531, upwards 0.3334960938
an MXFP4 number has 4.25 bits
exp(3.05957) = 0x1.551826p+4
]])
expect_output(arrays [[
3c00 0000 7bff 7c00 flushed 1, overflowed 1
e = 4170
19 22 43 50
]])
