# The page, in a browser, and its engine in WebAssembly beside the same sources natively: `ctest -L page`. Skipped without what
# `./lab page` installs, Node.js, Chromium (Debian: chromium-driver) or python3-selenium.
find_program(HALFLAB_WASM_LINKER NAMES wasm-ld-16 wasm-ld-19 DOC "The linker of Clang for WebAssembly")
find_program(HALFLAB_NODE NAMES node nodejs DOC "Node.js, which runs WebAssembly in tests")
find_program(HALFLAB_ESBUILD esbuild DOC "esbuild, which puts the scripts of the page together")
set(engine_module ${PROJECT_BINARY_DIR}/page/engine.wasm)
set(training_module ${PROJECT_BINARY_DIR}/page/training.wasm)
add_custom_target(page_engine
  COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/tools/page -B ${PROJECT_BINARY_DIR}/page -G Ninja
    -DCMAKE_TOOLCHAIN_FILE=${PROJECT_SOURCE_DIR}/tools/page/wasm.cmake
  COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR}/page
  COMMENT "Building the engine of the page for WebAssembly" VERBATIM)
include(${PROJECT_SOURCE_DIR}/tools/page/engine.cmake)
list(FILTER engine_sources INCLUDE REGEX ^tools/page/)
list(TRANSFORM engine_sources PREPEND ${PROJECT_SOURCE_DIR}/)
add_executable(native_engine EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/native_engine.cpp ${engine_sources})
target_link_libraries(native_engine PRIVATE halflab_command halflab::fp16_bulk nlohmann_json::nlohmann_json)
target_compile_options(native_engine PRIVATE -O2)
add_executable(native_training EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/native_training.cpp
  ${PROJECT_SOURCE_DIR}/tools/page/engine/answer.cpp ${PROJECT_SOURCE_DIR}/tools/page/engine/training.cpp)
target_link_libraries(native_training PRIVATE halflab::sim halflab::fp16_bulk nlohmann_json::nlohmann_json)
set_target_properties(native_engine native_training PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
set(page ${PROJECT_BINARY_DIR}/page/halflab.html)
add_custom_target(page_html COMMAND ${PROJECT_SOURCE_DIR}/tools/page/build.sh ${PROJECT_BINARY_DIR}/page ${page} VERBATIM)
add_dependencies(page_html page_engine)
file(GLOB in_browser CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/*_test.py)
list(TRANSFORM in_browser REPLACE _test.py$ "")
list(TRANSFORM in_browser PREPEND browser_ OUTPUT_VARIABLE browser_tests)
if(HALFLAB_WASM_LINKER AND HALFLAB_NODE AND HALFLAB_ESBUILD)
  add_test(NAME page:build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target page_html native_engine
    native_training)
  set_tests_properties(page:build PROPERTIES LABELS page FIXTURES_SETUP page)
  add_test(NAME page:engine COMMAND ${HALFLAB_NODE} ${CMAKE_CURRENT_LIST_DIR}/engine_test.mjs ${engine_module}
    $<TARGET_FILE:native_engine>)
  add_test(NAME page:training COMMAND ${HALFLAB_NODE} ${CMAKE_CURRENT_LIST_DIR}/training_test.mjs ${training_module}
    $<TARGET_FILE:native_training>)
  foreach(test ${in_browser})
    add_test(NAME page:browser_${test} COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/page_test.py ${page}
      ${PROJECT_BINARY_DIR}/page/screenshots ${test}_test)
    set_tests_properties(page:browser_${test} PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
  # On two idle cores it is as fast as it may be; a machine with other work to do may take twenty times as long.
  add_test(NAME page:speed COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/speed.py ${page}
    $<TARGET_FILE:native_training> 20)
  set_tests_properties(page:speed PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1 RUN_SERIAL ON)
else()
  foreach(test engine training speed ${browser_tests})
    add_test(NAME page:${test} COMMAND sh -c "echo 'skipped: ./lab page installs what is missing, but nodejs'; exit 3")
  endforeach()
endif()
list(TRANSFORM browser_tests PREPEND page: OUTPUT_VARIABLE tests_of_page)
set_tests_properties(page:engine page:training page:speed ${tests_of_page} PROPERTIES
  LABELS page SKIP_RETURN_CODE 3 FIXTURES_REQUIRED page)
