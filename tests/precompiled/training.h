/// What most tests of training include, parsed once: the trainer and what it stands on, besides numbers.h.
#include "sim/trainer/trainer.h"
#include "tests/precompiled/numbers.h"
