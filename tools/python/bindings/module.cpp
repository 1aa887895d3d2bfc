#include "experiments/frame/build_information.h"
#include "tools/python/bindings/bindings.h"

/// The extension behind the package halflab, which re-exports it. Docstrings come with signatures of their own.
PYBIND11_MODULE(_halflab, module) {
  using namespace halflab_python;
  py::options options;
  options.disable_function_signatures();
  module.attr("__version__") = experiments::build_information().version;
  bind_rounding(module);
  bind_formats(module);
  bind_blocks(module);
  bind_operations(module);
  bind_sums(module);
  bind_functions(module);
  bind_histogram(module);
  bind_scalers(module);
  bind_networks(module);
  bind_reveal(module);
  bind_tensors(module);
}
