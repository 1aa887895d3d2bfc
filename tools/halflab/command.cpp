#include "tools/halflab/command.h"

#include <utility>

#include "experiments/frame/whole_file.h"
#include "experiments/report/page.h"
#include "experiments/training/laboratory.h"

namespace halflab {

int run_command(int argc, const char* const* argv, experiments::Experiment command,
                experiments::Streams streams) {
  namespace report = experiments::report;
  const std::string name = command.program.name;
  command.results = experiments::Results::asked;
  command.published = [name](const std::filesystem::path& directory) {
    experiments::write_file(directory / "report.html",
                            report::report_page(name, {report::read_run(directory)}));
  };
  return experiments::run(argc, argv, command, streams);
}

}  // namespace halflab
