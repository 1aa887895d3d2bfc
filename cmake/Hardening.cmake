# What Debian hardens its programs with (dpkg-buildflags, hardening=+all): none of it changes how a number is computed. Libraries too are
# position-independent, so that they can be parts of a shared one, and nothing that is compiled names the folder it was compiled in.
add_compile_options(-fPIC -fstack-protector-strong -Wformat -Werror=format-security
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
if(NOT CMAKE_BUILD_TYPE STREQUAL Debug)
  add_compile_options(-D_FORTIFY_SOURCE=2)  # which needs an optimizer
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>")
set(HALFLAB_LINKS_STATICALLY OFF)
