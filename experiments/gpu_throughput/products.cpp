#include "experiments/gpu_throughput/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "experiments/gpu_throughput/buffers.h"
#include "fp16/bulk.h"
#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/gemm.h"
#include "fp16/cuda/index.h"
#include "fp16/cuda/sweep.h"
#include "fp16/cuda/tensor_core.h"
#include "fp16/gemm.h"

namespace experiments::gpu_throughput {
namespace {

namespace cuda = fp16::cuda;

constexpr double mma_sync_target = 0.4, wgmma_target = 0.5;

/// cuBLAS's product of the formats of a row.
struct Peer {
  std::string_view name;
  fp16::Format operands, accumulator, output;
  CublasCompute compute;
};

constexpr std::array peers{
    Peer{"cublas_sgemm", fp16::binary32, fp16::binary32, fp16::binary32, CublasCompute::fp32},
    Peer{"cublas_binary32", fp16::binary16, fp16::binary32, fp16::binary32, CublasCompute::fp32},
    Peer{"cublas_binary32_rounded", fp16::binary16, fp16::binary32, fp16::binary16, CublasCompute::fp32},
    Peer{"cublas_binary16", fp16::binary16, fp16::binary16, fp16::binary16, CublasCompute::fp16}};

template <typename Formats>
const Peer& peer_of(const Formats& formats) {
  const auto found = std::ranges::find_if(peers, [&](const Peer& peer) {
    return peer.operands == formats.operands && peer.accumulator == formats.accumulator &&
           peer.output == formats.output;
  });
  if (found == peers.end())
    throw std::logic_error("no product of cuBLAS has the formats of " + std::string(formats.name));
  return *found;
}

/// Matrices of small integers, whose products and sums are exact in every format and order; and of numbers that
/// fill their formats.
enum class Contents { integers, dense };

enum class Factor : std::uint64_t { a = 1, b = 2 };

/// Element `index` of a matrix.
std::uint16_t half_element(Contents contents, Factor factor, std::size_t index) {
  constexpr std::array<std::uint16_t, 4> minus_one_to_one{0xbc00, 0, 0, 0x3c00};
  const std::uint64_t random = cuda::mix(static_cast<std::uint64_t>(factor) << 40 | index);
  const std::uint64_t exponent = 9 + random % 5;
  return contents == Contents::integers
             ? minus_one_to_one[random >> 62]
             : static_cast<std::uint16_t>((random >> 32 & 0x83ff) | exponent << 10);
}

/// Has digits, too, that binary16 has no room for, unless it is an integer.
float float_element(Contents contents, Factor factor, std::size_t index) {
  constexpr std::uint32_t further_digits = 0x1fff;
  const float value = fp16::half_bits_to_float(half_element(contents, factor, index));
  if (contents == Contents::integers) return value;
  const auto random = static_cast<std::uint32_t>(cuda::mix(~index));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (random & further_digits));
}

/// The same as a row takes it: in `format`, widened.
float operand_element(fp16::Format format, Contents contents, Factor factor, std::size_t index) {
  return format == fp16::binary32 ? float_element(contents, factor, index)
                                  : fp16::half_bits_to_float(half_element(contents, factor, index));
}

template <typename Value, typename Element>
std::vector<Value> matrix_of(std::size_t elements, Contents contents, Factor factor, Element element) {
  std::vector<Value> matrix(elements);
  for (std::size_t i = 0; i < elements; ++i) matrix[i] = element(contents, factor, i);
  return matrix;
}

/// A and B in the formats that rows take them in, and D.
struct Operands {
  cuda::DeviceMemory half_a, half_b, float_a, float_b, d;

  const void* a(fp16::Format format) const {
    return (format == fp16::binary32 ? float_a : half_a).as<void>();
  }
  const void* b(fp16::Format format) const {
    return (format == fp16::binary32 ? float_b : half_b).as<void>();
  }
};

/// What of D is compared: some columns of the first, a middle and the last row.
struct Sample {
  std::vector<std::size_t> rows, columns;

  explicit Sample(std::size_t edge) : rows{0} {
    for (const std::size_t row : {edge / 2 + 1, edge - 1}) {
      if (row < edge && row != rows.back()) rows.push_back(row);
    }
    constexpr std::size_t wanted = 64;
    const std::size_t step = std::max<std::size_t>(1, edge / wanted);
    // Not all in the same place of a tile.
    for (std::size_t i = 0; i * step < edge; ++i) columns.push_back((i * step + i % 8) % edge);
  }
};

class Products {
 public:
  Products(int edge, bool with_floats)
      : edge_(static_cast<std::size_t>(edge)), with_floats_(with_floats), sample_(edge_) {
    const std::size_t elements = edge_ * edge_;
    const std::size_t sets = sets_beyond_cache(3 * sizeof(std::uint16_t) * elements);
    const std::size_t bytes_per_element = with_floats ? 16 : 8;
    require_device_memory((sets + 1) * bytes_per_element * elements);
    integers_ = std::move(operands_of(Contents::integers, 1).front());
    sets_ = operands_of(Contents::dense, sets);
  }

