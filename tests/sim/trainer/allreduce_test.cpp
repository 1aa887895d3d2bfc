#include "sim/trainer/allreduce.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/oracle/exact_half.h"

namespace {

using sim::AllReduce;
using sim::AllReduceAlgorithm;
using sim::AllReduceDivision;
using sim::AllReducePrecision;

using Workers = std::vector<std::vector<float>>;

float value_of(std::uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31 && fraction != 0) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 31  ? std::numeric_limits<float>::infinity()
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

std::uint16_t half_of(float value) {
  return oracle::from_binary32(std::bit_cast<std::uint32_t>(value))[0].bits;
}

float rounded(float value) {
  return value_of(half_of(value));
}

sim::AllReducedMean mean_of(const Workers& workers, const AllReduce& how) {
  const std::vector<std::span<const float>> views(workers.begin(), workers.end());
  return sim::all_reduce_mean(views, how);
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Halves of all magnitudes up to 2^largest_exponent, so that sums round, cancel and, from 2^14 on, overflow.
Workers random_halves(std::size_t workers, std::size_t elements, int largest_exponent = 15) {
  std::mt19937 random(static_cast<unsigned>(workers));
  const auto codes = static_cast<std::uint32_t>(largest_exponent + 15) << 10;
  Workers drawn(workers, std::vector<float>(elements));
  for (std::vector<float>& worker : drawn) {
    for (float& value : worker) {
      const std::uint32_t magnitude = random() % 2 ? codes - 1 - random() % 4096 : random() % codes;
      value = value_of(static_cast<std::uint16_t>(magnitude | random() % 2 << 15));
    }
  }
  return drawn;
}

/// The sum of two partial sums as one hop forms it.
using Add = std::function<float(float, float)>;
/// A sum of one element of every worker, each addition written out; `chunk` is the ring's.
using Order = std::function<float(const Add& add, const std::vector<float>& g, std::size_t chunk)>;

float exact_add(float a, float b) {
  return value_of(oracle::add(half_of(a), half_of(b))[0].bits);
}

/// By its definition, in the magnitudes of random_halves(), of which binary64 holds all sums.
float rounded_to_bfloat16(double value) {
  int exponent = 0;
  const double significand = std::frexp(value, &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(significand, 8)), exponent - 8));
}

float bfloat16_add(float a, float b) {
  return rounded_to_bfloat16(static_cast<double>(a) + b);
}

float float_add(float a, float b) {
  return a + b;
}

Workers in_bfloat16(Workers workers) {
  for (std::vector<float>& worker : workers) {
    for (float& value : worker) value = rounded_to_bfloat16(value);
  }
  return workers;
}

float rounded_to_wire(AllReducePrecision precision, float value) {
  if (precision == AllReducePrecision::fp32) return value;
  return sim::wire_format(precision) == fp16::bfloat16 ? rounded_to_bfloat16(value) : rounded(value);
}

void check_order(const Workers& workers, const AllReduce& how, const Add& add, const Order& order) {
  const std::size_t count = workers.size(), elements = workers[0].size();
  const std::vector<float> mean = mean_of(workers, how).values;
  REQUIRE(mean.size() == elements);
  for (std::size_t chunk = 0, i = 0; chunk < count; ++chunk) {
    const std::size_t longer = chunk < elements % count ? 1 : 0;
    for (const std::size_t last = i + elements / count + longer; i < last; ++i) {
      std::vector<float> g;
      for (const std::vector<float>& worker : workers) g.push_back(worker[i]);
      const float sum = order(add, g, chunk);
      const float expected =
          rounded_to_wire(how.precision, rounded_to_wire(how.precision, sum) / static_cast<float>(count));
      INFO(std::string(sim::name_of(how.algorithm)), " element ", i);
      if (std::isnan(expected)) {
        CHECK(std::isnan(mean[i]));
      } else {
        CHECK(std::bit_cast<std::uint32_t>(mean[i]) == std::bit_cast<std::uint32_t>(expected));
      }
    }
  }
}

