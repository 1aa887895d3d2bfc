# The engine of the page in WebAssembly beside the same sources natively: `ctest -L page`. Skipped without Clang's wasm32
# target (Debian: clang-16 lld-16 wasi-libc libc++-16-dev-wasm32 libclang-rt-16-dev-wasm32) or Node.js.
find_program(HALFLAB_WASM_LINKER wasm-ld-16 DOC "The linker of Clang 16 for WebAssembly")
find_program(HALFLAB_NODE NAMES node nodejs DOC "Node.js, which runs WebAssembly in tests")
set(engine_module ${PROJECT_BINARY_DIR}/page/engine.wasm)
add_custom_target(page_engine
  COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/tools/page -B ${PROJECT_BINARY_DIR}/page -G Ninja
    -DCMAKE_TOOLCHAIN_FILE=${PROJECT_SOURCE_DIR}/tools/page/wasm.cmake
  COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR}/page
  COMMENT "Building the engine of the page for WebAssembly" VERBATIM)
add_executable(native_engine EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/native_engine.cpp
  ${PROJECT_SOURCE_DIR}/tools/page/engine/answer.cpp ${PROJECT_SOURCE_DIR}/tools/page/engine/hashes.cpp
  ${PROJECT_SOURCE_DIR}/tools/page/engine/numbers.cpp)
target_link_libraries(native_engine PRIVATE halflab_command halflab::fp16_bulk nlohmann_json::nlohmann_json)
target_compile_options(native_engine PRIVATE -O2)
set_target_properties(native_engine PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
if(HALFLAB_WASM_LINKER AND HALFLAB_NODE)
  add_test(NAME page:build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target page_engine native_engine)
  set_tests_properties(page:build PROPERTIES LABELS page FIXTURES_SETUP page)
  add_test(NAME page:engine COMMAND ${HALFLAB_NODE} ${CMAKE_CURRENT_LIST_DIR}/engine_test.mjs ${engine_module}
    $<TARGET_FILE:native_engine>)
else()
  add_test(NAME page:engine COMMAND sh -c "echo 'skipped: needs Node.js and clang-16 lld-16 wasi-libc libc++-16-dev-wasm32'; exit 3")
endif()
set_tests_properties(page:engine PROPERTIES LABELS page SKIP_RETURN_CODE 3 FIXTURES_REQUIRED page)
