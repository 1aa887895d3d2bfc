# Sets HALFLAB_HAS_CUDA and, if it is ON, enables the language CUDA.
set(HALFLAB_CUDA AUTO CACHE STRING "Build the CUDA kernels: ON, OFF, or AUTO, which is ON where nvcc 12 or newer works")
set_property(CACHE HALFLAB_CUDA PROPERTY STRINGS AUTO ON OFF)

# Returns in `reason` why CUDA cannot be built, or an empty string.
function(halflab_find_nvcc reason)
  find_program(HALFLAB_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT HALFLAB_NVCC)
    set(${reason} "nvcc was not found" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${HALFLAB_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "release ([0-9]+)\\.([0-9]+)")
    set(${reason} "${HALFLAB_NVCC} does not tell its version" PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 LESS 12)
    set(${reason} "${HALFLAB_NVCC} is ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}, 12 or newer is needed" PARENT_SCOPE)
  else()
    set(${reason} "" PARENT_SCOPE)
  endif()
endfunction()

set(HALFLAB_HAS_CUDA OFF)
if(HALFLAB_CUDA)
  halflab_find_nvcc(no_cuda)
  if(NOT no_cuda)
    # Before the language is enabled: otherwise the oldest target that nvcc knows is chosen. One architecture, with its
    # PTX for newer devices.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "The GPUs to compile for")
    endif()
    set(ENV{CUDACXX} ${HALFLAB_NVCC})
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      # CMake 3.25 does not know that nvcc 13 has it.
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      endif()
      set(HALFLAB_HAS_CUDA ON)
    else()
      set(no_cuda "${HALFLAB_NVCC} cannot compile a program")
    endif()
  endif()
  if(no_cuda AND NOT HALFLAB_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "HALFLAB_CUDA=${HALFLAB_CUDA}: ${no_cuda}")
  elseif(no_cuda)
    message(STATUS "CUDA: off (${no_cuda})")
  else()
    message(STATUS "CUDA: ${HALFLAB_NVCC}, for ${CMAKE_CUDA_ARCHITECTURES}")
  endif()
endif()

# Bits decide here as in the C++ sources: nothing is contracted.
set(HALFLAB_CUDA_OPTIONS -fmad=false --expt-relaxed-constexpr)

# The emulator of the tests reads PTX as text. The folder of programs is carried, and its device code so takes a fifth of the
# room; before CUDA 13 not every driver reads it.
if(NOT HALFLAB_GPU_PROGRAMS)
  list(APPEND HALFLAB_CUDA_OPTIONS --no-compress)
elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND HALFLAB_CUDA_OPTIONS --compress-mode=size)
endif()

# For manifests: what compiled the kernels, for what and how; empty without them.
set(HALFLAB_CUDA_BUILD "")
if(HALFLAB_HAS_CUDA)
  string(REPLACE ";" " " HALFLAB_CUDA_BUILD
    "nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}: ${HALFLAB_CUDA_OPTIONS}")
endif()

# halflab_cuda_library(NAME [HOST ...] CUDA ... [SM90A ...] LIBRARIES ...): kernels behind plain C++ headers, halflab::NAME.
# Without CUDA unavailable.cpp stands in for the sources CUDA and SM90A: the library is the same to its users, and says
# that it has no device. SM90A: with instructions (wgmma) that devices of compute capability 9.0 have and no others, later
# ones included.
function(halflab_cuda_library name)
  cmake_parse_arguments(arg "" "" "HOST;CUDA;SM90A;LIBRARIES" ${ARGN})
  if(HALFLAB_HAS_CUDA)
    # The project's options are g++'s; nvcc would refuse them.
    get_directory_property(options COMPILE_OPTIONS)
    list(TRANSFORM options REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    set_directory_properties(PROPERTIES COMPILE_OPTIONS "${options}")
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${HALFLAB_CUDA_OPTIONS};-Xcompiler=-ffp-contract=off,-Wall>")
  endif()
  add_library(halflab_${name} STATIC ${arg_HOST})
  add_library(halflab::${name} ALIAS halflab_${name})
  target_link_libraries(halflab_${name} PUBLIC ${arg_LIBRARIES})
  if(NOT HALFLAB_HAS_CUDA)
    target_sources(halflab_${name} PRIVATE unavailable.cpp)
    return()
  endif()
  target_sources(halflab_${name} PRIVATE ${arg_CUDA})
  if(arg_SM90A)
    add_library(halflab_${name}_sm90a OBJECT ${arg_SM90A})
    set_target_properties(halflab_${name}_sm90a PROPERTIES CUDA_ARCHITECTURES 90a)
    target_link_libraries(halflab_${name}_sm90a PRIVATE ${arg_LIBRARIES})
    target_sources(halflab_${name} PRIVATE $<TARGET_OBJECTS:halflab_${name}_sm90a>)
  endif()
endfunction()
