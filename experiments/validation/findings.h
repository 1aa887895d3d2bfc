#pragma once
/// What a run found, and its tables, summary and verdict.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/help_text.h"
#include "experiments/frame/record.h"
#include "experiments/validation/numbers.h"

namespace experiments::validation {

/// One line of the verdict: a row of the sweep or a file of recorded steps.
struct Finding {
  std::string operation;
  std::string_view family;
  std::string subject;
  std::string reference;
  std::string domain;
  std::string pipe;                ///< scalar, packed, vector or tensor core
  std::string obstacle;            ///< why it did not run; empty where it did
  bool device_failed = false;      ///< at a shard, a table or the census of the row
  bool is_complete_domain = true;  ///< every input there is, not a list
  std::uint64_t inputs_possible = 0;
  std::uint32_t shards_wanted = 0, shards_finished = 0;  ///< none of recorded steps
  std::uint64_t inputs = 0;
  std::uint64_t inputs_now = 0;  ///< tried by this run
  std::uint64_t mismatches = 0;
  std::uint64_t documented = 0;
  std::uint64_t other_nans = 0;
  std::uint64_t misrounded = 0;
  std::string deviation;  ///< what is documented; empty for nothing
  std::vector<Example> examples;
  double time_s = 0;

  bool ran() const { return inputs != 0; }  ///< at least in part
  bool is_finished() const { return shards_finished == shards_wanted; }
  bool failed() const { return mismatches != 0 || device_failed; }
};

/// For --help: tables and summary.
Outputs finding_outputs();
/// The tables verdicts, counterexamples and timing.
void write_tables(RunRecord& record, const std::vector<Finding>& findings);
void write_summary(RunRecord& record, const std::vector<Finding>& findings);  ///< all but where rows ran
/// The conclusion, what failed besides (a sentence after a space, or nothing), the table and what is documented.
void write_verdict(RunRecord& record, const std::vector<Finding>& findings, std::string_view failures = {});

/// Time and rate of each family by subject, for the screen alone.
std::string timing_text(const std::vector<Finding>& findings);

std::uint64_t mismatches(const std::vector<Finding>& findings);

}  // namespace experiments::validation
