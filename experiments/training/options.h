#pragma once
/// The options that mean the same in every experiment with networks; each experiment binds those that have a meaning for
/// it. An empty optimizer, schedule, batch or rate means what suits the model.

#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/command_line.h"

namespace experiments {

void add_data(CommandLine& command_line, std::string& data);
void add_model(CommandLine& command_line, std::string& model);
void add_policy(CommandLine& command_line, std::string& policy);
void add_scalers(CommandLine& command_line, std::vector<std::string>& scalers);
void add_optimizer(CommandLine& command_line, std::string& optimizer);
void add_schedule(CommandLine& command_line, std::string& schedule);
void add_batch(CommandLine& command_line, std::optional<int>& batch);
void add_learning_rate(CommandLine& command_line, std::optional<double>& learning_rate);
void add_twin_every(CommandLine& command_line, int& twin_every, std::optional<int> quick = std::nullopt);

}  // namespace experiments
