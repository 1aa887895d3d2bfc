#include <fmt/format.h>

#include <memory>

#include "fp16/block_arrays.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"

namespace bench {
namespace {

using fp16::BlockFormat;

struct Data {
  std::vector<float> values = normal_values(array_size, "blocks");
  std::vector<std::uint8_t> elements = std::vector<std::uint8_t>(array_size);
  std::vector<std::uint8_t> scales = std::vector<std::uint8_t>(array_size);
  std::vector<std::int8_t> bytes = std::vector<std::int8_t>(array_size);
  fp16::PhiloxSequence random{.generator = {.key = 2}, .first = 0};
};

template <const BlockFormat& B>
float tensor_scale_of(const std::vector<float>& values) {
  if constexpr (B.has_tensor_scale) return fp16::tensor_scale<B>(fp16::absolute_maximum(values));
  return 1;
}

/// Holds the first line along `axis` against the scalar encoder.
template <const BlockFormat& B>
void require_right(const Data& data, const fp16::BlockAxis& axis, const fp16::BlockArrayOptions& options) {
  std::vector<float> line(axis.length);
  std::vector<std::uint64_t> random(options.random ? axis.length : 0);
  for (std::size_t i = 0; i < axis.length; ++i) {
    line[i] = data.values[i * axis.inner];
    if (options.random) random[i] = std::uint64_t{(*options.random)[i * axis.inner]} << 32 | 0xffffffff;
  }
  std::vector<fp16::ElementBits<B>> elements(axis.length);
  std::vector<fp16::ScaleBits<B>> scales(B.block_count(axis.length));
  fp16::BlockOptions scalar{.tensor_scale = options.tensor_scale, .random_bits = random};
  if (options.random) scalar.element.rounding = fp16::Rounding::stochastic;
  fp16::encode_blocks<B>(line, scales, elements, scalar);
  for (std::size_t i = 0; i < axis.length; ++i)
    require(data.elements[i * axis.inner] == elements[i], fmt::format("elements of {}", B.name));
  for (std::size_t block = 0; block < scales.size(); ++block)
    require(data.scales[block * axis.inner] == scales[block], fmt::format("scales of {}", B.name));
}

template <const BlockFormat& B>
void add_format(std::vector<Case>& cases, const std::shared_ptr<Data>& data) {
  constexpr std::size_t length = 1024;
  for (const bool is_stochastic : {false, true}) {
    for (const std::size_t inner : {std::size_t{1}, array_size / length}) {
      fp16::BlockArrayOptions options{.tensor_scale = tensor_scale_of<B>(data->values)};
      if (is_stochastic) options.random = data->random;
      const fp16::BlockAxis axis{.length = length, .inner = inner};
      const auto work = [=] {
        const auto scales = std::span(data->scales).first(array_size / B.block_size);
        fp16::encode_blocks(B, data->values, axis, scales, data->elements, options);
      };
      work();
      require_right<B>(*data, axis, options);
      cases.push_back(Case{fmt::format("encode_{}{}{}", B.name, is_stochastic ? "_stochastic_philox" : "",
                                       inner > 1 ? "_along_columns" : ""),
                           array_size,
                           work,
                           {"scale_blocks"}}
                          .moving(sizeof(float) + 1 + 1.0 / B.block_size));
    }
  }
}

}  // namespace

void add_block_cases(std::vector<Case>& cases) {
  const auto data = std::make_shared<Data>();
  cases.push_back({"scale_blocks",
                   array_size,
                   [data] { scale_blocks(data->values.data(), data->bytes.data(), array_size); },
                   {},
                   true});
  fp16::for_each_block_format([&]<const BlockFormat & B>() { add_format<B>(cases, data); });
}

}  // namespace bench
