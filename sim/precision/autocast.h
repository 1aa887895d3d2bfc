#pragma once

namespace sim {

/// How an operation chooses the format it runs in.
enum class AutocastClass {
  lower_precision,        ///< inputs are cast to the policy's lower-precision format
  full_precision,         ///< inputs are cast to the policy's full-precision format
  full_precision_output,  ///< inputs are read as they are, the output is in full precision
  promote,                ///< inputs are cast to the widest among them, because the list says so
  input_type,             ///< on no list: ordinary promotion, to the widest among the inputs
  banned,                 ///< an error where an input is in lower precision
};

/// Which list of operations decides the formats.
enum class CastList {
  none,            ///< no list: every operation runs in the format of the model, losses in binary32
  torch_autocast,  ///< torch.autocast on CUDA
  apex_o1,         ///< Apex O1, which patched torch's functions until Apex removed it in 2025
};

}  // namespace sim
