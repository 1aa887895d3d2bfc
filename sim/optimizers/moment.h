#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/optimizers/dynamic_map.h"
#include "sim/tensor/memory_account.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// How a moment is stored: as numbers of `format` or, with a map, as 8-bit codes in blocks with one binary32
/// maximum each.
struct MomentStorage {
  fp16::Format format = fp16::binary32;
  const DynamicMap* map = nullptr;
};

/// A running value per weight of one parameter, zero at first. It is worked on in pieces that begin at
/// multiples of DynamicMap::block and end there or at the end of the parameter: open one, change it, close
/// it.
class Moment {
 public:
  Moment(const MomentStorage& storage, std::size_t size);

  /// Elements [offset, offset + count): the storage itself when it holds Real, else decoded into `buffer`.
  template <class Real>
  Real* open(std::size_t offset, std::size_t count, Real* buffer);

  /// Stores what open() gave: rounded once, to nearest-even or to the nearest code (by way of binary32).
  template <class Real>
  void close(std::size_t offset, std::size_t count, const Real* values);

  /// Bytes allocated: 1 + 4/256 per weight where the maxima of whole blocks are counted, else the format's.
  std::size_t size_bytes() const;

  /// Calls visit(suffix, bytes) for each array that holds the state: "", or " codes" and " maxima".
  void visit_bytes(const std::function<void(std::string_view, std::span<std::byte>)>& visit);

 private:
  struct Blocks {
    const DynamicMap* map;
    std::vector<std::uint8_t> codes;
    std::vector<float> maxima;
    MemoryCharge charge;
  };
  std::variant<Tensor, Blocks> storage_;
};

}  // namespace sim
