/// As one of several ranks: is what they all-reduce over MPI bit for bit what virtual ranks have? A row for each order,
/// precision, division and number of elements, by rank 0. Exit code 1 where a rank has other bits.

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/training/mpi/launcher.h"
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

std::size_t different_bits(std::span<const float> a, std::span<const float> b) {
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
  std::vector<std::vector<float>> all = numbers_of_all(wire.ranks(), elements);
  for (std::vector<float>& numbers : all) sim::round_to_wire(how.precision, numbers);
  const std::vector<std::span<const float>> views(all.begin(), all.end());
  const std::vector<float> expected = sim::all_reduce_mean(views, how).values;
  sim::AllReduceSpace space;
  const std::span<const float> found = sim::all_reduce_over(wire, all[wire.rank()], how, space);
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
      if (precision == sim::AllReducePrecision::fp16 || precision == sim::AllReducePrecision::fp32)
        every.push_back(
            {.algorithm = sim::AllReduceAlgorithm::mpi, .precision = precision, .division = division});
    }
  }
  return every;
}

constexpr const char* usage =
    "mpirun -np 4 all_reduce_grid openmpi|mpich ELEMENTS,ELEMENTS... [--all]: whether sums over MPI have the "
    "bits of virtual ranks, for each order; --all: for each division, too";

struct Arguments {
  std::string library;
  std::vector<std::size_t> elements;
  bool all;
};

std::size_t number_in(const std::string& text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number == 0)
    throw std::invalid_argument(fmt::format("'{}' is given for ELEMENTS; must be as in {}", text, usage));
  return number;
}

Arguments arguments_in(const std::vector<std::string>& words) {
  const bool all = words.size() == 3 && words[2] == "--all";
  const bool is_library = !words.empty() && (words[0] == "openmpi" || words[0] == "mpich");
  if (!is_library || words.size() != (all ? 3 : 2))
    throw std::invalid_argument(fmt::format("must be given as {}", usage));
  Arguments arguments{.library = words[0], .all = all};
  std::istringstream counts(words[1]);
  for (std::string count; std::getline(counts, count, ',');) arguments.elements.push_back(number_in(count));
  return arguments;
}

int run(const Arguments& arguments) {
  const auto launch = experiments::launch_of_this_process();
  if (!launch) throw std::invalid_argument(fmt::format("must be started by a launcher, as {}", usage));
  experiments::RankProgress progress;
  experiments::MpiWire wire(arguments.library, progress);
  experiments::require_ranks(*launch, arguments.library, wire.ranks());
  bool is_equal = true;
  for (const std::size_t count : arguments.elements) {
    for (const sim::AllReduce& how : all_reduces(arguments.all)) is_equal &= check(wire, how, count);
  }
  return is_equal ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return experiments::guarded("all_reduce_grid", std::cerr, [&] {
    if (words != std::vector<std::string>{"--help"}) return run(arguments_in(words));
    fmt::print("{}\n", usage);
    return 0;
  });
}
