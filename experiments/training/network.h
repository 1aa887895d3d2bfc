#pragma once
/// The networks that a sweep trains.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/cells.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/training_setup.h"

namespace experiments {

/// One of the networks with its data, and what its options came to.
struct Network {
  std::string spec;
  TrainingOptions options;
  TrainingSetup setup;
  std::uint32_t data_checksum;

  Network(const TrainingOptions& given, const std::string& model)
      : spec(model),
        options(with_model(given, model)),
        setup(options),
        data_checksum(checksum_of(setup.dataset())) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// What ranks exchange the gradients of.
  std::size_t weights() const {
    std::size_t count = 0;
    for (const sim::ParameterSpec& parameter : setup.model().parameters())
      count += sim::element_count(parameter.shape);
    return count;
  }

 private:
  static TrainingOptions with_model(TrainingOptions options, std::string model) {
    options.model = std::move(model);
    return options;
  }
};

using Networks = std::vector<std::unique_ptr<Network>>;

/// That of the cell, which is among them.
inline const Network& network_of(const Cell& cell, const Networks& networks) {
  return **std::ranges::find(networks, cell.model, [](const auto& network) { return network->spec; });
}

}  // namespace experiments