  std::size_t edge() const { return edge_; }
  Operands& set(std::size_t turn) { return sets_[turn % sets_.size()]; }
  Operands& integers() { return integers_; }
  const Sample& sample() const { return sample_; }

  /// The sampled elements of D.
  std::vector<float> sampled(const Operands& operands, fp16::Format output) const {
    const bool is_half = output == fp16::binary16;
    const std::size_t row_bytes = edge_ * (is_half ? 2 : 4);
    cuda::DeviceMemory one_row(row_bytes);
    std::vector<float> values, row_values(edge_);
    for (const std::size_t row : sample_.rows) {
      cuda::copy_on_device(one_row.as<char>(), operands.d.as<char>() + row * row_bytes, row_bytes);
      if (is_half) {
        fp16::half_to_float(one_row.to_host<std::uint16_t>(), row_values);
      } else {
        one_row.copy_to(row_values);
      }
      for (const std::size_t column : sample_.columns) values.push_back(row_values[column]);
    }
    return values;
  }

  /// What they should be, by the product of fp16/gemm.h that `multiply` chooses, rounded to `output`.
  template <typename Multiply>
  std::vector<float> expected(Contents contents, const cuda::GemmKernel& formats, Multiply multiply) const {
    const std::size_t rows = sample_.rows.size(), columns = sample_.columns.size();
    std::vector<float> chosen_a(rows * edge_), chosen_b(edge_ * columns), values(rows * columns);
    for (std::size_t k = 0; k < edge_; ++k) {
      for (std::size_t i = 0; i < rows; ++i)
        chosen_a[i * edge_ + k] =
            operand_element(formats.operands, contents, Factor::a, sample_.rows[i] * edge_ + k);
      for (std::size_t j = 0; j < columns; ++j)
        chosen_b[k * columns + j] =
            operand_element(formats.operands, contents, Factor::b, k * edge_ + sample_.columns[j]);
    }
    multiply(fp16::MatrixOperand{chosen_a.data(), fp16::binary32, rows, edge_, edge_},
             fp16::MatrixOperand{chosen_b.data(), fp16::binary32, edge_, columns, columns}, values.data(),
             columns);
    if (formats.output == fp16::binary16) {
      std::vector<std::uint16_t> rounded(values.size());
      fp16::float_to_half(values, rounded);
      fp16::half_to_float(rounded, values);
    }
    return values;
  }

 private:
  /// Of `sets` sets that hold the same numbers in different places.
  std::vector<Operands> operands_of(Contents contents, std::size_t sets) const {
    const std::size_t elements = edge_ * edge_;
    const auto halves = [&](Factor factor) {
      return matrix_of<std::uint16_t>(elements, contents, factor, half_element);
    };
    const auto floats = [&](Factor factor) {
      return with_floats_ ? matrix_of<float>(elements, contents, factor, float_element)
                          : std::vector<float>();
    };
    const std::vector<std::uint16_t> half_a = halves(Factor::a), half_b = halves(Factor::b);
    const std::vector<float> float_a = floats(Factor::a), float_b = floats(Factor::b);
    std::vector<Operands> all;
    for (std::size_t set = 0; set < sets; ++set) {
      all.push_back({.half_a = cuda::DeviceMemory(half_a),
                     .half_b = cuda::DeviceMemory(half_b),
                     .float_a = cuda::DeviceMemory(float_a),
                     .float_b = cuda::DeviceMemory(float_b),
                     .d = cuda::DeviceMemory(sizeof(float) * elements)});
    }
    return all;
  }

