#include "experiments/master_weights/conditions.h"

#include <fmt/format.h>

namespace experiments::master_weights {

std::string Condition::label() const {
  std::string text = fmt::format("{} {}", training_.optimizer, *training_.learning_rate);
  if (training_.schedule != "constant") text += ", " + training_.schedule;
  return text;
}

std::vector<std::unique_ptr<Condition>> make_conditions(const TrainingOptions& given) {
  std::vector<std::unique_ptr<Condition>> conditions;
  const auto add = [&](std::string name, const TrainingOptions& training) {
    conditions.push_back(std::make_unique<Condition>(std::move(name), training));
  };
  if (!given.optimizer.empty() || !given.schedule.empty() || given.learning_rate) {
    add("given", given);
    return conditions;
  }
  add("own", given);
  TrainingOptions slow = given;
  slow.learning_rate = *conditions.front()->training().learning_rate / 100;
  add("own_hundredth", slow);
  const auto adam = [&](double learning_rate, std::string schedule) {
    TrainingOptions training = given;
    training.optimizer = "adam";
    training.learning_rate = learning_rate;
    training.schedule = std::move(schedule);
    return training;
  };
  add("adam_1e-3", adam(1e-3, "constant"));
  add("adam_1e-4", adam(1e-4, "constant"));
  add("adam_1e-5", adam(1e-5, "constant"));
  add("adam_cosine", adam(1e-3, "cosine"));
  return conditions;
}

}  // namespace experiments::master_weights
