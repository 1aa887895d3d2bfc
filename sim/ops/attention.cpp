#include "sim/ops/attention.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/ops/matrix_product.h"

namespace sim {
namespace {

fp16::MatrixOperand matrix_of(const HeadOperand& operand, const AttentionSizes& s, std::size_t sequence,
                              std::size_t head) {
  const auto& [tensor, layout, transposed] = operand;
  fp16::MatrixOperand matrix =
      tensor.matrix(0, layout.columns, sequence * layout.sequence_size + head * layout.head_offset);
  matrix.rows = s.context;
  matrix.row_stride = layout.row_stride;
  return transposed ? matrix.transposed() : matrix;
}

}  // namespace

AttentionSizes attention_sizes(const Tensor& tokens, const AttentionOptions& options) {
  const std::size_t width = tokens.shape().back(), rows = tokens.size() / width;
  if (options.heads == 0 || width % options.heads != 0) {
    throw std::invalid_argument("attention: heads: " + std::to_string(options.heads) +
                                " is not allowed; a divisor of the width " + std::to_string(width));
  }
  if (options.context == 0 || rows % options.context != 0) {
    throw std::invalid_argument("attention: context: " + std::to_string(options.context) +
                                " is not allowed; a divisor of the number of tokens " + std::to_string(rows));
  }
  return {
      .batch = rows / options.context, .heads = options.heads, .context = options.context, .width = width};
}

HeadLayout layout_of_tokens(const AttentionSizes& s) {
  return {.sequence_size = s.context * s.width,
          .head_offset = s.depth(),
          .columns = s.depth(),
          .row_stride = s.width};
}

HeadLayout layout_of_scores(const AttentionSizes& s) {
  return {.sequence_size = s.heads * s.context * s.context,
          .head_offset = s.context * s.context,
          .columns = s.context,
          .row_stride = s.context};
}

void product_of_heads(const RoundedOutput& out, const HeadLayout& layout, const HeadOperand& a,
                      const HeadOperand& b, const AttentionSizes& s, const Arithmetic& arithmetic,
                      double factor) {
  const bool binary64 = is_binary64(*out.tensor) || is_binary64(a.tensor) || is_binary64(b.tensor);
  const int threads = threads_for(s.batch * s.heads * s.context * s.context * s.depth(), arithmetic.threads);
  with_real(binary64, [&](auto real) {
    using Real = decltype(real);
    for_each_part(out, s.batch, threads, 1,
                  [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                    const Arithmetic of_head = with_one_thread(arithmetic);
                    std::vector<Real> scratch;
                    for (std::size_t sequence = first; sequence < last; ++sequence) {
                      const std::size_t offset = sequence * layout.sequence_size;
                      const std::span<Real> sums = sums_of(part, offset, layout.sequence_size, scratch);
                      for (std::size_t head = 0; head < s.heads; ++head) {
                        chains(matrix_of(a, s, sequence, head), matrix_of(b, s, sequence, head),
                               sums.data() + head * layout.head_offset, layout.row_stride, of_head);
                      }
                      if (factor != 1) {
                        for (Real& sum : sums) sum *= static_cast<Real>(factor);
                      }
                      store(part, offset, std::span<const Real>(sums));
                    }
                  });
  });
}

}  // namespace sim
