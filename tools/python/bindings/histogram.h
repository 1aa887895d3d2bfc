#pragma once
/// Exponent histograms, which loss scalers take too.

#include "sim/statistics/exponent_histogram.h"
#include "tools/python/bindings/arguments.h"

namespace halflab_python {

void add_to(sim::ExponentHistogram& histogram, const py::object& values);

}  // namespace halflab_python
