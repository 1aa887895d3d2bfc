#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "experiments/frame/interrupt.h"
#include "tools/halflab/reveal/boxes.h"

namespace halflab::reveal {
namespace {

/// Reads a count and as many doubles, and writes a zero byte and a double, until nothing comes; where something fails, a
/// length as a byte and as much text. What the function prints goes to stderr. Ctrl-C ends it without a word.
constexpr const char* script = R"(
import importlib, os, signal, struct, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
module, name, dtype = sys.argv[1:]

def array_maker():
    if module.split(".")[0] == "torch":
        import torch
        return lambda numbers: torch.tensor(numbers, dtype=torch.float64).to(getattr(torch, dtype))
    import numpy
    try:
        kind = numpy.dtype(dtype)
    except TypeError:
        import ml_dtypes
        kind = numpy.dtype(getattr(ml_dtypes, dtype))
    return lambda numbers: numpy.array(numbers, dtype=numpy.float64).astype(kind)

def answer_all():
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    array = array_maker()
    while True:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            break
        count, = struct.unpack("=Q", head)
        result = function(array(struct.unpack(f"={count}d", sys.stdin.buffer.read(8 * count))))
        answers.write(struct.pack("=Bd", 0, float(result)))
        answers.flush()

try:
    answer_all()
except Exception as error:
    text = " ".join(f"{type(error).__name__}: {error}".split()).encode()[:250]
    answers.write(bytes([len(text)]) + text)
    answers.flush()
)";

/// What numpy, ml_dtypes and PyTorch call the format.
std::string python_name(const fp16::NamedFormat& format) {
  for (const auto& [name, python] : {std::pair("binary16", "float16"),
                                     {"binary32", "float32"},
                                     {"binary64", "float64"},
                                     {"bfloat16", "bfloat16"},
                                     {"e4m3", "float8_e4m3fn"},
                                     {"e5m2", "float8_e5m2"}})
    if (format.name == name) return python;
  throw std::invalid_argument(fmt::format(
      "--dtype: Python has no sums of {}; allowed: float16, bfloat16, float32, float64", format.name));
}

class PythonProcess {
 public:
  PythonProcess(const std::string& interpreter, std::string place, const std::string& dtype)
      : place_(std::move(place)) {
    const std::size_t colon = place_.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == place_.size())
      throw std::invalid_argument(
          fmt::format("--python: '{}' is given; must be MODULE:FUNCTION, such as numpy:sum", place_));
    const std::string module = place_.substr(0, colon), function = place_.substr(colon + 1);
    std::array<int, 2> questions, answers;
    if (::pipe2(questions.data(), O_CLOEXEC) != 0 || ::pipe2(answers.data(), O_CLOEXEC) != 0) fail(errno);
    std::signal(SIGPIPE, SIG_IGN);  // a process that ended is an error with a line
    child_ = ::fork();
    if (child_ < 0) fail(errno);
    if (child_ == 0) {
      ::dup2(questions[0], 0);
      ::dup2(answers[1], 1);
      ::execlp(interpreter.c_str(), interpreter.c_str(), "-c", script, module.c_str(), function.c_str(),
               dtype.c_str(), nullptr);
      const std::string text =
          fmt::format("{:.100}: {:.100}", interpreter, std::generic_category().message(errno));
      const std::string line = static_cast<char>(text.size()) + text;
      [[maybe_unused]] const auto written = ::write(1, line.data(), line.size());
      ::_exit(127);
    }
    ::close(questions[0]);
    ::close(answers[1]);
    questions_ = questions[1];
    answers_ = answers[0];
  }
  ~PythonProcess() {
    ::close(questions_);
    ::close(answers_);
    ::waitpid(child_, nullptr, 0);
  }
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  double sum(std::span<const double> terms) {
    const std::uint64_t count = terms.size();
    send(std::as_bytes(std::span(&count, 1)));
    send(std::as_bytes(terms));
    std::uint8_t text_length = 0;
    receive(std::as_writable_bytes(std::span(&text_length, 1)));
    if (text_length > 0) fail_with(text_length);
    double result = 0;
    receive(std::as_writable_bytes(std::span(&result, 1)));
    experiments::throw_if_interrupted();
    return result;
  }

 private:
  [[noreturn]] void fail_with(std::size_t text_length) {
    std::string text(text_length, ' ');
    receive(std::as_writable_bytes(std::span(text)));
    throw std::runtime_error(fmt::format("--python: '{}' failed: {}", place_, text));
  }
  [[noreturn]] void fail(int error) const {
    throw std::runtime_error(
        fmt::format("--python: '{}' could not be called ({})", place_,
                    error == 0 ? "its process ended" : std::generic_category().message(error)));
  }
  void send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::write(questions_, bytes.data(), bytes.size());
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EPIPE) return;  // an ended process may have left its reason
      if (sent < 0) fail(errno);
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }
  void receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t got = ::read(answers_, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        const int error = got == 0 ? 0 : errno;
        experiments::throw_if_interrupted();  // Ctrl-C ends the function, too
        fail(error);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }

  std::string place_;
  pid_t child_ = -1;
  int questions_ = -1, answers_ = -1;
};

}  // namespace

Box python_box(const std::string& interpreter, const std::string& module_and_function,
               const fp16::NamedFormat& format) {
  const auto process = std::make_shared<PythonProcess>(interpreter, module_and_function, python_name(format));
  return [process](std::span<const double> terms) { return process->sum(terms); };
}

}  // namespace halflab::reveal
