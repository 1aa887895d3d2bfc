/// What can each format hold, from FP64 to FP4, and why do 8 and 4 bits need block scales?
///
/// Tabulates the formats and counts their numbers octave by octave. Then measures: a tensor of normal random
/// numbers, each row of it times a magnitude of its own, is rounded to the small formats, with one scale for
/// all of it and with one scale a block, and compared with what it was.

#include <fmt/format.h>

#include "experiments/formats/findings.h"
#include "experiments/formats/numbers.h"
#include "experiments/formats/options.h"
#include "experiments/training/laboratory.h"

namespace experiments::formats {
namespace {

void run(Run& run, const Options& options) {
  report(run, measure(options, run), options);
  if (!codes_agree()) run.fail("the numbers of a format, all decoded, are not what its row computes of them");
}

}  // namespace
}  // namespace experiments::formats

int main(int argc, char** argv) {
  using namespace experiments;
  formats::Options options;
  return run(
      argc, argv,
      {.program =
           {.name = "formats",
            .question =
                "What can each format hold, from FP64 to FP4, and why do 8 and 4 bits need block scales?",
            .example = "formats --spread 2 --out results/formats",
            .outputs = formats::outputs()},
       .options = [&](CommandLine& command_line) { formats::bind(command_line, options); },
       .body = [&](Run& r) { formats::run(r, options); }});
}
