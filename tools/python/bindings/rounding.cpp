/// Names of roundings, and counts of what they did.

#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {

void bind_rounding(py::module_& module) {
  py::list names;
  for (const fp16::NamedRounding& row : fp16::named_roundings) names.append(row.name);
  module.attr("roundings") = py::tuple(names);

  py::class_<Counts> counts(
      module, "Counts",
      "What rounding did to the elements of arrays. Pass one as counts= to functions that round, and it\n"
      "adds up over the calls. Every element is in exactly one of exact, inexact and overflowed.");
  define_constructor(counts, "Counts()", "All zero.\n\n>>> counts = halflab.Counts()",
                     [] { return Counts{}; });
  define(counts, "as_dict($self)",
         "All counts by name.\n\n"
         ">>> halflab.Counts().as_dict()['inexact']\n"
         "0",
         [](const Counts& c) { return c.as_dict(); });
  counts
      .def_property_readonly(
          "exact", [](const Counts& c) { return c.rounding.exact; },
          "Also NaNs, infinities that stay infinite, invalid operands.")
      .def_property_readonly(
          "inexact", [](const Counts& c) { return c.rounding.inexact; },
          "The result differs from the exact one, without overflow.")
      .def_property_readonly(
          "subnormal", [](const Counts& c) { return c.rounding.subnormal; },
          "0 < |result| < 2^emin, exact or not.")
      .def_property_readonly(
          "flushed", [](const Counts& c) { return c.rounding.flushed; },
          "The result is zero and the exact one is not.")
      .def_property_readonly(
          "overflowed", [](const Counts& c) { return c.rounding.overflowed; }, "Raised the overflow flag.")
      .def_readonly("underflow", &Counts::underflow, "Raised the underflow flag: tiny and inexact.")
      .def_readonly("divide_by_zero", &Counts::divide_by_zero, "Raised the flag of that name.")
      .def_readonly("invalid", &Counts::invalid, "Raised the invalid flag.")
      .def_property_readonly("total", &Counts::total, "Elements counted.")
      .def(py::pickle(
          [](const Counts& c) {
            const fp16::RoundingCounts& r = c.rounding;
            return py::make_tuple(r.exact, r.inexact, r.subnormal, r.flushed, r.overflowed, c.underflow,
                                  c.divide_by_zero, c.invalid);
          },
          [](const py::tuple& state) {
            const auto count = [&](std::size_t i) { return py::cast<std::uint64_t>(state[i]); };
            return Counts{.rounding = {.exact = count(0),
                                       .inexact = count(1),
                                       .subnormal = count(2),
                                       .flushed = count(3),
                                       .overflowed = count(4)},
                          .underflow = count(5),
                          .divide_by_zero = count(6),
                          .invalid = count(7)};
          }))
      .def("__repr__",
           [](const Counts& c) { return "Counts(" + py::cast<std::string>(py::str(c.as_dict())) + ")"; });
}

}  // namespace halflab_python
