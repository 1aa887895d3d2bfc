#include "experiments/frame/experiment.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/printable.h"

namespace experiments {
namespace {

struct StandardOptions {
  std::string out;  ///< empty: nothing is kept
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  bool quiet = false;
  bool json = false;
};

void add_standard_options(CommandLine& command_line, StandardOptions& options, Results results) {
  const bool is_asked = results == Results::asked;
  command_line.add("--out", options.out,
                   is_asked ? "directory for tables, figures and a page; nothing is written without"
                            : "directory of the results",
                   "DIR");
  if (is_asked) command_line.add_flag("--json", options.json, "print what was found as JSON");
  command_line.add("--threads", options.threads, "threads; the results do not depend on them",
                   {.minimum = 1, .maximum = 1024});
  if (!is_asked) command_line.add_quick();
  command_line.add_flag("--quiet", options.quiet, "no progress bar");
  command_line.add_config();
  command_line.add_list();
}

/// What was found, as one JSON object.
Json found(const Program& program, const Run& run, const RunRecord& record) {
  Json all = Json::object({{"program", program.name}, {"failure", nullptr}});
  if (run.failure()) all["failure"] = *run.failure();
  all.update(record.json());
  return all;
}

Json settings(const Program& program, const CommandLine& command_line) {
  const Json options = command_line.effective_options();
  return Json::object({{"experiment", program.name},
                       {"question", program.question},
                       {"options", options},
                       {"seed", options.value("seed")},
                       {"threads", options.at("threads")}});
}

/// Throws std::invalid_argument where another program's results lie in --out.
void require_own_results(const Program& program, const std::filesystem::path& out) {
  const Json experiment = manifest_in(out).value("experiment");
  if (experiment.is_string() && experiment.string() != program.name)
    throw std::invalid_argument(
        fmt::format("--out: '{}' holds results of {}; allowed: another directory, or to remove these",
                    out.string(), experiment.string()));
}

/// Throws std::invalid_argument where the run would replace a file in --out that no run wrote: one beside which neither a
/// manifest lies nor what a killed run has staged (record.h).
void require_free_names(const Program& program, const std::filesystem::path& out) {
  const auto exists = [&](const std::string& name) {
    std::error_code cannot_be_told;  // whether the directory is of use is asked elsewhere
    return std::filesystem::exists(out / name, cannot_be_told);
  };
  if (exists("manifest.json") || exists(".partial")) return;
  std::vector<std::string> names{"summary.json", "verdict.txt", "report.html"};
  for (const TableNote& table : program.outputs.tables) names.push_back(table.name + ".csv");
  for (const std::string& name : names) {
    if (exists(name))
      throw std::invalid_argument(
          fmt::format("--out: '{}' in '{}' is of no run; allowed: another directory, or to move it away",
                      name, out.string()));
  }
}

/// A line, where results of other options are about to be replaced.
void tell_what_is_replaced(const std::filesystem::path& out, const Json& options, Run& run) {
  const Json earlier = manifest_in(out).value("options");
  if (!earlier.is_object()) return;
  for (const auto& [name, value] : options.members()) {
    const bool is_of_the_result = name != "out" && name != "threads" && name != "quiet";
    if (!is_of_the_result || !earlier.find(name) || earlier.at(name) == value) continue;
    const Json& other = earlier.at(name);
    const std::string text = other.is_string() ? other.string() : other.to_text();
    return run.warn(fmt::format(
        "the results of another run in '{}', {}, are replaced", out.string(),
        text.empty() ? fmt::format("without --{}", name) : fmt::format("with --{} {}", name, text)));
  }
}

/// A bar needs a terminal that can erase a line.
bool can_show_progress(const std::ostream& err) {
  const char* const terminal = std::getenv("TERM");
  return &err == &std::cerr && ::isatty(STDERR_FILENO) != 0 &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

/// What a process says that reads a mapped file where there is none any more.
std::string bus_error_line;

void end_by_bus_error(int) {
  const ssize_t ignored = ::write(STDERR_FILENO, bus_error_line.data(), bus_error_line.size());
  static_cast<void>(ignored);
  ::_exit(2);
}

/// Throws where not all that was printed has reached the standard output, as on a full disk.
void require_printed() {
  errno = 0;
  if (std::cout.flush()) return;
  const std::string reason = errno == 0 ? "" : fmt::format(" ({})", std::generic_category().message(errno));
  throw std::runtime_error("the standard output cannot be written" + reason);
}

}  // namespace

void Run::figure(const Figure& figure) {
  if (!draws()) return;
  record_.flush();
  const Drawing drawing = draw(figure, record_.staging());
  throw_if_interrupted();  // Ctrl-C ends gnuplot too: no drawing to complain about
  record_.figure({.name = figure.name, .title = figure.title, .caption = figure.caption});
  if (drawing.problem.empty() || (drawing.gnuplot_missing && warned_about_gnuplot_)) return;
  warned_about_gnuplot_ = warned_about_gnuplot_ || drawing.gnuplot_missing;
  warn(drawing.problem);
}

void Run::warn(const std::string& text) {
  const std::scoped_lock lock(warning_);
  fmt::print(*settings_.warnings, "warning: {}\n", one_line(text));
}

int guarded(std::string_view program, std::ostream& err, const std::function<int()>& body) {
  // A file beyond the limit of its size is then an error of the write, with a line, and not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  bus_error_line = fmt::format("{}: a file became shorter, or its disk failed, while it was read\n", program);
  std::signal(SIGBUS, end_by_bus_error);
  try {
    const int code = body();
    if (code != 2) require_printed();
    return code;
  } catch (const Interrupted& interrupted) {
    fmt::print(err, "{}: {}\n", program, one_line(interrupted.what()));
    return 130;
  } catch (const std::bad_alloc&) {
    fmt::print(err, "{}: memory ran out\n", program);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(err, "{}: {}\n", program, one_line(error.what()));
    return 2;
  }
}

int run(int argc, const char* const* argv, const Experiment& experiment, const Laboratory& laboratory,
        Streams streams) {
  const std::string& name = experiment.program.name;
  return guarded(name, streams.err, [&] {
    StandardOptions options{.out =
                                experiment.results == Results::kept ? fmt::format("results/{}", name) : ""};
    CommandLine command_line(experiment.program, laboratory.families);
    experiment.options(command_line);
    add_standard_options(command_line, options, experiment.results);
    if (command_line.parse(argc, argv, streams.out) == CommandLine::Outcome::answered) return 0;

    const InterruptGuard interrupt_guard;
    const bool leaves_nothing = (experiment.results == Results::asked && options.out.empty()) ||
                                (experiment.has_record && !experiment.has_record());
    if (!leaves_nothing) require_free_names(experiment.program, options.out);
    const auto record =
        leaves_nothing ? std::make_unique<RunRecord>() : std::make_unique<RunRecord>(options.out);
    if (options.json) record->keep_as_json();
    Run run(*record, {.threads = options.threads,
                      .terminal = !options.quiet && can_show_progress(streams.err) ? &streams.err : nullptr,
                      .warnings = &streams.err,
                      .out = options.out});
    if (record->is_kept()) require_own_results(experiment.program, options.out);
    experiment.body(run);
    throw_if_interrupted();
    if (record->is_kept()) {
      Json known = settings(experiment.program, command_line);
      if (laboratory.arithmetic) known.update(laboratory.arithmetic());
      tell_what_is_replaced(options.out, known.at("options"), run);
      record->commit(known, [&] {
        if (experiment.add_page) experiment.add_page(*record);
      });
    }
    streams.out << (options.json ? found(experiment.program, run, *record).to_text(2) + "\n"
                                 : printable(record->verdict()));
    require_printed();  // before what stands on the error output
    if (!run.failure()) return 0;
    fmt::print(streams.err, "{}: check failed: {}\n", name, one_line(*run.failure()));
    return 1;
  });
}

}  // namespace experiments
