#include "experiments/frame/claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>

#include "experiments/frame/crc32.h"
#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "experiments/frame/machine_information.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

/// What no other process has.
std::string fresh_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// The name of this job: the scheduler's, else "process 123".
std::string job_name() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string array = variable("SLURM_ARRAY_JOB_ID"); !array.empty())
    return fmt::format("Slurm job {}_{}", array, variable("SLURM_ARRAY_TASK_ID"));
  if (const std::string job = variable("SLURM_JOB_ID"); !job.empty()) return "Slurm job " + job;
  if (const std::string job = variable("PBS_JOBID"); !job.empty()) return "PBS job " + job;
  return fmt::format("process {}", ::getpid());
}

/// Within which a process number means something: this boot of this kernel, and a namespace in it.
std::string process_space() {
  std::error_code unknown;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", unknown);
  std::string boot = contents_of("/proc/sys/kernel/random/boot_id").value_or("");
  if (unknown || boot.empty()) return "";
  boot.pop_back();
  return boot + ' ' + space.string();
}

/// Whether a process of this space is known to have ended.
bool has_ended(std::int64_t process) {
  return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
}

/// ".now-3f2a9c01-417-": of what is no claim, by space and process; those of a process that has ended are litter.
std::string prefix_of(std::string_view kind, std::int64_t process) {
  const std::string space = process_space();
  return fmt::format(".{}-{:08x}-{}-", kind, crc32(std::as_bytes(std::span(space))), process);
}

Json description_of_this_job() {
  return Json::object({{"host", host_name()},
                       {"job", job_name()},
                       {"process", static_cast<std::int64_t>(::getpid())},
                       {"process_space", process_space()}});
}

/// By the clock of the file system; none of a file that is gone.
std::optional<nanoseconds> time_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return std::chrono::seconds(status.st_mtim.tv_sec) + nanoseconds(status.st_mtim.tv_nsec);
}

bool renew(const fs::path& file) {
  return ::utimensat(AT_FDCWD, file.c_str(), nullptr, 0) == 0;
}

[[noreturn]] void throw_unclaimable(const fs::path& file, int error) {
  throw std::runtime_error(
      fmt::format("claim '{}' cannot be made ({})", file.string(), std::generic_category().message(error)));
}

/// What the file system takes for now, by a file of one's own in the directory.
class FileClock {
 public:
  explicit FileClock(const fs::path& directory)
      : file_(directory / (prefix_of("now", ::getpid()) + fresh_token())) {}
  ~FileClock() {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  FileClock(const FileClock&) = delete;
  FileClock& operator=(const FileClock&) = delete;

  /// Lest it be taken for that of a killed job.
  void renew_own() const { renew(file_); }

  nanoseconds now() const {
    if (!renew(file_)) {  // not made yet, or gone with the directory as another job removed it for empty
      fs::create_directories(file_.parent_path());
      write_contents(file_, "");
      renew(file_);
    }
    const std::optional<nanoseconds> time = time_of(file_);
    if (!time) throw_unclaimable(file_, errno);
    return *time;
  }

 private:
  fs::path file_;
};

/// A claim as it lies there.
struct Found {
  fs::path file;
  Json description;

  ClaimOwner owner() const {
    const auto text = [this](const char* key) {
      const Json value = description.value(key);
      return value.is_string() ? value.string() : std::string("unknown");
    };
    return {.host = text("host"), .job = text("job")};
  }

  bool is_of_ended_process() const {
    const std::string space = process_space();
    const Json process = description.value("process");
    return !space.empty() && description.value("process_space") == Json(space) && process.is_integer() &&
           has_ended(process.integer());
  }

  bool is_given_up(const FileClock& clock, const ClaimTimes& times) const {
    const std::optional<nanoseconds> renewed = time_of(file);
    return !renewed || is_of_ended_process() || clock.now() - *renewed > times.patience;
  }
};

std::optional<Found> found_in(const fs::path& folder) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    return Found{entry.path(), Json::from_text(contents_of(entry.path()).value_or(""))};
  return std::nullopt;
}

}  // namespace

