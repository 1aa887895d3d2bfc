#pragma once
/// Matrix products by NVIDIA's cuBLAS, which is opened at run time: nothing of it is needed to build, and a
/// program can say in one line why it is absent. Numbers of the enumerations are those of cublas_api.h and
/// library_types.h (CUDA 13.0), which are part of the library's binary interface.
///
/// Matrices are row-major here. cuBLAS takes column-major ones, which a row-major matrix is when read as its
/// transpose: D = A B is asked for as D^T = B^T A^T, with the operands exchanged and nothing copied.
///
/// Errors: CublasRefusal, a std::runtime_error with one line, such as "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED".

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace experiments {

/// cudaDataType.
enum class CublasType : int {
  fp32 = 0,  ///< CUDA_R_32F
  fp16 = 2   ///< CUDA_R_16F
};

/// cublasComputeType_t. alpha and beta are halves for the first two, floats for the others.
enum class CublasCompute : int {
  fp16 = 64,            ///< CUBLAS_COMPUTE_16F
  fp16_pedantic = 65,   ///< CUBLAS_COMPUTE_16F_PEDANTIC
  fp32 = 68,            ///< CUBLAS_COMPUTE_32F
  fp32_pedantic = 69,   ///< CUBLAS_COMPUTE_32F_PEDANTIC
  fp32_fast_fp16 = 74,  ///< CUBLAS_COMPUTE_32F_FAST_16F: FP32 operands may be rounded to FP16 or TF32
  fp32_fast_tf32 = 77   ///< CUBLAS_COMPUTE_32F_FAST_TF32
};

/// Such as "CUBLAS_COMPUTE_32F".
std::string_view name_of(CublasCompute compute);
/// The type of alpha and beta.
CublasType scale_type(CublasCompute compute);

/// cublasMath_t.
enum class CublasMath : int {
  standard = 0,  ///< CUBLAS_DEFAULT_MATH
  pedantic = 2,  ///< CUBLAS_PEDANTIC_MATH
  tf32 = 3       ///< CUBLAS_TF32_TENSOR_OP_MATH: sgemm may round its operands to TF32
};

/// Whether partial sums of products whose output is FP16 may be stored and added in FP16
/// (CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16).
enum class ReducedPrecisionReduction { allowed, disallowed };

/// D = alpha A B + beta D, on the device.
struct CublasProduct {
  int rows;     ///< m, of A and D
  int columns;  ///< n, of B and D
  int depth;    ///< k
  const void* a;
  const void* b;
  void* d;  ///< rows x columns; not read where beta = 0
  CublasType operands = CublasType::fp16;
  CublasType output = CublasType::fp32;
  CublasCompute compute = CublasCompute::fp32;
  float alpha = 1;  ///< rounded to FP16 where the compute type wants halves
  float beta = 0;
  bool a_transposed = false;  ///< A is stored as depth x rows instead of rows x depth
  bool b_transposed = false;  ///< B is stored as columns x depth instead of depth x columns
};

/// An operand as cuBLAS, column-major, takes it: the stored matrix's transpose, or with CUBLAS_OP_T the matrix.
struct CublasOperand {
  const void* data;
  int operation;  ///< cublasOperation_t: CUBLAS_OP_N, 0, or CUBLAS_OP_T, 1
  int rows;       ///< as stored column-major; also the leading dimension
  int columns;
};

/// The product's operands in cuBLAS's order, B before A.
CublasOperand first_operand(const CublasProduct& product);
CublasOperand second_operand(const CublasProduct& product);

/// A scalar as cuBLAS takes it, by pointer: a float, or the bits of a half.
class CublasScalar {
 public:
  CublasScalar(float value, CublasType type);
  const void* pointer() const { return &bits_; }

 private:
  std::uint32_t bits_;  // a half lies in the first two bytes
};

/// The names under which the library is looked for, the newest first.
inline constexpr const char* cublas_libraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};

/// The library returned another status than CUBLAS_STATUS_SUCCESS: "function: STATUS".
struct CublasRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws CublasRefusal unless `status` is 0.
void check_cublas(int status, std::string_view function);

/// The library with one handle on the current device. Everything runs on the default stream, in order; a
/// function returns when the work is queued.
class Cublas {
 public:
  explicit Cublas(std::span<const char* const> names = cublas_libraries);
  Cublas(Cublas&&) noexcept;
  Cublas& operator=(Cublas&&) noexcept;
  ~Cublas();

  /// The file name that was found.
  const std::string& library() const;
  /// 10000 * major + 100 * minor + patch.
  int version() const;

  void set_math_mode(CublasMath mode,
                     ReducedPrecisionReduction reduction = ReducedPrecisionReduction::allowed);
  /// Device memory that stays the caller's; it lets cuBLAS choose the same kernels in every run.
  void set_workspace(void* workspace, std::size_t bytes);

  /// cublasGemmEx. FP16 operands go with all compute types, into FP16 or FP32 for those of FP32 and into FP16
  /// for those of FP16; FP32 operands with those of FP32, into FP32.
  void gemm(const CublasProduct& product);
  /// cublasSgemm: operands, output and sums in FP32, as the math mode says; `compute` is not looked at.
  void sgemm(const CublasProduct& product);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// cuBLAS, or one line that says why there is none: no library, one without a function that is needed, or no
/// device.
struct OpenedCublas {
  std::optional<Cublas> cublas;
  std::string absent;
};
OpenedCublas open_cublas(std::span<const char* const> names = cublas_libraries);

/// "13.1.0" of 130100.
std::string cublas_version_text(int version);

}  // namespace experiments
