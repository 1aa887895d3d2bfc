#pragma once
/// Products by cuBLAS and cuBLASLt in every way they can be asked for, and what explains each result. Ways that
/// give the same bits are explained together.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/search.h"
#include "experiments/frame/experiment.h"
#include "experiments/gpu/vendor/cublas.h"
#include "experiments/gpu/vendor/cublas_lt.h"

namespace experiments::explain_gemm {

struct CensusOptions {
  int most_algorithms = 1000;  ///< of cuBLASLt for each pair of compute and output type, evenly out of all
  /// Seconds after which no further way and no further result is begun: two fifths of them are for the list of
  /// algorithms, a fifth for the products.
  std::optional<double> budget_s = std::nullopt;
};

/// The operands on the device, and the way there and back. `d` has room for a float per output.
struct CensusMemory {
  const void* halves_a;
  const void* halves_b;
  const void* floats_a;  ///< the same values
  const void* floats_b;
  void* d;
  void* workspace;
  std::size_t workspace_bytes;
  std::function<void(std::span<const std::byte>)> write_d;
  std::function<void(std::span<std::byte>)> read_d;  ///< waits for the product
};

enum class Source {
  gemm,       ///< cublasGemmEx
  sgemm,      ///< cublasSgemm
  lt_chosen,  ///< cublasLtMatmul by an algorithm that its heuristic offers
  lt_listed   ///< by one of all others
};
std::string_view name_of(Source source);

/// A way to ask for the product.
struct Way {
  Source source;
  CublasCompute compute = CublasCompute::fp32;
  CublasType operands = CublasType::fp16;
  CublasType output = CublasType::fp16;
  CublasMath math = CublasMath::standard;
  ReducedPrecisionReduction reduction = ReducedPrecisionReduction::allowed;
  std::optional<LtAlgorithm> algorithm;

  /// Such as "cublasGemmEx CUBLAS_COMPUTE_32F, FP16 to FP16".
  std::string text() const;
};

/// What came of it.
struct Attempt {
  Way way;
  std::string refusal;                ///< the library's; empty where it made D
  std::optional<std::size_t> result;  ///< index into Census::results
  bool repeats = true;                ///< a second product has the same bits
};

/// A D that some ways share.
struct Result {
  Problem problem;  ///< with this D; C and the factors rounded as cuBLAS was given them
  std::size_t ways = 0;
  Way first;
  Explanation explanation = {};  ///< with the classification empty where the budget was spent before
  Classification classification = {};

  bool is_searched() const { return !explanation.tried.empty(); }
  /// The explanation's verdict, or "not searched".
  std::string_view verdict() const;
};

struct Census {
  int cublas_version;
  int cublas_lt_version;
  GpuInformation gpu = {};
  std::vector<Attempt> attempts;
  std::vector<Result> results;
  std::size_t algorithms_listed = 0;  ///< by cuBLASLt, of which `attempts` has a part
  std::size_t ways_not_asked = 0;     ///< since the budget was spent or the device failed
  std::string fault;                  ///< at which way the device failed, and how; empty if it did not

  std::size_t count(std::string_view verdict) const;
};

/// cublasGemmEx with each compute type, operands and outputs that go with it, and cublasSgemm.
std::vector<Way> ways_of_gemm();

/// Asks for the product in every way, twice, and searches for what explains each result, those of the most ways
/// first.
Census take_census(const Problem& problem, const CensusOptions& options, const SearchOptions& search,
                   Cublas& cublas, CublasLt& cublas_lt, const CensusMemory& memory, const Run& run);

/// take_census() on the current CUDA device with the cuBLAS that is installed. Throws std::runtime_error, one
/// line, without either.
Census census_on_device(const Problem& problem, const CensusOptions& options, const SearchOptions& search,
                        const Run& run);

/// For --help.
Outputs census_outputs();

/// algorithms.csv, a line for every way; results.csv, one for every D; and the summary.
void write_census(RunRecord& record, const Census& census);
void write_census_verdict(RunRecord& record, const Census& census);

/// census: in how many ways each D is made, and whether it is explained. Needs results.csv.
void draw_census_figure(Run& run, const Census& census);

/// The line of the first result that has a real bug; empty if none has.
std::string census_bug_line(const Census& census);

}  // namespace experiments::explain_gemm