class Claims::Holder {
 public:
  Holder(fs::path directory, ClaimTimes times)
      : directory_(std::move(directory)), times_(times), token_(fresh_token() + ".json") {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error) throw_unclaimable(directory_, error.value());
    clock_.emplace(directory_);
    remove_litter();
    renewals_ = std::jthread([this](const std::stop_token& stop) { keep_renewing(stop); });
  }

  ~Holder() {
    renewals_.request_stop();
    renewals_ = {};
    for (const std::string& name : held_) remove(name);
    try {
      remove_litter();
    } catch (const std::exception&) {  // a later job will
    }
    clock_.reset();
    ::rmdir(directory_.c_str());
  }

  bool claim(const std::string& name) {
    const fs::path folder = directory_ / name;
    if (const std::optional<Found> other = found_in(folder)) {
      if (!other->is_given_up(*clock_, times_)) return false;
      ::unlink(other->file.c_str());
    }
    if (!put_in_place(folder)) return false;
    const std::scoped_lock lock(mutex_);
    held_.insert(name);
    return true;
  }

  void require(const std::string& name) const {
    if (renew(directory_ / name / token_)) return;
    throw ClaimLost(fmt::format("claim '{}' was taken over by another job", (directory_ / name).string()));
  }

  void give_back(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    if (held_.erase(name) > 0) remove(name);
  }

 private:
  /// Whether the folder was free.
  bool put_in_place(const fs::path& folder) {
    const fs::path made = directory_ / (prefix_of("new", ::getpid()) + fresh_token());
    fs::create_directories(made);
    write_contents(made / token_, description_of_this_job().to_text() + "\n");
    if (::rename(made.c_str(), folder.c_str()) == 0) return true;
    const int error = errno;
    fs::remove_all(made);
    if (error == ENOTEMPTY || error == EEXIST) return false;
    throw_unclaimable(folder, error);
  }

  void remove(const std::string& name) {
    ::unlink((directory_ / name / token_).c_str());
    ::rmdir((directory_ / name).c_str());
  }

  /// What killed jobs left that is no claim.
  void remove_litter() {
    const nanoseconds now = clock_->now();
    std::error_code gone;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_, gone)) {
      const std::string name = entry.path().filename().string();
      const std::optional<nanoseconds> time = time_of(entry.path());
      if (!name.starts_with('.') || !time) continue;
      if (now - *time > times_.patience || is_of_ended_process(name)) fs::remove_all(entry.path(), gone);
    }
  }

  /// By the name that prefix_of() began.
  static bool is_of_ended_process(const std::string& name) {
    std::int64_t process = 0;
    const std::size_t first = name.find('-', name.find('-') + 1) + 1;
    const bool has_number =
        std::from_chars(name.data() + first, name.data() + name.size(), process).ec == std::errc{};
    const bool is_of_this_space =
        name.starts_with(prefix_of("now", process)) || name.starts_with(prefix_of("new", process));
    return has_number && is_of_this_space && has_ended(process);
  }

  void keep_renewing(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      clock_->renew_own();
      for (const std::string& name : held_) renew(directory_ / name / token_);
      changed_.wait_for(lock, stop, times_.renewal, [] { return false; });
    }
  }

  fs::path directory_;
  ClaimTimes times_;
  std::string token_;
  std::optional<FileClock> clock_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::string> held_;
  std::jthread renewals_;
};

Claims::Claims(fs::path directory, ClaimTimes times)
    : holder_(std::make_unique<Holder>(std::move(directory), times)) {}

Claims::~Claims() = default;

bool Claims::claim(const std::string& name) {
  return holder_->claim(name);
}

void Claims::require(const std::string& name) const {
  holder_->require(name);
}

void Claims::give_back(const std::string& name) {
  holder_->give_back(name);
}

std::optional<ClaimOwner> owner_of(const fs::path& directory, const std::string& name, ClaimTimes times) {
  const std::optional<Found> found = found_in(directory / name);
  if (!found || found->is_given_up(FileClock(directory), times)) return std::nullopt;
  return found->owner();
}

}  // namespace experiments
