#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/inputs.h"
#include "tools/halflab/quantize/findings.h"

namespace halflab::quantize {
namespace {

using namespace experiments;

std::vector<Column<TensorFound>> columns_of_losses() {
  return {{"values", "values", &TensorFound::values},
          {"bits_per_value", "bits", &TensorFound::bits_per_value},
          {"nonfinite", "values", &TensorFound::nonfinite},
          {"relative_error", "1", &TensorFound::relative_error},
          {"sqnr_db", "dB", &TensorFound::sqnr},
          {"max_abs", "1", &TensorFound::max_abs},
          {"max_abs_error", "1", &TensorFound::max_error},
          {"fraction_flushed", "1", [](auto& t) { return t.share(t.flushed); }},
          {"fraction_overflow", "1", [](auto& t) { return t.share(t.overflowed); }},
          {"lost", "values", &TensorFound::lost}};
}

const TableOf<TensorFound> tensors_table{
    .name = "tensors",
    .rows = "each tensor",
    .columns = joined<Column<TensorFound>>(
        joined<Column<TensorFound>>({{"tensor", "", &TensorFound::name},
                                     {"format", "", &TensorFound::stored_as},
                                     {"shape", "", &TensorFound::shape}},
                                    columns_of_losses()),
        {{"tensor_scale", "1",
          [](auto& t) { return t.tensor_scale ? Value(*t.tensor_scale) : Value("none"); }}})};

const SummaryOf<Findings> recipe_summary{
    {{"format", "what the tensors become", [](auto& f) { return f.recipe.format_name; }},
     {"rounding", "of the elements", [](auto& f) { return f.recipe.rounding_name; }},
     {"tensors", "tensors read", [](auto& f) { return f.tensors.size(); }}}};

SummaryOf<TensorFound> total_summary() {
  const std::vector<std::string> meanings{"of all tensors",
                                          "of codes and scales, over the values",
                                          "NaNs and infinities in the files",
                                          "||quantized - values|| / ||values||, of what stays finite",
                                          "signal to quantization noise",
                                          "largest finite magnitude",
                                          "largest difference",
                                          "non-zero values that become zero",
                                          "values beyond the largest number of the format, or of their block",
                                          "finite values that become NaN or infinite"};
  std::vector<SummaryRow<TensorFound>> rows;
  const std::vector<Column<TensorFound>> columns = columns_of_losses();
  for (std::size_t i = 0; i < columns.size(); ++i)
    rows.push_back({columns[i].name, meanings[i], columns[i].value});
  return {rows};
}

std::string decibels(double sqnr) {
  if (sqnr < 0 && std::isinf(sqnr)) return "-";
  return std::isinf(sqnr) ? "exact" : fmt::format("{:.1f}", sqnr);
}

std::string answer(const TensorFound& total, const Recipe& recipe, const std::string& of_tensors) {
  if (total.nonzero == 0) return "There is nothing to lose: no value is finite and other than zero.";
  if (total.has_nothing_left())
    return fmt::format("{} keeps nothing of these tensors: all that is not zero becomes NaN or infinite.",
                       recipe.format_name);
  const double error = total.relative_error();
  const char* const kept = total.lost > 0        ? "what stays finite of these tensors"
                           : total.nonfinite > 0 ? "what is finite of these tensors"
                                                 : "these tensors";
  const std::string off = error == 0 ? fmt::format("{} holds {} exactly", recipe.format_name, kept)
                                     : fmt::format("{} is off by {} of the norm of {} ({:.3g} dB)",
                                                   recipe.format_name, percent(error), kept, total.sqnr());
  return fmt::format("{}, in {:.3g} bits a value{}.", off, total.bits_per_value(),
                     error > 0 ? of_tensors : "");
}

std::string losses_sentence(const TensorFound& total, const Recipe& recipe) {
  std::vector<std::string> losses;
  if (total.flushed > 0) losses.push_back(fmt::format("{} become zero", percent(total.share(total.flushed))));
  if (total.overflowed > 0)
    losses.push_back(fmt::format("{} lie beyond the largest number of {}",
                                 percent(total.share(total.overflowed)),
                                 recipe.block != nullptr ? "their block" : "the format"));
  std::string sentence =
      losses.empty() ? "" : fmt::format(" Of the non-zero values {}.", fmt::join(losses, ", "));
  if (total.lost > 0)
    sentence += fmt::format(" {} finite {} NaN or infinite, which the error leaves out.", total.lost,
                            total.lost == 1 ? "value becomes" : "values become");
  return sentence;
}

std::string nonfinite_sentence(const TensorFound& total, const Recipe& recipe) {
  if (total.nonfinite == 0) return {};
  const char* const spreads = recipe.block == nullptr ? ""
                              : recipe.block->has_tensor_scale
                                  ? "; one makes its whole tensor NaN, whose scale it is in"
                                  : "; one makes its whole block NaN";
  return fmt::format(" {} {} NaN or infinite in the file{}.", total.nonfinite,
                     total.nonfinite == 1 ? "value is" : "values are", spreads);
}

std::string worst_tensor(const Findings& found) {
  if (found.tensors.size() < 2) return {};
  const TensorFound& worst = *std::ranges::max_element(found.tensors, {}, &TensorFound::relative_error);
  return worst.has_nothing_left()
             ? fmt::format("; of {} nothing is left", worst.name)
             : fmt::format("; the worst is {}, by {}", worst.name, percent(worst.relative_error()));
}

TextTable verdict_table(const Findings& found) {
  constexpr std::size_t most_rows = 12;
  TextTable table{
      .columns = {"tensor", "shape", "values", "bits", "error", "SQNR, dB", "becomes zero", "beyond",
                  "largest"},
      .rows = {},
      .notes = {"error: ||quantized - values|| / ||values||; beyond: of the non-zero values, larger than "
                "the largest number."}};
  std::vector<const TensorFound*> sorted;
  for (const TensorFound& tensor : found.tensors) sorted.push_back(&tensor);
  std::ranges::stable_sort(sorted, std::greater<>(), [](auto* tensor) { return tensor->relative_error(); });
  const auto add = [&](const TensorFound& tensor) {
    table.rows.push_back({tensor.name, tensor.shape, fmt::format("{}", tensor.values),
                          fmt::format("{:.3g}", tensor.bits_per_value()),
                          tensor.has_nothing_left() ? "-" : percent(tensor.relative_error()),
                          decibels(tensor.sqnr()), percent(tensor.share(tensor.flushed)),
                          percent(tensor.share(tensor.overflowed)), fmt::format("{:.3g}", tensor.max_abs)});
  };
  for (const TensorFound* const tensor : sorted) {
    if (table.rows.size() == most_rows) {
      table.notes.push_back(
          fmt::format("The {} worst tensors of {}; --out writes all.", most_rows, sorted.size()));
      break;
    }
    add(*tensor);
  }
  if (sorted.size() > 1) add(found.total);
  if (found.total.is_rounded_first) table.notes.push_back(rounded_first_note);
  return table;
}

}  // namespace

std::string losses_in_words(const TensorFound& total, const Recipe& recipe, const std::string& of_tensors) {
  return answer(total, recipe, of_tensors) + losses_sentence(total, recipe) +
         nonfinite_sentence(total, recipe);
}

Outputs outputs() {
  return outputs_of(tensors_table, recipe_summary, total_summary());
}

void report(Run& run, const Findings& found) {
  RunRecord& record = run.record();
  tensors_table.write(record, found.tensors);
  recipe_summary.write(record, found);
  total_summary().write(record, found.total);
  std::vector<std::string> sentences{losses_in_words(found.total, found.recipe, worst_tensor(found)),
                                     found.remark};
  if (!found.to.empty()) sentences.push_back(fmt::format("Written to {}.", found.to));
  std::erase(sentences, "");
  record.verdict(fmt::format("{}", fmt::join(sentences, " ")));
  record.verdict(verdict_table(found).text());
}

}  // namespace halflab::quantize
