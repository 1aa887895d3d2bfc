# Three Debian packages by CPack: build.sh beside this file makes them.
include(GNUInstallDirs)
set(HALFLAB_MAINTAINER "The Halflab developers <halflab@example.org>" CACHE STRING "The maintainer that packages name")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME halflab)
set(CPACK_PACKAGE_CONTACT "${HALFLAB_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 0upstream1)  # before any of Debian's own
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # else it stands before the synopsis of each package
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/experiments)

# halflab_debian_package(COMPONENT NAME SECTION "DEPENDS" "DESCRIPTION"): the first line of a description is its synopsis.
function(halflab_debian_package component name section depends description)
  string(TOUPPER ${component} key)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/${name})
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/copyright ${PROJECT_BINARY_DIR}/debian/changelog.gz
    ${PROJECT_BINARY_DIR}/debian/changelog.Debian.gz DESTINATION ${documents} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/debian)
string(TIMESTAMP day "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH's where that is set
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/debian/changelog.Debian CONTENT [[
halflab (@PROJECT_VERSION@-@CPACK_DEBIAN_PACKAGE_RELEASE@) unstable; urgency=medium

  * Release @PROJECT_VERSION@; its changes are in changelog.gz.

 -- @HALFLAB_MAINTAINER@  @day@
]] @ONLY)
file(COPY_FILE ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_BINARY_DIR}/debian/changelog)
execute_process(COMMAND gzip -9nf changelog changelog.Debian WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/debian
  COMMAND_ERROR_IS_FATAL ANY)

halflab_debian_package(programs halflab science ""
"half precision: what it does to tensors and to training
The command halflab answers for files of tensors what FP16, FP8 or FP4 loses
of them, which loss scale keeps them, and whether a kernel's results are the
exact ones rounded once. Its subcommand run starts the experiments: which
gradients of a network vanish in half precision, and what loss scaling is
worth. Results are the same to the last bit on any number of threads.")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS "gnuplot-nox | gnuplot, fonts-dejavu-core")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "libhalflab-dev, python3-halflab, qemu-user")
halflab_debian_package(fp16 libhalflab-dev libdevel ""
"half precision with correct rounding, for C++20
Formats from FP64 to FP4 with seven roundings, flags, arithmetic, correctly
rounded functions, sums and products in stated orders, and arrays of them by
the vector instructions of x86-64 and AArch64, with the same bits. There are
two targets for find_package(halflab): halflab::fp16, which is headers alone,
and halflab::fp16_bulk.")
if(HALFLAB_PYTHON)
  string(REGEX MATCH "[0-9]+$" minor ${HALFLAB_PYTHON_VERSION})
  math(EXPR next "${minor} + 1")
  halflab_debian_package(python python3-halflab python "python3 (>= ${HALFLAB_PYTHON_VERSION}), python3 (<< 3.${next}), python3-numpy"
"half precision with correct rounding, for Python
Formats, roundings, operations, sums, loss scalers and the memory of described
networks as functions over numpy's arrays, records of Halflab's experiments,
and, where PyTorch is installed, a watch over a training loop that says which
steps were skipped and why.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS halflab)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch, jupyter-notebook, python3-matplotlib")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${debian}/postinst ${debian}/prerm)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/notebooks/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-halflab/examples
    COMPONENT python EXCLUDE_FROM_ALL FILES_MATCHING PATTERN *.ipynb PATTERN *.py PATTERN folding EXCLUDE)
endif()

# The manual page is what the program says of itself.
find_program(HALFLAB_HELP2MAN help2man)
if(HALFLAB_HELP2MAN)
  set(manual ${PROJECT_BINARY_DIR}/debian/halflab.1)
  add_custom_command(OUTPUT ${manual}.gz
    COMMAND ${HALFLAB_HELP2MAN} --no-info --name "what half precision does to tensors and to training"
      --output ${manual} $<TARGET_FILE:halflab>
    COMMAND gzip -9nf ${manual}
    DEPENDS halflab
    VERBATIM)
  add_custom_target(halflab_manual ALL DEPENDS ${manual}.gz)
  install(FILES ${manual}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs EXCLUDE_FROM_ALL)
endif()
include(CPack)
