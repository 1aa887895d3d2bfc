#pragma once
/// The histograms of Micikevicius et al., "Mixed Precision Training" (ICLR 2018), in their own layout.

#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gradient_histogram/findings.h"

namespace experiments::gradient_histogram {

/// For --help.
Outputs paper_outputs();

/// Writes table and figure "paper3", activation gradients before and after a shift by S with the exact zeros in a bar
/// apart, and a table of what the paper, NVIDIA's guide and this run have. Returns what to say of it. The model has its
/// options with it.
std::vector<std::string> report_paper3(Run& run, const Findings& found, std::string_view model,
                                       const std::string& setting);

/// What the loss of a detector with these options is divided by in training; empty of another model.
std::string normaliser_sentence(std::string_view model);

/// Writes table and figure "paper2b", exponents of all weight gradients over the moments of training with the line at -24
/// below which the paper calls them lost. Returns what to say of it.
std::vector<std::string> report_paper2b(Run& run, const Findings& found, std::string_view model,
                                        const std::string& setting);

}  // namespace experiments::gradient_histogram
