/// What most sources of this room include, parsed once. Each source still includes what it uses:
/// CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without this file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/tape/tape.h"
