/// Products of row-major matrices are asked of a column-major library as they must be: the calls that a fake
/// library notes are the expected ones, and what it computes from them is the product.

#include "experiments/gpu/vendor/cublas.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/gpu/vendor/cublas_lt.h"
#include "fp16/codec.h"
#include "tests/experiments/gpu/fake_cublas.h"

namespace {

using namespace experiments;

constexpr int rows = 3, columns = 4, depth = 2;

/// A of 1 ... 6 and B of 1 ... 8, in any layout and type; small integers, so that the product is exact.
template <typename Code>
struct Operands {
  std::vector<Code> a, b;

  static Code code(int value) {
    if constexpr (sizeof(Code) == 2) {
      return fp16::float_to_half_bits(static_cast<float>(value));
    } else {
      return static_cast<float>(value);
    }
  }
  Operands(bool a_transposed, bool b_transposed) : a(rows * depth), b(depth * columns) {
    for (int i = 0; i < rows; ++i) {
      for (int k = 0; k < depth; ++k)
        a[static_cast<std::size_t>(a_transposed ? k * rows + i : i * depth + k)] = code(i * depth + k + 1);
    }
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < columns; ++j)
        b[static_cast<std::size_t>(b_transposed ? j * depth + k : k * columns + j)] =
            code(k * columns + j + 1);
    }
  }
};

const std::vector<float> product_by_hand{11, 14, 17, 20, 23, 30, 37, 44, 35, 46, 57, 68};

CublasProduct product_of(const auto& operands, auto& d) {
  return {.rows = rows,
          .columns = columns,
          .depth = depth,
          .a = operands.a.data(),
          .b = operands.b.data(),
          .d = d.data()};
}

OpenedCublas opened() {
  OpenedCublas result = open_cublas(test::fake_cublas);
  REQUIRE(result.cublas);
  test::fake_cublas_calls();
  return result;
}

}  // namespace

TEST_CASE("cublas: operands are exchanged and transposed, so that row-major matrices need no copy") {
  OpenedCublas library = opened();
  const struct {
    bool a_transposed, b_transposed;
    std::string
        call;  // operations, m, n, k, alpha, type and leading dimension of the first and second, beta, ...
  } layouts[] = {{false, false, "cublasGemmEx 0 0 4 3 2 1 2 4 2 2 0 0 4 68 -1\n"},
                 {true, false, "cublasGemmEx 0 1 4 3 2 1 2 4 2 3 0 0 4 68 -1\n"},
                 {false, true, "cublasGemmEx 1 0 4 3 2 1 2 2 2 2 0 0 4 68 -1\n"},
                 {true, true, "cublasGemmEx 1 1 4 3 2 1 2 2 2 3 0 0 4 68 -1\n"}};
  for (const auto& layout : layouts) {
    const Operands<std::uint16_t> operands(layout.a_transposed, layout.b_transposed);
    std::vector<float> d(rows * columns, -1);
    CublasProduct product = product_of(operands, d);
    product.a_transposed = layout.a_transposed;
    product.b_transposed = layout.b_transposed;
    library.cublas->gemm(product);
    CHECK(test::fake_cublas_calls() == layout.call);
    CHECK(d == product_by_hand);
  }
}

TEST_CASE("cublas: types, compute types and factors are those of the header") {
  OpenedCublas library = opened();
  const Operands<std::uint16_t> operands(false, false);
  std::vector<std::uint16_t> d(rows * columns, 0x3c00);
  CublasProduct product = product_of(operands, d);
  product.output = CublasType::fp16;
  product.alpha = 0.5f;
  product.beta = 2;
  const std::pair<CublasCompute, const char*> computes[] = {{CublasCompute::fp16, "64"},
                                                            {CublasCompute::fp16_pedantic, "65"},
                                                            {CublasCompute::fp32, "68"},
                                                            {CublasCompute::fp32_pedantic, "69"},
                                                            {CublasCompute::fp32_fast_fp16, "74"}};
  for (const auto& [compute, number] : computes) {
    product.compute = compute;
    std::ranges::fill(d, 0x3c00);
    library.cublas->gemm(product);
    CHECK(test::fake_cublas_calls() ==
          std::string("cublasGemmEx 0 0 4 3 2 0.5 2 4 2 2 2 2 4 ") + number + " -1\n");
    CHECK(d.front() == fp16::float_to_half_bits(0.5f * 11 + 2));
    CHECK(d.back() == fp16::float_to_half_bits(0.5f * 68 + 2));
  }
  product.compute = CublasCompute::fp32_fast_tf32;
  CHECK_THROWS_WITH_AS(library.cublas->gemm(product), "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED",
                       CublasRefusal);

  const Operands<float> floats(false, true);
  std::vector<float> d32(rows * columns, 1);
  CublasProduct sgemm = product_of(floats, d32);
  sgemm.b_transposed = true;
  sgemm.beta = 3;
  test::fake_cublas_calls();
  library.cublas->sgemm(sgemm);
  CHECK(test::fake_cublas_calls() == "cublasSgemm_v2 1 0 4 3 2 1 2 2 3 4\n");
  CHECK(d32.front() == 14);
  CHECK(d32.back() == 71);
}

