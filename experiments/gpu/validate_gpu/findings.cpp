#include "experiments/gpu/validate_gpu/findings.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "experiments/gpu/validate_gpu/numbers.h"
#include "experiments/gpu/validate_gpu/rows.h"

namespace experiments::validate_gpu {

Finding finding_of(const RowOutcome& outcome, const DeviceFailures& failures) {
  const Row& row = rows()[outcome.row];
  const bool is_tensor_core = row.operation->family == "tensor core";
  Finding finding{.operation = row.operation->name,
                  .family = row.operation->family,
                  .subject = std::string(name_of(row.subject)),
                  .reference = row.subject == Subject::software_half ? "double arithmetic"
                               : is_tensor_core                      ? "tensor-core model"
                                                                     : "software half",
                  .domain = std::string(row.domain().meaning),
                  .pipe = is_tensor_core    ? "tensor core"
                          : row.is_packed() ? "packed"
                                            : "scalar",
                  .obstacle = outcome.obstacle,
                  .device_failed = failures.concern(row.id()),
                  .is_complete_domain = row.domain().is_complete,
                  .inputs_possible = row.domain().inputs,
                  .shards_wanted = outcome.shards_wanted,
                  .shards_finished = outcome.shards_finished,
                  .inputs = outcome.inputs,
                  .inputs_now = outcome.inputs_now,
                  .mismatches = outcome.mismatches,
                  .documented = outcome.documented,
                  .other_nans = outcome.other_nans,
                  .misrounded = outcome.misrounded,
                  .deviation = row.deviation == nullptr ? "" : std::string(row.deviation->meaning),
                  .examples = outcome.examples,
                  .time_s = outcome.time_s};
  return finding;
}

std::vector<Finding> vector_findings(const std::optional<std::filesystem::path>& folder,
                                     const VectorFile& file) {
  std::vector<VectorOutcome> outcomes{{.accumulator = "f32"}, {.accumulator = "f16"}};
  if (folder) outcomes = check_vectors(*folder, file);
  std::vector<Finding> findings;
  for (const VectorOutcome& outcome : outcomes) {
    Finding finding{.operation = fmt::format("step_{}_{}", file.core.name, outcome.accumulator),
                    .family = "tensor core",
                    .subject = "recorded steps",
                    .reference = "tensor-core model",
                    .domain = std::string(file.name),
                    .pipe = "tensor core",
                    .obstacle = folder ? "" : "needs HALFLAB_DATA_DIR",
                    .is_complete_domain = false,
                    .inputs_possible = outcome.steps,
                    .inputs = outcome.steps,
                    .inputs_now = outcome.steps,
                    .mismatches = outcome.mismatches,
                    .deviation = {},
                    .examples = {}};
    const NumberType accumulator{.bits = outcome.accumulator == "f32" ? 32 : 16};
    for (const VectorMismatch& found : outcome.counterexamples) {
      Example example{.kind = "value", .bits = {}, .values = {}};
      append_lane(example, {.operand = {}, .result = accumulator, .operand_count = 0},
                  {.operands = {}, .result = found.result, .expected = found.expected});
      example.bits[0] = fmt::format("line {}", found.line);
      finding.examples.push_back(std::move(example));
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace experiments::validate_gpu
