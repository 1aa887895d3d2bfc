#include <doctest/doctest.h>

#include <stdexcept>

#include "fp16/names.h"

TEST_CASE("specs: a name, then options after colons") {
  CHECK(names::parse_spec("dynamic").name == "dynamic");
  CHECK(names::parse_spec("dynamic").options.empty());
  const names::Spec spec = names::parse_spec("O2:loss_scale=128:keep_batchnorm_fp32=false");
  CHECK(spec.name == "O2");
  REQUIRE(spec.options.size() == 2);
  CHECK(spec.options.at("loss_scale") == "128");
  CHECK(spec.options.at("keep_batchnorm_fp32") == "false");
  CHECK(names::parse_spec("name:text=a=b").options.at("text") == "a=b");
  CHECK(names::parse_spec("name:empty=").options.at("empty") == "");
}

TEST_CASE("specs: what is no option is refused with the form that is allowed") {
  const std::pair<const char*, const char*> rows[]{
      {"static:scale",
       "'static:scale': option 'scale' has no value; allowed: NAME or "
       "NAME:option=value:option=value"},
      {"static:", "option '' has no value"},
      {"static::scale=2", "option '' has no value"},
      {"static:=2", "an option has no name"},
      {"static:scale=2:scale=2", "option 'scale' is given twice"},
  };
  for (const auto& [text, message] : rows) {
    INFO(text);
    CHECK_THROWS_WITH_AS(names::parse_spec(text), doctest::Contains(message), std::invalid_argument);
  }
}

TEST_CASE("specs: values as numbers, true and false among them") {
  const auto [name, options] = names::parse_numeric_spec("dynamic:a=1e-3:b=-2:c=true:d=false:e=0.25");
  CHECK(name == "dynamic");
  CHECK(options == names::GivenOptions{{"a", 1e-3}, {"b", -2}, {"c", 1}, {"d", 0}, {"e", 0.25}});
  for (const char* value : {"", "x", "1x", "1e999", " 1", "+1", "0x10", "TRUE"}) {
    INFO(value);
    CHECK_THROWS_WITH_AS(
        names::parse_numeric_spec(std::string("dynamic:growth=") + value),
        ("'dynamic': growth = '" + std::string(value) + "' is not allowed; allowed: a number, true or false")
            .c_str(),
        std::invalid_argument);
  }
}

TEST_CASE("specs: a name ends at the first colon") {
  CHECK(names::name_in("dynamic:a=1:b=2") == "dynamic");
  CHECK(names::name_in("dynamic") == "dynamic");
  CHECK(names::name_in(":a=1") == "");
}