TEST_CASE("cublas: math modes, workspace, version") {
  OpenedCublas library = opened();
  library.cublas->set_math_mode(CublasMath::standard);
  library.cublas->set_math_mode(CublasMath::pedantic);
  library.cublas->set_math_mode(CublasMath::tf32, ReducedPrecisionReduction::allowed);
  library.cublas->set_math_mode(CublasMath::standard, ReducedPrecisionReduction::disallowed);
  library.cublas->set_workspace(nullptr, 4096);
  CHECK(test::fake_cublas_calls() ==
        "cublasSetMathMode 0\ncublasSetMathMode 2\ncublasSetMathMode 3\ncublasSetMathMode 16\n"
        "cublasSetWorkspace_v2 4096\n");
  CHECK(library.cublas->version() == 130100);
  CHECK(cublas_version_text(130100) == "13.1.0");
  CHECK(cublas_version_text(120805) == "12.8.5");
  CHECK(library.cublas->library() == test::fake_cublas[0]);
  library.cublas.reset();
  CHECK(test::fake_cublas_calls() == "cublasDestroy_v2\n");
}

TEST_CASE("cublas: an absent library, an old one and one without a device are named in one line") {
  const char* const absent[] = {"libno_such_cublas.so.99", "libno_such_cublas.so"};
  CHECK(open_cublas(absent).absent ==
        "cuBLAS cannot be used: no library libno_such_cublas.so.99, libno_such_cublas.so can be loaded");
  CHECK(open_cublas_lt(absent).absent.starts_with("cuBLASLt cannot be used: no library"));
  const OpenedCublas old = open_cublas(test::old_fake_cublas);
  CHECK(!old.cublas);
  CHECK(old.absent.ends_with("has no function cublasSetWorkspace_v2"));
  // The first that is there is taken.
  const char* const both[] = {absent[0], test::fake_cublas[0]};
  CHECK(open_cublas(both).cublas->library() == test::fake_cublas[0]);

  test::fake_cublas_answer_to_create(1);
  CHECK(open_cublas(test::fake_cublas).absent ==
        "cuBLAS cannot be used: cublasCreate_v2: CUBLAS_STATUS_NOT_INITIALIZED");
  CHECK(open_cublas_lt(test::fake_cublas).absent ==
        "cuBLASLt cannot be used: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED");
  test::fake_cublas_answer_to_create(0);
}

TEST_CASE("cublas_lt: algorithms are listed with what they say of themselves") {
  OpenedCublasLt library = open_cublas_lt(test::fake_cublas);
  REQUIRE(library.cublas_lt);
  const Operands<std::uint16_t> operands(false, false);
  std::vector<float> d(rows * columns);
  const CublasProduct product = product_of(operands, d);
  const int splits[] = {2, 3};

  test::fake_cublas_calls();
  const std::vector<LtAlgorithm> chosen = library.cublas_lt->chosen(product, 5000, 7);
  CHECK(test::fake_cublas_calls() ==
        "cublasLtMatmulAlgoGetHeuristic 7 5000 7\ncublasLtMatmulAlgoGetHeuristic 0 5000 7\n"
        "cublasLtMatmulAlgoGetHeuristic 1 5000 7\ncublasLtMatmulAlgoGetHeuristic 2 5000 7\n"
        "cublasLtMatmulAlgoGetHeuristic 4 5000 7\n");
  REQUIRE(chosen.size() == 2);  // each once
  CHECK(chosen[0].id == 21);
  CHECK(chosen[0].tile == 15);
  CHECK(chosen[0].stages == 9);
  CHECK(depth_of_stages(chosen[0].stages) == 32);
  CHECK(chosen[0].split_k == 2);
  CHECK(chosen[0].reduction == LtReduction::compute_type);
  CHECK(chosen[0].workspace_bytes == 2000);
  CHECK(numerical_flags_text(chosen[0].numerical_flags) == "fma, fp32 accumulator, fp16 input");
  CHECK(chosen[1].split_k == 1);

  const std::vector<LtAlgorithm> all = library.cublas_lt->all(product, 5000, splits);
  // Three of one configuration each; of the other three pairs of tile and stages, and for each of the two
  // depths of stages two custom options and two numbers of slices with three reductions.
  CHECK(all.size() == 3 + 3 + 2 * (2 + 2 * 3));
  // Those that need more workspace are left out.
  CHECK(library.cublas_lt->all(product, 2500, splits).size() == all.size() - 4);

  for (const LtAlgorithm& algorithm : all) {
    if (algorithm.id == 40) continue;
    std::ranges::fill(d, -1.0f);
    library.cublas_lt->multiply(product, algorithm, nullptr, 5000);
    if (algorithm.id != 41) CHECK(d == product_by_hand);
  }
  test::fake_cublas_calls();
  library.cublas_lt->multiply(product, all.front(), nullptr, 0);
  // Operations; type, rows, columns and leading dimension of both operands and of the output; compute, scale, id.
  CHECK(test::fake_cublas_calls() == "cublasLtMatmul 0 0 2 4 2 4 2 2 3 2 0 4 3 4 68 0 3\n");
}

TEST_CASE("cublas_lt: numbers in words") {
  CHECK(numerical_flags_text(0x10202) == "hmma, fp32 accumulator, fp16 input");
  CHECK(numerical_flags_text(0x10102) == "hmma, fp16 accumulator, fp16 input");
  CHECK(numerical_flags_text(std::uint64_t{1} << 40) == "0x10000000000");
  CHECK(depth_of_stages(1) == 16);
  CHECK(depth_of_stages(6) == 16);
  CHECK(depth_of_stages(7) == 32);
  CHECK(depth_of_stages(24) == 128);
  CHECK(depth_of_stages(35) == 64);
  CHECK(!depth_of_stages(0));
  CHECK(!depth_of_stages(99));
}
