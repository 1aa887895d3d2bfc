#include "sim/tape/operation_formats.h"

namespace sim {

fp16::Format widest_of(std::span<const fp16::Format> formats) {
  fp16::Format widest = formats.front();
  for (const fp16::Format format : formats) {
    if (fp16::contains(widest, format)) continue;
    widest = fp16::contains(format, widest) ? format : fp16::binary32;  // binary16 and bfloat16 meet above
  }
  return widest;
}

AutocastClass autocast_class(const Operation& operation, const PrecisionPolicy& policy) {
  const CastClasses& casts = operation.casts.value();
  return policy.casts == CastList::torch_autocast ? casts.torch_autocast : casts.apex_o1;
}

OperationFormats formats_of(const Operation& operation, const PrecisionPolicy& policy,
                            std::span<const fp16::Format> inputs) {
  const auto all = [](fp16::Format format) { return OperationFormats{format, format}; };
  if (operation.keeps_first_format) return {std::nullopt, inputs.front()};
  if (policy.casts == CastList::none)
    return all(operation.is_loss ? policy.full_precision : widest_of(inputs));
  switch (autocast_class(operation, policy)) {
    case AutocastClass::lower_precision:
      return all(policy.lower_precision);
    case AutocastClass::full_precision:
      return all(policy.full_precision);
    case AutocastClass::full_precision_output:
      return {std::nullopt, policy.full_precision};
    case AutocastClass::banned:
    case AutocastClass::promote:
    case AutocastClass::input_type:
      break;
  }
  return all(widest_of(inputs));
}

}  // namespace sim
