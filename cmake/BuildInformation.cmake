# halflab_add_build_information(TARGET) gives TARGET the implementation of experiments/frame/build_information.h. What configuring
# knows is written once; the git revision is read at every build, and a change of it compiles one small file.
function(halflab_add_build_information target)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  get_directory_property(options COMPILE_OPTIONS)
  list(JOIN options " " options)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${options}" compiler_flags)
  string(REGEX REPLACE "-ffile-prefix-map=[^ ]*" "" compiler_flags "${compiler_flags}")  # names folders, decides nothing
  string(REGEX REPLACE " +" " " compiler_flags "${compiler_flags}")

  set(directory ${PROJECT_BINARY_DIR}/build_information)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/build_information.cpp.in ${directory}/build_information.cpp @ONLY)
  target_sources(${target} PRIVATE ${directory}/build_information.cpp)

  find_program(GIT_EXECUTABLE git)
  add_custom_target(${target}_git_revision
    COMMAND ${CMAKE_COMMAND} -D "GIT_EXECUTABLE=${GIT_EXECUTABLE}" -D "SOURCE_DIRECTORY=${PROJECT_SOURCE_DIR}"
      -D "HEADER=${directory}/git_revision.h" -P ${PROJECT_SOURCE_DIR}/cmake/git_revision.cmake
    BYPRODUCTS ${directory}/git_revision.h
    COMMENT "Reading the git revision"
    VERBATIM)
  add_dependencies(${target} ${target}_git_revision)
endfunction()
