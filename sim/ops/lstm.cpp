#include "sim/ops/lstm.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fp16/config.h"
#include "sim/ops/elementary.h"
#include "sim/ops/elements.h"
#include "sim/ops/matrix_product.h"
#include "sim/ops/sums.h"
#include "sim/tensor/tensor_contents.h"

namespace sim {
namespace {

/// Rows are tokens, sequence by sequence: row = sequence * steps + step. The gates of a row are those of the
/// input, the forget gate, the candidate and the output, `hidden` columns each.
struct Sizes {
  std::size_t batch, steps, inputs, hidden;

  std::size_t rows() const { return batch * steps; }
  std::size_t gates() const { return 4 * hidden; }
};

Sizes sizes_of(std::span<const Tensor* const> inputs, const LstmLayerOptions& options) {
  const std::size_t features = inputs[1]->shape()[1], rows = inputs[0]->size() / features;
  if (options.context == 0 || rows % options.context != 0) {
    throw std::invalid_argument("lstm: context: " + std::to_string(options.context) +
                                " is not allowed; a divisor of the number of tokens " + std::to_string(rows));
  }
  return {.batch = rows / options.context,
          .steps = options.context,
          .inputs = features,
          .hidden = inputs[2]->shape()[1]};
}

/// All elements of a tensor as Real: where they are stored, else widened in `buffer`.
template <class Real>
std::span<const Real> all_of(const Tensor& tensor, std::vector<Real>& buffer) {
  if (tensor.format() != format_of<Real>) buffer.resize(std::max(buffer.size(), tensor.size()));
  return {read(tensor, 0, tensor.size(), std::span(buffer)), tensor.size()};
}

/// What whole sequences need room for. Each thread keeps it: fresh pages for every step would take longer than most of
/// what is done in them.
template <class Real>
struct Workspace {
  std::vector<Real> x, w_input, w_hidden, gates, cells, outputs, dy, d_gates, sums;
};
template <class Real>
Workspace<Real>& workspace() {
  thread_local Workspace<Real> work;
  return work;
}

/// Rounds what is handed from step to step as a tensor of `format` would, each value with a random number of
/// its own.
class StepRounding {
 public:
  StepRounding(fp16::Format format, const ElementRounding* rounding, std::uint64_t use, std::size_t values,
               Shard shard)
      : scratch_({values}, format), rounding_(rounding), use_(use), shard_(shard) {}

  template <class Real>
  void round(std::vector<Real>& values) {
    if (scratch_.format() == format_of<Real>) return;
    std::optional<ElementRounding> placed;
    if (rounding_) placed = in_place(values.size());
    store({&scratch_, nullptr, placed ? &*placed : nullptr, use_}, used_, std::span<const Real>(values));
    const Real* kept = read(scratch_, used_, values.size(), values);
    if (kept != values.data()) std::copy_n(kept, values.size(), values.begin());
    used_ += values.size();
  }

 private:
  /// The numbers that the next `count` values have among those of all shards, whose steps are one after the other.
  ElementRounding in_place(std::size_t count) const {
    const std::size_t others = used_ * (shard_.count - 1) + shard_.index * count;
    return {rounding_->direction, rounding_->random.after(others)};
  }

