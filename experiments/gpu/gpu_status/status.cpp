#include "experiments/gpu/gpu_status/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "experiments/gpu/gpu_status/records.h"
#include "experiments/gpu/gpu_throughput/products.h"
#include "experiments/gpu/gpu_throughput/record.h"
#include "experiments/gpu/gpu_throughput/streaming.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/validation/proofs.h"

namespace experiments::gpu_status {
namespace {

namespace fs = std::filesystem;
using validate_gpu::Row;

/// A line of the table.
struct Line {
  std::string what;
  std::string rows;
  std::string result = "not yet run";
  std::string inputs;
  std::string where;
};

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<Line> family_lines(std::string_view name, const std::vector<const Row*>& rows,
                               const std::vector<RecordedGpu>& gpus) {
  const Line unproven{.what = std::string(name), .rows = fmt::format("{}", rows.size())};
  std::vector<std::string> ids;
  for (const Row* row : rows) ids.push_back(row->id());
  std::vector<Line> lines;
  for (const RecordedGpu& gpu : gpus) {
    const validation::FamilyProof family = validation::proof_of(ids, gpu.records);
    if (family.run == 0) continue;
    Line line = unproven;
    line.result = validation::result_text(family, rows.size());
    line.inputs = validation::power_text(family.inputs);
    line.where = joined(family.where);
    lines.push_back(std::move(line));
  }
  return lines.empty() ? std::vector{unproven} : lines;
}

std::vector<Line> rows_lines(const std::vector<RecordedGpu>& gpus) {
  std::vector<std::pair<std::string_view, std::vector<const Row*>>> families;
  for (const Row& row : validate_gpu::rows()) {
    if (!row.is_on_gpu()) continue;
    const std::string_view name = row.operation->family;
    auto family = std::ranges::find(families, name, [](const auto& each) { return each.first; });
    if (family == families.end()) family = families.insert(family, {name, {}});
    family->second.push_back(&row);
  }
  std::vector<Line> lines;
  for (const auto& [name, rows] : families)
    std::ranges::move(family_lines(name, rows, gpus), std::back_inserter(lines));
  return lines;
}

/// A program of ./lab gpu whose proof stands in the summary: `shown` are the keys, with what each counts.
struct ProgramRow {
  std::string_view program;
  std::string_view what;
  std::vector<std::pair<std::string_view, std::string_view>> shown;
};

const std::vector<ProgramRow>& program_rows() {
  static const std::vector<ProgramRow> rows{
      {"gpu_tests",
       "tests of the kernels",
       {{"passed", "passed"}, {"failed", "failed"}, {"skipped", "skipped"}}},
      {"explain_gemm",
       "products of cuBLAS explained",
       {{"ways", "ways to ask for one"},
        {"results", "different results"},
        {"results.explained", "explained"},
        {"results.real_bug", "wrong"}}}};
  return rows;
}

std::string shown(const Json& value) {
  return value.is_string() ? value.string() : value.to_text();
}

std::vector<Line> program_lines(const ProgramRow& row, const std::vector<RecordedGpu>& gpus) {
  const Line unproven{.what = std::string(row.what), .rows = ""};
  std::vector<Line> lines;
  for (const RecordedGpu& gpu : gpus) {
    for (const Record& record : gpu.records) {
      const Json* exit_code = record.summary.find(fmt::format("{}.exit_code", row.program));
      if (!exit_code) continue;
      std::vector<std::string> parts;
      for (const auto& [key, meaning] : row.shown) {
        const Json* value = record.summary.find(fmt::format("{}.{}", row.program, key));
        if (!value) continue;
        parts.push_back(fmt::format("{}{}{}", shown(*value), meaning.empty() ? "" : " ", meaning));
      }
      if (*exit_code != 0) parts.push_back(fmt::format("**exit code {}**", shown(*exit_code)));
      Line line = unproven;
      line.result = parts.empty() ? "run" : joined(parts);
      line.where = record.where;
      lines.push_back(std::move(line));
    }
  }
  return lines.empty() ? std::vector{unproven} : lines;
}

std::vector<Line> kernel_lines(std::string_view what, const std::vector<std::string>& names,
                               const std::vector<RecordedGpu>& gpus) {
  const Line unproven{.what = std::string(what), .rows = fmt::format("{}", names.size())};
  std::vector<Line> lines;
  for (const RecordedGpu& gpu : gpus) {
    for (const Record& record : gpu.records) {
      const auto timed = static_cast<std::size_t>(std::ranges::count_if(names, [&](const std::string& name) {
        return std::ranges::find(record.kernels, name, &KernelTime::kernel) != record.kernels.end();
      }));
      if (timed == 0) continue;
      Line line = unproven;
      line.result = fmt::format("{} right and timed",
                                timed == names.size() ? "all" : fmt::format("{} of {}", timed, names.size()));
      line.where = record.where;
      lines.push_back(std::move(line));
    }
  }
  return lines.empty() ? std::vector{unproven} : lines;
}

/// The kernels that are held against a limit with a target; nothing without any.
std::string throughput_table(const std::vector<RecordedGpu>& gpus) {
  std::string lines;
  for (const RecordedGpu& gpu : gpus) {
    for (const Record& record : gpu.records) {
      for (const KernelTime& time : record.kernels) {
        if (time.target.empty()) continue;
        const auto unit = time.unit == "B" ? gpu_throughput::Unit::bytes : gpu_throughput::Unit::flop;
        lines +=
            fmt::format("| `{}` | {} | {} | {:.1f} % of `{}` | {} |\n", time.kernel, time.size,
                        gpu_throughput::rate_text(time.rate, unit), 100 * time.ratio, time.limit, gpu.name);
      }
    }
  }
  if (lines.empty()) return "";
  return "\n| kernel | size | throughput | of its limit | on |\n|---|---|---|---|---|\n" + lines;
}

}  // namespace

std::string status_table(const fs::path& records) {
  const std::vector<RecordedGpu> gpus = read_gpus(records);
  std::vector<Line> lines = rows_lines(gpus);
  const auto append = [&](std::vector<Line> more) { std::ranges::move(more, std::back_inserter(lines)); };
  append(kernel_lines("kernels that stream through memory", gpu_throughput::streaming_row_names(), gpus));
  append(kernel_lines("kernels of matrix products", gpu_throughput::product_row_names(), gpus));
  for (const ProgramRow& row : program_rows()) append(program_lines(row, gpus));
  std::string table = "| what | rows | on a GPU | inputs | where |\n|---|---|---|---|---|\n";
  for (const Line& line : lines)
    table += fmt::format("| {} | {} | {} | {} | {} |\n", line.what, line.rows, line.result, line.inputs,
                         line.where);
  return table + throughput_table(gpus);
}

std::string with_table(const std::string& text, std::string_view table) {
  return validation::with_table(text, "gpu-status", table);
}

}  // namespace experiments::gpu_status
