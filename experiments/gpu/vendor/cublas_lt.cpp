#include "experiments/gpu/vendor/cublas_lt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "experiments/gpu/vendor/shared_library.h"

namespace experiments {
namespace {

// Attributes of cublasLt.h, by enumeration.
constexpr int operation_of_a = 3, operation_of_b = 4;              // cublasLtMatmulDescAttributes_t
constexpr int max_workspace_bytes = 1, reduction_scheme_mask = 3;  // cublasLtMatmulPreferenceAttributes_t
constexpr int supports_split_k = 0, supported_reductions = 1, tile_ids = 6, custom_option_max = 7,
              stages_ids = 13, numerical_impl_flags = 15;  // cublasLtMatmulAlgoCapAttributes_t
constexpr int config_id = 0, config_tile = 1, config_split_k = 2, config_reduction = 3,
              config_custom_option = 5, config_stages = 6, config_inner_shape = 7,
              config_cluster_shape = 8;  // cublasLtMatmulAlgoConfigAttributes_t
constexpr std::array all_reductions{LtReduction::in_place, LtReduction::compute_type,
                                    LtReduction::output_type};
constexpr std::uint32_t every_reduction = 7;
constexpr int most_ids = 1000;

using Handle = void*;
using Algorithm = std::array<std::uint64_t, 8>;  // cublasLtMatmulAlgo_t
struct HeuristicResult {                         // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

using Create = int(Handle* handle);
using Destroy = int(Handle handle);
using GetVersion = std::size_t();
using DescCreate = int(void** desc, int compute, int scale_type);
using LayoutCreate = int(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                         std::int64_t leading_dimension);
using PreferenceCreate = int(void** preference);
using SetAttribute = int(void* object, int attribute, const void* value, std::size_t bytes);
using GetAttribute = int(const Algorithm* algorithm, int attribute, void* value, std::size_t bytes,
                         std::size_t* written);
using SetConfig = int(Algorithm* algorithm, int attribute, const void* value, std::size_t bytes);
using GetHeuristic = int(Handle handle, void* desc, void* a, void* b, void* c, void* d, void* preference,
                         int requested, HeuristicResult* results, int* returned);
using GetIds = int(Handle handle, int compute, int scale_type, int a, int b, int c, int d, int requested,
                   int* ids, int* returned);
using Init = int(Handle handle, int compute, int scale_type, int a, int b, int c, int d, int id,
                 Algorithm* algorithm);
using Check = int(Handle handle, void* desc, void* a, void* b, void* c, void* d, const Algorithm* algorithm,
                  HeuristicResult* result);
using Matmul = int(Handle handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                   void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const Algorithm* algorithm, void* workspace, std::size_t workspace_bytes, void* stream);

/// A descriptor of the library's.
using Descriptor = std::unique_ptr<void, Destroy*>;

/// A configuration that deviates from an algorithm's defaults.
struct Configuration {
  std::uint32_t tile = 0;
  std::uint32_t stages = 0;
  std::uint32_t custom_option = 0;
  std::int32_t split_k = 1;
  LtReduction reduction = LtReduction::none;
};

}  // namespace

struct CublasLt::Library {
  explicit Library(std::span<const char* const> names) : file(names) {
    file.find("cublasLtCreate", create);
    file.find("cublasLtDestroy", destroy);
    file.find("cublasLtGetVersion", get_version);
    file.find("cublasLtMatmulDescCreate", desc_create);
    file.find("cublasLtMatmulDescDestroy", desc_destroy);
    file.find("cublasLtMatmulDescSetAttribute", desc_set);
    file.find("cublasLtMatrixLayoutCreate", layout_create);
    file.find("cublasLtMatrixLayoutDestroy", layout_destroy);
    file.find("cublasLtMatmulPreferenceCreate", preference_create);
    file.find("cublasLtMatmulPreferenceDestroy", preference_destroy);
    file.find("cublasLtMatmulPreferenceSetAttribute", preference_set);
    file.find("cublasLtMatmulAlgoCapGetAttribute", get_capability);
    file.find("cublasLtMatmulAlgoConfigGetAttribute", get_config);
    file.find("cublasLtMatmulAlgoConfigSetAttribute", set_config);
    file.find("cublasLtMatmulAlgoGetHeuristic", get_heuristic);
    file.find("cublasLtMatmulAlgoGetIds", get_ids);
    file.find("cublasLtMatmulAlgoInit", init);
    file.find("cublasLtMatmulAlgoCheck", check);
    file.find("cublasLtMatmul", matmul);
    check_cublas(create(&handle), "cublasLtCreate");
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) destroy(handle);
  }

