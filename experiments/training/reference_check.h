#pragma once
/// Whether runs in FP32 are such that others can be held against them.

#include <string>

#include "experiments/training/comparison.h"
#include "sim/data/dataset.h"

namespace experiments {

/// Why nothing follows from a difference to these runs: they end without a finite test loss, or no better than the best
/// answer that does not look at its input does (guessed classes, the mean of all images, the frequencies of single
/// characters; of scenes it is not known). A clause such as "in 20 steps FP32 has learnt nothing that ..."; empty where
/// others can be held against them.
std::string reason_not_to_compare(const SeedGroup& fp32, const TrainingSetup& setup);

/// The mean squared error, over the test images, of their mean: the least that an answer without a look at the image
/// can have.
double variance_of_pixels(const sim::ImageDataset& images);

}  // namespace experiments
