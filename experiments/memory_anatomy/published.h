#pragma once
/// Published figures, and what the formulas give in their settings.

#include <string>
#include <vector>

#include "experiments/memory_anatomy/anatomy.h"

namespace experiments::memory_anatomy {

struct PublishedRow {
  std::string key;  ///< of the summary: "bert_large.step_mib"
  std::string quantity;
  double published;
  double ours;
  std::string source;
  std::string note;

  double ratio() const { return ours / published; }
};

/// All of them, from the networks that come with the program.
std::vector<PublishedRow> published_rows();

/// BERT-large in the setting of Ivanov et al.: its encoder at batch 8 and sequence 512 in FP16 on a V100.
ClassShares encoder_shares();

/// Shares of FLOP and of run time, in percent, by OperatorClass, of that encoder in PyTorch
/// (arXiv:2007.00072).
inline constexpr std::array published_flop_percent{99.80, 0.17, 0.03};
inline constexpr std::array published_time_percent{61.0, 25.5, 13.5};

}  // namespace experiments::memory_anatomy
