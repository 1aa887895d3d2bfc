#pragma once
/// What a script of this folder times in Python.

#include <map>
#include <string>

namespace bench {

struct PythonFigure {
  double value;
  std::string note;  ///< such as the version of a library; may be empty
};

/// The figures that a script printed, a line "name value note" each, or why some are missing.
struct PythonFigures {
  std::map<std::string, PythonFigure, std::less<>> found;
  std::string absence;
};

/// Runs a script of tests/bench by the Python that HALFLAB_TORCH_PYTHON names, or the first on the PATH, which finds this
/// build's module where there is one. The last line that it prints besides figures says why some are missing.
PythonFigures run_python(const std::string& script);

}  // namespace bench
