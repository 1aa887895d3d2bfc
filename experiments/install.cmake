# The experiments where `halflab run` finds them, and what they read. What writes the pages of a checkout stays with it.
get_property(programs GLOBAL PROPERTY HALFLAB_EXPERIMENTS)
list(TRANSFORM programs REPLACE ".*/" "")
list(REMOVE_ITEM programs pages)
halflab_install(TARGETS ${programs} RUNTIME DESTINATION libexec/halflab)
if(TARGET validate_cpu_${CMAKE_SYSTEM_PROCESSOR})
  halflab_install(TARGETS validate_cpu_${CMAKE_SYSTEM_PROCESSOR} RUNTIME DESTINATION libexec/halflab)
endif()
if(NOT HALFLAB_PACKAGE)  # a package would need every MPI library that was there when it was made
  halflab_install(TARGETS halflab_mpi_openmpi halflab_mpi_mpich LIBRARY DESTINATION lib/halflab)
else()
  halflab_install(TARGETS halflab_common LIBRARY DESTINATION libexec/halflab)
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()

file(GLOB networks CONFIGURE_DEPENDS networks/*.toml)
halflab_install(FILES ${networks} DESTINATION share/halflab/networks)
file(GLOB records CONFIGURE_DEPENDS LIST_DIRECTORIES true records/cpu_* records/gpu_*)
halflab_install(DIRECTORY ${records} DESTINATION share/halflab/records)

# Programs of the build, and tests, find the same where they look.
foreach(prefix ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/tests)
  file(MAKE_DIRECTORY ${prefix}/share/halflab)
  foreach(data networks records)
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${data} ${prefix}/share/halflab/${data} SYMBOLIC)
  endforeach()
endforeach()
