/// Sums, dot products and matrix products with a stated order and accumulator.

#include <algorithm>
#include <string>
#include <vector>

#include "fp16/dot.h"
#include "fp16/gemm.h"
#include "fp16/mma.h"
#include "fp16/names.h"
#include "fp16/sum.h"
#include "sim/precision/arithmetic.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

constexpr auto in_binary32 = [](const Format& format) {
  return format.has_arithmetic() && fp16::contains(fp16::binary32, format);
};

/// The shape of what is left of an array when its last axis is summed away, and that axis' length.
struct Reduction {
  std::vector<py::ssize_t> shape;
  std::size_t length;

  Reduction(std::string_view subject, const py::array& array) {
    if (array.ndim() == 0)
      throw std::invalid_argument(std::string(subject) +
                                  ": a scalar is not allowed; allowed: arrays of one or more dimensions");
    shape.assign(array.shape(), array.shape() + array.ndim() - 1);
    length = static_cast<std::size_t>(array.shape(array.ndim() - 1));
  }
};

template <const Format& F>
using Row = std::span<const Bits<F>>;

/// The value of reduce(i) for each row i, counted.
template <const Format& F, class Reduce>
py::object reduced(const Reduction& rows, const RoundingArguments& rounding, const Reduce& reduce) {
  py::array_t<double> sums = new_array<double>(rows.shape);
  for (std::size_t row = 0; row < static_cast<std::size_t>(sums.size()); ++row) {
    const fp16::Result<F> sum = reduce(row);
    sums.mutable_data()[row] = fp16::decode<F>(sum.bits);
    if (rounding.counts != nullptr) rounding.counts->add<F>(sum);
  }
  return unwrapped(sums);
}

py::object sum(const py::object& values, const std::string& order, const py::object& format,
               const py::kwargs& attributes) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  rounding.reject_stochastic("sum");
  const py::array given = reals(values);
  const Reduction rows("sum", given);
  py::object sums;
  with_format(format_argument(format), "sum", has_arithmetic, [&]<const Format & F>() {
    const auto add_up = names::find_by_name(fp16::sum_orders<F>, "order", order).sum;
    const std::vector<Bits<F>> codes = exact_codes<F>(given, "values");
    sums = reduced<F>(rows, rounding, [&](std::size_t row) {
      return add_up(Row<F>(codes).subspan(row * rows.length, rows.length), rounding.attributes);
    });
  });
  return sums;
}

py::object partial_sums(const py::object& values, const py::object& format, const py::kwargs& attributes) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  const py::array given = reals(values);
  const Reduction rows("partial_sums", given);
  py::array_t<double> sums;
  with_format(format_argument(format), "partial_sums", has_arithmetic, [&]<const Format & F>() {
    std::vector<Bits<F>> codes = exact_codes<F>(given, "values");
    const std::vector<std::uint32_t> random = rounding.random_bits(codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (i % rows.length == 0) continue;
      const fp16::Result<F> next = fp16::add<F>(codes[i - 1], codes[i], rounding.attributes_of(i, random));
      codes[i] = next.bits;
      if (rounding.counts != nullptr) rounding.counts->add<F>(next);
    }
    sums = decoded<F>(codes, given);
  });
  return sums;
}

py::object dot(const py::object& a, const py::object& b, const std::string& order, const py::object& format,
               const py::kwargs& attributes) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  rounding.reject_stochastic("dot");
  const std::size_t length = Reduction("dot", reals(a)).length, other = Reduction("dot", reals(b)).length;
  if (length != other)  // an axis that is summed is never broadcast
    throw std::invalid_argument("dot: a has " + std::to_string(length) +
                                " values along its last axis and b " + std::to_string(other) +
                                "; allowed: equal numbers");
  const std::vector<py::array> given = broadcast({a, b});
  const Reduction rows("dot", given[0]);
  py::object dots;
  with_format(format_argument(format), "dot", in_binary32, [&]<const Format & F>() {
    const auto multiply_up = names::find_by_name(fp16::dot_orders<F>, "order", order).dot;
    const std::vector<Bits<F>> x = exact_codes<F>(given[0], "a"), y = exact_codes<F>(given[1], "b");
    dots = reduced<F>(rows, rounding, [&](std::size_t row) {
      return multiply_up(Row<F>(x).subspan(row * rows.length, rows.length),
                         Row<F>(y).subspan(row * rows.length, rows.length), rounding.attributes);
    });
  });
  return dots;
}

/// A matrix of halves; of one dimension, one row or one column.
struct HalfMatrix {
  std::vector<std::uint16_t> codes;
  std::size_t rows, columns;
  bool is_vector;

  HalfMatrix(const py::object& values, const char* name, bool as_row) {
    const py::array given = reals(values);
    if (given.ndim() != 1 && given.ndim() != 2) {
      throw std::invalid_argument("matmul: " + std::string(name) + " has " + std::to_string(given.ndim()) +
                                  " dimensions; allowed: 1 or 2");
    }
    is_vector = given.ndim() == 1;
    const auto first = static_cast<std::size_t>(given.shape(0));
    rows = is_vector && as_row ? 1 : first;
    columns = !is_vector ? static_cast<std::size_t>(given.shape(1)) : as_row ? first : 1;
    codes = exact_codes<fp16::binary16>(given, name);
  }
  fp16::MatrixOperand operand() const {
    return {codes.data(), fp16::binary16, rows, columns, columns == 0 ? 1 : columns};
  }
};

