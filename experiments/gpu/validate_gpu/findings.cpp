#include "experiments/gpu/validate_gpu/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/gpu/validate_gpu/rows.h"

namespace experiments::validate_gpu {
namespace {

std::string failure_sentence(const std::vector<Finding>& findings, const DeviceFailures& failures) {
  if (failures.all().empty()) return "";
  const auto rows = std::ranges::count_if(findings, &Finding::device_failed);
  std::vector<std::string_view> texts;
  for (const DeviceFailure& failure : failures.all()) texts.push_back(failure.text);
  return fmt::format(" THE DEVICE FAILED at {}: {}.{}", counted(static_cast<std::size_t>(rows), "row"),
                     fmt::join(texts, "; "),
                     failures.is_device_lost() ? " After these it was asked for nothing more." : "");
}

const SummaryOf<std::string_view> header_summary{
    {{"cuda_fp16.h", "CUDA version of NVIDIA's header, or \"none\"",
      [](auto& version) { return version.empty() ? "none" : version; }}}};

}  // namespace

Finding finding_of(const RowOutcome& outcome, const DeviceFailures& failures) {
  const Row& row = rows()[outcome.row];
  const bool is_tensor_core = row.operation->family == "tensor core";
  return {.operation = row.operation->name,
          .family = row.operation->family,
          .subject = std::string(name_of(row.subject)),
          .reference = row.subject == Subject::software_half ? "double arithmetic"
                       : row.operation->is_held_to_itself    ? "the same instruction"
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
}

Outputs header_outputs() {
  return outputs_of(header_summary);
}

void write_header_summary(RunRecord& record) {
  header_summary.write(record, cuda_header_version());
}

void write_verdict(RunRecord& record, const std::vector<Finding>& findings, const DeviceFailures& failures) {
  validation::write_verdict(record, findings, failure_sentence(findings, failures));
}

}  // namespace experiments::validate_gpu
