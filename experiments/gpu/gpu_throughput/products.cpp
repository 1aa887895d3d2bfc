#include "experiments/gpu/gpu_throughput/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>

#include "experiments/gpu/gpu_throughput/buffers.h"
#include "experiments/gpu/gpu_throughput/matrices.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/gemm.h"
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

using Shared = std::shared_ptr<Matrices>;
using Launch = std::function<void(Operands&)>;

/// One product, and its sampled elements against the expected ones.
Check check_product(Matrices& matrices, Operands& operands, const Launch& launch, fp16::Format output,
                    const std::vector<float>& expected) {
  operands.d.fill(poison);
  launch(operands);
  return compare(matrices.sampled(operands, output), expected);
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

std::vector<float> exact_integers(const Matrices& matrices, const cuda::GemmKernel& formats) {
  return matrices.expected(Contents::integers, formats,
                           [](const auto& a, const auto& b, float* c, std::size_t stride) {
                             fp16::gemm(a, b, c, stride, fp16::Accumulation::fp32_fma_chain);
                           });
}

double operations(const Matrices& matrices) {
  const auto edge = static_cast<double>(matrices.edge());
  return 2 * edge * edge * edge;
}

Work kernel_work(const cuda::GemmKernel& kernel, const Shared& matrices) {
  const Launch launch = [&kernel, edge = matrices->edge()](Operands& operands) {
    cuda::gemm(kernel, {.m = edge,
                        .n = edge,
                        .k = edge,
                        .a = operands.a(kernel.operands),
                        .b = operands.b(kernel.operands),
                        .d = operands.d.as<void>()});
  };
  Work work{.name = std::string(kernel.name), .unit = Unit::flop, .amount = operations(*matrices)};
  work.absent = cuda::unavailable_reason(kernel);
  work.call = [matrices, launch](std::size_t turn) { launch(matrices->dense(turn)); };
  work.check = [matrices, launch, &kernel] {
    const auto twin = [&](const auto& a, const auto& b, float* c, std::size_t stride) {
      multiply_as(kernel, a, b, c, stride);
    };
    return check_product(*matrices, matrices->integers(), launch, kernel.output,
                         exact_integers(*matrices, kernel)) +
           check_product(*matrices, matrices->dense(0), launch, kernel.output,
                         matrices->expected(Contents::dense, kernel, twin));
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
Work peer_work(const Peer& peer, const Shared& matrices, OpenedCublas& cublas) {
  Work work{.name = std::string(peer.name), .unit = Unit::flop, .amount = operations(*matrices)};
  work.absent = cublas.absent;
  work.is_peer = true;
  if (!cublas.cublas) return work;
  const Launch launch = [&peer, &library = *cublas.cublas,
                         edge = static_cast<int>(matrices->edge())](Operands& operands) {
    const CublasProduct product = product_of(peer, edge, operands);
    if (peer.operands == fp16::binary32) {
      library.sgemm(product);
    } else {
      library.gemm(product);
    }
  };
  work.call = [matrices, launch](std::size_t turn) { launch(matrices->dense(turn)); };
  work.check = [matrices, launch, &peer] {
    const cuda::GemmKernel formats{.name = peer.name,
                                   .instruction = {},
                                   .operands = peer.operands,
                                   .accumulator = peer.accumulator,
                                   .output = peer.output,
                                   .least_capability = {},
                                   .largest_capability = {}};
    return check_product(*matrices, matrices->integers(), launch, peer.output,
                         exact_integers(*matrices, formats));
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
  const auto matrices = std::make_shared<Matrices>(edge, with_floats);
  Group group{.name = fmt::format("{}", edge), .works = {}};
  for (const cuda::GemmKernel& kernel : cuda::gemm_kernels()) {
    if (is_chosen(kernel.name)) group.works.push_back(kernel_work(kernel, matrices));
  }
  for (const Peer& peer : peers) {
    if (is_chosen(peer.name)) group.works.push_back(peer_work(peer, matrices, cublas));
  }
  for (Work& work : group.works) work.comparisons = product_comparisons(work.name, edge);
  return group;
}

}  // namespace experiments::gpu_throughput
