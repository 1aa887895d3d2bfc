/// What most tests of programs include, parsed once: they read summaries as JSON.
#include <nlohmann/json.hpp>

#include "tests/precompiled/numbers.h"
