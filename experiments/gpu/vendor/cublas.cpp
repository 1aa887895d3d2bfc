#include "experiments/gpu/vendor/cublas.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <stdexcept>
#include <utility>

#include "experiments/gpu/vendor/shared_library.h"
#include "fp16/codec.h"

namespace experiments {
namespace {

// cublasOperation_t, cublasGemmAlgo_t and cublasMath_t of cublas_api.h.
constexpr int as_stored = 0, transposed = 1;
constexpr int default_algorithm = -1;
constexpr int disallow_reduced_precision_reduction = 16;

using Handle = void*;  // cublasHandle_t
using Create = int(Handle* handle);
using Destroy = int(Handle handle);
using GetVersion = int(Handle handle, int* version);
using SetMathMode = int(Handle handle, int mode);
using SetWorkspace = int(Handle handle, void* workspace, std::size_t bytes);
using GemmEx = int(Handle handle, int operation_a, int operation_b, int m, int n, int k, const void* alpha,
                   const void* a, int type_a, int lda, const void* b, int type_b, int ldb, const void* beta,
                   void* c, int type_c, int ldc, int compute, int algorithm);
using Sgemm = int(Handle handle, int operation_a, int operation_b, int m, int n, int k, const float* alpha,
                  const float* a, int lda, const float* b, int ldb, const float* beta, float* c, int ldc);

std::string_view status_name(int status) {
  constexpr std::array<std::pair<int, std::string_view>, 9> names{{
      {1, "CUBLAS_STATUS_NOT_INITIALIZED"},
      {3, "CUBLAS_STATUS_ALLOC_FAILED"},
      {7, "CUBLAS_STATUS_INVALID_VALUE"},
      {8, "CUBLAS_STATUS_ARCH_MISMATCH"},
      {11, "CUBLAS_STATUS_MAPPING_ERROR"},
      {13, "CUBLAS_STATUS_EXECUTION_FAILED"},
      {14, "CUBLAS_STATUS_INTERNAL_ERROR"},
      {15, "CUBLAS_STATUS_NOT_SUPPORTED"},
      {16, "CUBLAS_STATUS_LICENSE_ERROR"},
  }};
  for (const auto& [code, name] : names) {
    if (code == status) return name;
  }
  return "a status of no known name";
}

}  // namespace

struct Cublas::Library {
  explicit Library(std::span<const char* const> names) : file(names) {
    file.find("cublasCreate_v2", create);
    file.find("cublasDestroy_v2", destroy);
    file.find("cublasGetVersion_v2", get_version);
    file.find("cublasSetMathMode", set_math_mode);
    file.find("cublasSetWorkspace_v2", set_workspace);
    file.find("cublasGemmEx", gemm_ex);
    file.find("cublasSgemm_v2", sgemm);
    check_cublas(create(&handle), "cublasCreate_v2");
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) destroy(handle);
  }

  SharedLibrary file;
  Create* create;
  Destroy* destroy;
  GetVersion* get_version;
  SetMathMode* set_math_mode;
  SetWorkspace* set_workspace;
  GemmEx* gemm_ex;
  Sgemm* sgemm;
  Handle handle = nullptr;
};

std::string_view name_of(CublasCompute compute) {
  switch (compute) {
    case CublasCompute::fp16:
      return "CUBLAS_COMPUTE_16F";
    case CublasCompute::fp16_pedantic:
      return "CUBLAS_COMPUTE_16F_PEDANTIC";
    case CublasCompute::fp32:
      return "CUBLAS_COMPUTE_32F";
    case CublasCompute::fp32_pedantic:
      return "CUBLAS_COMPUTE_32F_PEDANTIC";
    case CublasCompute::fp32_fast_fp16:
      return "CUBLAS_COMPUTE_32F_FAST_16F";
    case CublasCompute::fp32_fast_tf32:
      return "CUBLAS_COMPUTE_32F_FAST_TF32";
  }
  return "";
}

CublasType scale_type(CublasCompute compute) {
  return compute == CublasCompute::fp16 || compute == CublasCompute::fp16_pedantic ? CublasType::fp16
                                                                                   : CublasType::fp32;
}

CublasOperand first_operand(const CublasProduct& p) {
  if (p.b_transposed) return {p.b, transposed, p.depth, p.columns};
  return {p.b, as_stored, p.columns, p.depth};
}

CublasOperand second_operand(const CublasProduct& p) {
  if (p.a_transposed) return {p.a, transposed, p.rows, p.depth};
  return {p.a, as_stored, p.depth, p.rows};
}

CublasScalar::CublasScalar(float value, CublasType type)
    : bits_(type == CublasType::fp16 ? fp16::float_to_half_bits(value)
                                     : std::bit_cast<std::uint32_t>(value)) {
  static_assert(std::endian::native == std::endian::little);
}

void check_cublas(int status, std::string_view function) {
  if (status != 0) throw CublasRefusal(fmt::format("{}: {}", function, status_name(status)));
}

Cublas::Cublas(std::span<const char* const> names) : library_(std::make_unique<Library>(names)) {}
Cublas::Cublas(Cublas&&) noexcept = default;
Cublas& Cublas::operator=(Cublas&&) noexcept = default;
Cublas::~Cublas() = default;

const std::string& Cublas::library() const {
  return library_->file.name();
}

int Cublas::version() const {
  int version = 0;
  check_cublas(library_->get_version(library_->handle, &version), "cublasGetVersion_v2");
  return version;
}

void Cublas::set_math_mode(CublasMath mode, ReducedPrecisionReduction reduction) {
  const int flag =
      reduction == ReducedPrecisionReduction::disallowed ? disallow_reduced_precision_reduction : 0;
  check_cublas(library_->set_math_mode(library_->handle, static_cast<int>(mode) | flag), "cublasSetMathMode");
}

void Cublas::set_workspace(void* workspace, std::size_t bytes) {
  check_cublas(library_->set_workspace(library_->handle, workspace, bytes), "cublasSetWorkspace_v2");
}

void Cublas::gemm(const CublasProduct& p) {
  const CublasOperand first = first_operand(p), second = second_operand(p);
  const CublasScalar alpha(p.alpha, scale_type(p.compute)), beta(p.beta, scale_type(p.compute));
  const int operands = static_cast<int>(p.operands), output = static_cast<int>(p.output);
  check_cublas(library_->gemm_ex(library_->handle, first.operation, second.operation, p.columns, p.rows,
                                 p.depth, alpha.pointer(), first.data, operands, first.rows, second.data,
                                 operands, second.rows, beta.pointer(), p.d, output, p.columns,
                                 static_cast<int>(p.compute), default_algorithm),
               "cublasGemmEx");
}

void Cublas::sgemm(const CublasProduct& p) {
  const CublasOperand first = first_operand(p), second = second_operand(p);
  check_cublas(library_->sgemm(library_->handle, first.operation, second.operation, p.columns, p.rows,
                               p.depth, &p.alpha, static_cast<const float*>(first.data), first.rows,
                               static_cast<const float*>(second.data), second.rows, &p.beta,
                               static_cast<float*>(p.d), p.columns),
               "cublasSgemm_v2");
}

OpenedCublas open_cublas(std::span<const char* const> names) {
  try {
    return {Cublas(names), {}};
  } catch (const std::runtime_error& error) {
    return {std::nullopt, fmt::format("cuBLAS cannot be used: {}", error.what())};
  }
}

std::string cublas_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace experiments
