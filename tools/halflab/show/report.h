#pragma once
/// What `halflab show` says and writes.

#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "tools/halflab/show/findings.h"

namespace halflab::show {

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);

/// The text with the fields of codes of this format coloured where one of `fields` stands between blanks or ends of
/// lines: escape sequences of ANSI X3.64, sign, exponent and significand each in its own colour.
std::string colored(std::string_view text, const fp16::Format& format,
                    const std::vector<std::string>& fields);

}  // namespace halflab::show
