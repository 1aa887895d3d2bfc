#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/gpu/gpu_throughput/context_memory.h"
#include "experiments/gpu/gpu_throughput/judgement.h"
#include "experiments/gpu/gpu_throughput/measurement.h"
#include "experiments/gpu/gpu_throughput/products.h"
#include "experiments/gpu/gpu_throughput/streaming.h"
#include "fp16/cuda/device.h"

namespace {

using namespace experiments;
using namespace experiments::gpu_throughput;

bool skipped() {
  if (fp16::cuda::available()) return false;
  MESSAGE("skipped: " << fp16::cuda::unavailable_reason());
  return true;
}

/// Every row is right and has a time, or says why it is absent, which ours have no reason to be but for their
/// instruction.
void check_rows(const Group& group) {
  for (const Row& row : measure(group, {.repeats = 3, .least_repeat_s = 0})) {
    CAPTURE(row.key());
    CHECK(row.failure == "");
    CHECK(row.check.wrong == 0);
    CHECK(row.times.has_value() == row.absent.empty());
    CHECK((row.check.compared != 0) == row.absent.empty());
    if (!row.absent.empty()) MESSAGE(row.key() << ": " << row.absent);
  }
}

}  // namespace

TEST_CASE("gpu_throughput: rows that stream are right on the device, whatever the size") {
  if (skipped()) return;
  for (const std::size_t elements : {1, 1000, 33333}) {
    const Group group = streaming_group(elements);
    REQUIRE(group.works.size() == streaming_row_names().size());
    for (std::size_t i = 0; i < group.works.size(); ++i)
      CHECK(group.works[i].name == streaming_row_names()[i]);
    check_rows(group);
  }
}

TEST_CASE("gpu_throughput: products are right on the device, whatever the size") {
  if (skipped()) return;
  OpenedCublas cublas = open_cublas();
  for (const int edge : {1, 40, 130}) {
    const Group group = product_group(edge, product_row_names(), cublas);
    CHECK(group.works.size() == product_row_names().size());
    check_rows(group);
  }
  CHECK(product_group(8, {"mma_sync_binary16", "cublas_binary16"}, cublas).works.size() == 2);
}

TEST_CASE("gpu_throughput: unscaling in place leaves the gradients that it is timed on as they are") {
  if (skipped()) return;
  const Group group = streaming_group(5000);
  for (const Work& work : group.works) {
    if (work.name == "unscale_in_place") work.call(0);
  }
  for (const Work& work : group.works) {
    if (work.name == "half_histogram" || work.name == "half_to_float") CHECK(work.check().wrong == 0);
  }
}

TEST_CASE("gpu_throughput: the context's memory is measured or a reason is given") {
  if (skipped()) return;
  const ContextMemory memory = begin_context();
  CHECK(memory.bytes.has_value() == memory.absent.empty());
}