  std::size_t edge_;
  bool with_floats_;
  Sample sample_;
  Operands integers_;
  std::vector<Operands> sets_;
};

using Shared = std::shared_ptr<Products>;
using Launch = std::function<void(Operands&)>;

constexpr unsigned char poison = 0xa5;

/// One product, and its sampled elements against the expected ones.
Check check_product(Products& products, Operands& operands, const Launch& launch, fp16::Format output,
                    const std::vector<float>& expected) {
  operands.d.fill(poison);
  launch(operands);
  return compare(products.sampled(operands, output), expected);
}

Check operator+(const Check& a, const Check& b) {
  return {.compared = a.compared + b.compared, .wrong = a.wrong + b.wrong};
}

/// The software product whose bits a kernel has.
void multiply_as(const cuda::GemmKernel& kernel, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                 float* c, std::size_t stride) {
  if (kernel.instruction != cuda::GemmInstruction::fma) {
    const fp16::TensorCore& core = cuda::tensor_core_of(cuda::device().compute_capability);
    fp16::gemm(a, b, c, stride, fp16::TensorCoreAccumulation{core, kernel.accumulator});
  } else {
    fp16::gemm(a, b, c, stride,
               kernel.accumulator == fp16::binary32 ? fp16::Accumulation::fp32_fma_chain
                                                    : fp16::Accumulation::fp16_fma_chain);
  }
}

std::vector<float> exact_integers(const Products& products, const cuda::GemmKernel& formats) {
  return products.expected(Contents::integers, formats,
                           [](const auto& a, const auto& b, float* c, std::size_t stride) {
                             fp16::gemm(a, b, c, stride, fp16::Accumulation::fp32_fma_chain);
                           });
}

double operations(const Products& products) {
  const auto edge = static_cast<double>(products.edge());
  return 2 * edge * edge * edge;
}

Work kernel_work(const cuda::GemmKernel& kernel, const Shared& products) {
  const Launch launch = [&kernel, edge = products->edge()](Operands& operands) {
    cuda::gemm(kernel, {.m = edge,
                        .n = edge,
                        .k = edge,
                        .a = operands.a(kernel.operands),
                        .b = operands.b(kernel.operands),
                        .d = operands.d.as<void>()});
  };
  Work work{.name = std::string(kernel.name), .unit = Unit::flop, .amount = operations(*products)};
  work.absent = cuda::unavailable_reason(kernel);
  work.call = [products, launch](std::size_t turn) { launch(products->set(turn)); };
  work.check = [products, launch, &kernel] {
    const auto twin = [&](const auto& a, const auto& b, float* c, std::size_t stride) {
      multiply_as(kernel, a, b, c, stride);
    };
    return check_product(*products, products->integers(), launch, kernel.output,
                         exact_integers(*products, kernel)) +
           check_product(*products, products->set(0), launch, kernel.output,
                         products->expected(Contents::dense, kernel, twin));
  };
  return work;
}

CublasProduct product_of(const Peer& peer, int edge, Operands& operands) {
  const auto type = [](fp16::Format format) {
    return format == fp16::binary32 ? CublasType::fp32 : CublasType::fp16;
  };
  return {.rows = edge,
          .columns = edge,
          .depth = edge,
          .a = operands.a(peer.operands),
          .b = operands.b(peer.operands),
          .d = operands.d.as<void>(),
          .operands = type(peer.operands),
          .output = type(peer.output),
          .compute = peer.compute};
}

/// Its order of summation is not known: the integers alone are checked.
Work peer_work(const Peer& peer, const Shared& products, OpenedCublas& cublas) {
  Work work{.name = std::string(peer.name), .unit = Unit::flop, .amount = operations(*products)};
  work.absent = cublas.absent;
  work.is_peer = true;
  if (!cublas.cublas) return work;
  const Launch launch = [&peer, &library = *cublas.cublas,
                         edge = static_cast<int>(products->edge())](Operands& operands) {
    const CublasProduct product = product_of(peer, edge, operands);
    if (peer.operands == fp16::binary32) {
      library.sgemm(product);
    } else {
      library.gemm(product);
    }
  };
  work.call = [products, launch](std::size_t turn) { launch(products->set(turn)); };
  work.check = [products, launch, &peer] {
    const cuda::GemmKernel formats{.name = peer.name,
                                   .instruction = {},
                                   .operands = peer.operands,
                                   .accumulator = peer.accumulator,
                                   .output = peer.output,
                                   .least_capability = {},
                                   .largest_capability = {}};
    return check_product(*products, products->integers(), launch, peer.output,
                         exact_integers(*products, formats));
  };
  return work;
}

}  // namespace

std::vector<std::string> product_row_names() {
  std::vector<std::string> names;
  for (const cuda::GemmKernel& kernel : cuda::gemm_kernels()) names.emplace_back(kernel.name);
  for (const Peer& peer : peers) names.emplace_back(peer.name);
  return names;
}

std::vector<Comparison> product_comparisons(std::string_view name, int edge) {
  const auto& kernels = cuda::gemm_kernels();
  const auto kernel = std::ranges::find(kernels, name, &cuda::GemmKernel::name);
  if (kernel == kernels.end()) return {};
  std::optional<double> target;
  if (kernel->instruction == cuda::GemmInstruction::mma_sync) target = mma_sync_target;
  if (kernel->instruction == cuda::GemmInstruction::wgmma) target = wgmma_target;
  if (edge != judged_edge) target.reset();
  return {{std::string(peer_of(*kernel).name), target}};
}

Group product_group(int edge, const std::vector<std::string>& chosen, OpenedCublas& cublas) {
  const auto is_chosen = [&](std::string_view name) {
    return std::ranges::find(chosen, name) != chosen.end();
  };
  const auto wants_floats = [&](const auto& row) {
    return is_chosen(row.name) && row.operands == fp16::binary32;
  };
  const bool with_floats =
      std::ranges::any_of(cuda::gemm_kernels(), wants_floats) || std::ranges::any_of(peers, wants_floats);
  const auto products = std::make_shared<Products>(edge, with_floats);
  Group group{.name = fmt::format("{}", edge), .works = {}};
  for (const cuda::GemmKernel& kernel : cuda::gemm_kernels()) {
    if (is_chosen(kernel.name)) group.works.push_back(kernel_work(kernel, products));
  }
  for (const Peer& peer : peers) {
    if (is_chosen(peer.name)) group.works.push_back(peer_work(peer, products, cublas));
  }
  for (Work& work : group.works) work.comparisons = product_comparisons(work.name, edge);
  return group;
}

}  // namespace experiments::gpu_throughput
