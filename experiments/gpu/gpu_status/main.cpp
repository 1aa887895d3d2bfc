/// What was proven on which GPU? The table of docs/gpu.md, and the other things that `./lab gpu` needs where
/// there is nothing but a driver: the device's name, one record from several programs.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "experiments/frame/build_information.h"
#include "experiments/frame/command_line.h"
#include "experiments/frame/files.h"
#include "experiments/frame/installation.h"
#include "experiments/frame/record.h"
#include "experiments/frame/whole_file.h"
#include "experiments/gpu/gpu_status/build.h"
#include "experiments/gpu/gpu_status/device.h"
#include "experiments/gpu/gpu_status/merge.h"
#include "experiments/gpu/gpu_status/status.h"
#include "experiments/training/laboratory.h"

namespace experiments::gpu_status {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string records = shared_data("records");
  std::string page;
  std::string device;
  bool cublas = false;
  std::string build;
  std::string merged;
  std::string out;
  std::string figures;
};

void write_device(const fs::path& file) {
  const std::optional<GpuInformation> device = gpu();
  const Json json = device ? as_json(*device) : Json();
  write_file(file, json.to_text(2) + "\n");
  const BuildInformation& build = build_information();
  std::cout << (device ? fmt::format("{}, driver {}, compute capability {}.{}", device->name, device->driver,
                                     device->compute_capability / 10, device->compute_capability % 10)
                       : "an emulated device: what runs on it is no proof")
            << fmt::format("; programs of revision {:.8}{}\n", build.git_revision,
                           build.git_dirty ? ", modified" : "");
}

int print_cublas() {
  const std::string absent = cublas_absent();
  std::cout << (absent.empty() ? "cuBLAS can be used" : absent) << '\n';
  return absent.empty() ? 0 : 1;
}

void write_table(const fs::path& page, const std::string& table) {
  const std::optional<std::string> text = contents_of(page);
  if (!text) throw std::runtime_error(fmt::format("--page: file '{}' cannot be read", page.string()));
  write_file(page, from_option("--page", [&] { return with_table(*text, table); }));
}

int run(int argc, char** argv) {
  Options options;
  CommandLine command_line(
      {.name = "gpu_status",
       .question = "Which operations and kernels were proven on which GPU? Without an option that says "
                   "otherwise it prints the table of docs/gpu.md",
       .example = "gpu_status --records experiments/records --page docs/gpu.md",
       .outputs = merged_outputs()});
  command_line.add("--records", options.records, "the folder of the committed records", "DIR");
  command_line.add("--page", options.page, "writes the table between the marks of this file", "FILE");
  command_line.add("--device", options.device, "writes the GPU of this machine as JSON", "FILE");
  command_line.add_flag("--cublas", options.cublas,
                        "prints whether cuBLAS can be used, or why not; exit code 1 if not");
  command_line.add("--build", options.build, "writes how these programs were built as JSON", "FILE");
  command_line.add("--merge", options.merged, "makes one record of the runs in this folder", "DIR");
  command_line.add("--out", options.out, "with --merge: the directory of the record", "DIR");
  command_line.add("--figures", options.figures,
                   "writes the tables and gnuplot scripts of this record into folders of it", "DIR");
  if (command_line.parse(argc, argv, std::cout) == CommandLine::Outcome::answered) return 0;
  if (options.merged.empty() != options.out.empty())
    throw UsageError("--merge: needs --out, and --out is for --merge alone");

  if (options.cublas) return print_cublas();
  if (!options.device.empty()) write_device(options.device);
  if (!options.build.empty()) write_file(options.build, build_json().to_text(2) + "\n");
  if (!options.merged.empty()) merge(options.merged, options.out);
  if (!options.figures.empty()) {
    for (const std::string& script : unpack(options.figures)) std::cout << script << '\n';
  }
  if (!options.device.empty() || !options.build.empty() || !options.merged.empty() ||
      !options.figures.empty())
    return 0;
  const std::string table = status_table(options.records);
  if (!options.page.empty()) write_table(options.page, table);
  std::cout << table;
  return 0;
}

}  // namespace
}  // namespace experiments::gpu_status

int main(int argc, char** argv) {
  using namespace experiments;
  return guarded("gpu_status", std::cerr, [&] { return gpu_status::run(argc, argv); });
}
