#include "experiments/training/checkpoint.h"

#include <cstring>

#include "experiments/frame/crc32.h"
#include "tests/fuzz/fuzz.h"

/// The content is put between the head and the checksum that it needs, else all would end at these.
HALFLAB_FUZZ(input) {
  std::string bytes = "halflab\n";
  const std::uint32_t version = 3;
  const std::uint64_t size = input.size();
  const auto append = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(version);
  append(size);
  bytes.append(reinterpret_cast<const char*>(input.data()), input.size());
  append(experiments::crc32(std::as_bytes(std::span(bytes))));
  fuzz::allow_refusal([&] { experiments::checkpoint_from(bytes, "checkpoint-1"); });
}
