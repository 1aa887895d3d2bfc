#pragma once
/// The algorithms of cuBLASLt one by one: what each says of its arithmetic, and the product that it makes.
/// Opened at run time as cuBLAS is; numbers are those of cublasLt.h (CUDA 13.0). See cublas.h for products,
/// their layout and errors.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/gpu/vendor/cublas.h"

namespace experiments {

/// cublasLtReductionScheme_t: what becomes of the sums of slices of k.
enum class LtReduction : std::uint32_t {
  none = 0,          ///< there is one slice
  in_place = 1,      ///< added to the output, in its type, slice after slice
  compute_type = 2,  ///< stored in the workspace in the compute type, then added
  output_type = 4    ///< stored in the workspace in the output's type, then added
};
std::string_view name_of(LtReduction reduction);

/// cublasLtMatmulAlgo_t, and its configuration and capabilities by name. Numbers of tiles, stages and shapes
/// are those of the enumerations in cublasLt.h.
struct LtAlgorithm {
  std::array<std::uint64_t, 8> opaque{};
  std::int32_t id = 0;
  std::uint32_t tile = 0;
  std::uint32_t stages = 0;
  std::int32_t split_k = 1;
  LtReduction reduction = LtReduction::none;
  std::uint32_t custom_option = 0;
  std::uint16_t inner_shape = 0;
  std::uint16_t cluster_shape = 0;
  std::uint64_t numerical_flags = 0;  ///< CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS
  std::size_t workspace_bytes = 0;    ///< that it needs
};

/// Such as "hmma, fp32 accumulator, fp16 input".
std::string numerical_flags_text(std::uint64_t flags);

/// k that one stage holds, such as 64 of CUBLASLT_MATMUL_STAGES_64x3; nothing for an unknown number.
std::optional<int> depth_of_stages(std::uint32_t stages);

inline constexpr const char* cublas_lt_libraries[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                                      "libcublasLt.so"};

/// The library with one handle on the current device; the default stream.
class CublasLt {
 public:
  explicit CublasLt(std::span<const char* const> names = cublas_lt_libraries);
  CublasLt(CublasLt&&) noexcept;
  CublasLt& operator=(CublasLt&&) noexcept;
  ~CublasLt();

  /// 10000 * major + 100 * minor + patch.
  int version() const;

  /// What the library would choose, best first, with each reduction scheme in turn, each algorithm once.
  /// `most` are asked for at a time.
  std::vector<LtAlgorithm> chosen(const CublasProduct& product, std::size_t workspace_bytes, int most) const;

  /// Every algorithm that can make this product in this workspace: with every tile and number of stages, and for
  /// the first of these and every depth of stages, with every custom option, and every number of `splits` of k and
  /// reduction scheme that it supports. Hundreds of thousands of questions: `is_enough` ends them between two.
  std::vector<LtAlgorithm> all(
      const CublasProduct& product, std::size_t workspace_bytes, std::span<const int> splits,
      const std::function<bool()>& is_enough = [] { return false; }) const;

  /// cublasLtMatmul.
  void multiply(const CublasProduct& product, const LtAlgorithm& algorithm, void* workspace,
                std::size_t workspace_bytes);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

struct OpenedCublasLt {
  std::optional<CublasLt> cublas_lt;
  std::string absent;
};
OpenedCublasLt open_cublas_lt(std::span<const char* const> names = cublas_lt_libraries);

}  // namespace experiments
