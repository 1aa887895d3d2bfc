// CMake precompiles a header for the sources of a target: this one stands for those of the experiments that compute.
