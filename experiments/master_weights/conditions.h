#pragma once
/// The optimizers, rates and schedules under which the storages are compared.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/training_setup.h"

namespace experiments::master_weights {

/// One way of training. Its setup refers to its options: it stays where it is made.
class Condition {
 public:
  Condition(std::string name, const TrainingOptions& training)
      : name_(std::move(name)), training_(in_folder(training, name_)), setup_(training_) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  const std::string& name() const { return name_; }
  const TrainingOptions& training() const { return training_; }
  const TrainingSetup& setup() const { return setup_; }
  /// "adam 0.001, cosine".
  std::string label() const;

 private:
  static TrainingOptions in_folder(TrainingOptions options, const std::string& name) {
    options.directory /= name;
    return options;
  }

  std::string name_;
  TrainingOptions training_;
  TrainingSetup setup_;
};

/// The given optimizer, learning rate or schedule alone, as "given"; where none of them is given:
/// - own: what the model trains well with
/// - own_hundredth: the same at a hundredth of its learning rate
/// - adam_1e-3, adam_1e-4, adam_1e-5: Adam at these rates, constant
/// - adam_cosine: Adam from 1e-3 down to zero
std::vector<std::unique_ptr<Condition>> make_conditions(const TrainingOptions& given);

}  // namespace experiments::master_weights
