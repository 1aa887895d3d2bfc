#include "experiments/gpu/vendor/shared_library.h"
#include "tests/experiments/gpu/fake_cublas.h"

namespace test {

std::string fake_cublas_calls() {
  const experiments::SharedLibrary library(fake_cublas);
  const char* (*calls)();
  void (*forget)();
  library.find("fake_cublas_calls", calls);
  library.find("fake_cublas_forget", forget);
  std::string text = calls();
  forget();
  return text;
}

void fake_cublas_answer_to_create(int status) {
  const experiments::SharedLibrary library(fake_cublas);
  void (*answer)(int);
  library.find("fake_cublas_answer_to_create", answer);
  answer(status);
}

}  // namespace test
