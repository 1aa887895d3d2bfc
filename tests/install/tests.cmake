# fp16 as others use it: installed from this build, then used by a project that knows nothing else of this one.
set(prefix ${CMAKE_CURRENT_BINARY_DIR}/install/prefix)
get_target_property(eigen_include_directory Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
get_directory_property(sanitizers LINK_OPTIONS)
list(JOIN sanitizers " " sanitizers)

function(install_test name script)
  add_test(NAME install:${name} COMMAND ${CMAKE_COMMAND} -D PREFIX=${prefix} ${ARGN}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/install/${script}.cmake)
  set_tests_properties(install:${name} PROPERTIES LABELS quick FIXTURES_REQUIRED installed)
endfunction()

install_test("the build installs" install -D BUILD=${PROJECT_BINARY_DIR})
set_tests_properties("install:the build installs" PROPERTIES FIXTURES_REQUIRED "" FIXTURES_SETUP installed)
install_test("every header compiles on its own" headers
  -D COMPILER=${CMAKE_CXX_COMPILER} -D OTHER_INCLUDES=${eigen_include_directory})
# Clang sees conversions that GCC does not.
find_program(HALFLAB_CLANG NAMES clang++ clang++-16 clang++-14)
if(HALFLAB_CLANG)
  install_test("every header compiles on its own with clang" headers
    -D COMPILER=${HALFLAB_CLANG} -D OTHER_INCLUDES=${eigen_include_directory})
else()
  add_test(NAME "install:every header compiles on its own with clang"
    COMMAND ${CMAKE_COMMAND} -E echo "skipped: clang++ was not found")
  set_tests_properties("install:every header compiles on its own with clang" PROPERTIES LABELS quick
    SKIP_REGULAR_EXPRESSION "skipped: ")
endif()
install_test("wrong calls are refused with a reason" refusals -D COMPILER=${CMAKE_CXX_COMPILER})
set(consumer -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/install/consumer -D GENERATOR=${CMAKE_GENERATOR}
  -D COMPILER=${CMAKE_CXX_COMPILER} -D BUILD_TYPE=${CMAKE_BUILD_TYPE} -D INSTRUCTION_SET=${instruction_set}
  "-DFLAGS=${CMAKE_CXX_FLAGS} ${sanitizers}")
install_test("a project finds, builds and runs" consumer ${consumer}
  -D BINARY=${CMAKE_CURRENT_BINARY_DIR}/install/consumer "-DPROGRAMS=headers_only$<SEMICOLON>arrays$<SEMICOLON>coexistence")
set_tests_properties("install:a project finds, builds and runs" PROPERTIES FIXTURES_SETUP consumer)
find_program(HALFLAB_PKG_CONFIG pkg-config)
install_test("pkg-config gives the options" pkg_config -D PKG_CONFIG=${HALFLAB_PKG_CONFIG} -D COMPILER=${CMAKE_CXX_COMPILER}
  "-DFLAGS=${CMAKE_CXX_FLAGS} ${sanitizers}" -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/install/consumer/arrays.cpp
  -D BUILT=${CMAKE_CURRENT_BINARY_DIR}/install/consumer/arrays)
set_tests_properties("install:pkg-config gives the options" PROPERTIES FIXTURES_REQUIRED "installed;consumer"
  SKIP_REGULAR_EXPRESSION "skipped: ")
install_test("a project that contains this one builds and runs" consumer ${consumer} -D HALFLAB=${PROJECT_SOURCE_DIR}
  "-DFLAGS=${CMAKE_CXX_FLAGS} ${sanitizers} -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Werror"
  -D BINARY=${CMAKE_CURRENT_BINARY_DIR}/install/container "-DPROGRAMS=headers_only$<SEMICOLON>coexistence")

# Nothing but a compiler: every library that the rest asks for is hidden.
set(hidden CLI11 nlohmann_json fmt ZLIB doctest Boost Eigen3 benchmark)
list(TRANSFORM hidden REPLACE "(.+)" "-DCMAKE_DISABLE_FIND_PACKAGE_\\1=ON")
add_test(NAME "install:fp16 alone needs no other library" COMMAND ${CMAKE_COMMAND} --fresh -S ${PROJECT_SOURCE_DIR}
  -B ${CMAKE_CURRENT_BINARY_DIR}/install/fp16_alone -G ${CMAKE_GENERATOR} -D CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  -D HALFLAB_FP16_ONLY=ON ${hidden})
set_tests_properties("install:fp16 alone needs no other library" PROPERTIES LABELS quick)

add_test(NAME "install:a compiler that is too old is named" COMMAND ${CMAKE_COMMAND} --fresh -S ${PROJECT_SOURCE_DIR}
  -B ${CMAKE_CURRENT_BINARY_DIR}/install/old_compiler -G ${CMAKE_GENERATOR} -D HALFLAB_FP16_ONLY=ON
  -D CMAKE_CXX_COMPILER_ID_RUN=ON -D CMAKE_CXX_COMPILER_ID=GNU -D CMAKE_CXX_COMPILER_VERSION=11.4.0
  -D CMAKE_CXX_STANDARD_COMPUTED_DEFAULT=17)
set_tests_properties("install:a compiler that is too old is named" PROPERTIES LABELS quick
  PASS_REGULAR_EXPRESSION "Halflab needs GCC 12 or Clang 14")

add_test(NAME "install:programs run where they are moved to" COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/programs_test.sh
  ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/install/programs)
set_tests_properties("install:programs run where they are moved to" PROPERTIES LABELS quick)
