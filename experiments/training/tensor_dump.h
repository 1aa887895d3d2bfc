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
/// gradients/NAME those of parameters, over all micro-batches, ranks and losses, and those of layers' outputs, of the
/// first backward pass on rank 0, with S divided out; under batch/ inputs or tokens, labels and boxes (image, class,
/// x_min, y_min, x_max, y_max) of all micro-batches and ranks. FP64 gradients are F64, all other numbers F32, labels
/// I32. Metadata: step, loss_scale (of the first backward pass), policy, decision. An infinity or NaN of a step that
/// overflowed stays what it is.
std::unique_ptr<sim::StepObserver> make_tensor_dump(std::filesystem::path folder,
                                                    std::vector<std::uint64_t> steps,
                                                    sim::BatchSampler micro_batches,
                                                    std::size_t accumulation_steps);

}  // namespace experiments