/// In binary16, in bfloat16 and, where the rounding of sums is left out, in binary32.
void check_order(AllReduceAlgorithm algorithm, const Workers& workers, const Order& order) {
  const AllReduce fp16{.algorithm = algorithm, .division = AllReduceDivision::after};
  check_order(workers, fp16, exact_add, order);
  AllReduce fp32 = fp16;
  fp32.precision = AllReducePrecision::fp32;
  check_order(workers, fp32, float_add, order);
  AllReduce bf16 = fp16;
  bf16.precision = AllReducePrecision::bf16;
  check_order(in_bfloat16(workers), bf16, bfloat16_add, order);
}

template <class Visit>
void for_each_all_reduce(Visit&& visit) {
  for (const AllReduceAlgorithm algorithm : sim::all_reduce_algorithms) {
    for (const AllReducePrecision precision : sim::all_reduce_precisions) {
      for (const AllReduceDivision division : sim::all_reduce_divisions) {
        INFO(std::string(sim::name_of(algorithm)), " ", std::string(sim::name_of(precision)), " ",
             std::string(sim::name_of(division)));
        visit(AllReduce{.algorithm = algorithm, .precision = precision, .division = division});
      }
    }
  }
}

}  // namespace

TEST_CASE("all-reduce: the additions of 8 workers, written out") {
  const Workers workers = random_halves(8, 203);
  check_order(AllReduceAlgorithm::ring, workers, [](const Add& add, const auto& g, std::size_t c) {
    const auto at = [&](std::size_t k) { return g[(c + k) % 8]; };
    return add(add(add(add(add(add(add(at(0), at(1)), at(2)), at(3)), at(4)), at(5)), at(6)), at(7));
  });
  check_order(AllReduceAlgorithm::binary_tree, workers, [](const Add& add, const auto& g, std::size_t) {
    const float two = add(add(g[2], g[1]), g[3]), six = add(add(g[6], g[5]), g[7]);
    return add(g[0], add(add(g[4], two), six));
  });
  check_order(AllReduceAlgorithm::recursive_doubling, workers,
              [](const Add& add, const auto& g, std::size_t) {
                return add(add(add(g[0], g[1]), add(g[2], g[3])), add(add(g[4], g[5]), add(g[6], g[7])));
              });
  check_order(AllReduceAlgorithm::recursive_halving_far_first, workers,
              [](const Add& add, const auto& g, std::size_t) {
                return add(add(add(g[0], g[4]), add(g[2], g[6])), add(add(g[1], g[5]), add(g[3], g[7])));
              });
  check_order(AllReduceAlgorithm::direct, workers, [](const Add& add, const auto& g, std::size_t) {
    return add(add(add(add(add(add(add(g[0], g[1]), g[2]), g[3]), g[4]), g[5]), g[6]), g[7]);
  });
  check_order(AllReduceAlgorithm::direct_descending, workers, [](const Add& add, const auto& g, std::size_t) {
    return add(add(add(add(add(add(add(g[7], g[6]), g[5]), g[4]), g[3]), g[2]), g[1]), g[0]);
  });
}

TEST_CASE("all-reduce: Rabenseifner's has recursive doubling's bits, whatever the number of workers") {
  for (const std::size_t count : {2u, 3u, 4u, 6u, 7u, 8u, 13u, 16u}) {
    const Workers workers = random_halves(count, 200, 12);
    for_each_all_reduce([&](AllReduce how) {
      if (how.algorithm != AllReduceAlgorithm::rabenseifner) return;
      const std::vector<float> mean = mean_of(workers, how).values;
      how.algorithm = AllReduceAlgorithm::recursive_doubling;
      CHECK(bits_of(mean) == bits_of(mean_of(workers, how).values));
      how.algorithm = AllReduceAlgorithm::recursive_halving_far_first;
      const bool same_pairs = count < 4;
      if (how.precision == AllReducePrecision::fp32)
        CHECK((bits_of(mean) == bits_of(mean_of(workers, how).values)) == same_pairs);
    });
  }
}

