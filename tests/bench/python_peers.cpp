#include "tests/bench/python_peers.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bench {

PythonFigures run_python(const std::string& script) {
  const char* named = std::getenv("HALFLAB_TORCH_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  const std::string command =
      fmt::format("PYTHONPATH='" HALFLAB_PYTHON_DIR "' '{}' '" HALFLAB_BENCH_DIR "/{}' 2>&1", python, script);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {.found = {}, .absence = "no process could be started"};
  PythonFigures figures;
  std::string last_line = "nothing was printed";
  std::array<char, 1024> buffer;
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) {
    std::string line = buffer.data();
    line.erase(line.find_last_not_of(" \n") + 1);
    std::istringstream words(line);
    std::string name;
    PythonFigure figure{};
    if (words >> name >> figure.value) {
      std::getline(words >> std::ws, figure.note);
      figures.found[name] = figure;
    } else {
      last_line = line;
    }
  }
  pclose(pipe);
  figures.absence = fmt::format("{}: {} (HALFLAB_TORCH_PYTHON names another Python)", python, last_line);
  return figures;
}

}  // namespace bench
