#include "sim/trainer/allreduce_registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

TEST_CASE("all-reduce orders: each algorithm has one name, which is its enumerator's") {
  std::set<sim::AllReduceAlgorithm> listed;
  for (const sim::AllReduceRow& row : sim::all_reduce_orders()) {
    CHECK(row.name == sim::name_of(row.algorithm));
    CHECK(!row.description.empty());
    CHECK(sim::make_all_reduce(row.name) == sim::AllReduce{.algorithm = row.algorithm});
    listed.insert(row.algorithm);
  }
  std::set<sim::AllReduceAlgorithm> expected(sim::all_reduce_algorithms.begin(),
                                             sim::all_reduce_algorithms.end());
  expected.insert(sim::AllReduceAlgorithm::mpi);
  CHECK(listed == expected);
}

TEST_CASE("all-reduce orders: every choice of options is read back from its own spec") {
  for (const sim::AllReduceAlgorithm algorithm : sim::all_reduce_algorithms) {
    for (const sim::AllReducePrecision precision : sim::all_reduce_precisions) {
      for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
        sim::AllReduce how{.algorithm = algorithm, .precision = precision, .division = division};
        CHECK(sim::make_all_reduce(sim::spec_of(how)) == how);
        how.ring_chunks = sim::RingChunks::even;
        const bool has_chunks = algorithm == sim::AllReduceAlgorithm::ring;
        CHECK((sim::make_all_reduce(sim::spec_of(how)) == how) == has_chunks);
      }
    }
  }
  CHECK(sim::spec_of({}) == "ring:precision=fp16:division=before:chunks=first_longer");
  CHECK(sim::make_all_reduce("direct:division=split:precision=fp32") ==
        sim::AllReduce{.algorithm = sim::AllReduceAlgorithm::direct,
                       .precision = sim::AllReducePrecision::fp32,
                       .division = sim::AllReduceDivision::split});
}

TEST_CASE("all-reduce orders: what is not allowed is named with all that is") {
  const auto error = [](const char* spec) -> std::string {
    try {
      sim::make_all_reduce(spec);
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return "none";
  };
  CHECK(error("rings") ==
        "unknown order of an all-reduce 'rings'; did you mean 'ring'? allowed: ring, binary_tree, "
        "recursive_doubling, rabenseifner, recursive_halving_far_first, direct, direct_descending, mpi");
  CHECK(error("ring:precision=fp8") ==
        "all-reduce 'ring': unknown precision 'fp8'; allowed: fp16, fp32_accumulation, bf16, "
        "bf16_fp32_accumulation, fp32");
  CHECK(error("direct:chunks=even") ==
        "all-reduce 'direct': unknown option 'chunks'; allowed: precision, division");
  CHECK(error("ring:division") != "none");
  CHECK(error("mpi:precision=fp32_accumulation") ==
        "all-reduce 'mpi': unknown precision 'fp32_accumulation'; allowed: fp16, fp32");
  CHECK(sim::spec_of(sim::make_all_reduce("mpi:division=after")) == "mpi:precision=fp16:division=after");
}
