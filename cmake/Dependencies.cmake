# The libraries the programs are built with; the tests look for their own.
set(ZLIB_USE_STATIC_LIBS ${HALFLAB_GPU_PROGRAMS})
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)

# Programs for other machines, of which each has another version of these or none: fmt and toml++ from their headers.
if(HALFLAB_GPU_PROGRAMS OR HALFLAB_PACKAGE)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
  set_target_properties(tomlplusplus::tomlplusplus PROPERTIES INTERFACE_COMPILE_OPTIONS -DTOML_HEADER_ONLY=1)
endif()
# And all else linked in but the C library.
if(HALFLAB_GPU_PROGRAMS)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed)
endif()
