/// As one of several ranks: is what they all-reduce over MPI bit for bit what virtual ranks have? A row for each order,
/// precision, division and number of elements, by rank 0. Exit code 1 where a rank has other bits.
///
/// all_reduce_grid openmpi|mpich ELEMENTS,ELEMENTS... [--all]

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/training/mpi/wire.h"
#include "fp16/bulk.h"
#include "sim/trainer/allreduce_registry.h"
#include "sim/trainer/revealed_order.h"
#include "sim/trainer/scheduled_allreduce.h"

namespace {

/// The same on every rank: halves of all magnitudes of each of them.
std::vector<std::vector<float>> numbers_of_all(std::size_t ranks, std::size_t elements) {
  std::mt19937 random(static_cast<unsigned>(ranks * 1009 + elements));
  std::vector<std::vector<float>> all(ranks, std::vector<float>(elements));
  std::vector<std::uint16_t> codes(elements);
  for (std::vector<float>& one : all) {
    for (std::uint16_t& code : codes)
      code = static_cast<std::uint16_t>((random() % 2 << 15) | random() % 0x7a00);
    fp16::half_to_float(codes, one);
  }
  return all;
}

std::size_t different_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]);
    count += !same && !(std::isnan(a[i]) && std::isnan(b[i]));
  }
  return count;
}

/// Whether all ranks have the bits of virtual ones; rank 0 says so.
bool check(sim::Wire& wire, sim::AllReduce how, std::size_t elements) {
  sim::RevealedOrders orders;
  std::string name(sim::spec_of(how));
  if (how.algorithm == sim::AllReduceAlgorithm::mpi) {
    orders.orders = {sim::reveal(wire, elements, how.precision)};
    how.revealed = &orders;
    name += fmt::format(" = {} in {} pieces", sim::known_names(orders.orders.front()),
                        orders.orders.front().pieces.size());
  }
  const std::vector<std::vector<float>> all = numbers_of_all(wire.ranks(), elements);
  const std::vector<std::span<const float>> views(all.begin(), all.end());
  const std::vector<float> expected = sim::all_reduce_mean(views, how).values;
  sim::AllReduceSpace space;
  const std::vector<float> found = sim::all_reduce_over(wire, all[wire.rank()], how, space);
  const double worst = wire.maximum(static_cast<double>(different_bits(found, expected)));
  if (wire.rank() == 0)
    fmt::print("{:2} ranks {:8} numbers  {:9}  {}\n", wire.ranks(), elements,
               worst == 0 ? "equal" : "DIFFERENT", name);
  return worst == 0;
}

std::vector<sim::AllReduce> all_reduces(bool all) {
  using sim::AllReduceDivision;
  const std::vector<AllReduceDivision> divisions =
      all ? std::vector<AllReduceDivision>(sim::all_reduce_divisions.begin(), sim::all_reduce_divisions.end())
          : std::vector{AllReduceDivision::before};
  std::vector<sim::AllReduce> every;
  for (const AllReduceDivision division : divisions) {
    for (const sim::AllReducePrecision precision : sim::all_reduce_precisions) {
      for (const sim::AllReduceAlgorithm algorithm : sim::all_reduce_algorithms)
        every.push_back({.algorithm = algorithm, .precision = precision, .division = division});
      if (precision != sim::AllReducePrecision::fp32_accumulation)
        every.push_back(
            {.algorithm = sim::AllReduceAlgorithm::mpi, .precision = precision, .division = division});
    }
  }
  return every;
}

int run(const std::string& library, const std::string& elements, bool all) {
  experiments::RankProgress progress;
  experiments::MpiWire wire(library, progress);
  bool is_equal = true;
  std::istringstream counts(elements);
  for (std::string count; std::getline(counts, count, ',');) {
    for (const sim::AllReduce& how : all_reduces(all)) is_equal &= check(wire, how, std::stoul(count));
  }
  return is_equal ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    return run(argv[1], argv[2], argc > 3 && std::string(argv[3]) == "--all");
  } catch (const std::exception& error) {
    fmt::print(stderr, "all_reduce_grid: {}\n", error.what());
    return 2;
  }
}
