/// Array functions in floating-point environments that are not the default one, as programs linked with
/// -ffast-math have them: the same bits, and the caller's environment as it was.

#include "fp16/vector/environment.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#ifdef __unix__
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "fp16/block_arrays.h"
#include "fp16/bulk.h"
#include "fp16/gemm.h"
#include "fp16/math.h"
#include "fp16/mma.h"
#include "fp16/remainder.h"
#include "fp16/rounding_names.h"
#include "tests/foreign_environment.h"

namespace fp16 {
namespace {

using test::Environment;
using test::environments;
using test::Inside;

/// What tells environments apart, status flags included.
std::vector<int> state() {
  std::vector<int> values{std::fegetround(), std::fetestexcept(FE_ALL_EXCEPT)};
#ifdef __SSE__
  values.push_back(static_cast<int>(_mm_getcsr()));
#endif
  return values;
}

/// Random codes and those around subnormals, ties and overflow.
struct Inputs {
  static constexpr std::size_t size = 5000;
  std::vector<float> floats = std::vector<float>(size);
  std::vector<std::uint16_t> a = std::vector<std::uint16_t>(size), b = a, c = a;
  std::vector<std::uint32_t> random_32 = std::vector<std::uint32_t>(size);
  std::vector<std::uint64_t> random_64 = std::vector<std::uint64_t>(size);

  Inputs() {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t drawn = random();
      const std::uint32_t near_half = (static_cast<std::uint32_t>(drawn >> 32) % 48 + 96) << 23;
      const std::uint32_t exponent = i % 8 == 0   ? 0
                                     : i % 8 == 1 ? static_cast<std::uint32_t>(drawn) & 0x7f800000
                                                  : near_half;
      floats[i] = std::bit_cast<float>(exponent | (static_cast<std::uint32_t>(drawn) & 0x807fffff));
      a[i] = static_cast<std::uint16_t>(random() % (i % 2 == 0 ? 0x10000 : 0x0800));
      b[i] = static_cast<std::uint16_t>(random());
      c[i] = static_cast<std::uint16_t>(random() % (i % 3 == 0 ? 0x10000 : 0x0400));
      random_32[i] = static_cast<std::uint32_t>(random());
      random_64[i] = random();
    }
  }
};

/// All results as bytes.
class Bytes {
 public:
  template <typename Value>
  void append(const std::vector<Value>& values) {
    const auto* first = reinterpret_cast<const unsigned char*>(values.data());
    bytes_.insert(bytes_.end(), first, first + values.size() * sizeof(Value));
  }
  void append(const RoundingCounts& counts) {
    append(std::vector{counts.exact, counts.inexact, counts.subnormal, counts.flushed, counts.overflowed});
  }
  bool operator==(const Bytes&) const = default;

 private:
  std::vector<unsigned char> bytes_;
};

void convert_all(const Inputs& in, const ArrayOptions& options, Bytes& results) {
  for_each_format([&]<const Format & F>() {
    if constexpr (contains(binary32, F)) {
      std::vector<Bits<F>> codes(Inputs::size);
      std::vector<float> decoded(Inputs::size);
      std::vector<std::uint16_t> halves(Inputs::size);
      for (const NamedRounding& row : named_roundings) {
        ArrayOptions each = options;
        if (row.rounding == Rounding::stochastic) each.random_bits_32 = in.random_32;
        encode<F>(in.floats, codes, {.rounding = row.rounding}, each);
        results.append(codes);
        RoundingCounts counts;
        each.counts = &counts;
        encode<F>(in.floats, codes, {.rounding = row.rounding, .saturate = true}, each);
        results.append(codes);
        results.append(counts);
      }
      const std::span<const Bits<F>> written(codes);
      decode<F>(written, decoded, options);
      results.append(decoded);
      convert<binary16, F>(written, halves, {.rounding = Rounding::toward_positive}, options);
      results.append(halves);
    }
  });
}

void operate_on_halves(const Inputs& in, const ArrayOptions& options, Bytes& results) {
  const std::span<const std::uint16_t> a(in.a), b(in.b), c(in.c);
  std::vector<std::uint16_t> out(Inputs::size);
  for (const NamedRounding& row : named_roundings) {
    const Attributes attributes{.rounding = row.rounding};
    RoundingCounts counts;
    for (RoundingCounts* counted : {static_cast<RoundingCounts*>(nullptr), &counts}) {
      ArrayOptions each = options;
      each.counts = counted;
      each.random_bits_64 = in.random_64;
      const auto keep = [&] { results.append(out); };
      add<binary16>(a, b, out, attributes, each), keep();
      subtract<binary16>(a, b, out, attributes, each), keep();
      multiply<binary16>(a, b, out, attributes, each), keep();
      divide<binary16>(a, b, out, attributes, each), keep();
      sqrt<binary16>(a, out, attributes, each), keep();
      fma<binary16>(a, b, c, out, attributes, each), keep();
    }
    results.append(counts);
  }
  transform<binary16>(remainder<binary16>, std::span(out), {}, options, a, b);
  results.append(out);
}

void round_blocks(const Inputs& in, int threads, Bytes& results) {
  for (const BlockFormat* format : block_formats) {
    for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::ceil, ScaleRule::rceil, ScaleRule::even}) {
      for (const bool stochastic : {false, true}) {
        std::vector<float> values = in.floats;
        BlockArrayOptions options{.scale_rule = rule, .threads = threads};
        if (format->has_tensor_scale) options.tensor_scale = 0x1.8p-130f;
        if (stochastic) options.random_bits = in.random_32;
        round_to_blocks(*format, values, {.length = 100}, options);
        results.append(values);
      }
    }
  }
}

