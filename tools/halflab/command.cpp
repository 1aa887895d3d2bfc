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
  command.add_page = [name](const experiments::RunRecord& record) {
    report::RunDirectory run = report::read_run(record.staging());
    run.directory = std::filesystem::weakly_canonical(record.directory()).filename().string();
    experiments::write_file(record.staging() / "report.html", report::report_page(name, {run}));
  };
  return experiments::run(argc, argv, command, streams);
}

}  // namespace halflab
