/// How fast are half-precision kernels on this GPU, beside a copy and cuBLAS of the same run?
///
/// Every row is checked against the CPU before it is timed. Times are those of events on the device, each of
/// several calls that go round more buffers than the L2 cache holds; the rows of a group take turns, and each
/// row's rate stands beside that of its limit, measured in the same rounds.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/stopwatch.h"
#include "experiments/gpu/gpu_throughput/context_memory.h"
#include "experiments/gpu/gpu_throughput/judgement.h"
#include "experiments/gpu/gpu_throughput/measurement.h"
#include "experiments/gpu/gpu_throughput/products.h"
#include "experiments/gpu/gpu_throughput/record.h"
#include "experiments/gpu/gpu_throughput/selection.h"
#include "experiments/gpu/gpu_throughput/streaming.h"
#include "experiments/gpu/vendor/gpu_information.h"
#include "experiments/training/laboratory.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/device_memory.h"

namespace experiments::gpu_throughput {
namespace {

struct Options {
  std::uint64_t size = std::uint64_t{1} << 26;
  int matrix = judged_edge;
  int repeats = 20;
  std::string only = "all";
  double budget_s = 600;
};

/// The groups that were measured, and a line for each that was not.
struct Session {
  const Options& options;
  Selection selection;
  Measurement measurement;
  std::vector<Row> rows;
  std::vector<std::string> left_out;

  void measure_streaming() {
    if (!selection.wants_any(streaming_row_names())) return;
    measure_group(fmt::format("Arrays of {} elements", options.size), [&] {
      Group group = streaming_group(options.size);
      std::erase_if(group.works, [&](const Work& work) { return !selection.wants(work.name); });
      return group;
    });
  }

  void measure_products(int edge, OpenedCublas& cublas) {
    const std::string what = fmt::format("Matrices of {0} x {0}", edge);
    if (measurement.time_is_up()) return leave_out(what, "the budget is spent");
    measure_group(what, [&] { return product_group(edge, selection.rows, cublas); });
  }

  void leave_out(std::string_view what, std::string_view reason) {
    left_out.push_back(fmt::format("{} were left out: {}.\n", what, reason));
  }

  /// Or leaves it out, where the device has no room for it.
  void measure_group(std::string_view what, const std::function<Group()>& make_group) {
    try {
      std::ranges::move(measure(make_group(), measurement), std::back_inserter(rows));
    } catch (const Interrupted&) {
      throw;
    } catch (const std::runtime_error& error) {
      leave_out(what, error.what());
    }
  }

  void measure_all(Run& run) {
    const std::vector<int> edges =
        selection.wants_any(product_row_names()) ? edges_of(options.matrix) : std::vector<int>();
    Progress progress = run.progress("sizes", 1 + edges.size());
    measure_streaming();
    progress.tick();
    if (edges.empty()) return;
    OpenedCublas cublas = open_cublas();
    run.record().setting("cublas",
                         cublas.cublas ? cublas_version_text(cublas.cublas->version()) : cublas.absent);
    for (const int edge : edges) {
      measure_products(edge, cublas);
      progress.tick();
    }
  }
};

void run(Run& run, const Options& options, std::string& for_screen) {
  const auto time_is_up = [stopwatch = Stopwatch(), budget_s = options.budget_s] {
    return stopwatch.seconds() > budget_s;
  };
  Session session{.options = options,
                  .selection = from_option("--only", [&] { return selection_of(options.only); }),
                  .measurement = {.repeats = options.repeats, .time_is_up = time_is_up}};
  const ContextMemory context = begin_context();
  const fp16::cuda::Device device = fp16::cuda::device();
  const double stated_rate = fp16::cuda::device_limits().memory_bytes_per_second;
  run.record().gpu(gpu_information(device));
  session.measure_all(run);

  const std::vector<Judgement> judgements = judge(session.rows);
  write_timing(run.record(), session.rows, judgements);
  write_summary(run.record(), session.rows, judgements);
  write_summary(run.record(), context);
  write_verdict(run, session.rows);
  draw_figure(
      run, judgements,
      fmt::format("{}; arrays of {} elements, {} repeats.", device.name, options.size, options.repeats));
  for_screen =
      screen_text(session.rows, judgements) + copy_text(session.rows, stated_rate) + context_text(context);
  for (const std::string& line : session.left_out) for_screen += line;
}

}  // namespace
}  // namespace experiments::gpu_throughput

int main(int argc, char** argv) {
  using namespace experiments;
  gpu_throughput::Options options;
  std::string for_screen;
  const int exit_code = run(
      argc, argv,
      {.program =
           {.name = "gpu_throughput",
            .question =
                "How fast are half-precision kernels on this GPU, beside a copy and cuBLAS of the same run?",
            .example = "gpu_throughput --only half_histogram,wgmma_binary32 --out results/gpu",
            .outputs = gpu_throughput::outputs(),
            .details = gpu_throughput::row_help()},
       .options =
           [&](CommandLine& command_line) {
             command_line.add("--only", options.only, "rows, separated by commas, or all", "NAMES");
             command_line.add("--size", options.size, "elements of the arrays of rows that stream",
                              {.minimum = 1, .maximum = std::uint64_t{1} << 30, .quick = 1 << 22});
             command_line.add("--matrix", options.matrix,
                              "edge of the square matrices; a quarter and the double are measured, too",
                              {.minimum = 1, .maximum = 1 << 15, .quick = 512});
             command_line.add("--repeats", options.repeats, "timed repeats of a row",
                              {.minimum = 3, .maximum = 10000, .quick = 5});
             command_line.add("--budget", options.budget_s,
                              "seconds after which no further repeats and sizes are begun",
                              {.minimum = 0, .minimum_excluded = true});
           },
       .body = [&](Run& r) { gpu_throughput::run(r, options, for_screen); }});
  if (exit_code == 0 || exit_code == 1) std::cout << for_screen;
  return exit_code;
}
