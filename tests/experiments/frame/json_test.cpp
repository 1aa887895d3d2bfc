#include "experiments/frame/json.h"

#include <doctest/doctest.h>

#include <string>

using experiments::Json;

TEST_CASE("json: CBOR that claims more elements than fit into memory is no document") {
  for (const char kind : {'\x9b', '\xbb'})  // an array, a map of so many
    CHECK(Json::from_cbor(kind + std::string(8, '\xff')).is_null());
}

TEST_CASE("json: a text of more than 100 levels is no document") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(!Json::from_text(nested(100)).is_null());
  CHECK(Json::from_text(nested(102)).is_null());
  const auto nested_cbor = [](std::size_t levels) { return std::string(levels, '\x81') + '\x01'; };
  CHECK(!Json::from_cbor(nested_cbor(100)).is_null());
  CHECK(Json::from_cbor(nested_cbor(101)).is_null());
  CHECK(Json::from_cbor(nested_cbor(10'000'000)).is_null());
}
