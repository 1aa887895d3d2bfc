#pragma once
/// EXECUTE(lanes, (arguments) { body }): how a row of x86 is executed, in a program for x86-64; null in the others.

#include "experiments/cpu/instructions/x86_control.h"

#ifdef __x86_64__
#include "experiments/cpu/instructions/executed.h"

#define EXECUTE(lanes, ...) executed<Mxcsr, lanes, [] __VA_ARGS__>
#else
#define EXECUTE(lanes, ...) nullptr
#endif
