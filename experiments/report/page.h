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

/// Options, summary, build and machine of a run: folded, unless `open`.
std::string details_element(const RunDirectory& run, bool open = false);

/// A section for each run, its verdict before its figures; then, folded, what was run.
std::string report_page(std::string_view title, const std::vector<RunDirectory>& runs);

}  // namespace experiments::report
