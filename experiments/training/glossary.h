#pragma once
/// Notes below the tables of several experiments, on columns whose heads do not say all.

namespace experiments::notes {

inline constexpr const char* swallowed =
    "swallowed: updates that left the weight as it was, since rounding undid them.";
inline constexpr const char* of_the_norm =
    "of the norm: the norm of the flushed values, as a share of the whole gradient's.";
inline constexpr const char* relative_error =
    "relative error: ||gradient / S - twin's|| / ||twin's||; the twin is that of the same weights and "
    "batch in FP32 or wider.";

}  // namespace experiments::notes
