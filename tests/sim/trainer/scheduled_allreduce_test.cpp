#include "sim/trainer/scheduled_allreduce.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fp16/reveal_order.h"
#include "sim/trainer/allreduce_arithmetic.h"
#include "sim/trainer/allreduce_registry.h"
#include "sim/trainer/revealed_order.h"
#include "tests/sim/trainer/ranks.h"

namespace {

using sim::AllReduce;
using sim::AllReducePrecision;
using training_runs::Wires;

using Workers = std::vector<std::vector<float>>;

/// Finite halves of all magnitudes, whose sums round, cancel and overflow.
Workers random_halves(std::size_t workers, std::size_t elements) {
  std::mt19937 random(static_cast<unsigned>(31 * workers + elements));
  Workers drawn(workers, std::vector<float>(elements));
  for (std::vector<float>& worker : drawn) {
    std::vector<std::uint16_t> codes;
    for (std::size_t i = 0; i < elements; ++i)
      codes.push_back(static_cast<std::uint16_t>((random() % 2 << 15) | (0x3c00 + random() % 0x3fff)));
    fp16::half_to_float(codes, worker);
  }
  return drawn;
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values)
    bits.push_back(std::isnan(value) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// By sums of codes, which are divided here.
std::vector<float> mean_by_codes(sim::Wire& wire, std::vector<float> values, const AllReduce& how,
                                 sim::AllReduceSpace& space) {
  sim::AllReduceArithmetic arithmetic(how, wire.ranks());
  arithmetic.divide_before(values);
  std::vector<std::uint16_t> codes(values.size());
  sim::encode_for_wire(how.precision, values, codes);
  sim::sum_over(wire, codes, how, space);
  sim::decode_from_wire(how.precision, codes, values);
  arithmetic.divide_after(values);
  return values;
}

void check_all_ranks(Workers workers, const AllReduce& how) {
  for (std::vector<float>& worker : workers) sim::round_to_wire(how.precision, worker);
  INFO(sim::spec_of(how), " of ", workers.size(), " ranks, ", workers[0].size(), " elements");
  const std::vector<std::span<const float>> views(workers.begin(), workers.end());
  const std::vector<std::uint32_t> expected = bits_of(sim::all_reduce_mean(views, how).values);
  std::vector<std::vector<std::uint32_t>> found(workers.size()), by_codes(workers.size());
  Wires wires(workers.size());
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    sim::AllReduceSpace space;
    sim::all_reduce_over(wire, random_halves(1, 7)[0], how, space);  // leaves something there
    found[rank] = bits_of(sim::all_reduce_over(wire, workers[rank], how, space));
    if (how.precision != AllReducePrecision::fp32)
      by_codes[rank] = bits_of(mean_by_codes(wire, workers[rank], how, space));
  });
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    CHECK(found[rank] == expected);
    if (how.precision != AllReducePrecision::fp32) CHECK(by_codes[rank] == expected);
  }
}

/// Sums of halves by the trees of a ring of Open MPI's, element by element.
float add_halves(float a, float b) {
  const float sum = a + b;
  std::uint16_t code = 0;
  float rounded = 0;
  fp16::float_to_half(std::span(&sum, 1), std::span(&code, 1));
  fp16::half_to_float(std::span(&code, 1), std::span(&rounded, 1));
  return rounded;
}

/// Those from worker `first` on, round the ring.
float ring_from(std::span<const float> terms, std::size_t first) {
  float sum = terms[first % terms.size()];
  for (std::size_t hop = 1; hop < terms.size(); ++hop)
    sum = add_halves(sum, terms[(first + hop) % terms.size()]);
  return sum;
}

std::string refusal_of(Wires& wires, AllReducePrecision precision = AllReducePrecision::fp16) {
  std::size_t refused = 0;
  std::mutex mutex;
  std::string what;
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t) {
    try {
      sim::reveal(wire, 7, precision);
    } catch (const std::runtime_error& error) {
      const std::scoped_lock lock(mutex);
      ++refused;
      what = error.what();
    }
  });
  CHECK((refused == 0 || refused == 4));  // never on some ranks alone, which others would wait for
  return what;
}

}  // namespace

