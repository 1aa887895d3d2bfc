#pragma once
/// Products of the heads of an attention, one per sequence and head, on views of whole tensors.

#include "fp16/gemm.h"
#include "sim/ops/attention_options.h"
#include "sim/ops/operation.h"

namespace sim {

/// `heads` attend in each of `batch` sequences of `context` tokens.
struct AttentionSizes {
  std::size_t batch, heads, context, width;

  std::size_t depth() const { return width / heads; }  ///< of a head
};

/// `tokens`: (batch * context) x width. Throws std::invalid_argument where heads or context do not divide it.
AttentionSizes attention_sizes(const Tensor& tokens, const AttentionOptions& options);

/// Where in a tensor each head has its matrix of `context` rows; in elements.
struct HeadLayout {
  std::size_t sequence_size, head_offset, columns, row_stride;
};
/// A head is `depth` neighbouring columns of the tokens, (batch * context) x width.
HeadLayout layout_of_tokens(const AttentionSizes& s);
/// The scores of a head are a matrix of their own, (batch * heads) x context x context.
HeadLayout layout_of_scores(const AttentionSizes& s);

struct HeadOperand {
  const Tensor& tensor;
  HeadLayout layout;
  bool transposed = false;
};

/// For every sequence and head: out = a * b, the finished sums multiplied by `factor` in binary32 (binary64)
/// and rounded once.
void product_of_heads(const RoundedOutput& out, const HeadLayout& layout, const HeadOperand& a,
                      const HeadOperand& b, const AttentionSizes& s, const Arithmetic& arithmetic,
                      double factor = 1);

}  // namespace sim
