/// A cuBLAS and cuBLASLt on the CPU, whose "device" memory is the host's: column-major products as chains of fused
/// multiply-adds in ascending k, FP16 or FP32 sums, with k in slices where an algorithm is configured so. It notes
/// every call as a line of text.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "tests/experiments/gpu/fake_cublas_types.h"
#include "tests/oracle/compilers_half.h"

namespace {

std::string calls;
cublasStatus_t answer_to_create = CUBLAS_STATUS_SUCCESS;
int products = 0;

template <typename... Arguments>
void note(const char* function, const Arguments&... arguments) {
  std::ostringstream line;
  line << function;
  ((line << ' ' << arguments), ...);
  calls += line.str() + "\n";
}

double load(const void* data, cudaDataType type, std::size_t index) {
  if (type == CUDA_R_16F) return static_cast<double>(static_cast<const oracle::CompilersHalf*>(data)[index]);
  return static_cast<const float*>(data)[index];
}

/// An operand as the library is given it.
struct Operand {
  const void* data;
  cudaDataType type;
  cublasOperation_t operation;
  std::int64_t leading_dimension;

  double at(std::int64_t row, std::int64_t column) const {
    const bool stored = operation == CUBLAS_OP_N;
    return load(data, type,
                static_cast<std::size_t>(stored ? row + column * leading_dimension
                                                : column + row * leading_dimension));
  }
};

struct Product {
  std::int64_t m, n, k;
  Operand a, b;
  double alpha, beta;
  void* c;
  cudaDataType type_c;
  std::int64_t leading_dimension_c;
  bool half_sums;
  std::int64_t slices = 1;
  cublasLtReductionScheme_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
};

// A product of two halves is exact in double, and its sum with one wider number rounds to double far from the
// midpoints that matter here, so that the second rounding is the only one.
double chain(const Product& p, std::int64_t row, std::int64_t column, std::int64_t first, std::int64_t next) {
  double sum = 0;
  for (std::int64_t k = first; k < next; ++k) {
    const double a = p.a.at(row, k), b = p.b.at(k, column);
    sum = p.half_sums ? static_cast<double>(static_cast<oracle::CompilersHalf>(a * b + sum))
                      : std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(sum));
  }
  return sum;
}

double rounded(double value, cudaDataType type) {
  if (type == CUDA_R_16F) return static_cast<double>(static_cast<oracle::CompilersHalf>(value));
  return static_cast<float>(value);
}

double output(const Product& p, std::int64_t row, std::int64_t column, double c) {
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  const std::int64_t length = (p.k + p.slices - 1) / p.slices;
  float total = 0, stored = 0;
  for (std::int64_t first = 0; first < p.k; first += length) {
    auto sum = static_cast<float>(chain(p, row, column, first, std::min(first + length, p.k)));
    if (p.reduction == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
      sum = static_cast<float>(rounded(sum, p.type_c));
    total = first == 0 ? sum : total + sum;
    const float addend = first == 0 ? (beta == 0 ? 0 : beta * static_cast<float>(c)) : stored;
    stored = static_cast<float>(rounded(alpha * sum + addend, p.type_c));
  }
  if (p.reduction == CUBLASLT_REDUCTION_SCHEME_INPLACE) return stored;
  return rounded(beta == 0 ? alpha * total : alpha * total + beta * static_cast<float>(c), p.type_c);
}

void multiply(const Product& p) {
  ++products;
  for (std::int64_t column = 0; column < p.n; ++column) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      const auto index = static_cast<std::size_t>(row + column * p.leading_dimension_c);
      const double c = p.beta == 0 ? 0 : load(p.c, p.type_c, index);
      const double d = output(p, row, column, c);
      if (p.type_c == CUDA_R_16F) {
        static_cast<oracle::CompilersHalf*>(p.c)[index] = static_cast<oracle::CompilersHalf>(d);
      } else {
        static_cast<float*>(p.c)[index] = static_cast<float>(d);
      }
    }
  }
}

bool has_half_sums(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
}

double scalar(const void* value, cublasComputeType_t compute) {
  return load(value, has_half_sums(compute) ? CUDA_R_16F : CUDA_R_32F, 0);
}

struct Layout {
  std::uint64_t type, rows, columns, leading_dimension;
};
struct Desc {
  std::uint64_t compute, scale, operation_a, operation_b;
};
struct Preference {
  std::uint64_t workspace, mask = CUBLASLT_REDUCTION_SCHEME_MASK;
};
struct Algo {
  std::uint64_t id, tile, stages, custom_option, split_k, reduction, half_sums, unused;
};

// One with nothing to choose, one with tiles, stages and slices, one that does not run, one that is never the same.
enum Id { plain = 3, rich = 21, broken = 40, fickle = 41 };

template <typename Inside, typename Opaque>
Inside& inside(Opaque* opaque) {
  static_assert(sizeof(Inside) <= sizeof(Opaque));
  return *reinterpret_cast<Inside*>(opaque);
}

