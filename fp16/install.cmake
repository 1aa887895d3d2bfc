# What `cmake --install` gives to others: find_package(halflab) with halflab::fp16 and halflab::fp16_bulk.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME fp16)
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/halflab)

# All headers but those that only our own translation units include.
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halflab/fp16
  FILES_MATCHING PATTERN "*.h"
  PATTERN cuda EXCLUDE
  PATTERN vector EXCLUDE
  PATTERN names.h EXCLUDE)
install(FILES vector/bulk_kernels.h vector/bulk_templates.h vector/threads.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halflab/fp16/vector)

set_target_properties(halflab_fp16 PROPERTIES EXPORT_NAME fp16)
set_target_properties(halflab_fp16_bulk PROPERTIES EXPORT_NAME fp16_bulk)
install(TARGETS halflab_fp16 halflab_fp16_bulk EXPORT halflab
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT halflab NAMESPACE halflab:: FILE halflabTargets.cmake DESTINATION ${package_directory})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/halflabConfig.cmake.in halflabConfig.cmake
  INSTALL_DESTINATION ${package_directory} NO_SET_AND_CHECK_MACRO)
# As docs/stability.md has it: from 1.0.0 on a newer minor version serves.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(halflabConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/halflabConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/halflabConfigVersion.cmake
  DESTINATION ${package_directory})
# The same for those who build without CMake; the prefix follows from where the file lies.
set(from_prefix ${CMAKE_INSTALL_LIBDIR})
if(IS_ABSOLUTE ${from_prefix})
  cmake_path(RELATIVE_PATH from_prefix BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${from_prefix}/pkgconfig
  OUTPUT_VARIABLE prefix_from_pkgconfig)
configure_file(${PROJECT_SOURCE_DIR}/cmake/halflab.pc.in halflab.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/halflab.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/halflab)