  /// The descriptors of a product, B before A.
  struct Descriptors {
    Descriptor desc, first, second, output;
  };

  Descriptor layout(CublasType type, int rows, int columns) const {
    void* made = nullptr;
    check_cublas(layout_create(&made, static_cast<int>(type), static_cast<std::uint64_t>(rows),
                               static_cast<std::uint64_t>(columns), rows),
                 "cublasLtMatrixLayoutCreate");
    return Descriptor(made, layout_destroy);
  }

  Descriptors descriptors(const CublasProduct& p) const {
    const CublasOperand first = first_operand(p), second = second_operand(p);
    void* made = nullptr;
    check_cublas(desc_create(&made, static_cast<int>(p.compute), static_cast<int>(scale_type(p.compute))),
                 "cublasLtMatmulDescCreate");
    Descriptor desc(made, desc_destroy);
    for (const auto& [attribute, operation] :
         {std::pair(operation_of_a, first.operation), std::pair(operation_of_b, second.operation)})
      check_cublas(desc_set(made, attribute, &operation, sizeof operation), "cublasLtMatmulDescSetAttribute");
    return {std::move(desc), layout(p.operands, first.rows, first.columns),
            layout(p.operands, second.rows, second.columns), layout(p.output, p.columns, p.rows)};
  }

  template <typename Value>
  Value capability(const Algorithm& algorithm, int attribute) const {
    Value value{};
    std::size_t written = 0;
    check_cublas(get_capability(&algorithm, attribute, &value, sizeof value, &written),
                 "cublasLtMatmulAlgoCapGetAttribute");
    return value;
  }

  /// {0}, which leaves it undefined, where the algorithm names none.
  std::vector<std::uint32_t> capability_list(const Algorithm& algorithm, int attribute) const {
    std::size_t bytes = 0;
    check_cublas(get_capability(&algorithm, attribute, nullptr, 0, &bytes),
                 "cublasLtMatmulAlgoCapGetAttribute");
    std::vector<std::uint32_t> values(bytes / sizeof(std::uint32_t));
    if (values.empty()) return {0};
    check_cublas(get_capability(&algorithm, attribute, values.data(), bytes, &bytes),
                 "cublasLtMatmulAlgoCapGetAttribute");
    return values;
  }

  template <typename Value>
  void read_config(const Algorithm& algorithm, int attribute, Value& value) const {
    std::size_t written = 0;
    check_cublas(get_config(&algorithm, attribute, &value, sizeof value, &written),
                 "cublasLtMatmulAlgoConfigGetAttribute");
  }

  LtAlgorithm described(const Algorithm& algorithm, std::size_t workspace_bytes) const {
    LtAlgorithm result{.opaque = algorithm, .workspace_bytes = workspace_bytes};
    read_config(algorithm, config_id, result.id);
    read_config(algorithm, config_tile, result.tile);
    read_config(algorithm, config_stages, result.stages);
    read_config(algorithm, config_split_k, result.split_k);
    read_config(algorithm, config_reduction, result.reduction);
    read_config(algorithm, config_custom_option, result.custom_option);
    read_config(algorithm, config_inner_shape, result.inner_shape);
    read_config(algorithm, config_cluster_shape, result.cluster_shape);
    result.numerical_flags = capability<std::uint64_t>(algorithm, numerical_impl_flags);
    return result;
  }

  std::vector<int> ids(const CublasProduct& p) const {
    std::vector<int> ids(most_ids);
    int count = 0;
    const int in = static_cast<int>(p.operands), out = static_cast<int>(p.output);
    check_cublas(get_ids(handle, static_cast<int>(p.compute), static_cast<int>(scale_type(p.compute)), in, in,
                         out, out, most_ids, ids.data(), &count),
                 "cublasLtMatmulAlgoGetIds");
    ids.resize(static_cast<std::size_t>(count));
    return ids;
  }

  bool initialise(const CublasProduct& p, int id, Algorithm& algorithm) const {
    const int in = static_cast<int>(p.operands), out = static_cast<int>(p.output);
    return init(handle, static_cast<int>(p.compute), static_cast<int>(scale_type(p.compute)), in, in, out,
                out, id, &algorithm) == 0;
  }

