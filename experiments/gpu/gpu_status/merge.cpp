#include "experiments/gpu/gpu_status/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/columns.h"
#include "experiments/frame/files.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/record.h"
#include "experiments/frame/whole_file.h"
#include "experiments/gpu/gpu_status/build.h"
#include "experiments/validation/record_files.h"

namespace experiments::gpu_status {
namespace {

namespace fs = std::filesystem;
using validation::read_object;

struct ProgramRun {
  std::string name;
  std::optional<int> exit_code;  ///< nothing where it was not run
  double time_s = 0;
};

struct KeptFile {
  std::string_view program;
  std::string_view name;
  std::string_view kept_name;
};

/// What stands in a record as it is, to be read at once; with the four others eight files.
constexpr std::array kept_files{KeptFile{"validate_gpu", "verdicts.csv", "verdicts.csv"},
                                KeptFile{"validate_gpu", "counterexamples.csv", "counterexamples.csv"},
                                KeptFile{"validate_gpu", "shards.bin", "shards.bin"},
                                KeptFile{"gpu_throughput", "timing.csv", "throughput.csv"}};

constexpr std::array text_extensions{".csv", ".gp", ".json", ".txt"};
constexpr std::size_t most_packed_bytes = 12 << 20;

/// The GPU as `gpu_status --device` wrote it down; null where it did not.
Json read_gpu(const fs::path& file) {
  const Json gpu = read_object(file);
  return gpu.find("name") && gpu.find("driver") ? gpu : Json();
}

std::string last_lines(const std::string& text, int count) {
  std::size_t start = text.find_last_not_of('\n');
  if (start == std::string::npos) return "";
  for (; count > 0 && start != std::string::npos; --count)
    start = start == 0 ? std::string::npos : text.rfind('\n', start - 1);
  return text.substr(start == std::string::npos ? 0 : start + 1);
}

/// Why a program was not run.
std::string reason_of(const std::string& log) {
  const std::string line = last_lines(log, 1);
  return line.substr(0, line.find('\n'));
}

int occurrences(const std::string& text, std::string_view part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct TestCases {
  int all = 0, passed = 0, failed = 0, skipped = 0;
};

const SummaryOf<TestCases> tests_summary{
    {{"<program>.test_cases", "cases of a program of tests", &TestCases::all, "--merge"},
     {"<program>.passed", "of these cases, but for those that were skipped", &TestCases::passed, "--merge"},
     {"<program>.failed", "of these cases", &TestCases::failed, "--merge"},
     {"<program>.skipped", "of these cases, as they cannot run here", &TestCases::skipped, "--merge"}}};

/// doctest's last line but two: "test cases:  5 |  5 passed | 0 failed | 0 skipped". A case that cannot run here
/// says so and counts as passed there.
void summarise_tests(RunRecord& record, const std::string& name, const std::string& log) {
  const std::size_t start = log.rfind("test cases:");
  if (start == std::string::npos) return;
  std::string numbers = log.substr(start, log.find('\n', start) - start);
  std::ranges::replace_if(
      numbers, [](char c) { return c < '0' || c > '9'; }, ' ');
  std::istringstream stream(numbers);
  TestCases cases{.skipped = occurrences(log, "MESSAGE: skipped: ")};
  if (!(stream >> cases.all >> cases.passed >> cases.failed)) return;
  cases.passed -= cases.skipped;
  tests_summary.write(record, cases, {name});
}

Value as_value(const Json& value) {
  if (value.is_string()) return value.string();
  if (!value.is_number()) return value.to_text();
  if (!value.is_integer()) return value.number();
  return value.number() < 0 ? Value(value.integer()) : Value(value.unsigned_integer());
}

const SummaryOf<std::string> not_run_summary{
    {{"<program>.not_run", "why it was not run", &reason_of, "--merge"}}};
const SummaryOf<ProgramRun> run_summary{
    {{"<program>.exit_code", "of a program that was run", &ProgramRun::exit_code, "--merge"}}};
const SummaryOf<Value> copied_summary{
    {{"<program>.<key>", "every key of the program's own summary", std::identity(), "--merge"}}};

void add_summary(RunRecord& record, const fs::path& folder, const ProgramRun& run, const std::string& log) {
  if (!run.exit_code) return not_run_summary.write(record, log, {run.name});
  run_summary.write(record, run, {run.name});
  summarise_tests(record, run.name, log);
  const Json summary = read_object(folder / run.name / "summary.json");
  for (const auto& [key, value] : summary.members())
    copied_summary.write(record, as_value(value), {run.name, key});
}

std::string outcome_of(int exit_code) {
  constexpr int ended_by_timeout = 124, killed_by_timeout = 137;
  switch (exit_code) {
    case 0:
      return "done";
    case 1:
      return "a check failed";
    case ended_by_timeout:
    case killed_by_timeout:
      return "ended by its time limit";
    default:
      return fmt::format("exit code {}", exit_code);
  }
}

void add_verdict(RunRecord& record, const fs::path& folder, const ProgramRun& run, const std::string& log) {
  if (!run.exit_code) return record.verdict(fmt::format("{}: not run: {}.", run.name, reason_of(log)));
  const int shown_lines = *run.exit_code == 0 ? 3 : 40;
  record.verdict(fmt::format("{}: {}.", run.name, outcome_of(*run.exit_code)));
  const bool has_verdict = fs::exists(folder / run.name / "verdict.txt");
  const std::string text = has_verdict ? log : last_lines(log, shown_lines);  // measured times, too
  if (!text.empty()) record.verdict(text);
}

bool is_text(const fs::path& file) {
  return std::ranges::find(text_extensions, file.extension()) != text_extensions.end();
}

std::vector<fs::path> text_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(directory, absent)) {
    if (entry.is_regular_file() && is_text(entry.path())) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// The texts of the programs' files, by program and name.
struct Packed {
  Json texts = Json::object();
  std::size_t bytes = 0;
  std::vector<std::string> left_out;

  void add(const std::string& program, const std::string& name, const std::string& text) {
    if (bytes + text.size() > most_packed_bytes) {
      left_out.push_back(fmt::format("{}/{}", program, name));
      return;
    }
    bytes += text.size();
    texts[program][name] = text;
  }
};

void copy_kept_files(const RunRecord& record, const fs::path& folder) {
  for (const KeptFile& file : kept_files) {
    const fs::path source = folder / file.program / file.name;
    if (fs::exists(source)) fs::copy_file(source, record.staging() / file.kept_name);
  }
}

/// RunRecord knows this very process; the manifest tells of the GPU and of the programs.
void complete_manifest(const fs::path& file, const Json& gpu, double time_s) {
  Json manifest = read_object(file);
  manifest["cuda"] = cuda_json();
  manifest["driver"] = gpu.value("driver");
  manifest["gpu"] = gpu;
  manifest["wall_time_s"] = time_s;
  std::erase_if(manifest.members(), [](const auto& member) { return member.first == "peak_resident_bytes"; });
  write_file(file, manifest.to_text(2) + "\n");
}

/// Whether it is a name such as "gpu_tests" or "b.csv", which leads nowhere else: damaged files must not have others read or
/// written.
bool is_plain(const std::string& name) {
  const auto is_allowed = [](unsigned char c) {
    return c < 128 && (std::isalnum(c) || c == '_' || c == '-' || c == '.');
  };
  return !name.empty() && !name.starts_with('.') && std::ranges::all_of(name, is_allowed);
}

std::optional<ProgramRun> run_of(const std::string& line) {
  ProgramRun run;
  std::string outcome;
  std::istringstream words(line);
  if (!(words >> run.name >> outcome >> run.time_s) || !is_plain(run.name)) return std::nullopt;
  if (outcome == "not_run") return run;
  std::istringstream number(outcome);
  int exit_code = 0;
  if (!(number >> exit_code) || !number.eof()) return std::nullopt;
  run.exit_code = exit_code;
  return run;
}

std::vector<ProgramRun> read_runs(const fs::path& folder) {
  const fs::path file = folder / "runs";
  std::istringstream stream(read_file(file));
  std::vector<ProgramRun> runs;
  for (std::string line; std::getline(stream, line);) {
    std::optional<ProgramRun> run = run_of(line);
    const auto fail = [&](std::string_view why) {
      throw std::runtime_error(
          fmt::format("{}: line {}: '{}' {}", file.string(), runs.size() + 1, one_line(line), why));
    };
    if (!run) fail("must be a name, an exit code or not_run, and seconds");
    if (std::ranges::find(runs, run->name, &ProgramRun::name) != runs.end())
      fail("names a program that stands above");
    runs.push_back(*std::move(run));
  }
  if (runs.empty()) throw std::runtime_error(fmt::format("{}: cannot be read or is empty", file.string()));
  return runs;
}

void require_plain(const std::string& name) {
  if (!is_plain(name))
    throw std::runtime_error(
        fmt::format("runs.json: '{}' is no name of a program or its file", one_line(name)));
}

/// The folder of a record in which a program's files are put, made where there is none.
fs::path own_folder(const fs::path& record, const std::string& program) {
  require_plain(program);
  fs::path folder = record / program;
  if (fs::is_symlink(folder))
    throw std::runtime_error(
        fmt::format("'{}' is a link, which nothing is unpacked through", folder.string()));
  fs::create_directories(folder);
  return folder;
}

}  // namespace

Outputs merged_outputs() {
  Outputs outputs = outputs_of(not_run_summary, run_summary, tests_summary, copied_summary);
  for (const KeptFile& file : kept_files) {
    const fs::path kept(file.kept_name);
    if (kept.extension() != ".csv") continue;
    const std::string columns =
        fmt::format("the columns of {} of {}, named in its --help", file.name, file.program);
    outputs.tables.push_back(
        {kept.stem().string(), "each row of that table", {{columns, "", ""}}, "--merge"});
  }
  return outputs;
}

void merge(const fs::path& folder, const fs::path& out) {
  const std::vector<ProgramRun> runs = read_runs(folder);
  const Json gpu = read_gpu(folder / "gpu.json");
  RunRecord record(out);
  copy_kept_files(record, folder);
  record.verdict(gpu.is_null()
                     ? "Not on a GPU: nothing here is a proof."
                     : fmt::format("On {}, driver {}.", gpu.at("name").string(), gpu.at("driver").string()));
  Json::Array programs;
  Packed packed;
  for (const ProgramRun& run : runs) {
    const std::string log = contents_of(folder / (run.name + ".log")).value_or("");
    add_summary(record, folder, run, log);
    add_verdict(record, folder, run, log);
    if (!log.empty()) packed.add(run.name, "log.txt", log);
    for (const fs::path& file : text_files(folder / run.name))
      packed.add(run.name, file.filename().string(), contents_of(file).value_or(""));
    const Json manifest = read_object(folder / run.name / "manifest.json");
    programs.push_back(Json::object({{"name", run.name},
                                     {"exit_code", run.exit_code ? Json(*run.exit_code) : Json()},
                                     {"time_s", run.time_s},
                                     {"options", manifest.value("options")},
                                     {"settings", manifest.value("settings")}}));
  }
  write_contents(record.staging() / "runs.json", packed.texts.to_text(1) + "\n");
  record.commit(
      Json::object({{"experiment", "gpu"},
                    {"question", "What of the GPU code does what it should on this GPU, and how fast?"},
                    {"programs", std::move(programs)},
                    {"left_out", Json(packed.left_out)}}));
  const double time_s = std::accumulate(runs.begin(), runs.end(), 0.0,
                                        [](double sum, const ProgramRun& run) { return sum + run.time_s; });
  complete_manifest(out / "manifest.json", gpu, time_s);
}

std::vector<std::string> unpack(const fs::path& record) {
  if (read_object(record / "manifest.json").value("experiment") != "gpu")
    throw std::runtime_error(
        fmt::format("'{}' is no record of ./lab gpu: it has no manifest.json of one", record.string()));
  const Json runs = read_object(record / "runs.json");
  std::vector<std::string> scripts;
  for (const auto& [program, files] : runs.members()) {
    const fs::path folder = own_folder(record, program);
    for (const auto& [name, text] : files.members()) {
      require_plain(name);
      write_file(folder / name, text.string());
      if (name.ends_with(".gp")) scripts.push_back(fmt::format("{}/{}", program, name));
    }
  }
  return scripts;
}

}  // namespace experiments::gpu_status
