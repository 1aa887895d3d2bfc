#pragma once
/// The tensors of some steps of a run, as files.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/trainer/trainer.h"

namespace experiments {

/// The steps that --dump-tensors names, "0,10,100", ascending. Throws std::invalid_argument, naming the option.
std::vector<std::uint64_t> dumped_steps(const std::string& option);

/// Writes folder/step_N.safetensors for each of these steps: under weights/NAME what the step began with; under
/// gradients/NAME those of parameters and of layers' outputs, with S divided out (of the last backward pass or the sum
/// that the scaler was shown); under batch/ inputs or tokens, labels and boxes (image, class, x_min, y_min, x_max, y_max)
/// of the last micro-batch. FP64 gradients are F64, all other numbers F32, labels I32. Metadata: step, loss_scale,
/// policy, decision. An infinity or NaN of a step that overflowed stays what it is.
std::unique_ptr<sim::StepObserver> make_tensor_dump(std::filesystem::path folder,
                                                    std::vector<std::uint64_t> steps);

}  // namespace experiments
