#include "tools/halflab/compare/options.h"

#include <fmt/format.h>

#include "tools/halflab/formats.h"

namespace halflab::compare {

void bind(experiments::CommandLine& command_line, Options& options) {
  halflab::bind(command_line, options.inputs, 2);
  command_line.add(
      "--as", options.as,
      fmt::format("both are rounded to nearest even to this format first: {}", scalar_format_names()),
      "FORMAT");
  command_line.add("--ulp", options.ulp,
                   "so many steps apart is near enough, in the format of --as or, without it, of the files; "
                   "without --as and --ulp bits must be equal",
                   {.minimum = 0});
}

}  // namespace halflab::compare
