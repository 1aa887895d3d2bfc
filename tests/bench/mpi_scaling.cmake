# What real ranks cost: mpirun -np 2 build/bin/mpi_scaling --mpi
add_executable(mpi_scaling EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/mpi_scaling.cpp)
target_link_libraries(mpi_scaling PRIVATE halflab_experiments)
add_dependencies(mpi_scaling halflab_mpi_openmpi halflab_mpi_mpich)
