#include "experiments/cpu/validate_cpu/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace experiments::validate_cpu {
namespace {

/// Closes it at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::runtime_error system_error(const std::string& what) {
  return std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Program::Program(const std::vector<std::string>& command) : name_(fmt::format("{}", command.back())) {
  const Descriptor memory(::memfd_create("halflab_cpu", MFD_CLOEXEC));
  if (memory.number() < 0 || ::ftruncate(memory.number(), ShardMemory::size) != 0)
    throw system_error("memory to share with " + name_);
  void* const mapped =
      ::mmap(nullptr, ShardMemory::size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.number(), 0);
  if (mapped == MAP_FAILED) throw system_error("memory to share with " + name_);
  mapped_ = mapped;
  start(command, memory.number());
  introduce();
}

Program::~Program() {
  if (socket_ >= 0) ::close(socket_);  // at which it ends
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
  if (mapped_ != nullptr) ::munmap(mapped_, ShardMemory::size);
}

/// In a process group of its own, so that Ctrl-C is for its host alone.
void Program::start(const std::vector<std::string>& command, int memory) {
  std::vector<std::string> words = command;
  words.insert(words.end(), {"--serve", fmt::format("{}", memory)});
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw system_error("a connection to " + name_);
  const Descriptor theirs(ends[1]);
  socket_ = ends[0];
  process_ = ::fork();
  if (process_ == 0) {
    ::setpgid(0, 0);
    ::dup2(theirs.number(), STDIN_FILENO);
    ::dup2(theirs.number(), STDOUT_FILENO);
    ::fcntl(memory, F_SETFD, 0);
    ::execvp(raw[0], raw.data());
    ::_exit(127);
  }
  if (process_ < 0) throw system_error("a process for " + name_);
}

void Program::introduce() {
  for (std::string text = line(); text != "ready"; text = line()) {
    std::istringstream words(text);
    std::string verb, family, rest;
    words >> verb;
    if (verb == "model") {
      std::getline(words >> std::ws, introduction_.model);
      continue;
    }
    words >> family;
    std::getline(words >> std::ws, rest);
    if (verb == "family") introduction_.families[family] = rest;
    if (verb == "without") introduction_.lacking.emplace(family, rest);
  }
}

void Program::execute(std::string_view family, std::size_t instruction, std::size_t count,
                      bool with_exceptions) {
  const std::string text =
      fmt::format("execute {} {} {} {}\n", family, instruction, count, with_exceptions ? 1 : 0);
  if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) fail();
  if (line() != "done") fail();
}

std::string Program::line() {
  while (true) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string text = received_.substr(0, end);
      received_.erase(0, end + 1);
      return text;
    }
    std::array<char, 4096> bytes;
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) fail();
    received_.append(bytes.data(), static_cast<std::size_t>(size));
  }
}

void Program::fail() {
  int status = 0;
  ::close(socket_);
  socket_ = -1;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  throw std::runtime_error(WIFSIGNALED(status)
                               ? fmt::format("{}: ended by signal {}", name_, WTERMSIG(status))
                               : fmt::format("{}: ended with exit code {}", name_, WEXITSTATUS(status)));
}

}  // namespace experiments::validate_cpu