/// What the sums start from: a number of the accumulator for each.
void fill_start(std::vector<float>& sums, const py::object& c, const std::vector<py::ssize_t>& shape,
                const sim::ProductAccumulation& accumulation) {
  const py::array given = reals(c);
  if (!std::ranges::equal(std::span(given.shape(), static_cast<std::size_t>(given.ndim())), shape))
    throw std::invalid_argument("matmul: c does not have the shape of the product");
  const auto start = [&]<const Format & F>() {
    std::ranges::transform(exact_codes<F>(given, "c"), sums.begin(),
                           [](Bits<F> code) { return static_cast<float>(fp16::decode<F>(code)); });
  };
  if (accumulation.ends_in_binary16()) {
    start.template operator()<fp16::binary16>();
  } else {
    start.template operator()<fp16::binary32>();
  }
}

py::object matmul(const py::object& a, const py::object& b, const std::string& accumulation_name,
                  const py::object& c) {
  const sim::ProductAccumulation accumulation = sim::find_product_accumulation(accumulation_name);
  const HalfMatrix x(a, "a", true), y(b, "b", false);
  if (x.columns != y.rows) {
    throw std::invalid_argument("matmul: a has " + std::to_string(x.columns) + " columns and b " +
                                std::to_string(y.rows) + " rows; allowed: equal numbers");
  }
  std::vector<py::ssize_t> shape;
  if (!x.is_vector) shape.push_back(static_cast<py::ssize_t>(x.rows));
  if (!y.is_vector) shape.push_back(static_cast<py::ssize_t>(y.columns));

  py::array_t<double> product = new_array<double>(shape);  // refuses more elements than can be counted
  std::vector<float> sums(static_cast<std::size_t>(product.size()));
  fp16::GemmOptions options;
  if (!c.is_none()) {
    fill_start(sums, c, shape, accumulation);
    options.start = fp16::ChainStart::from_output;
  }
  const std::size_t stride = std::max<std::size_t>(y.columns, 1);
  if (accumulation.tensor_core) {
    fp16::gemm(x.operand(), y.operand(), sums.data(), stride, *accumulation.tensor_core, options);
  } else {
    fp16::gemm(x.operand(), y.operand(), sums.data(), stride, accumulation.chain, options);
  }
  std::ranges::copy(sums, product.mutable_data());
  return unwrapped(product);
}

py::dict tensor_cores() {
  py::dict table;
  for (const fp16::TensorCore& core : fp16::tensor_cores) {
    py::dict row;
    row["products_per_step"] = core.products_per_step;
    row["fraction_bits"] = core.fraction_bits;
    row["binary32_floor"] = core.binary32_floor;
    row["binary16_floor"] = core.binary16_floor;
    row["evidence"] = name_of(core.evidence);
    table[py::str(std::string(core.name))] = row;
  }
  return table;
}

}  // namespace

void bind_sums(py::module_& module) {
  define(
      module, "sum(values, order='sequential', format='binary16', **attributes)",
      "Sums along the last axis in one of halflab.sum_orders; every partial sum is a number of `format`,\n"
      "which is the accumulator: sum(halves, format='binary32') adds halves in FP32. `counts` counts each\n"
      "sum once, by all its flags. An infinity among two values makes a NaN of 'neumaier', and of 'kahan' "
      "where\n"
      "another value follows.\n\n"
      ">>> halflab.sum([[2048.0, 1.0, 1.0], [1.0, 1.0, 2048.0]], 'sequential')\n"
      "array([2048., 2050.])",
      sum);
  define(module, "partial_sums(values, format='binary16', **attributes)",
         "v[0], v[0] + v[1], (v[0] + v[1]) + v[2], ... along the last axis, each rounded once; stochastic\n"
         "rounding draws anew for every addition.\n\n"
         ">>> halflab.partial_sums([1.0, 2048.0, 1.0])\n"
         "array([1.000e+00, 2.048e+03, 2.048e+03])",
         partial_sums);
  define(
      module, "dot(a, b, order='fma', format='binary16', **attributes)",
      "Dot products along the last axis in one of halflab.dot_orders: 'fma' rounds once a step, 'mul_add'\n"
      "twice, 'binary32' accumulates in FP32 and rounds the sum to `format`, 'exact' rounds the exact sum.\n"
      "The last axes must be of one length; the others are broadcast.\n\n"
      ">>> halflab.dot([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])\n"
      "array([17., 39.])",
      dot);
  define(
      module, "matmul(a, b, accumulation='fp32', c=None)",
      "The product of matrices of binary16 numbers, (m, k) and (k, n), or of vectors as numpy's @ takes\n"
      "them; each output is one chain over k in ascending order, by one of halflab.accumulations: 'fp32',\n"
      "'fp16_fma' and 'fp16_mul_add' step by step, the others as that tensor core with that accumulator.\n"
      "The sums start from c, which must be numbers of the accumulator; they are not rounded at the end.\n\n"
      ">>> halflab.matmul([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0], 'hopper_fp32')\n"
      "array([17., 39.])",
      matmul);
  module.attr("sum_orders") = py::tuple(py::cast(names::names_of(fp16::sum_orders<fp16::binary16>)));
  module.attr("dot_orders") = py::tuple(py::cast(names::names_of(fp16::dot_orders<fp16::binary16>)));
  module.attr("accumulations") = py::tuple(py::cast(sim::product_accumulation_names()));
  module.attr("tensor_cores") = tensor_cores();
}

}  // namespace halflab_python