  /// Nothing where the algorithm cannot be configured so, or not for this product and workspace.
  std::optional<LtAlgorithm> configured(const Descriptors& descriptors, Algorithm algorithm,
                                        const Configuration& configuration,
                                        std::size_t workspace_bytes) const {
    const auto set = [&](int attribute, const auto& value) {
      return set_config(&algorithm, attribute, &value, sizeof value) == 0;
    };
    if (!set(config_tile, configuration.tile) || !set(config_stages, configuration.stages) ||
        !set(config_custom_option, configuration.custom_option) ||
        !set(config_split_k, configuration.split_k) || !set(config_reduction, configuration.reduction))
      return std::nullopt;
    HeuristicResult result{};
    if (check(handle, descriptors.desc.get(), descriptors.first.get(), descriptors.second.get(),
              descriptors.output.get(), descriptors.output.get(), &algorithm, &result) != 0 ||
        result.state != 0 || result.workspace_bytes > workspace_bytes)
      return std::nullopt;
    return described(algorithm, result.workspace_bytes);
  }

  /// What else the algorithm can do with a tile and stages: custom options, then slices of k.
  std::vector<Configuration> variants(const Algorithm& algorithm, const Configuration& plain,
                                      std::span<const int> splits) const {
    std::vector<Configuration> all;
    const auto options = static_cast<std::uint32_t>(capability<std::int32_t>(algorithm, custom_option_max));
    for (std::uint32_t option = 1; option <= options; ++option) {
      all.push_back(plain);
      all.back().custom_option = option;
    }
    if (capability<std::int32_t>(algorithm, supports_split_k) == 0) return all;
    const auto schemes = capability<std::uint32_t>(algorithm, supported_reductions);
    for (const int split_k : splits) {
      for (const LtReduction reduction : all_reductions) {
        if ((schemes & static_cast<std::uint32_t>(reduction)) == 0) continue;
        all.push_back(plain);
        all.back().split_k = split_k;
        all.back().reduction = reduction;
      }
    }
    return all;
  }

