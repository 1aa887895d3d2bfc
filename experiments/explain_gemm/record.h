#pragma once
/// Tables, summary and verdict.

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/mistake.h"
#include "experiments/explain_gemm/search.h"
#include "experiments/frame/experiment.h"

namespace experiments::explain_gemm {

struct Findings {
  const Problem& problem;
  Explanation explanation;
  Classification classification;
  std::optional<Mistake> mistake = {};
};

/// A code of D, in hexadecimal.
std::string bits_text(const Problem& problem, std::uint32_t code);

void write_tables(RunRecord& record, const Findings& found);
void write_summary(RunRecord& record, const Findings& found);
void write_verdict(RunRecord& record, const Findings& found);

/// What the person who wrote or called the kernel does now.
std::string next_step(const Findings& found);

/// What is wrong with D, in one line; empty without a real bug or a mistake.
std::string bug_line(const Findings& found);

}  // namespace experiments::explain_gemm
