#include "experiments/frame/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace experiments {
namespace {

using nlohmann::ordered_json;

constexpr int deepest = 100;

/// Ends the reading of a document that has more levels: the library reads CBOR by recursion, which ends with the stack.
class LevelCounter final : public nlohmann::json_sax<ordered_json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++level_ <= deepest; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return ++level_ <= deepest; }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool leave() {
    --level_;
    return true;
  }

  int level_ = 0;
};

Json from_library(const ordered_json& value) {
  switch (value.type()) {
    case ordered_json::value_t::boolean:
      return value.get<bool>();
    case ordered_json::value_t::number_integer:
      return value.get<std::int64_t>();
    case ordered_json::value_t::number_unsigned:
      return value.get<std::uint64_t>();
    case ordered_json::value_t::number_float:
      return value.get<double>();
    case ordered_json::value_t::string:
      return value.get_ref<const std::string&>();
    case ordered_json::value_t::binary:
      return Json::Bytes(value.get_binary());
    case ordered_json::value_t::array: {
      Json::Array elements;
      for (const ordered_json& element : value) elements.push_back(from_library(element));
      return elements;
    }
    case ordered_json::value_t::object: {
      Json::Object members;
      for (const auto& [key, member] : value.items()) members.emplace_back(key, from_library(member));
      return Json::object(std::move(members));
    }
    default:  // null, and what is no document
      return nullptr;
  }
}

struct ToLibrary {
  ordered_json operator()(const Json::Bytes& bytes) const { return ordered_json::binary(bytes); }
  ordered_json operator()(const Json::Array& elements) const;
  ordered_json operator()(const Json::Object& members) const;
  ordered_json operator()(const auto& scalar) const { return scalar; }
};

}  // namespace

struct JsonAccess {
  static ordered_json to_library(const Json& value) { return std::visit(ToLibrary(), value.content_); }
};

ordered_json ToLibrary::operator()(const Json::Array& elements) const {
  ordered_json array = ordered_json::array();
  for (const Json& element : elements) array.push_back(JsonAccess::to_library(element));
  return array;
}

ordered_json ToLibrary::operator()(const Json::Object& members) const {
  ordered_json object = ordered_json::object();
  auto& list = object.get_ref<ordered_json::object_t&>();  // a vector: no search for each key
  for (const auto& [key, value] : members)
    list.std::vector<ordered_json::object_t::value_type>::emplace_back(key, JsonAccess::to_library(value));
  return object;
}

Json::Json(Content content) : content_(std::move(content)) {}
Json::Json(std::nullptr_t) {}
Json::Json(double number) : content_(number) {}
Json::Json(std::string text) : content_(std::move(text)) {}
Json::Json(std::string_view text) : content_(std::string(text)) {}
Json::Json(const char* text) : content_(std::string(text)) {}
Json::Json(Bytes bytes) : content_(std::move(bytes)) {}
Json::Json(Array elements) : content_(std::move(elements)) {}
Json::Json(const std::vector<std::string>& texts) : content_(Array(texts.begin(), texts.end())) {}

Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::object(Object members) {
  return Content(std::move(members));
}

Json Json::from_text(std::string_view text) {
  bool is_too_deep = false;
  const auto keep = [&](int depth, ordered_json::parse_event_t, const ordered_json&) {
    is_too_deep = is_too_deep || depth > deepest;
    return depth <= deepest;
  };
  const ordered_json document = ordered_json::parse(text, keep, /*allow_exceptions=*/false);
  return is_too_deep ? Json() : from_library(document);
}

Json Json::from_cbor(std::string_view bytes) {
  try {
    LevelCounter counter;
    if (!ordered_json::sax_parse(bytes, &counter, ordered_json::input_format_t::cbor)) return nullptr;
    return from_library(ordered_json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false));
  } catch (const ordered_json::exception&) {  // which a length beyond all memory is, nonetheless
    return nullptr;
  }
}

std::string Json::to_text(int indent) const {
  return JsonAccess::to_library(*this).dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

std::string Json::to_cbor() const {
  std::string bytes;
  ordered_json::to_cbor(JsonAccess::to_library(*this), bytes);
  return bytes;
}

bool Json::is_integer() const {
  return std::holds_alternative<std::int64_t>(content_) || std::holds_alternative<std::uint64_t>(content_);
}

template <class Kind>
const Kind& Json::as(const char* kind) const {
  if (const Kind* content = std::get_if<Kind>(&content_)) return *content;
  throw JsonError("JSON: " + to_text() + " is no " + kind);
}

bool Json::boolean() const {
  return as<bool>("boolean");
}

double Json::number() const {
  if (const auto* natural = std::get_if<std::uint64_t>(&content_)) return static_cast<double>(*natural);
  if (const auto* negative = std::get_if<std::int64_t>(&content_)) return static_cast<double>(*negative);
  return as<double>("number");
}

std::uint64_t Json::unsigned_integer() const {
  return as<std::uint64_t>("integer of 0 or more");
}

std::int64_t Json::integer() const {
  if (const auto* negative = std::get_if<std::int64_t>(&content_)) return *negative;
  const std::uint64_t natural = as<std::uint64_t>("integer");
  if (natural > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw JsonError("JSON: " + to_text() + " is too large an integer");
  return static_cast<std::int64_t>(natural);
}

const std::string& Json::string() const {
  return as<std::string>("string");
}
const Json::Bytes& Json::bytes() const {
  return as<Bytes>("byte string");
}
const Json::Array& Json::elements() const {
  return as<Array>("array");
}
Json::Array& Json::elements() {
  return const_cast<Array&>(as<Array>("array"));
}
const Json::Object& Json::members() const {
  return as<Object>("object");
}
Json::Object& Json::members() {
  return const_cast<Object&>(as<Object>("object"));
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&content_);
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, key, &Object::value_type::first);
  return found == members->end() ? nullptr : &found->second;
}

Json Json::value(std::string_view key, Json otherwise) const {
  const Json* found = find(key);
  return found ? *found : std::move(otherwise);
}

const Json& Json::at(std::string_view key) const {
  if (const Json* found = find(key)) return *found;
  throw JsonError("JSON: no key '" + std::string(key) + "'");
}

const Json& Json::at(std::size_t index) const {
  if (index < elements().size()) return elements()[index];
  throw JsonError("JSON: an array of " + std::to_string(elements().size()) + " has no element " +
                  std::to_string(index));
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) content_ = Object();
  if (const Json* found = find(key)) return const_cast<Json&>(*found);
  return members().emplace_back(std::string(key), nullptr).second;
}

void Json::update(const Json& other) {
  for (const auto& [key, value] : other.members()) (*this)[key] = value;
}

bool operator==(const Json& a, const Json& b) {
  return a.content_ == b.content_;
}

}  // namespace experiments
