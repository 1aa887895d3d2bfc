#include "sim/precision_policy.h"

#include <array>

#include "fp16/formats.h"
#include "sim/registry.h"

namespace sim {
namespace {

using fp16::Accumulation;

constexpr std::array policies{
    PrecisionPolicy{.name = "fp32",
                    .description = "everything in FP32: the ground truth",
                    .weights = fp16::binary32,
                    .lower_precision = fp16::binary32,
                    .full_precision = fp16::binary32,
                    .accumulation = Accumulation::fp32_fma_chain},
    PrecisionPolicy{
        .name = "amp",
        .description = "FP16 operands and activations, FP32 accumulation, losses and master weights",
        .weights = fp16::binary32,
        .lower_precision = fp16::binary16,
        .full_precision = fp16::binary32,
        .accumulation = Accumulation::fp32_fma_chain},
    PrecisionPolicy{.name = "fp16",
                    .description = "pure FP16: no master weights, every sum an FP16 chain; losses in FP32",
                    .weights = fp16::binary16,
                    .lower_precision = fp16::binary16,
                    .full_precision = fp16::binary32,
                    .accumulation = Accumulation::fp16_fma_chain},
};

}  // namespace

std::span<const PrecisionPolicy> precision_policies() {
  return policies;
}

const PrecisionPolicy& find_precision_policy(std::string_view name) {
  return find_by_name(precision_policies(), "policy", name);
}

}  // namespace sim