  Tensor scratch_;
  const ElementRounding* rounding_;
  std::uint64_t use_;
  Shard shard_;
  std::size_t used_ = 0;
};

/// The activated gates and the cell of one row, computed in Real; cell and output are rounded by the caller.
template <class Real>
void activate(std::size_t hidden, Real* gates, const Real* bias, Real* cell, Real* output) {
  const auto squash = [&](std::size_t gate, std::size_t count, auto function) {
    apply_in_place([=](Real sum, Real b) { return function(sum + b); }, count * hidden, gates + gate * hidden,
                   bias + gate * hidden);
  };
  const auto sigmoid = [](Real x) { return elementary::sigmoid(x); };
  squash(0, 2, sigmoid);
  squash(2, 1, [](Real x) { return elementary::tanh(x); });
  squash(3, 1, sigmoid);
  apply_in_place(
      [](Real c, Real input, Real forget, Real candidate) { return forget * c + input * candidate; }, hidden,
      cell, gates, gates + hidden, gates + 2 * hidden);
  apply_to_each([](Real open, Real c) { return open * elementary::tanh(c); }, hidden, output,
                gates + 3 * hidden, cell);
}

template <class Real>
Tensor forward_in(OperationCall& call, const Sizes& s) {
  Workspace<Real>& work = workspace<Real>();
  const std::span<const Real> x = all_of(*call.inputs[0], work.x),
                              w_input = all_of(*call.inputs[1], work.w_input),
                              w_hidden = all_of(*call.inputs[2], work.w_hidden);
  const std::vector<Real> bias = values_of<Real>(*call.inputs[3]);
  std::vector<Real> cell(s.batch * s.hidden), output(s.batch * s.hidden);
  constexpr std::uint64_t use_of_steps = 1, use_of_gates = 2;
  StepRounding rounding(call.output_format, call.rounding, use_of_steps, 2 * s.rows() * s.hidden, call.shard);
  Tensor saved_gates({s.rows(), s.gates()}, call.output_format),
      saved_cells({s.rows(), s.hidden}, call.output_format), result({s.rows(), s.hidden}, call.output_format);
  const auto formed_in = [&](Tensor& tensor, std::vector<Real>& scratch) {
    return sums_of(call.into(tensor, use_of_gates), 0, tensor.size(), scratch);
  };
  const std::span<Real> gates = formed_in(saved_gates, work.gates),
                        cells = formed_in(saved_cells, work.cells), outputs = formed_in(result, work.outputs);
  chains(operand(x, s.rows(), s.inputs), operand(w_input, s.gates(), s.inputs).transposed(), gates.data(),
         s.gates(), call.arithmetic);
  for (std::size_t step = 0; step < s.steps; ++step) {
    chains(operand(output, s.batch, s.hidden), operand(w_hidden, s.gates(), s.hidden).transposed(),
           gates.data() + step * s.gates(), s.steps * s.gates(), call.arithmetic,
           fp16::ChainStart::from_output);
    for (std::size_t sequence = 0; sequence < s.batch; ++sequence) {
      activate(s.hidden, gates.data() + (sequence * s.steps + step) * s.gates(), bias.data(),
               cell.data() + sequence * s.hidden, output.data() + sequence * s.hidden);
    }
    rounding.round(cell);
    rounding.round(output);
    for (std::size_t sequence = 0; sequence < s.batch; ++sequence) {
      const std::size_t row = (sequence * s.steps + step) * s.hidden;
      std::copy_n(cell.data() + sequence * s.hidden, s.hidden, cells.data() + row);
      std::copy_n(output.data() + sequence * s.hidden, s.hidden, outputs.data() + row);
    }
  }
  store(call.into(saved_gates, use_of_gates), 0, std::span<const Real>(gates));
  store(call.into(saved_cells, use_of_gates), 0,
        std::span<const Real>(cells));  // rounded already, as the result
  store(call.into(result, use_of_gates), 0, std::span<const Real>(outputs));
  call.saved.push_back(std::move(saved_gates));
  call.saved.push_back(std::move(saved_cells));
  return result;
}

Tensor forward(OperationCall& call) {
  const Sizes s = sizes_of(call.inputs, call.options.get<LstmLayerOptions>());
  return with_real(is_binary64(*call.inputs[0]),
                   [&](auto real) { return forward_in<decltype(real)>(call, s); });
}

/// Gradients of one row: in, those of its output and of its cell; out, those of the sums of its gates and of
/// the cell before.
template <class Real>
FP16_VECTOR_CLONES void differentiate(std::size_t hidden, const Real* __restrict__ gates,
                                      const Real* __restrict__ cell, const Real* __restrict__ earlier_cell,
                                      const Real* __restrict__ d_output, Real* __restrict__ d_cell,
                                      Real* __restrict__ d_gates) {
  for (std::size_t j = 0; j < hidden; ++j) {
    const Real input = gates[j], forget = gates[hidden + j], candidate = gates[2 * hidden + j],
               open = gates[3 * hidden + j];
    const Real squashed = elementary::tanh(cell[j]);
    const Real dc = d_cell[j] + d_output[j] * open * (1 - squashed * squashed);
    d_gates[j] = dc * candidate * (input * (1 - input));
    d_gates[hidden + j] = dc * earlier_cell[j] * (forget * (1 - forget));
    d_gates[2 * hidden + j] = dc * input * (1 - candidate * candidate);
    d_gates[3 * hidden + j] = d_output[j] * squashed * (open * (1 - open));
    d_cell[j] = dc * forget;
  }
}

/// Through time from the last step to the first. What one step hands to the one before (the gradients of
/// hidden state and cell) and the gradients of the gates' sums are rounded to the format of the output's
/// gradient.
template <class Real>
std::span<const Real> gate_gradients(const OperationGradient& g, const Sizes& s) {
  Workspace<Real>& work = workspace<Real>();
  const std::span<const Real> w_hidden = all_of(*g.inputs[2], work.w_hidden),
                              gates = all_of(g.saved[0], work.gates), cells = all_of(g.saved[1], work.cells),
                              dy = all_of(g.output_gradient, work.dy);
  const auto wanted =
      std::ranges::find_if(g.input_gradients, [](auto& out) { return out.tensor != nullptr; });
  StepRounding rounding(g.output_gradient.format(), wanted->rounding, /*use=*/g.inputs.size(),
                        s.rows() * (s.gates() + 2 * s.hidden), g.shard);
  const std::vector<Real> no_cell(s.hidden);
  work.d_gates.resize(std::max(work.d_gates.size(), s.rows() * s.gates()));
  const std::span<Real> d_gates = std::span(work.d_gates).first(s.rows() * s.gates());
  std::vector<Real> d_hidden(s.batch * s.hidden), d_cell(s.batch * s.hidden), step_gates(s.batch * s.gates());
  for (std::size_t step = s.steps; step-- > 0;) {
    for (std::size_t sequence = 0; sequence < s.batch; ++sequence) {
      const std::size_t row = sequence * s.steps + step, of_state = sequence * s.hidden;
      for (std::size_t j = 0; j < s.hidden; ++j) d_hidden[of_state + j] += dy[row * s.hidden + j];
      differentiate(s.hidden, gates.data() + row * s.gates(), cells.data() + row * s.hidden,
                    step == 0 ? no_cell.data() : cells.data() + (row - 1) * s.hidden,
                    d_hidden.data() + of_state, d_cell.data() + of_state,
                    step_gates.data() + sequence * s.gates());
    }
    rounding.round(step_gates);
    rounding.round(d_cell);
    for (std::size_t sequence = 0; sequence < s.batch; ++sequence) {
      std::copy_n(step_gates.data() + sequence * s.gates(), s.gates(),
                  d_gates.data() + (sequence * s.steps + step) * s.gates());
    }
    chains(operand(step_gates, s.batch, s.gates()), operand(w_hidden, s.gates(), s.hidden), d_hidden.data(),
           s.hidden, g.arithmetic);
    rounding.round(d_hidden);
  }
  return d_gates;
}

/// The hidden state that each row started from.
template <class Real>
std::span<const Real> earlier_outputs(const Tensor& output, const Sizes& s, std::vector<Real>& buffer) {
  buffer.resize(std::max(buffer.size(), output.size()));
  for (std::size_t row = 0; row < s.rows(); row += s.steps) {
    std::fill_n(buffer.data() + row * s.hidden, s.hidden, Real{0});
    const std::span<Real> others = std::span(buffer).subspan((row + 1) * s.hidden, (s.steps - 1) * s.hidden);
    const Real* outputs = read(output, row * s.hidden, others.size(), others);
    if (outputs != others.data())
      std::ranges::copy_n(outputs, static_cast<std::ptrdiff_t>(others.size()), others.begin());
  }
  return std::span(buffer).first(output.size());
}

/// Weight gradients are chains over all rows in ascending order; the bias's is summed down the rows.
void backward(const OperationGradient& g) {
  const Sizes s = sizes_of(g.inputs, g.options.get<LstmLayerOptions>());
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    Workspace<Real>& work = workspace<Real>();
    const std::span<const Real> d_gates = gate_gradients<Real>(g, s);
    const auto dg = operand(d_gates, s.rows(), s.gates());
    const auto product = [&](std::size_t input, const fp16::MatrixOperand& a, const fp16::MatrixOperand& b) {
      if (!g.input_gradients[input].tensor) return;
      const std::span<Real> sums = sums_of(g.input_gradients[input], 0, a.rows * b.columns, work.sums);
      chains(a, b, sums.data(), b.columns, g.arithmetic);
      store(g.input_gradients[input], 0, std::span<const Real>(sums));
    };
    const std::span<const Real> x = all_of(*g.inputs[0], work.x),
                                w_input = all_of(*g.inputs[1], work.w_input),
                                earlier = earlier_outputs<Real>(g.output, s, work.outputs);
    product(0, dg, operand(w_input, s.gates(), s.inputs));
    product(1, dg.transposed(), operand(x, s.rows(), s.inputs));
    product(2, dg.transposed(), operand(earlier, s.rows(), s.hidden));
    if (g.input_gradients[3].tensor) {
      ColumnSums<Real> sums(g.arithmetic.reductions, s.gates());
      for (std::size_t row = 0; row < s.rows(); ++row) sums.add_row(d_gates.data() + row * s.gates());
      store(g.input_gradients[3], 0, std::span<const Real>(std::move(sums).totals()));
    }
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const Tensor& x = *call.inputs[0];
  return call.rule.lstm({.rows = x.size() / x.shape().back(),
                         .inputs = x.shape().back(),
                         .hidden = call.inputs[2]->shape()[1]});
}

}  // namespace

constinit const Operation lstm{.name = "lstm",
                               .description = "a layer of long short-term memory over whole sequences",
                               .casts = CastClasses{.torch_autocast = AutocastClass::lower_precision,
                                                    .apex_o1 = AutocastClass::lower_precision},
                               .is_layer = true,
                               .forward = forward,
                               .backward = backward,
                               .unit_multipliers = unit_multipliers};

}  // namespace sim
