/// What do the accumulator's format and the order of summation do to long sums and dot products, and so, must
/// products of FP16 numbers be summed in FP32?
///
/// Adds up keyed random vectors of halves in every way that the library knows, tensor cores among them, and
/// compares with the exact sums, with what theory says of their errors, and with sums of ones. Then averages
/// losses over mini-batches, where FP16 sums stall or overflow.

#include "experiments/accumulation/findings.h"
#include "experiments/accumulation/options.h"
#include "experiments/training/laboratory.h"

int main(int argc, char** argv) {
  using namespace experiments;
  accumulation::Options options;
  return run(
      argc, argv,
      {.program =
           {.name = "accumulation",
            .question =
                "Must products of FP16 numbers be summed in FP32? What the accumulator's format and the "
                "order of summation do to long sums",
            .example = "accumulation --lengths-log2 16 --vectors 4 --out results/accumulation",
            .outputs = accumulation::outputs()},
       .options = [&](CommandLine& command_line) { accumulation::bind(command_line, options); },
       .body = [&](Run& r) { accumulation::report(r, accumulation::measure(options, r), options); }});
}
