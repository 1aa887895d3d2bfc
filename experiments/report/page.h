#pragma once
/// One HTML page from run directories, with everything inside it: no script, no file, no address is loaded.

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/run_directory.h"

namespace experiments::report {

/// A document of the report's look; `body` is HTML.
std::string document(std::string_view title, std::string_view body);

/// Question, verdict and figures of a run. `figure_number` counts on over the page.
std::string run_section(const RunDirectory& run, int& figure_number);

/// Options, build and machine of a run.
std::string provenance(const RunDirectory& run);

/// All key figures of a run.
std::string summary_table(const RunDirectory& run);

/// Shown, and printed, only where its reader opens it.
std::string folded(std::string_view title, std::string_view body);

/// A section for each run, its verdict before its figures; then, folded, what was run.
std::string report_page(std::string_view title, const std::vector<RunDirectory>& runs);

}  // namespace experiments::report
