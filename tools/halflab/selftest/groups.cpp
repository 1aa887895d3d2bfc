#include "tools/halflab/selftest/groups.h"

#include <array>

#include "fp16/names.h"

namespace halflab::selftest {
namespace {

constexpr std::array table{
    Group{"conversions", "floats to and from each format, each format to each other", true, conversion_rows},
    Group{"arrays", "+ - * / sqrt fma over arrays, by format and rounding", true, array_rows},
    Group{"formats", "each function of one to three numbers, by format, in all roundings", true, format_rows},
    Group{"operations", "the operations of GPUs on halves, floats and integers", true, operation_rows},
    Group{"functions", "exp to tgamma of all halves; those of float and double", true, function_rows},
    Group{"sums", "sums and dot products, by format and order", true, sum_rows},
    Group{"products", "matrix products, by accumulation", true, product_rows},
    Group{"tensor_cores", "steps and matrix products, by architecture", true, tensor_core_rows},
    Group{"blocks", "MX and NVFP4, by format and rule of scales", true, block_rows},
    Group{"text", "decimal and hexadecimal text, written and read", true, text_rows},
    Group{"random", "random bits by key", true, random_rows},
    Group{"trainings", "losses, scales and weights of small networks", false, training_rows},
    Group{"demo", "summaries of the demo's programs, --quick", false, demo_rows},
};
static_assert(names::has_unique_names(table));

}  // namespace

std::span<const Group> groups() {
  return table;
}

}  // namespace halflab::selftest
