/// The same with the trainer and what it stands on.
#include "sim/trainer/trainer.h"
#include "tests/precompiled/numbers.h"