void multiply_matrices(const Inputs& in, VectorPath path, int threads, Bytes& results) {
  const std::size_t m = 19, k = 61, n = 23;
  const auto run = [&](auto& c, auto... accumulation) {
    const MatrixOperand a{in.a.data(), binary16, m, k, k}, b{in.c.data(), binary16, k, n, n};
    gemm(a, b, c.data(), n, accumulation..., {.path = path, .threads = threads});
    results.append(c);
  };
  std::vector<float> c(m * n);
  for (const Accumulation accumulation :
       {Accumulation::fp32_fma_chain, Accumulation::fp16_fma_chain, Accumulation::fp16_mul_add_chain})
    run(c, accumulation);
  for (const TensorCore& core : tensor_cores) {
    run(c, TensorCoreAccumulation{core, binary32});
    run(c, TensorCoreAccumulation{core, binary16});
  }
  std::vector<double> wide(m * n);
  run(wide);
}

/// Every array function, and those of math.h that compute in binary64.
Bytes everything(const Inputs& in, VectorPath path, int threads) {
  Bytes results;
  convert_all(in, {.path = path, .threads = threads}, results);
  operate_on_halves(in, {.path = path, .threads = threads}, results);
  round_blocks(in, threads, results);
  multiply_matrices(in, path, threads, results);
  std::vector<std::uint16_t> out(Inputs::size);
  for (const math::PairFunction function : {math::pow, math::hypot, math::atan2}) {
    math::apply(function, in.a, in.b, out, {}, {.threads = threads});
    results.append(out);
    for (std::size_t i = 0; i < 200; ++i) out[i] = function(in.a[i], in.b[i], {}).bits;
    results.append(out);
  }
  return results;
}

#ifdef __unix__
/// FNV-1a of all tables, filled in a process of its own: a table is filled once in a process.
std::uint64_t tables_filled_in(const Environment* environment) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::optional<Inside> inside;
    if (environment != nullptr) inside.emplace(*environment);
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const math::UnaryFunction* function : math::unary_functions()) {
      for (const std::uint32_t entry : function->to_odd()) hash = (hash ^ entry) * 0x100000001b3;
    }
    _exit(write(ends[1], &hash, sizeof hash) == sizeof hash ? 0 : 1);
  }
  std::uint64_t hash = 0;
  const auto read_bytes = read(ends[0], &hash, sizeof hash);
  int status = 1;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
  REQUIRE(status == 0);
  REQUIRE(read_bytes == sizeof hash);
  return hash;
}
#endif

}  // namespace

TEST_CASE("array functions: another environment of the caller changes no bit, on any path and thread") {
  const Inputs in;
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    const Bytes expected = everything(in, path, 1);
    for (const Environment& environment : environments) {
      CAPTURE(environment.name);
      for (const int threads : {1, 3}) {
        bool equal = false, restored = false;
        {
          const Inside inside(environment);
          std::feraiseexcept(FE_DIVBYZERO);
          const std::vector<int> before = state();
          equal = everything(in, path, threads) == expected;
          restored = state() == before;
        }
        CHECK(equal);
        CHECK(restored);
      }
    }
  }
}

#ifdef __unix__
TEST_CASE("math.h: tables filled in another environment are the same") {
  const std::uint64_t expected = tables_filled_in(nullptr);
  for (const Environment& environment : environments) {
    CAPTURE(environment.name);
    CHECK(tables_filled_in(&environment) == expected);
  }
}
#endif

#ifdef __SSE__
TEST_CASE("array functions: exceptions that the caller traps do not trap in them") {
  const Inputs in;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before & ~0x1f80u);
  std::vector<std::uint16_t> out(Inputs::size);
  float_to_half(in.floats, out);
  multiply<binary16>(std::span<const std::uint16_t>(in.a), std::span<const std::uint16_t>(in.b), out);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(after == (before & ~0x1f80u));
}
#endif

}  // namespace fp16