template <typename Opaque>
cublasStatus_t destroy(Opaque object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Value>
cublasStatus_t put(Value value, void* buffer, std::size_t bytes, std::size_t* written) {
  if (bytes != sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(buffer, &value, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t put_list(std::vector<std::uint32_t> values, void* buffer, std::size_t bytes,
                        std::size_t* written) {
  const std::size_t needed = values.size() * sizeof(std::uint32_t);
  if (bytes >= needed && needed > 0) std::memcpy(buffer, values.data(), needed);
  *written = needed;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Value>
cublasStatus_t get(std::uint64_t& field, const void* buffer, std::size_t bytes) {
  if (bytes != sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  Value value;
  std::memcpy(&value, buffer, bytes);
  field = static_cast<std::uint64_t>(value);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t workspace_of(const Algo& algo) {
  return algo.split_k > 1 && algo.reduction != CUBLASLT_REDUCTION_SCHEME_INPLACE ? 1000 * algo.split_k : 0;
}

}  // namespace

extern "C" {

const char* fake_cublas_calls() {
  return calls.c_str();
}
void fake_cublas_forget() {
  calls.clear();
}
void fake_cublas_answer_to_create(int status) {
  answer_to_create = static_cast<cublasStatus_t>(status);
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static int context;
  *handle = reinterpret_cast<cublasHandle_t>(&context);
  return answer_to_create;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
  note("cublasDestroy_v2");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = 130100;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
  note("cublasSetMathMode", static_cast<int>(mode));
  return CUBLAS_STATUS_SUCCESS;
}
#ifndef FAKE_CUBLAS_IS_OLD
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t bytes) {
  note("cublasSetWorkspace_v2", bytes);
  return CUBLAS_STATUS_SUCCESS;
}
#endif

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t operation_a, cublasOperation_t operation_b,
                            int m, int n, int k, const void* alpha, const void* a, cudaDataType type_a,
                            int lda, const void* b, cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm) {
  note("cublasGemmEx", operation_a, operation_b, m, n, k, scalar(alpha, compute), type_a, lda, type_b, ldb,
       scalar(beta, compute), type_c, ldc, static_cast<int>(compute), static_cast<int>(algorithm));
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return CUBLAS_STATUS_NOT_SUPPORTED;
  multiply({m,
            n,
            k,
            {a, type_a, operation_a, lda},
            {b, type_b, operation_b, ldb},
            scalar(alpha, compute),
            scalar(beta, compute),
            c,
            type_c,
            ldc,
            has_half_sums(compute)});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t operation_a, cublasOperation_t operation_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  note("cublasSgemm_v2", operation_a, operation_b, m, n, k, *alpha, lda, ldb, *beta, ldc);
  multiply({m,
            n,
            k,
            {a, CUDA_R_32F, operation_a, lda},
            {b, CUDA_R_32F, operation_b, ldb},
            *alpha,
            *beta,
            c,
            CUDA_R_32F,
            ldc,
            false});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int context;
  *handle = reinterpret_cast<cublasLtHandle_t>(&context);
  return answer_to_create;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() {
  return 130100;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  inside<Layout>(*layout) = {static_cast<std::uint64_t>(type), rows, columns, static_cast<std::uint64_t>(ld)};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new cublasLtMatmulDescOpaque_t{};
  inside<Desc>(*desc) = {static_cast<std::uint64_t>(compute), static_cast<std::uint64_t>(scale), CUBLAS_OP_N,
                         CUBLAS_OP_N};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return destroy(desc);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  Desc& fields = inside<Desc>(desc);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) return get<std::int32_t>(fields.operation_a, value, bytes);
  if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) return get<std::int32_t>(fields.operation_b, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t{};
  inside<Preference>(*preference) = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  Preference& fields = inside<Preference>(preference);
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return get<std::uint64_t>(fields.workspace, value, bytes);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return get<std::uint32_t>(fields.mask, value, bytes);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute, void* buffer,
                                                 std::size_t bytes, std::size_t* written) {
  const Algo& fields = inside<const Algo>(algo);
  const bool is_rich = fields.id == rich;
  using List = std::vector<std::uint32_t>;
  switch (attribute) {
    case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
      return put(std::int32_t{is_rich}, buffer, bytes, written);
    case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
      return put(is_rich ? std::uint32_t{CUBLASLT_REDUCTION_SCHEME_MASK} : 0u, buffer, bytes, written);
    case CUBLASLT_ALGO_CAP_TILE_IDS:
      return put_list(is_rich ? List{CUBLASLT_MATMUL_TILE_64x64, CUBLASLT_MATMUL_TILE_128x128} : List{},
                      buffer, bytes, written);
    case CUBLASLT_ALGO_CAP_STAGES_IDS:
      return put_list(is_rich ? List{CUBLASLT_MATMUL_STAGES_32x3, CUBLASLT_MATMUL_STAGES_64x3} : List{},
                      buffer, bytes, written);
    case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
      return put(std::int32_t{is_rich ? 2 : 0}, buffer, bytes, written);
    case CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS:
      return put(std::uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F |
                               (fields.half_sums != 0 ? CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F
                                                      : CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F)},
                 buffer, bytes, written);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* buffer, std::size_t bytes, std::size_t* written) {
  const Algo& fields = inside<const Algo>(algo);
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
      return put(static_cast<std::int32_t>(fields.id), buffer, bytes, written);
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      return put(static_cast<std::uint32_t>(fields.tile), buffer, bytes, written);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      return put(static_cast<std::int32_t>(fields.split_k), buffer, bytes, written);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      return put(static_cast<std::uint32_t>(fields.reduction), buffer, bytes, written);
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
      return put(static_cast<std::uint32_t>(fields.custom_option), buffer, bytes, written);
    case CUBLASLT_ALGO_CONFIG_STAGES_ID:
      return put(static_cast<std::uint32_t>(fields.stages), buffer, bytes, written);
    case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
    case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID:
      return put(std::uint16_t{0}, buffer, bytes, written);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  Algo& fields = inside<Algo>(algo);
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      return get<std::uint32_t>(fields.tile, value, bytes);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      return get<std::int32_t>(fields.split_k, value, bytes);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      return get<std::uint32_t>(fields.reduction, value, bytes);
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
      return get<std::uint32_t>(fields.custom_option, value, bytes);
    case CUBLASLT_ALGO_CONFIG_STAGES_ID:
      return get<std::uint32_t>(fields.stages, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  const Preference& wanted = inside<Preference>(preference);
  note("cublasLtMatmulAlgoGetHeuristic", wanted.mask, wanted.workspace, requested);
  *returned = 0;
  if (wanted.mask == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto compute = static_cast<cublasComputeType_t>(inside<Desc>(desc).compute);
  const bool sliced = (wanted.mask & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  results[0] = {};
  inside<Algo>(&results[0].algo) = {
      rich,
      CUBLASLT_MATMUL_TILE_64x64,
      CUBLASLT_MATMUL_STAGES_32x3,
      0,
      sliced ? 2u : 1u,
      sliced ? static_cast<std::uint64_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) : 0u,
      has_half_sums(compute),
      0};
  results[0].workspaceSize = workspace_of(inside<Algo>(&results[0].algo));
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t, int requested,
                                        int ids[], int* returned) {
  constexpr std::array all{plain, rich, broken, fickle};
  *returned = std::min(requested, static_cast<int>(all.size()));
  for (int i = 0; i < *returned; ++i) ids[i] = all[static_cast<std::size_t>(i)];
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, cublasComputeType_t compute, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t, cudaDataType_t, int id,
                                      cublasLtMatmulAlgo_t* algo) {
  *algo = {};
  inside<Algo>(algo) = {static_cast<std::uint64_t>(id), 0, 0, 0, 1, 0, has_half_sums(compute), 0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const Algo& fields = inside<const Algo>(algo);
  if (fields.tile == CUBLASLT_MATMUL_TILE_128x128 && fields.stages == CUBLASLT_MATMUL_STAGES_64x3)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = workspace_of(fields);
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algo, void*,
                              std::size_t workspace_bytes, cudaStream_t) {
  const Desc& how = inside<Desc>(desc);
  const Layout &of_a = inside<Layout>(layout_a), &of_b = inside<Layout>(layout_b),
               &of_c = inside<Layout>(layout_c);
  const Algo& fields = inside<const Algo>(algo);
  note("cublasLtMatmul", how.operation_a, how.operation_b, of_a.type, of_a.rows, of_a.columns,
       of_a.leading_dimension, of_b.type, of_b.rows, of_b.columns, of_b.leading_dimension, of_c.type,
       of_c.rows, of_c.columns, of_c.leading_dimension, how.compute, how.scale, fields.id);
  if (fields.id == broken || c != d) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspace_bytes < workspace_of(fields)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto compute = static_cast<cublasComputeType_t>(how.compute);
  const auto k = static_cast<std::int64_t>(how.operation_a == CUBLAS_OP_N ? of_a.columns : of_a.rows);
  Product product{static_cast<std::int64_t>(of_c.rows),
                  static_cast<std::int64_t>(of_c.columns),
                  k,
                  {a, static_cast<cudaDataType>(of_a.type), static_cast<cublasOperation_t>(how.operation_a),
                   static_cast<std::int64_t>(of_a.leading_dimension)},
                  {b, static_cast<cudaDataType>(of_b.type), static_cast<cublasOperation_t>(how.operation_b),
                   static_cast<std::int64_t>(of_b.leading_dimension)},
                  scalar(alpha, compute),
                  scalar(beta, compute),
                  d,
                  static_cast<cudaDataType>(of_c.type),
                  static_cast<std::int64_t>(of_c.leading_dimension),
                  has_half_sums(compute),
                  static_cast<std::int64_t>(fields.split_k),
                  static_cast<cublasLtReductionScheme_t>(fields.reduction)};
  multiply(product);
  if (fields.id == fickle && products % 2 == 0) std::memset(d, 0x3c, 2);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
