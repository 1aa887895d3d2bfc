#include "experiments/training/mpi/job.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "experiments/frame/printable.h"
#include "experiments/training/mpi/launcher.h"
#include "experiments/training/mpi/supervisor.h"
#include "experiments/training/mpi/wire.h"

namespace experiments {
namespace {

/// What the arguments ask for, which are read as a whole only once there are others to tell what is wrong with them.
struct Request {
  bool is_made = false;
  bool stands_alone = false;  ///< asks for what a process does by itself, whoever started others beside it
  std::string library;        ///< empty: the launcher's
};

Request request_in(std::span<const char* const> arguments) {
  constexpr std::string_view library = "--mpi-library";
  Request request;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--mpi") request.is_made = true;
    for (const std::string_view option : {"--shard", "--cells", "-h", "--help", "--help-outputs", "--list"})
      request.stands_alone |= argument.substr(0, argument.find('=')) == option;
    if (argument == library && i + 1 < arguments.size()) request.library = arguments[i + 1];
    if (argument.starts_with(library) && argument.substr(library.size()).starts_with('='))
      request.library = argument.substr(library.size() + 1);
  }
  return request;
}

/// Processes that do not know of each other would all train the same into one folder.
[[noreturn]] void reject_strangers(const Launch& launch) {
  throw UsageError(fmt::format(
      "{} processes were started by {}; must come with --mpi, or each with --shard, its own part of a sweep",
      launch.ranks, launch.launcher));
}

std::string library_of(std::string_view program, const Request& request,
                       const std::optional<Launch>& launch) {
  if (!launch)
    throw UsageError(fmt::format(
        "--mpi: no launcher has started this process; must be started as 'mpirun -np 4 {} --mpi ...'",
        program));
  if (!request.library.empty() && request.library != "openmpi" && request.library != "mpich")
    throw UsageError(fmt::format("--mpi-library: '{}' is given; must be openmpi or mpich", request.library));
  if (!request.library.empty() && !launch->library.empty() && request.library != launch->library)
    throw UsageError(fmt::format(
        "--mpi-library: {} is given, and the launcher of {} has started this process; must be the "
        "launcher's",
        request.library, launch->library));
  if (request.library.empty() && launch->library.empty())
    throw UsageError(
        "--mpi: srun has started this process, for any library; must come with --mpi-library openmpi or "
        "mpich");
  return request.library.empty() ? launch->library : request.library;
}

/// A launcher that ends all may drop what it has not read yet.
void let_lines_be_read() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// The library's processes, of which this is one.
class Job {
 public:
  Job(std::string_view program, const std::string& library, const Launch& launch, RankProgress& progress)
      : program_(program), wire_(library, progress) {
    require_ranks(launch, library, wire_.ranks());
    ranks_ = std::make_unique<Ranks>(
        wire_, Ranks::Carrier{wire_.vendor(), wire_.version()},
        Ranks::Watch{.begins = [&progress](std::uint64_t step) { progress.step = step; },
                     .allows = [&progress](std::uint64_t seconds) { progress.allowed_seconds = seconds; }});
  }

  int run(const std::function<int(Ranks*, Streams)>& body) {
    std::ostringstream unseen, said;
    const int code = body(ranks_.get(), ranks_->is_first() ? Streams{} : Streams{unseen, said});
    std::string line = said.str();
    while (line.ends_with('\n')) line.pop_back();
    if (line.starts_with(fmt::format("{}: ", program_))) line = line.substr(program_.size() + 2);
    return end(code, line);
  }

 private:
  int end(int code, const std::string& said) {
    switch (ranks_->stage()) {
      case Ranks::Stage::apart:
        return end_apart(code, said);
      case Ranks::Stage::training:
        abort(code, said);
      case Ranks::Stage::refused:
        return together(code);
      case Ranks::Stage::differing:
        return together(1);
      case Ranks::Stage::interrupted:
      case Ranks::Stage::trained:
        return together(code);
    }
    return code;
  }

  int end_apart(int code, const std::string& said) {
    const Ranks::Outcome outcome = ranks_->decline(code, said);
    if (ranks_->is_first() && !outcome.problem.empty()) say(outcome.problem);
    return together(outcome.exit_code);
  }

  /// The others wait for this rank, and would for ever.
  [[noreturn]] void abort(int code, const std::string& said) {
    if (!ranks_->is_first())
      say(fmt::format("rank {} on {}, in step {}: {}", ranks_->rank(), ranks_->host_of(ranks_->rank()),
                      ranks_->step_under_way(), said));
    let_lines_be_read();
    wire_.abort(code);
  }

  /// None ends before the first has said why. Signals come too late, such as a launcher's, which ends all because one has
  /// ended with an error, or a scheduler's that asks for checkpoints once more.
  int together(int code) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(signal, SIG_IGN);
    return ranks_->share_exit_code(code);
  }

  void say(const std::string& line) const { fmt::print(std::cerr, "{}: {}\n", program_, one_line(line)); }

  std::string program_;
  MpiWire wire_;
  std::unique_ptr<Ranks> ranks_;
};

}  // namespace

int run_on_ranks(std::string_view program, int argc, const char* const* argv,
                 const std::function<int(Ranks*, Streams)>& run) {
  const Request request = request_in(std::span(argv, static_cast<std::size_t>(argc)));
  const std::optional<Launch> launch = launch_of_this_process();
  const bool is_alone = request.stands_alone || !launch || launch->ranks == 1;
  if (!request.is_made && is_alone) return run(nullptr, {});
  const int launcher = ::getppid();
  std::ostringstream said;
  bool has_begun = false;
  const int code = guarded(program, said, [&] {
    if (!request.is_made) reject_strangers(*launch);
    const std::string library = library_of(program, request, launch);
    const auto line = [&](const std::string& what, const RankProgress& last) {
      return fmt::format("{}: rank {} {} {}", program, launch->rank, what,
                         last.step == RankProgress::none ? "before its first step"
                                                         : fmt::format("in step {}", last.step.load()));
    };
    RankProgress& progress = continue_in_child(launch->rank == 0, line);
    Job job(program, library, *launch, progress);
    has_begun = true;
    return job.run(run);
  });
  if (!said.view().empty() && (!launch || speaks_for_host(launcher))) std::cerr << said.view() << std::flush;
  if (has_begun || code == 0) return code;
  let_lines_be_read();
  end_all_before_start(code);
  return code;
}

}  // namespace experiments