TEST_CASE(
    "all-reduce over wires: every order, precision and division has the bits of virtual ranks on every "
    "rank") {
  for (const std::size_t ranks : {1, 2, 3, 4, 7, 8}) {
    for (const std::size_t elements : {1, 5, 203}) {
      const Workers workers = random_halves(ranks, elements);
      for (const sim::AllReduceAlgorithm algorithm : sim::all_reduce_algorithms) {
        for (const AllReducePrecision precision : sim::all_reduce_precisions)
          check_all_ranks(workers, {.algorithm = algorithm, .precision = precision});
        check_all_ranks(workers, {.algorithm = algorithm, .division = sim::AllReduceDivision::after});
      }
      check_all_ranks(workers,
                      {.division = sim::AllReduceDivision::split, .ring_chunks = sim::RingChunks::even});
    }
  }
}

TEST_CASE(
    "all-reduce over wires: long arrays go in pieces, of which a chunk may have one more than the next") {
  for (const std::size_t ranks : {3, 5}) {
    const Workers workers = random_halves(ranks, ranks * 2 * sim::all_reduce_piece + 1);
    for (const sim::AllReduceAlgorithm algorithm : sim::all_reduce_algorithms)
      check_all_ranks(workers, {.algorithm = algorithm});
    check_all_ranks(workers, {.precision = AllReducePrecision::fp32});
  }
}

TEST_CASE("all-reduce over wires: what no carrier adds is refused before anything is sent") {
  sim::TrialWire wire(0, 2);
  CHECK_THROWS_WITH_AS(sim::reveal(wire, 3, AllReducePrecision::bf16),
                       "a carrier's sums in bf16; allowed: fp16, fp32", std::invalid_argument);
  AllReduce how = sim::make_all_reduce("mpi");
  how.precision = AllReducePrecision::bf16_fp32_accumulation;
  sim::AllReduceSpace space;
  const std::vector<float> own(3);
  CHECK_THROWS_AS(sim::all_reduce_over(wire, own, how, space), std::invalid_argument);
  std::vector<std::uint16_t> codes(3);
  CHECK_THROWS_WITH_AS(
      sim::sum_over(wire, codes, sim::make_all_reduce("ring:precision=fp32"), space),
      "a sum of codes in fp32; allowed: fp16, fp32_accumulation, bf16, bf16_fp32_accumulation",
      std::invalid_argument);
}

TEST_CASE("revealed orders: each piece has its tree, and the bits of a replay are the carrier's") {
  const std::size_t ranks = 5, elements = 12, chunk = 3;
  Wires wires(ranks);
  wires.sum = [&](std::span<const float> terms, std::size_t element, std::size_t) {
    return ring_from(terms, element / chunk);
  };
  const Workers workers = random_halves(ranks, elements);
  std::vector<std::string> texts(ranks);
  std::vector<std::vector<float>> means(ranks);
  AllReduce how = sim::make_all_reduce("mpi");
  wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
    texts[rank] = sim::reveal(wire, elements, how.precision).text();
    sim::AllReduceSpace space;
    const std::span<const float> mean = sim::all_reduce_over(wire, workers[rank], how, space);
    means[rank].assign(mean.begin(), mean.end());
  });
  for (const std::string& text : texts)
    CHECK(text ==
          "0-2: ((((0+1)+2)+3)+4); 3-5: (0+(((1+2)+3)+4)); 6-8: ((0+((2+3)+4))+1); "
          "9-11: (((0+(3+4))+1)+2)");
  const sim::RevealedOrder order = sim::revealed_order_from(texts[0]);
  CHECK(order.text() == texts[0]);
  const sim::RevealedOrders orders{{order}};
  how.revealed = &orders;
  const std::vector<std::span<const float>> views(workers.begin(), workers.end());
  const std::vector<float> replayed = sim::all_reduce_mean(views, how).values;
  for (const std::vector<float>& mean : means) CHECK(bits_of(mean) == bits_of(replayed));
  CHECK(sim::known_names(order) == "another");  // the fifth chunk is missing
}

