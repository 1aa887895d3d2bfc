#pragma once
/// Products of one training step, counted from the shapes of the networks' linear maps.

#include <string_view>

namespace bench {

/// Multiplications of forward, data gradient and weight gradient at the model's default sizes and batch; the
/// first layer of images has no data gradient, attention counts as the full square. 0 for a model that is not
/// counted.
double products_of_step(std::string_view model);

}  // namespace bench
