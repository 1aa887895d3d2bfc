#include "sim/optimizers/moment.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace {

constexpr std::size_t size = 600;

/// What is read back of `value` in every place, stored from Real.
template <class Real>
std::vector<Real> stored(const sim::MomentStorage& storage, Real value) {
  sim::Moment moment(storage, size);
  std::array<Real, size> buffer;
  Real* const values = moment.open(0, size, buffer.data());
  for (std::size_t i = 0; i < size; ++i) values[i] = value;
  moment.close(0, size, values);
  std::array<Real, size> again;
  const Real* const back = moment.open(0, size, again.data());
  return {back, back + size};
}

}  // namespace

TEST_CASE("moment: starts at zero in every storage") {
  for (const sim::MomentStorage& storage :
       {sim::MomentStorage{}, sim::MomentStorage{.format = fp16::binary16},
        sim::MomentStorage{.map = &sim::DynamicMap::with_sign()},
        sim::MomentStorage{.map = &sim::DynamicMap::without_sign()}}) {
    sim::Moment moment(storage, size);
    std::array<float, size> buffer;
    const float* const values = moment.open(0, size, buffer.data());
    CHECK(std::vector(values, values + size) == std::vector(size, 0.0f));
  }
}

TEST_CASE("moment: is rounded once to the format that stores it") {
  CHECK(stored({}, 0.1f).front() == 0.1f);
  CHECK(stored({.format = fp16::binary16}, 0.1f).back() == 0x1.998p-4f);
  CHECK(stored({.format = fp16::bfloat16}, 0.1f).back() == 0x1.9ap-4f);
  CHECK(stored({.format = fp16::binary64}, 0.1).back() == 0.1);
  CHECK(stored({.format = fp16::binary32}, 0.1).back() == static_cast<double>(0.1f));
  CHECK(stored({.format = fp16::binary16}, 1 + 0x1p-11 + 0x1p-40).back() ==
        1 + 0x1p-10);  // not by way of binary32
  CHECK(stored({.map = &sim::DynamicMap::with_sign()}, -3.0f).back() == doctest::Approx(-3).epsilon(0.008));
  CHECK(stored({.map = &sim::DynamicMap::without_sign()}, 3.0).back() == 3);  // its block's maximum
}

TEST_CASE("moment: allocates what its storage says, and shows all of it") {
  const auto bytes = [](const sim::MomentStorage& storage) {
    sim::Moment moment(storage, size);
    std::size_t shown = 0;
    std::string names;
    moment.visit_bytes([&](std::string_view name, std::span<std::byte> array) {
      shown += array.size();
      names += name;
    });
    CHECK(shown == moment.size_bytes());
    CHECK(names == (storage.map == nullptr ? "" : " codes maxima"));
    return moment.size_bytes();
  };
  CHECK(bytes({}) == 4 * size);
  CHECK(bytes({.format = fp16::bfloat16}) == 2 * size);
  CHECK(bytes({.format = fp16::binary64}) == 8 * size);
  CHECK(bytes({.map = &sim::DynamicMap::with_sign()}) == size + 3 * 4);  // blocks of 256, 256 and 88
}