TEST_CASE("revealed orders: those of sim are told by their names") {
  const auto name_of_sum = [](std::size_t ranks, std::size_t elements, const Wires::Sum& sum) {
    Wires wires(ranks);
    wires.sum = sum;
    std::string name;
    wires.on_all_ranks([&](sim::Wire& wire, std::size_t rank) {
      const sim::RevealedOrder order = sim::reveal(wire, elements, AllReducePrecision::fp16);
      if (rank == 0) name = sim::known_names(order);
    });
    return name;
  };
  CHECK(name_of_sum(4, 4, [](auto terms, std::size_t i, std::size_t) { return ring_from(terms, i); }) ==
        "ring");
  CHECK(name_of_sum(4, 9, [](auto terms, std::size_t, std::size_t) { return ring_from(terms, 0); }) ==
        "direct");
  CHECK(name_of_sum(4, 9, [](auto t, std::size_t, std::size_t) {
          return add_halves(add_halves(t[0], t[1]), add_halves(t[2], t[3]));
        }) == "recursive_doubling, rabenseifner");
  CHECK(name_of_sum(1, 9, [](auto t, std::size_t, std::size_t) { return t[0]; }) != "another");
}

TEST_CASE(
    "revealed orders: an operation that is no addition of halves, or another one on a rank, is found on all "
    "ranks") {
  Wires wires(4);
  wires.sum = [](auto terms, std::size_t, std::size_t) { return ring_from(terms, 0); };
  CHECK(refusal_of(wires).empty());
  wires.sum = [](auto terms, std::size_t, std::size_t) { return *std::ranges::max_element(terms); };
  CHECK(refusal_of(wires).find("is no sum in binary16") != std::string::npos);
  wires.sum = [](auto t, std::size_t, std::size_t) {
    return add_halves(add_halves(t[0], -t[1]), add_halves(t[2], t[3]));
  };
  CHECK(refusal_of(wires).find("is no sum in binary16") != std::string::npos);
  wires.sum = [](auto t, std::size_t, std::size_t) {
    return add_halves((t[0] + t[1]) + t[2], t[3]);
  };  // rounds too late
  CHECK(refusal_of(wires).find("in the order (((0+1)+2)+3)") != std::string::npos);
  wires.sum = [](auto terms, std::size_t i, std::size_t rank) {
    return rank == 2 && i == 5 ? ring_from(terms, 1) : ring_from(terms, 0);
  };
  CHECK(refusal_of(wires).find("element 5 of 7") != std::string::npos);
  CHECK(refusal_of(wires).find("on rank 2") != std::string::npos);
}

TEST_CASE("revealed orders: what is not their text, or not of this run, is refused in one line") {
  for (const char* const text :
       {"0-2", "0-2: (0+1", "0-2: (0+0)", "0-2: (0+2)", "1-2: (0+1)", "0-2: (0+1); 4-5: (0+1)",
        "0-2: (0+1); 3-4: ((0+1)+2)", "2-0: (0+1)", "0-2: (0)", "0-2: (0+1)x"})
    CHECK_THROWS_AS(sim::revealed_order_from(text), std::invalid_argument);
  CHECK(sim::revealed_order_from("").pieces.empty());
  AllReduce how = sim::make_all_reduce("mpi");
  const Workers workers = random_halves(2, 3);
  const std::vector<std::span<const float>> views(workers.begin(), workers.end());
  CHECK_THROWS_AS(sim::all_reduce_mean(views, how), std::invalid_argument);
  const sim::RevealedOrders orders{{sim::revealed_order_from("0-3: (0+1)")}};
  how.revealed = &orders;
  CHECK_THROWS_AS(sim::all_reduce_mean(views, how), std::invalid_argument);
}
