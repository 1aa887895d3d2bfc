#pragma once
/// A JSON value as a tree, its text and its CBOR form (RFC 8949). nlohmann-json reads and writes both behind it:
/// compiled once, and in no header.

#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace experiments {

/// A value of another kind than it is taken for, or a key that an object lacks.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// null, a boolean, a number, a text, bytes (in CBOR alone), an array, or an object, which keeps the order of
/// its keys. Numbers are equal as numbers of their kind: 1 is 1, however it is stored, and not 1.0.
class Json {
 public:
  using Bytes = std::vector<std::uint8_t>;
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json(std::nullptr_t = nullptr);
  template <std::same_as<bool> Boolean>
  Json(Boolean value) : Json(Content(value)) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) Json(Integer number)
      : Json(number < 0 ? Content(static_cast<std::int64_t>(number))
                        : Content(static_cast<std::uint64_t>(number))) {}
  Json(double number);
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  Json(Bytes bytes);
  Json(Array elements);
  explicit Json(const std::vector<std::string>& texts);

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  /// An object of these members, in their order; of no two with the same key.
  static Json object(Object members = {});

  /// null where the text or the bytes are no document, too, or have more than 100 levels.
  static Json from_text(std::string_view text);
  static Json from_cbor(std::string_view bytes);
  /// On one line, or indented by so many spaces a level. A number that is not finite becomes null, a byte that is
  /// no UTF-8 the replacement character.
  std::string to_text(int indent = -1) const;
  std::string to_cbor() const;

  bool is_null() const { return content_.index() == 0; }
  bool is_integer() const;
  bool is_number() const { return is_integer() || std::holds_alternative<double>(content_); }
  bool is_string() const { return std::holds_alternative<std::string>(content_); }
  bool is_array() const { return std::holds_alternative<Array>(content_); }
  bool is_object() const { return std::holds_alternative<Object>(content_); }

  // Throw JsonError for a value of another kind; the integers also for one that does not fit.
  bool boolean() const;
  double number() const;
  std::uint64_t unsigned_integer() const;
  std::int64_t integer() const;
  const std::string& string() const;
  const Bytes& bytes() const;
  Array& elements();
  const Array& elements() const;
  Object& members();
  const Object& members() const;

  /// An object's value under the key; null where there is none, or this is no object.
  const Json* find(std::string_view key) const;
  Json value(std::string_view key, Json otherwise = {}) const;
  /// Throw JsonError where there is none.
  const Json& at(std::string_view key) const;
  const Json& at(std::size_t index) const;
  /// The value under the key, added as null where there is none; null becomes an object.
  Json& operator[](std::string_view key);
  /// Takes over the other object's members, in place of those that have their keys.
  void update(const Json& other);

  friend bool operator==(const Json&, const Json&);

 private:
  friend struct JsonAccess;
  using Content = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Bytes,
                               Array, Object>;
  Json(Content content);

  template <class Kind>
  const Kind& as(const char* kind) const;

  Content content_;
};

}  // namespace experiments
