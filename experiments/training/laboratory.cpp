#include "experiments/training/laboratory.h"

#include "experiments/training/families.h"
#include "fp16/vector_path.h"

namespace experiments {

Json arithmetic_of_this_process() {
  return Json::object({{"vector_path", fp16::name_of(fp16::active_vector_path())}});
}

int run(int argc, const char* const* argv, const Experiment& experiment, Streams streams) {
  return run(argc, argv, experiment, {.families = families(), .arithmetic = arithmetic_of_this_process},
             streams);
}

}  // namespace experiments
