#include "experiments/frame/toml_file.h"
#include "sim/sizing/network_description.h"
#include "tests/fuzz/fuzz.h"

/// A description of a network, and its shapes.
HALFLAB_FUZZ(input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  fuzz::allow_refusal([&] {
    sim::network_of(sim::read_network(experiments::parse_toml(text, "input.toml"), "input.toml"), {});
  });
}
