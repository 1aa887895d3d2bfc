# Training by real ranks. Each library's module is planted with mistakes once more; MPI itself is started by the tests.
set(mpi_libraries "")
foreach(library openmpi mpich)
  if(NOT HALFLAB_MPI_${library}_FOUND)
    continue()
  endif()
  list(APPEND mpi_libraries ${library})
  set(planted planted_mpi_${library})
  add_library(${planted}_sound OBJECT ${PROJECT_SOURCE_DIR}/experiments/training/mpi/module.cpp)
  target_compile_definitions(${planted}_sound PRIVATE halflab_mpi_module=halflab_sound_mpi_module
    HALFLAB_MPI_VENDOR="planted" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(${planted}_sound PRIVATE PkgConfig::HALFLAB_MPI_${library})
  set_target_properties(${planted}_sound PROPERTIES POSITION_INDEPENDENT_CODE ON)
  add_library(${planted} MODULE ${CMAKE_CURRENT_LIST_DIR}/planted_module.cpp $<TARGET_OBJECTS:${planted}_sound>)
  target_link_libraries(${planted} PRIVATE PkgConfig::HALFLAB_MPI_${library})
  set_target_properties(${planted} PROPERTIES PREFIX "" OUTPUT_NAME halflab_mpi_${library}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/planted_mpi)
  # One that cuts every message of more than seven numbers or bytes.
  add_library(cutting_mpi_${library} MODULE ${PROJECT_SOURCE_DIR}/experiments/training/mpi/module.cpp)
  target_compile_definitions(cutting_mpi_${library} PRIVATE HALFLAB_MPI_MOST_AT_ONCE=7
    HALFLAB_MPI_VENDOR="cutting" OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(cutting_mpi_${library} PRIVATE PkgConfig::HALFLAB_MPI_${library})
  set_target_properties(cutting_mpi_${library} PROPERTIES PREFIX "" OUTPUT_NAME halflab_mpi_${library}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/cutting_mpi)
endforeach()
foreach(library openmpi mpich)
  add_library(unavailable_mpi_${library} MODULE ${PROJECT_SOURCE_DIR}/experiments/training/mpi/unavailable.cpp)
  set_target_properties(unavailable_mpi_${library} PROPERTIES PREFIX "" OUTPUT_NAME halflab_mpi_${library}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/unavailable_mpi)
endforeach()

add_executable(all_reduce_grid ${CMAKE_CURRENT_LIST_DIR}/all_reduce_grid.cpp)
target_link_libraries(all_reduce_grid PRIVATE halflab_experiments)
set_target_properties(all_reduce_grid PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
file(CREATE_LINK ${PROJECT_BINARY_DIR}/lib ${PROJECT_BINARY_DIR}/tests/lib SYMBOLIC)  # where it looks for the modules
add_dependencies(all_reduce_grid halflab_mpi_openmpi halflab_mpi_mpich)

function(mpi_test name label)
  string(REPLACE ";" "," names "${mpi_libraries}")
  halflab_test(${name} ${ARGN} LABEL ${label} LIBRARIES nlohmann_json::nlohmann_json)
  target_compile_definitions(${name} PRIVATE HALFLAB_MPI_LIBRARIES="${names}"
    HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    HALFLAB_ALL_REDUCE_GRID="$<TARGET_FILE:all_reduce_grid>"
    HALFLAB_PLANTED_MODULES="${PROJECT_BINARY_DIR}/tests/planted_mpi"
    HALFLAB_CUTTING_MODULES="${PROJECT_BINARY_DIR}/tests/cutting_mpi"
    HALFLAB_UNAVAILABLE_MODULES="${PROJECT_BINARY_DIR}/tests/unavailable_mpi")
  add_dependencies(${name} training all_reduce_grid unavailable_mpi_openmpi unavailable_mpi_mpich)
  foreach(library ${mpi_libraries})
    add_dependencies(${name} planted_mpi_${library} cutting_mpi_${library})
  endforeach()
endfunction()
mpi_test(mpi_training_test mpi experiments/training/mpi/mpi_training_test.cpp
  experiments/training/mpi/mpi_interruption_test.cpp experiments/training/mpi/mpi_grid_test.cpp
  experiments/training/mpi/mpi_scaling_test.cpp)
add_dependencies(mpi_training_test mpi_scaling)
mpi_test(mpi_full_grid_test exhaustive experiments/training/mpi/mpi_grid_test.cpp)
target_compile_definitions(mpi_full_grid_test PRIVATE HALFLAB_FULL_GRID)
mpi_test(mpi_slurm_test slurm experiments/training/mpi/mpi_slurm_test.cpp)
target_compile_definitions(mpi_slurm_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}")
