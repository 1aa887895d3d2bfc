#pragma once
/// The parts of the extension `_halflab`: each adds the functions and classes of one family.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>  // in every part, lest one cast a type in another way

namespace halflab_python {

namespace py = pybind11;

void bind_rounding(py::module_& module);
void bind_formats(py::module_& module);
void bind_blocks(py::module_& module);
void bind_operations(py::module_& module);
void bind_sums(py::module_& module);
void bind_functions(py::module_& module);
void bind_histogram(py::module_& module);
void bind_scalers(py::module_& module);
void bind_networks(py::module_& module);
void bind_reveal(py::module_& module);
void bind_tensors(py::module_& module);

}  // namespace halflab_python
