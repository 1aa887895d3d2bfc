/// Runs one case a number of times, for its instructions to be counted: `instruction_cases CASE ours|limit TIMES`. Without
/// arguments it lists the cases. The limit of an operation is a plain loop over the processor's instructions, that of a product
/// Eigen's of floats.

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/gemm.h"
#include "fp16/half.h"
#include "tests/bench/peers.h"
#include "tests/oracle/hard_cases.h"

namespace {

using fp16::binary16;

constexpr std::size_t size = 1 << 14, n = 192;

struct Data {
  std::vector<float> floats = std::vector<float>(size), a = std::vector<float>(n * n), b = a, c = a;
  std::vector<std::uint16_t> x = std::vector<std::uint16_t>(size), y = x, z = x, out = x;
  std::vector<float> widened = floats;

  /// Halves from 1/4 to 4 in magnitude, but roots need them positive.
  Data() {
    oracle::RandomBits random(1);
    for (std::vector<std::uint16_t>* codes : {&x, &y, &z}) {
      for (std::uint16_t& code : *codes) code = static_cast<std::uint16_t>(0x3400 + random.below(0x1000));
    }
    for (std::size_t i = 0; i < size; ++i) floats[i] = fp16::half_bits_to_float(x[i]) * 1.001f;
    for (std::vector<float>* matrix : {&a, &b}) {
      for (float& value : *matrix)
        value = fp16::half_bits_to_float(
            static_cast<std::uint16_t>(0x3400 + random.below(0x400) + (random.below(2) << 15)));
    }
  }
};

#ifdef __aarch64__
constexpr auto eigen_product = bench::eigen_product;
#else
constexpr auto eigen_product = bench::eigen_product_avx2;
#endif

struct Case {
  std::function<void()> ours, limit;
};

void operate(std::size_t row, Data& d) {
  switch (row) {
    case 0:
      return fp16::add<binary16>(d.x, d.y, d.out);
    case 1:
      return fp16::multiply<binary16>(d.x, d.y, d.out);
    case 2:
      return fp16::divide<binary16>(d.x, d.y, d.out);
    case 3:
      return fp16::sqrt<binary16>(d.x, d.out);
    default:
      return fp16::fma<binary16>(d.x, d.y, d.z, d.out);
  }
}

std::map<std::string, Case> cases_on(Data& d, const bench::HalfLoops& limit) {
  std::map<std::string, Case> cases{{"float_to_half",
                                     {[&] { fp16::float_to_half(d.floats, d.out); },
                                      [&] { limit.float_to_half(d.floats.data(), d.out.data(), size); }}},
                                    {"half_to_float",
                                     {[&] { fp16::half_to_float(d.x, d.widened); },
                                      [&] { limit.half_to_float(d.x.data(), d.widened.data(), size); }}}};
  for (std::size_t row = 0; row < bench::half_loop_names.size(); ++row) {
    cases[std::string(bench::half_loop_names[row])] = {
        [&d, row] { operate(row, d); },
        [&, row] { limit.operations[row](d.x.data(), d.y.data(), d.z.data(), d.out.data(), size); }};
  }
  const auto product = [&d](fp16::Accumulation accumulation) {
    return Case{[&d, accumulation] {
                  fp16::gemm({d.a.data(), fp16::binary32, n, n, n}, {d.b.data(), fp16::binary32, n, n, n},
                             d.c.data(), n, accumulation);
                },
                [&d] { eigen_product(d.a.data(), d.b.data(), d.c.data(), n); }};
  };
  cases["gemm_fp32_chain"] = product(fp16::Accumulation::fp32_fma_chain);
  cases["gemm_fp16_fma"] = product(fp16::Accumulation::fp16_fma_chain);
  cases["gemm_fp16_mul_add"] = product(fp16::Accumulation::fp16_mul_add_chain);
  return cases;
}

const bench::HalfLoops& limit_here() {
#ifdef __aarch64__
  return fp16::active_vector_path() == fp16::VectorPath::neon_fp16 ? bench::neon_fp16_limit
                                                                   : bench::neon_limit;
#else
  return bench::avx2_limit;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  Data data;
  const std::map<std::string, Case> cases = cases_on(data, limit_here());
  if (argc != 4) {
    for (const auto& [name, each] : cases) std::printf("%s\n", name.c_str());
    return 0;
  }
  const Case& chosen = cases.at(argv[1]);
  const std::function<void()>& run = argv[2] == std::string("ours") ? chosen.ours : chosen.limit;
  for (int i = 0; i < std::atoi(argv[3]); ++i) run();
}
