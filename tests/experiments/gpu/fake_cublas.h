#pragma once
/// The fake cuBLAS of fake_cublas.cpp: where it lies, and what it noted.

#include <string>

namespace test {

/// File names of the whole library and of one that lacks cublasSetWorkspace_v2.
inline constexpr const char* fake_cublas[] = {HALFLAB_FAKE_CUBLAS};
inline constexpr const char* old_fake_cublas[] = {HALFLAB_OLD_FAKE_CUBLAS};

/// The calls since it was last asked, a line each, without those that change nothing.
std::string fake_cublas_calls();
/// What cublasCreate and cublasLtCreate return from now on, a cublasStatus_t.
void fake_cublas_answer_to_create(int status);

}  // namespace test
