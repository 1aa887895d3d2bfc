#include <benchmark/benchmark.h>

#include <cmath>
#include <tuple>

#include "fp16/gemm.h"
#include "fp16/half.h"
#include "fp16/mma.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"

namespace bench {
namespace {

constexpr std::size_t n = 512;
constexpr double bytes_per_product = 3.0 * sizeof(float) / n;

/// Square matrices of halves, stored as floats for Eigen and as codes for the checks.
struct Matrices {
  std::vector<float> a = normal_values(n * n, "left matrix");
  std::vector<float> b = normal_values(n * n, "right matrix");
  std::vector<float> c = std::vector<float>(n * n);

  Matrices() {
    for (std::vector<float>* matrix : {&a, &b}) {
      for (float& x : *matrix) x = fp16::half(x);
    }
  }
};

/// The chains of one output, written out.
struct Chains {
  explicit Chains(const Matrices& m) {
    for (std::size_t k = 0; k < n; ++k) {
      const float x = m.a[row * n + k], y = m.b[k * n + column];
      const fp16::half a(x), b(y);
      fp32_fma = std::fma(x, y, fp32_fma);
      fp16_fma = fp16::fma(a, b, fp16_fma);
      fp16_mul_add += a * b;
      left.push_back(a.bits());
      right.push_back(b.bits());
    }
  }
  float on_tensor_core(const fp16::TensorCore& core) const {
    return std::bit_cast<float>(fp16::mma_dot<fp16::binary32>(core, left, right, 0));
  }

  static constexpr std::size_t row = 7, column = 11;
  float fp32_fma = 0;
  fp16::half fp16_fma, fp16_mul_add;
  std::vector<std::uint16_t> left, right;
};

}  // namespace

void add_product_cases(std::vector<Case>& cases) {
  constexpr double products = static_cast<double>(n) * n * n;
  static Matrices m;
  const fp16::MatrixOperand left{m.a.data(), fp16::binary32, n, n, n},
      right{m.b.data(), fp16::binary32, n, n, n};
  const Chains expected(m);
  cases.push_back(
      {"eigen_gemm", products, [] { eigen_product(m.a.data(), m.b.data(), m.c.data(), n); }, {}, true});

  cases.push_back(
      {"peak_fma", array_size, [] { benchmark::DoNotOptimize(multiply_adds(array_size)); }, {}, true});

  const auto add_on = [&](fp16::VectorPath path, std::string name, const std::string& peer,
                          const auto& accumulation, float expected_output) {
    const auto work = [=] { fp16::gemm(left, right, m.c.data(), n, accumulation, {.path = path}); };
    work();
    require(m.c[Chains::row * n + Chains::column] == expected_output, name);
    cases.push_back(Case{std::move(name), products, work, {peer}}.moving(bytes_per_product, 2));
  };
  const auto add = [&](std::string name, const auto& accumulation, float expected_output) {
    add_on(fp16::active_vector_path(), std::move(name), "eigen_gemm", accumulation, expected_output);
  };
  add("gemm_fp32_chain", fp16::Accumulation::fp32_fma_chain, expected.fp32_fma);
  // Halves have so few digits that no sum is in doubt; floats have not.
  static std::vector<float> a = normal_values(n * n, "left matrix"), b = normal_values(n * n, "right matrix");
  for (const auto& [name, left_data, right_data] :
       {std::tuple{"portable_fp32_chain", m.a.data(), m.b.data()},
        std::tuple{"portable_fp32_chain_of_floats", a.data(), b.data()}}) {
    const fp16::MatrixOperand x{left_data, fp16::binary32, n, n, n}, y{right_data, fp16::binary32, n, n, n};
    const auto work = [=] {
      fp16::gemm(x, y, m.c.data(), n, fp16::Accumulation::fp32_fma_chain,
                 {.path = fp16::VectorPath::portable});
    };
    work();
    float chain = 0;
    for (std::size_t k = 0; k < n; ++k)
      chain = std::fma(left_data[Chains::row * n + k], right_data[k * n + Chains::column], chain);
    require(m.c[Chains::row * n + Chains::column] == chain, name);
    cases.push_back(Case{name, products, work}.moving(bytes_per_product, 2));
  }
  add("gemm_fp16_fma", fp16::Accumulation::fp16_fma_chain, expected.fp16_fma);
  add("gemm_fp16_mul_add", fp16::Accumulation::fp16_mul_add_chain, expected.fp16_mul_add);
  if (has_avx2()) {
    cases.push_back({"eigen_gemm_avx2",
                     products,
                     [] { eigen_product_avx2(m.a.data(), m.b.data(), m.c.data(), n); },
                     {},
                     true});
    add_on(fp16::VectorPath::avx2_f16c, "gemm_fp16_fma_avx2", "eigen_gemm_avx2",
           fp16::Accumulation::fp16_fma_chain, expected.fp16_fma);
  }
  for (const fp16::TensorCore& core : {fp16::volta, fp16::ampere, fp16::hopper}) {
    add("gemm_tensor_core_" + std::string(core.name), fp16::TensorCoreAccumulation{core, fp16::binary32},
        expected.on_tensor_core(core));
  }
}

}  // namespace bench
