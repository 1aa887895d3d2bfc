// y = a * b + c for halves: `multiply_add float` as many kernels compute it, in float and rounded to half at the end;
// `multiply_add half` by the one instruction for it. Reads what `halflab inputs fma --to a.hex,b.hex,c.hex` wrote, and
// writes y.hex.
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using Codes = std::vector<unsigned short>;

__global__ void in_float(const __half* a, const __half* b, const __half* c, __half* y, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = __float2half_rn(__half2float(a[i]) * __half2float(b[i]) + __half2float(c[i]));
}

__global__ void in_half(const __half* a, const __half* b, const __half* c, __half* y, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = __hfma(a[i], b[i], c[i]);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(2);
}

Codes read(const char* path) {
  Codes codes;
  std::ifstream file(path);
  for (unsigned code; file >> std::hex >> code;) codes.push_back(static_cast<unsigned short>(code));
  return codes;
}

__half* on_device(const Codes& codes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, codes.size() * sizeof(__half)));
  check(cudaMemcpy(memory, codes.data(), codes.size() * sizeof(__half), cudaMemcpyHostToDevice));
  return static_cast<__half*>(memory);
}

int main(int argc, char** argv) {
  const bool is_half = argc > 1 && std::string(argv[1]) == "half";
  const Codes a = read("a.hex"), b = read("b.hex"), c = read("c.hex");
  if (a.empty() || a.size() != b.size() || b.size() != c.size()) {
    std::fprintf(stderr, "a.hex, b.hex and c.hex must hold as many halves, and at least one\n");
    return 2;
  }
  Codes y(a.size());
  __half *const da = on_device(a), *const db = on_device(b), *const dc = on_device(c),
                *const dy = on_device(y);
  const unsigned count = static_cast<unsigned>(a.size()), threads = 256,
                 blocks = (count + threads - 1) / threads;
  if (is_half) {
    in_half<<<blocks, threads>>>(da, db, dc, dy, count);
  } else {
    in_float<<<blocks, threads>>>(da, db, dc, dy, count);
  }
  check(cudaGetLastError());
  check(cudaMemcpy(y.data(), dy, y.size() * sizeof(__half), cudaMemcpyDeviceToHost));
  for (__half* const memory : {da, db, dc, dy}) check(cudaFree(memory));
  std::FILE* const file = std::fopen("y.hex", "w");
  if (file == nullptr) return 2;
  for (const unsigned short code : y) std::fprintf(file, "%04x\n", code);
  return std::fclose(file) == 0 ? 0 : 2;
}
