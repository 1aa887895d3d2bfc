#include "sim/trainer/allreduce_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "fp16/names.h"

namespace sim {
namespace {

using enum AllReduceAlgorithm;

constexpr std::array rows{
    AllReduceRow{"ring", "chunks go round a ring and take up each worker's share (Open MPI, NCCL)", ring},
    AllReduceRow{"binary_tree", "NCCL's tree: itself, then its first child, then its second", binary_tree},
    AllReduceRow{"recursive_doubling", "exchanges with ever farther workers (MPICH, Open MPI)",
                 recursive_doubling},
    AllReduceRow{"rabenseifner", "halves of the elements with ever farther workers (MPICH, Open MPI)",
                 rabenseifner},
    AllReduceRow{"recursive_halving_far_first", "halves of the elements, the farthest worker first",
                 recursive_halving_far_first},
    AllReduceRow{"direct", "the owner of an element adds all values, from worker 0's on", direct},
    AllReduceRow{"direct_descending", "the same from the last worker's on (Open MPI's basic linear)",
                 direct_descending},
    AllReduceRow{"mpi", "the MPI library's own, found by probing (training --mpi)", mpi},
};
static_assert(names::has_unique_names(rows) && rows.size() == all_reduce_algorithms.size() + 1);

constexpr std::array all_ring_chunks{RingChunks::first_longer, RingChunks::even};

template <class Variants>
std::vector<std::string> names_of(const Variants& variants) {
  std::vector<std::string> names;
  for (const auto variant : variants) names.emplace_back(name_of(variant));
  return names;
}

template <class Variants>
auto called(std::string_view option, std::string_view name, const Variants& variants) {
  const auto found = std::ranges::find(variants, name, [](auto variant) { return name_of(variant); });
  if (found == variants.end()) names::throw_unknown_name(option, name, names_of(variants));
  return *found;
}

/// What a library adds are numbers of the type that it is handed.
constexpr std::array precisions_of_mpi{AllReducePrecision::fp16, AllReducePrecision::fp32};

bool is_ours(AllReduceAlgorithm algorithm) {
  return algorithm != mpi;
}
bool is_mpi(AllReduceAlgorithm algorithm) {
  return algorithm == mpi;
}
bool has_any(AllReduceAlgorithm) {
  return true;
}
bool is_ring(AllReduceAlgorithm algorithm) {
  return algorithm == ring;
}

/// An option that all or some orders have.
struct OptionRow {
  std::string_view name;
  bool (*belongs_to)(AllReduceAlgorithm);
  std::string_view meaning;
  std::vector<std::string> (*allowed)();
  std::string_view (*value)(const AllReduce&);
  void (*set)(AllReduce&, std::string_view option, std::string_view value);
};

template <auto Member, const auto& Variants>
constexpr OptionRow option(std::string_view name, bool (*belongs_to)(AllReduceAlgorithm),
                           std::string_view meaning) {
  return {name,
          belongs_to,
          meaning,
          [] { return names_of(Variants); },
          [](const AllReduce& how) { return name_of(how.*Member); },
          [](AllReduce& how, std::string_view option_name, std::string_view value) {
            how.*Member = called(option_name, value, Variants);
          }};
}

constexpr std::array options{
    option<&AllReduce::precision, all_reduce_precisions>(
        "precision", is_ours,
        "fp16, bf16: each sum is rounded to FP16 or bfloat16; fp32_accumulation, bf16_fp32_accumulation: "
        "so is what is sent, and a worker's sums are in FP32; fp32: all in FP32"),
    option<&AllReduce::precision, precisions_of_mpi>("precision", is_mpi,
                                                     "fp16: each sum is rounded to FP16; fp32: all in FP32"),
    option<&AllReduce::division, all_reduce_divisions>("division", has_any,
                                                       "before: values by N; after: the sum by N; split: "
                                                       "values by the power of two near sqrt(N), the sum by "
                                                       "the rest, as FSDP"),
    option<&AllReduce::ring_chunks, all_ring_chunks>(
        "chunks", is_ring,
        "of n elements, first_longer: the first n mod N chunks have one more; even: chunk c begins at "
        "floor(c n / N)")};

std::vector<OptionRow> options_of_order(AllReduceAlgorithm algorithm) {
  std::vector<OptionRow> own;
  std::ranges::copy_if(options, std::back_inserter(own),
                       [&](const OptionRow& row) { return row.belongs_to(algorithm); });
  return own;
}

}  // namespace

std::span<const AllReduceRow> all_reduce_orders() {
  return rows;
}

AllReduce make_all_reduce(std::string_view text) {
  const names::Spec spec = names::parse_spec(text);
  AllReduce how{.algorithm = names::find_by_name(rows, "order of an all-reduce", spec.name).algorithm};
  const std::vector<OptionRow> own = options_of_order(how.algorithm);
  try {
    for (const auto& [name, value] : spec.options)
      names::find_by_name(std::span<const OptionRow>(own), "option", name).set(how, name, value);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("all-reduce '{}': {}", spec.name, error.what()));
  }
  return how;
}

std::vector<AllReduceOption> options_of(const AllReduce& how) {
  std::vector<AllReduceOption> in_words;
  for (const OptionRow& row : options_of_order(how.algorithm))
    in_words.push_back({std::string(row.name), std::string(row.value(how)),
                        fmt::format("{}", fmt::join(row.allowed(), ", ")), std::string(row.meaning)});
  return in_words;
}

std::string spec_of(const AllReduce& how) {
  std::string spec(name_of(how.algorithm));
  for (const AllReduceOption& option : options_of(how))
    spec += fmt::format(":{}={}", option.name, option.value);
  return spec;
}

}  // namespace sim