TEST_CASE("all-reduce: where a ring cuts 11 elements among 4 workers") {
  const Workers workers = random_halves(4, 11, 12);
  const auto check = [&](sim::RingChunks chunks, const std::vector<std::size_t>& chunk_of) {
    const std::vector<float> mean = mean_of(workers, {.algorithm = AllReduceAlgorithm::ring,
                                                      .precision = AllReducePrecision::fp32,
                                                      .division = AllReduceDivision::after,
                                                      .ring_chunks = chunks})
                                        .values;
    for (std::size_t i = 0; i < 11; ++i) {
      float sum = workers[chunk_of[i]][i];
      for (std::size_t hop = 1; hop < 4; ++hop) sum += workers[(chunk_of[i] + hop) % 4][i];
      CHECK(mean[i] == sum / 4);
    }
  };
  check(sim::RingChunks::first_longer, {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3});
  check(sim::RingChunks::even, {0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
}

TEST_CASE("all-reduce: the additions of numbers of workers that are no power of two, written out") {
  const Workers three = random_halves(3, 100), seven = random_halves(7, 100),
                fourteen = random_halves(14, 100);
  check_order(AllReduceAlgorithm::ring, three, [](const Add& add, const auto& g, std::size_t c) {
    return add(add(g[c], g[(c + 1) % 3]), g[(c + 2) % 3]);
  });
  check_order(AllReduceAlgorithm::direct, three,
              [](const Add& add, const auto& g, std::size_t) { return add(add(g[0], g[1]), g[2]); });
  check_order(AllReduceAlgorithm::recursive_doubling, three,
              [](const Add& add, const auto& g, std::size_t) { return add(add(g[0], g[1]), g[2]); });
  check_order(AllReduceAlgorithm::recursive_doubling, seven, [](const Add& add, const auto& g, std::size_t) {
    return add(add(add(g[0], g[1]), add(g[2], g[3])), add(add(g[4], g[5]), g[6]));
  });
  check_order(AllReduceAlgorithm::recursive_halving_far_first, seven,
              [](const Add& add, const auto& g, std::size_t) {
                return add(add(add(g[0], g[1]), add(g[4], g[5])), add(add(g[2], g[3]), g[6]));
              });
  // The tree that NCCL's source draws: 12 has the children 10 and 13.
  check_order(AllReduceAlgorithm::binary_tree, fourteen, [](const Add& add, const auto& g, std::size_t) {
    const auto parent = [&](float own, float first, float second) { return add(add(own, first), second); };
    const float four = parent(g[4], parent(g[2], g[1], g[3]), parent(g[6], g[5], g[7]));
    const float twelve = parent(g[12], parent(g[10], g[9], g[11]), g[13]);
    return add(g[0], parent(g[8], four, twelve));
  });
}

TEST_CASE("all-reduce: where FP32 accumulation rounds") {
  const Workers workers = random_halves(8, 200);
  const AllReduce how{.precision = AllReducePrecision::fp32_accumulation,
                      .division = AllReduceDivision::after};
  AllReduce direct = how, tree = how;
  direct.algorithm = AllReduceAlgorithm::direct;
  tree.algorithm = AllReduceAlgorithm::binary_tree;
  check_order(workers, direct, float_add, [](const Add& add, const auto& g, std::size_t) {
    return add(add(add(add(add(add(add(g[0], g[1]), g[2]), g[3]), g[4]), g[5]), g[6]), g[7]);
  });
  check_order(workers, tree, float_add, [](const Add& add, const auto& g, std::size_t) {
    const float two = rounded(add(add(g[2], g[1]), g[3])), six = rounded(add(add(g[6], g[5]), g[7]));
    return add(g[0], rounded(add(add(g[4], two), six)));
  });
}

TEST_CASE("all-reduce: where FP32 accumulation rounds between messages in bfloat16") {
  const AllReduce tree{.algorithm = AllReduceAlgorithm::binary_tree,
                       .precision = AllReducePrecision::bf16_fp32_accumulation,
                       .division = AllReduceDivision::after};
  check_order(in_bfloat16(random_halves(8, 200)), tree, float_add,
              [](const Add& add, const auto& g, std::size_t) {
                const float two = rounded_to_bfloat16(add(add(g[2], g[1]), g[3])),
                            six = rounded_to_bfloat16(add(add(g[6], g[5]), g[7]));
                return add(g[0], rounded_to_bfloat16(add(add(g[4], two), six)));
              });
}

TEST_CASE("all-reduce: bfloat16 keeps what FP16 flushes and what overflows it") {
  const Workers small(4, std::vector<float>{0x1p-40f}), large(4, std::vector<float>{0x1p40f});
  for (const Workers& workers : {small, large}) {
    const auto mean = mean_of(workers, {.precision = AllReducePrecision::bf16});
    CHECK(mean.values[0] == workers[0][0]);
    CHECK(mean.predivision.flushed == 0);
  }
  const Workers smallest(4, std::vector<float>{0x1p-133f});  // a fourth of it is none of bfloat16's numbers
  const auto mean = mean_of(smallest, {.precision = AllReducePrecision::bf16});
  CHECK(mean.values[0] == 0);
  CHECK(mean.predivision.flushed == 4);
}

TEST_CASE("all-reduce: with two values at a time FP32 accumulation changes no bit") {
  for (const std::size_t count : {2u, 5u, 8u, 64u}) {
    const Workers workers = random_halves(count, 1000, 10);
    for (const AllReduceAlgorithm algorithm :
         {AllReduceAlgorithm::ring, AllReduceAlgorithm::recursive_doubling, AllReduceAlgorithm::rabenseifner,
          AllReduceAlgorithm::recursive_halving_far_first}) {
      for (const AllReduceDivision division : sim::all_reduce_divisions) {
        const AllReduce fp16{.algorithm = algorithm, .division = division};
        AllReduce accumulated = fp16;
        accumulated.precision = AllReducePrecision::fp32_accumulation;
        CHECK(bits_of(mean_of(workers, fp16).values) == bits_of(mean_of(workers, accumulated).values));
        AllReduce bf16 = fp16, bf16_accumulated = fp16;
        bf16.precision = AllReducePrecision::bf16;
        bf16_accumulated.precision = AllReducePrecision::bf16_fp32_accumulation;
        CHECK(bits_of(mean_of(in_bfloat16(workers), bf16).values) ==
              bits_of(mean_of(in_bfloat16(workers), bf16_accumulated).values));
      }
    }
  }
  const Workers workers = random_halves(64, 1000, 10);
  for (const AllReduceAlgorithm algorithm : {AllReduceAlgorithm::binary_tree, AllReduceAlgorithm::direct}) {
    const AllReduce fp16{.algorithm = algorithm};
    AllReduce accumulated = fp16;
    accumulated.precision = AllReducePrecision::fp32_accumulation;
    CHECK(mean_of(workers, fp16).values != mean_of(workers, accumulated).values);
  }
}

TEST_CASE("all-reduce: sums of integers that all formats hold are exact in every order") {
  for (const std::size_t count : {2u, 3u, 4u, 7u, 8u, 14u, 32u}) {
    const std::size_t elements = 45;
    Workers workers(count, std::vector<float>(elements));
    std::vector<float> expected(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      int sum = 0;
      for (std::size_t worker = 0; worker < count; ++worker) {
        // Multiples of 4 N: their quotients by N and by the factors of `split` are integers too.
        const int term = static_cast<int>((7 * i + 3 * worker) % 4) - 1;
        workers[worker][i] = static_cast<float>(4 * static_cast<int>(count) * term);
        sum += term;
      }
      expected[i] = static_cast<float>(4 * sum);
    }
    for_each_all_reduce([&](const AllReduce& how) { CHECK(mean_of(workers, how).values == expected); });
  }
}

TEST_CASE("all-reduce: the mean of one worker is its own gradient") {
  const Workers halves = random_halves(1, 100);
  for_each_all_reduce([&](const AllReduce& how) {
    const Workers workers = sim::wire_format(how.precision) == fp16::bfloat16 ? in_bfloat16(halves) : halves;
    const sim::AllReducedMean mean = mean_of(workers, how);
    CHECK(bits_of(mean.values) == bits_of(workers[0]));
    CHECK(mean.predivision == fp16::RoundingCounts{});
  });
}

TEST_CASE("all-reduce: an array that is shorter than the ring, and an empty one") {
  const Workers workers{{1}, {2}, {4}, {9}}, empty(4);
  for_each_all_reduce([&](const AllReduce& how) {
    CHECK(mean_of(workers, how).values == std::vector<float>{4});
    CHECK(mean_of(empty, how).values.empty());
  });
}

TEST_CASE("all-reduce: what is divided before the sum") {
  using enum AllReduceDivision;
  for (const auto& [workers, factor] : std::vector<std::pair<std::size_t, double>>{
           {1, 1}, {2, 2}, {3, 2}, {4, 2}, {6, 4}, {7, 2}, {8, 4}, {16, 4}, {32, 8}, {12, 4}, {4096, 64}}) {
    CHECK(sim::predivisor(before, workers) == static_cast<double>(workers));
    CHECK(sim::predivisor(split, workers) == factor);
    CHECK(sim::predivisor(after, workers) == 1);
  }
}

TEST_CASE("all-reduce: quotients are those of binary16, for every half") {
  for (const std::size_t count : {2u, 3u, 7u, 1000u}) {
    Workers workers(count, std::vector<float>(0x7C00));
    for (std::uint16_t code = 0; code < 0x7C00; ++code) workers[0][code] = value_of(code);
    const std::uint16_t divisor = half_of(static_cast<float>(count));
    const AllReduce how{.algorithm = AllReduceAlgorithm::recursive_doubling};
    const std::vector<float> mean = mean_of(workers, how).values;
    int wrong = 0;
    for (std::uint16_t code = 0; code < 0x7C00; ++code)
      wrong += mean[code] != value_of(oracle::divide(code, divisor)[0].bits);
    CHECK(wrong == 0);
  }
}

TEST_CASE("all-reduce: small values vanish by the division before, large ones overflow without it") {
  using enum AllReduceDivision;
  const float tiny = 0x1p-24f;
  const Workers workers(8, {tiny, 2 * tiny, 4 * tiny, 5 * tiny, 0, 16384});
  const float infinity = std::numeric_limits<float>::infinity();
  for (const AllReduceAlgorithm algorithm : sim::all_reduce_algorithms) {
    // By 8: of 1, 2 and 4 units 1/8, 1/4 and, a tie, 1/2 become nothing; of 5 units 5/8 become 1.
    const sim::AllReducedMean divided_before = mean_of(workers, {.algorithm = algorithm, .division = before});
    CHECK(divided_before.values == std::vector<float>{0, 0, 0, 8 * tiny, 0, 16384});
    CHECK(divided_before.predivision.flushed == 3 * 8);
    // By 4: 1/4 and 1/2 become nothing; 5/4 become 1, of 8 of which half is left.
    const sim::AllReducedMean split_division = mean_of(workers, {.algorithm = algorithm, .division = split});
    CHECK(split_division.values == std::vector<float>{0, 0, 4 * tiny, 4 * tiny, 0, 16384});
    CHECK(split_division.predivision.flushed == 2 * 8);
    const sim::AllReducedMean divided_after = mean_of(workers, {.algorithm = algorithm, .division = after});
    CHECK(divided_after.values == std::vector<float>{tiny, 2 * tiny, 4 * tiny, 5 * tiny, 0, infinity});
    CHECK(divided_after.predivision.flushed == 0);
    CHECK(mean_of(workers, {.algorithm = algorithm, .precision = AllReducePrecision::fp32, .division = after})
              .values == workers[0]);
  }
}

TEST_CASE("all-reduce: the exact mean is exact, up to 8192 workers") {
  const Workers workers = random_halves(4096, 20);
  const std::vector<std::span<const float>> views(workers.begin(), workers.end());
  const std::vector<double> mean = sim::exact_mean(views);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    oracle::Rational sum = 0;
    for (const std::vector<float>& worker : workers) sum += oracle::exact_value(double{worker[i]});
    CHECK(oracle::exact_value(mean[i]) * 4096 == sum);
  }
  // The largest half 8191 times and the smallest once: all the bits that there can be.
  const std::vector<float> largest{65504}, smallest{0x1p-24f};
  std::vector<std::span<const float>> extreme(8191, largest);
  extreme.push_back(smallest);
  CHECK(oracle::exact_value(sim::exact_mean(extreme)[0]) * 8192 ==
        oracle::Rational(65504) * 8191 + oracle::exact_value(0x1p-24));
  extreme.push_back(smallest);
  CHECK_THROWS_WITH_AS(sim::exact_mean(extreme), "exact mean: 8193 workers; allowed: at most 8192",
                       std::invalid_argument);
}

TEST_CASE("all-reduce: no workers and workers of different lengths are refused") {
  CHECK_THROWS_WITH_AS(mean_of({}, {}), "all-reduce: there are no workers; allowed: 1 or more",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(mean_of({{1, 2}, {1, 2}, {1}}, {}),
                       "all-reduce: worker 2 has 1 values; allowed: 2, as many as worker 0 has",
                       std::invalid_argument);
}
