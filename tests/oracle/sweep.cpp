#include "tests/oracle/sweep.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iomanip>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace oracle {
namespace {

/// What the calling thread has spent, whoever else wants the processor.
double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// FNV-1a (Fowler, Noll and Vo) of the running program and of what the processor says that it can do.
std::string digest_of_program() {
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&](std::string_view bytes) {
    for (const char byte : bytes) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  };
  std::ifstream program("/proc/self/exe", std::ios::binary);
  if (!program)
    throw std::runtime_error("/proc/self/exe: cannot be read; sweeps need it to know their build");
  std::ostringstream content;
  content << program.rdbuf();
  add(content.view());
  std::ifstream processor("/proc/cpuinfo");
  for (std::string line; std::getline(processor, line) && !line.empty();)
    if (line.starts_with("flags")) add(line);
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(16) << digest;
  return text.str();
}

std::filesystem::path file_of(const Sweep& sweep, const SweepOptions& options) {
  static const std::string digest = digest_of_program();
  return options.directory / (sweep.name + '-' + digest + ".txt");
}

/// One line for each finished shard: its number, inputs, seconds, largest, "done".
class Record {
 public:
  Record(const std::filesystem::path& file, std::uint64_t shards) : finished_(shards) {
    read(file);
    std::filesystem::create_directories(file.parent_path());
    out_.open(file, std::ios::app);
    out_ << '\n' << std::flush;  // ends a line that a kill has cut off
    if (!out_) throw std::runtime_error(file.string() + ": cannot be written");
    out_ << std::setprecision(17);
  }

  bool has(std::uint64_t shard) const { return finished_[shard]; }
  const Checked& total() const { return total_; }

  void add(std::uint64_t shard, const Checked& checked) {
    out_ << shard << ' ' << checked.inputs << ' ' << checked.seconds << ' ' << checked.largest << " done\n"
         << std::flush;
    count(shard, checked);
  }

 private:
  void read(const std::filesystem::path& file) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      std::istringstream fields(line);
      std::uint64_t shard;
      Checked checked;
      std::string end;
      fields >> shard >> checked.inputs >> checked.seconds >> checked.largest >> end;
      if (end == "done" && shard < finished_.size() && !finished_[shard]) count(shard, checked);
    }
  }

  void count(std::uint64_t shard, const Checked& checked) {
    finished_[shard] = true;
    total_ += checked;
  }

  std::vector<bool> finished_;
  Checked total_;
  std::ofstream out_;
};

/// A line on the terminal that is written over and over.
class Progress {
 public:
  Progress(const std::string& name, std::size_t shards)
      : name_(name), shards_(shards), visible_(isatty(STDERR_FILENO) != 0 && shards != 0) {}
  ~Progress() {
    if (visible_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t done) const {
    if (!visible_) return;
    const std::chrono::duration<double> spent = Clock::now() - start_;
    const double left = spent.count() / static_cast<double>(done) * static_cast<double>(shards_ - done);
    std::fprintf(stderr, "\r\033[K%s: %zu of %zu shards, %.0f s left", name_.c_str(), done, shards_, left);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string name_;
  std::size_t shards_;
  bool visible_;
  Clock::time_point start_ = Clock::now();
};

Checked run_shard(const Sweep& sweep, std::uint64_t shard) {
  try {
    const double start = processor_seconds();
    Checked checked = sweep.run(shard);
    checked.seconds = processor_seconds() - start;
    return checked;
  } catch (const std::exception& error) {
    return {.difference = error.what()};
  }
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : UINT64_MAX;
}

}  // namespace

Checked& Checked::operator+=(const Checked& other) {
  inputs += other.inputs;
  seconds += other.seconds;
  largest = std::max(largest, other.largest);
  if (difference.empty()) difference = other.difference;
  return *this;
}

SweepOptions sweep_options() {
  SweepOptions options;
  const char* directory = std::getenv("HALFLAB_SWEEP_DIR");
  options.directory = directory != nullptr
                          ? std::filesystem::path(directory)
                          : std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sweeps";
  const char* shards = std::getenv("HALFLAB_SWEEP_SHARDS");
  if (shards == nullptr) return options;
  const std::string_view text = shards;
  const std::size_t slash = std::min(text.find('/'), text.size());
  options.part = number(text.substr(0, slash));
  options.parts = number(text.substr(std::min(slash + 1, text.size())));
  if (options.part >= options.parts || options.parts == UINT64_MAX)
    throw std::invalid_argument("HALFLAB_SWEEP_SHARDS: " + std::string(text) +
                                " is not allowed; part/parts with part < parts, such as 0/64");
  return options;
}

Checked run_sweep(const Sweep& sweep, const SweepOptions& options) {
  Record record(file_of(sweep, options), sweep.shards);
  std::vector<std::uint64_t> missing;
  for (std::uint64_t shard = options.part; shard < sweep.shards; shard += options.parts)
    if (!record.has(shard)) missing.push_back(shard);

  const Progress progress(sweep.name, missing.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::size_t done = 0;
  Checked failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size() && !stop; i = next++) {
      const Checked checked = run_shard(sweep, missing[i]);
      const std::scoped_lock lock(mutex);
      if (checked.difference.empty()) {
        record.add(missing[i], checked);
        progress.show(++done);
      } else {
        failed += checked;
        stop = true;
      }
    }
  };
  std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread& thread : threads) thread = std::jthread(work);
  threads.clear();
  failed += record.total();
  return failed;
}

Checked check_sweep(const Sweep& sweep) {
  const SweepOptions options = sweep_options();
  const Checked checked = run_sweep(sweep, options);
  MESSAGE(sweep.name << ": " << checked.inputs << " inputs in " << std::lround(checked.seconds)
                     << " s of one processor");
  CHECK(checked.difference == "");
  if (options.parts == 1 && checked.difference.empty()) CHECK(checked.inputs == sweep.inputs);
  return checked;
}

}  // namespace oracle
