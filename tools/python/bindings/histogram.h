#pragma once
/// Exponent histograms, which loss scalers take too.

#include "fp16/exponent_histogram.h"
#include "tools/python/bindings/arguments.h"

namespace halflab_python {

void add_to(fp16::ExponentHistogram& histogram, const py::object& values);

}  // namespace halflab_python
