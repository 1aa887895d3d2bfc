#include "tools/halflab/commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>

#include "experiments/frame/build_information.h"
#include "experiments/frame/installation.h"
#include "fp16/names.h"
#include "tools/halflab/allreduce/allreduce.h"
#include "tools/halflab/compare/compare.h"
#include "tools/halflab/explain/explain.h"
#include "tools/halflab/hist/hist.h"
#include "tools/halflab/quantize/quantize.h"
#include "tools/halflab/replay/replay.h"
#include "tools/halflab/reveal/reveal.h"
#include "tools/halflab/run/run.h"
#include "tools/halflab/selftest/selftest.h"
#include "tools/halflab/show/show.h"
#include "tools/halflab/validate/validate.h"

namespace halflab {
namespace {

constexpr std::array table{
    Command{"hist",
            "What would FP16, or another format, lose of my tensors, and which loss scale would keep it?",
            hist::run},
    Command{"compare", "Do two files or folders hold the same tensors, and if not, what differs?",
            compare::run},
    Command{"replay", "What would other loss scalers have done on a recorded run?", replay::run},
    Command{"explain", "Which accumulator, order and epilogue gave every bit of my matrix product?",
            explain::run},
    Command{"reveal", "In which order does a black box, such as a Python function, sum?", reveal::run},
    Command{"show", "What is this number, bit by bit, and what becomes of this operation?", show::run},
    Command{"quantize", "What are these tensors in a format of few bits, and what does that lose?",
            quantize::run},
    Command{"allreduce", "What does an all-reduce lose of the mean of my ranks, by order and precision?",
            allreduce::run},
    Command{"inputs", "Which operands should my kernel be tried with?", validate::run_inputs},
    Command{"validate",
            "Are my kernel's results the exact values rounded once, and if not, what explains it?",
            validate::run},
    Command{"run", "Which experiment answers my question? Lists them, or runs one of them.",
            run_experiment::run},
    Command{"selftest", "Does this build have the bits of the release?", selftest::run},
};
static_assert(names::has_unique_names(table));

void print_help(std::ostream& out) {
  out << "halflab: what half precision does to your own tensors.\n\nCommands (halflab NAME --help tells "
         "more):\n";
  for (const Command& command : table) fmt::print(out, "  {:<10} {}\n", command.name, command.question);
  out << "\nFiles are .npy, .npz, .safetensors (or their index.json), folders of these, or raw numbers with "
         "--dtype.\n"
         "Exit code: 0 done; 1 a check failed; 2 bad usage or input.\n\nExample:\n  halflab hist gradients/ "
         "--out results/hist\n";
  if (const auto pages = experiments::installed_pages(); std::filesystem::is_directory(pages))
    fmt::print(out, "\nPages: {}\n", pages.string());
}

}  // namespace

std::span<const Command> commands() {
  return table;
}

int run(int argc, const char* const* argv, experiments::Streams streams) {
  const std::string name = argc > 1 ? argv[1] : "--help";
  return experiments::guarded("halflab", streams.err, [&] {
    if (name == "--help" || name == "-h" || name == "help") {
      print_help(streams.out);
      return argc > 1 ? 0 : 2;
    }
    if (name == "--version") {
      fmt::print(streams.out, "halflab {}\n", experiments::build_information().version);
      return 0;
    }
    if (name == "watch")
      throw std::invalid_argument(
          "watch is a function of Python, around a training loop of PyTorch: import halflab.torch "
          "(docs/pytorch.md)");
    const Command& command = names::find_by_name(table, "command", name);
    return command.run(argc - 1, argv + 1, streams);
  });
}

}  // namespace halflab