  SharedLibrary file;
  Create* create;
  Destroy* destroy;
  GetVersion* get_version;
  DescCreate* desc_create;
  Destroy* desc_destroy;
  SetAttribute* desc_set;
  LayoutCreate* layout_create;
  Destroy* layout_destroy;
  PreferenceCreate* preference_create;
  Destroy* preference_destroy;
  SetAttribute* preference_set;
  GetAttribute* get_capability;
  GetAttribute* get_config;
  SetConfig* set_config;
  GetHeuristic* get_heuristic;
  GetIds* get_ids;
  Init* init;
  Check* check;
  Matmul* matmul;
  Handle handle = nullptr;
};

std::string_view name_of(LtReduction reduction) {
  switch (reduction) {
    case LtReduction::none:
      return "none";
    case LtReduction::in_place:
      return "in_place";
    case LtReduction::compute_type:
      return "compute_type";
    case LtReduction::output_type:
      return "output_type";
  }
  return "unknown";
}

std::string numerical_flags_text(std::uint64_t flags) {
  constexpr std::array<std::pair<int, const char*>, 17> names{{
      {0, "fma"},
      {1, "hmma"},
      {2, "imma"},
      {3, "dmma"},
      {8, "fp16 accumulator"},
      {9, "fp32 accumulator"},
      {10, "fp64 accumulator"},
      {11, "int32 accumulator"},
      {16, "fp16 input"},
      {17, "bf16 input"},
      {18, "tf32 input"},
      {19, "fp32 input"},
      {20, "fp64 input"},
      {21, "int8 input"},
      {22, "e4m3 input"},
      {23, "e5m2 input"},
      {32, "gaussian"},
  }};
  std::vector<std::string> words;
  for (const auto& [bit, name] : names) {
    if (flags >> bit & 1) words.emplace_back(name);
    flags &= ~(std::uint64_t{1} << bit);
  }
  if (flags != 0) words.push_back(fmt::format("{:#x}", flags));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<int> depth_of_stages(std::uint32_t stages) {
  // Numbers 1 to 24 are six of a depth; the later ones came as they were needed.
  constexpr std::array first{16, 32, 64, 128};
  if (stages >= 1 && stages <= 24) return first[(stages - 1) / 6];
  constexpr std::array<std::pair<std::uint32_t, int>, 12> later{{{25, 32},
                                                                 {26, 8},
                                                                 {27, 16},
                                                                 {28, 8},
                                                                 {31, 8},
                                                                 {32, 8},
                                                                 {33, 16},
                                                                 {34, 32},
                                                                 {35, 64},
                                                                 {36, 128},
                                                                 {37, 256},
                                                                 {38, 768}}};
  for (const auto& [number, depth] : later) {
    if (number == stages) return depth;
  }
  return std::nullopt;
}

CublasLt::CublasLt(std::span<const char* const> names) : library_(std::make_unique<Library>(names)) {}
CublasLt::CublasLt(CublasLt&&) noexcept = default;
CublasLt& CublasLt::operator=(CublasLt&&) noexcept = default;
CublasLt::~CublasLt() = default;

int CublasLt::version() const {
  return static_cast<int>(library_->get_version());
}

std::vector<LtAlgorithm> CublasLt::chosen(const CublasProduct& product, std::size_t workspace_bytes,
                                          int most) const {
  const Library& lt = *library_;
  const Library::Descriptors descriptors = lt.descriptors(product);
  void* made = nullptr;
  check_cublas(lt.preference_create(&made), "cublasLtMatmulPreferenceCreate");
  const Descriptor preference(made, lt.preference_destroy);
  const auto set = [&](int attribute, const auto& value) {
    check_cublas(lt.preference_set(made, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  set(max_workspace_bytes, std::uint64_t{workspace_bytes});
  std::vector<std::uint32_t> masks{every_reduction, 0};
  for (const LtReduction reduction : all_reductions) masks.push_back(static_cast<std::uint32_t>(reduction));

  std::vector<LtAlgorithm> found;
  std::set<Algorithm> known;
  std::vector<HeuristicResult> results(static_cast<std::size_t>(most));
  for (const std::uint32_t mask : masks) {
    set(reduction_scheme_mask, mask);
    int count = 0;
    // No algorithm under a mask is an answer, too.
    if (lt.get_heuristic(lt.handle, descriptors.desc.get(), descriptors.first.get(), descriptors.second.get(),
                         descriptors.output.get(), descriptors.output.get(), made, most, results.data(),
                         &count) != 0)
      continue;
    for (const HeuristicResult& result : std::span(results).first(static_cast<std::size_t>(count))) {
      if (result.state == 0 && known.insert(result.algorithm).second)
        found.push_back(lt.described(result.algorithm, result.workspace_bytes));
    }
  }
  return found;
}

std::vector<LtAlgorithm> CublasLt::all(const CublasProduct& product, std::size_t workspace_bytes,
                                       std::span<const int> splits,
                                       const std::function<bool()>& is_enough) const {
  const Library& lt = *library_;
  const Library::Descriptors descriptors = lt.descriptors(product);
  std::vector<LtAlgorithm> found;
  for (const int id : lt.ids(product)) {
    Algorithm algorithm;
    if (!lt.initialise(product, id, algorithm)) continue;
    const auto add_if_possible = [&](const Configuration& configuration) {
      const std::optional<LtAlgorithm> possible =
          lt.configured(descriptors, algorithm, configuration, workspace_bytes);
      if (possible) found.push_back(*possible);
      return possible.has_value();
    };
    std::set<std::optional<int>> depths;
    for (const std::uint32_t tile : lt.capability_list(algorithm, tile_ids)) {
      for (const std::uint32_t stages : lt.capability_list(algorithm, stages_ids)) {
        if (is_enough()) return found;
        const Configuration plain{.tile = tile, .stages = stages};
        if (!add_if_possible(plain) || !depths.insert(depth_of_stages(stages)).second) continue;
        for (const Configuration& variant : lt.variants(algorithm, plain, splits)) add_if_possible(variant);
      }
    }
  }
  return found;
}

void CublasLt::multiply(const CublasProduct& p, const LtAlgorithm& algorithm, void* workspace,
                        std::size_t workspace_bytes) {
  const Library& lt = *library_;
  const Library::Descriptors descriptors = lt.descriptors(p);
  const CublasScalar alpha(p.alpha, scale_type(p.compute)), beta(p.beta, scale_type(p.compute));
  check_cublas(lt.matmul(lt.handle, descriptors.desc.get(), alpha.pointer(), first_operand(p).data,
                         descriptors.first.get(), second_operand(p).data, descriptors.second.get(),
                         beta.pointer(), p.d, descriptors.output.get(), p.d, descriptors.output.get(),
                         &algorithm.opaque, workspace, workspace_bytes, nullptr),
               "cublasLtMatmul");
}

OpenedCublasLt open_cublas_lt(std::span<const char* const> names) {
  try {
    return {CublasLt(names), {}};
  } catch (const std::runtime_error& error) {
    return {std::nullopt, fmt::format("cuBLASLt cannot be used: {}", error.what())};
  }
}

}  // namespace experiments
