#pragma once
/// In which formats a policy lets an operation compute: the one rule of casts.

#include <optional>
#include <span>

#include "fp16/formats.h"
#include "sim/ops/operation.h"
#include "sim/precision/precision_policy.h"

namespace sim {

/// What an operation's inputs are cast to, if they are, and the format of its output.
struct OperationFormats {
  std::optional<fp16::Format> inputs;
  fp16::Format output;
};

/// The one that holds the values of all; binary32 where none does, as of binary16 and bfloat16. At least one.
fp16::Format widest_of(std::span<const fp16::Format> formats);

/// That the policy's list has for the operation; without a list none is asked for.
AutocastClass autocast_class(const Operation& operation, const PrecisionPolicy& policy);

/// Formats for inputs in these formats, parameters among them. What a list bans is treated as what it promotes:
/// to refuse it is the caller's.
OperationFormats formats_of(const Operation& operation, const PrecisionPolicy& policy,
                            std::span<const fp16::Format> inputs);

}  // namespace sim
