#pragma once
/// What was found of a product, and what is reported of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/mistake.h"
#include "experiments/explain_gemm/search.h"
#include "experiments/frame/columns.h"
#include "experiments/frame/experiment.h"

namespace experiments::explain_gemm {

struct Findings {
  const Problem& problem;
  Explanation explanation;
  Classification classification;
  std::optional<Mistake> mistake;
};

/// A code of D, in hexadecimal.
std::string bits_text(const Problem& problem, std::uint32_t code);

/// The columns that tell a hypothesis, in tables and after "best." in the summary.
const std::vector<Column<Hypothesis>>& hypothesis_columns();

/// For --help.
Outputs outputs();

/// Writes tables and summary.
void write_results(RunRecord& record, const Findings& found);
void write_verdict(RunRecord& record, const Findings& found);

/// map: what each accumulator leaves unexplained with each number of slices; errors: where in D the
/// differences lie, if there are any. Both need the tables.
void draw_figures(Run& run, const Findings& found);

/// What the person who wrote or called the kernel does now.
std::string next_step(const Findings& found);

/// What is wrong with D, in one line; empty without a real bug or a mistake.
std::string bug_line(const Findings& found);

}  // namespace experiments::explain_gemm
