# CMake's toolchain file for WebAssembly by Debian's packages: clang-16 lld-16 wasi-libc libc++-16-dev-wasm32
# libclang-rt-16-dev-wasm32, or of LLVM 19 where 16 is not. Exceptions stay on; `throw` calls what engine/exceptions.cpp has.
foreach(version 19 16)
  if(EXISTS /usr/lib/llvm-${version}/include/wasm32-wasi/c++/v1)
    set(llvm /usr/lib/llvm-${version})
  endif()
endforeach()
if(NOT llvm)
  message(FATAL_ERROR "The page needs LLVM 16 or 19 with its C++ library for WebAssembly; Debian: libc++-16-dev-wasm32")
endif()
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_CXX_COMPILER ${llvm}/bin/clang++)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_FLAGS_INIT "-fexceptions -Qunused-arguments -nostdinc++ -isystem ${CMAKE_CURRENT_LIST_DIR}/engine/one_thread \
-isystem ${llvm}/include/wasm32-wasi/c++/v1 -isystem /usr/include/wasm32-wasi")
file(GLOB builtins ${llvm}/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a)
set(CMAKE_CXX_STANDARD_LIBRARIES
  "-L${llvm}/lib/wasm32-wasi -L/usr/lib/wasm32-wasi -lc++ -lc++abi -lc ${builtins}")
