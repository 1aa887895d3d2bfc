# Fuzz targets, one a reader: `ctest -L fuzz` builds them with Clang and runs each for a minute, going on from the last time
# (run.sh). What is listed after SOURCES is instrumented; the rest comes from the libraries.
find_program(HALFLAB_FUZZ_COMPILER NAMES clang++-16 clang++-15 clang++-14 clang++ DOC "Clang with libFuzzer")
add_custom_target(fuzz)
if(HALFLAB_FUZZ_COMPILER)
  add_test(NAME fuzz:build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target fuzz)
  set_tests_properties(fuzz:build PROPERTIES LABELS fuzz FIXTURES_SETUP fuzz)
endif()
function(halflab_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT HALFLAB_FUZZ_COMPILER)
    add_test(NAME fuzz:${name} COMMAND sh -c "echo 'skipped: no clang++ was found; Debian: apt-get install clang-14'; exit 3")
  else()
    set(target ${PROJECT_BINARY_DIR}/tests/bin/fuzz_${name})
    set(libraries "")
    foreach(library ${arg_LIBRARIES})
      list(APPEND libraries $<TARGET_FILE:${library}>)
    endforeach()
    list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
    add_custom_command(OUTPUT ${target}
      COMMAND ${HALFLAB_FUZZ_COMPILER} -std=c++20 -O1 -g -DNDEBUG -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
        -ffp-contract=off -I${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}.cpp ${sources} ${libraries} -lfmt -lz -pthread -o ${target}
      DEPENDS fuzz/${name}.cpp fuzz/fuzz.h fuzz/tensors.h ${sources} ${arg_LIBRARIES}
      COMMENT "Building the fuzz target ${name}" VERBATIM)
    add_custom_target(fuzz_${name} DEPENDS ${target})
    add_dependencies(fuzz fuzz_${name})
    add_test(NAME fuzz:${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run.sh ${name} ${target} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endif()
  set_tests_properties(fuzz:${name} PROPERTIES LABELS fuzz SKIP_RETURN_CODE 3 TIMEOUT 100000 FIXTURES_REQUIRED fuzz)
endfunction()

set(tensor_files experiments/frame/tensor_files)
set(tensor_readers ${tensor_files}/element_reader.cpp ${tensor_files}/element_type.cpp ${tensor_files}/inflate.cpp
  ${tensor_files}/npy.cpp ${tensor_files}/npz.cpp ${tensor_files}/safetensors.cpp ${tensor_files}/stored_tensor.cpp)
foreach(reader npy npz safetensors safetensors_index)
  halflab_fuzz(${reader} SOURCES ${tensor_readers} LIBRARIES halflab_frame)
endforeach()
halflab_fuzz(json SOURCES experiments/frame/json.cpp)
halflab_fuzz(toml SOURCES experiments/frame/toml_file.cpp experiments/frame/files.cpp)
halflab_fuzz(cbor SOURCES experiments/frame/json.cpp)
halflab_fuzz(summation_tree SOURCES experiments/explain_gemm/tree_file.cpp experiments/frame/json.cpp LIBRARIES halflab_frame)
halflab_fuzz(idx SOURCES sim/data/idx.cpp sim/data/gzip_file.cpp sim/data/input_file.cpp LIBRARIES halflab_sim)
halflab_fuzz(checkpoint SOURCES experiments/training/checkpoint.cpp experiments/frame/json.cpp
  LIBRARIES halflab_experiments halflab_frame halflab_sim halflab_fp16_bulk halflab_names)
halflab_fuzz(gradient_record SOURCES experiments/training/gradient_record.cpp
  LIBRARIES halflab_experiments halflab_frame halflab_sim halflab_fp16_bulk halflab_names)
halflab_fuzz(number SOURCES fp16/names.cpp)
halflab_fuzz(hex_codes SOURCES tools/halflab/validate/code_file.cpp LIBRARIES halflab_frame)
halflab_fuzz(selftest_hashes SOURCES tools/halflab/selftest/hash_table.cpp)
halflab_fuzz(cpu_results SOURCES experiments/cpu/instructions/result_file.cpp
  LIBRARIES halflab_validation halflab_experiments halflab_frame halflab_fp16_bulk)
halflab_fuzz(shards SOURCES experiments/validation/shards.cpp LIBRARIES halflab_validation halflab_experiments halflab_frame)
halflab_fuzz(csv SOURCES experiments/validation/record_files.cpp experiments/validation/proofs.cpp
  LIBRARIES halflab_validation halflab_experiments halflab_frame)
halflab_fuzz(gpu_record SOURCES experiments/gpu/gpu_status/merge.cpp
  LIBRARIES gpu_status_parts halflab_validation halflab_experiments halflab_frame)
halflab_fuzz(network SOURCES experiments/frame/toml_file.cpp experiments/frame/files.cpp sim/sizing/network_description.cpp
  sim/sizing/network_operations.cpp sim/sizing/network_reader.cpp
  LIBRARIES halflab_sim halflab_fp16_bulk halflab_names)
halflab_fuzz(replay SOURCES tools/halflab/replay/records.cpp experiments/training/gradient_record.cpp
  LIBRARIES halflab_experiments halflab_frame halflab_sim halflab_fp16_bulk halflab_names)
