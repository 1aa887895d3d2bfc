#include "experiments/frame/toml_file.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "experiments/frame/files.h"
#include "tests/temporary_directory.h"

using test::TemporaryDirectory;

namespace {

/// "a.a.a", of so many parts.
std::string key_of(int parts) {
  std::string key = "a";
  for (int i = 1; i < parts; ++i) key += ".a";
  return key;
}

/// What reading a file of that text is refused with, FILE for its name.
std::string error_of(const std::string& toml) {
  const TemporaryDirectory directory;
  const std::string file = directory / "file.toml";
  experiments::write_contents(file, toml);
  try {
    experiments::read_toml_file(file);
  } catch (const std::runtime_error& error) {
    std::string text = error.what();
    if (const auto at = text.find(file); at != std::string::npos) text.replace(at, file.size(), "FILE");
    return text;
  }
  return "";
}

constexpr const char* too_long = ": a key of more than 16 parts is not allowed";

}  // namespace

TEST_CASE("toml: keys of many parts are refused wherever they stand, before they are read") {
  CHECK(error_of(key_of(16) + " = 1\n") == "");
  CHECK(error_of("[" + key_of(16) + "]\n" + key_of(16) + " = {" + key_of(16) + " = [1.5, 2.5, 3.5]}\n") ==
        "");
  for (const int parts : {17, 40'000}) {
    const std::string key = key_of(parts);
    CHECK(error_of("# a comment\n\n" + key + " = 1\n") == std::string("FILE:3") + too_long);
    CHECK(error_of("[" + key + "]\n") == std::string("FILE:1") + too_long);
    CHECK(error_of("[[" + key + "]]\n") == std::string("FILE:1") + too_long);
    CHECK(error_of("x = 1\ny = { b = 1, " + key + " = 2 }\n") == std::string("FILE:2") + too_long);
    CHECK(error_of("x = [1,\n 2,\n { " + key + " = 2 }]\n") == std::string("FILE:3") + too_long);
    // After a string that ends with a quote of its own, and behind one that looks like a comment.
    CHECK(error_of("x = { b = \"\"\"text\"\"\"\", " + key + " = 2 }\n") == std::string("FILE:1") + too_long);
    CHECK(error_of("x = { b = '''text''''', " + key + " = 2 }\n") == std::string("FILE:1") + too_long);
    CHECK(error_of("x = { b = \"#\", c = '#\\', " + key + " = 2 }\n") == std::string("FILE:1") + too_long);
    CHECK(error_of("x = { b = \"\\\"\", " + key + " = 2 }\n") == std::string("FILE:1") + too_long);
  }
}

TEST_CASE("toml: dots in strings and comments part no key") {
  const std::string dots(1000, '.');
  CHECK(error_of("# " + dots + "\nx = 1 # " + dots + "\n") == "");
  CHECK(error_of("x = \"" + dots + "\"\ny = '" + dots + "'\n") == "");
  CHECK(error_of("x = \"\"\"\n" + dots + "\n\\\"\"\"" + dots + "\"\"\"\ny = '''\n" + dots + "'''\n") == "");
  CHECK(error_of("\"" + dots + "\".'" + dots + "' = 1\n") == "");
  std::string numbers = "x = [0.5";
  for (int i = 0; i < 1000; ++i) numbers += i % 3 == 0 ? ", 1.5" : ",\n1.5";
  CHECK(error_of(numbers + "]\n") == "");
}

TEST_CASE("toml: arrays and tables that nest without end are refused") {
  for (const int depth : {300, 100'000}) {
    CHECK(error_of("x = " + std::string(static_cast<std::size_t>(depth), '[')).starts_with("FILE:1: "));
    std::string tables = "x = ";
    for (int i = 0; i < depth; ++i) tables += "{" + key_of(16) + " = ";
    CHECK(error_of(tables).starts_with("FILE:1: "));
  }
}

TEST_CASE("toml: devices, directories and files of more than 4 MiB are refused") {
  CHECK_THROWS_WITH_AS(experiments::read_toml_file("/dev/zero"),
                       "file '/dev/zero' cannot be read (it is a device, a regular file is needed)",
                       std::runtime_error);
  CHECK(error_of(std::string(experiments::most_toml_bytes, '\n')) == "");
  CHECK(error_of(std::string(experiments::most_toml_bytes + 1, '\n')) ==
        "file 'FILE' cannot be read (it has 4194305 bytes, at most 4194304 are allowed)");
}

TEST_CASE("toml: what makes the parser's behaviour undefined is refused before it is read") {
  for (const std::string name : {"%", " =", "[%", "[ \n"})
    CHECK(error_of("x = 1\n [" + name + "]\n") ==
          "FILE:2: a table's name must begin with a letter, a digit, _, - or a quote");
  const std::string beyond_ascii = "a letter beyond ASCII is not allowed outside of strings and comments";
  CHECK(error_of("\xC5\x95 = 1\n") == "FILE:1: " + beyond_ascii);
  CHECK(error_of("x = 1\ny = \xC5\x95\n") == "FILE:2: " + beyond_ascii);
  for (const std::string between : {"", " \t", "\n  "})
    CHECK(error_of("x = \"\"\"a\\\\\\" + between + "\xC5\x95\"\"\"\n") ==
          "FILE:1: a letter beyond ASCII after a backslash is not allowed");
  for (const std::string text :
       {"x = -\"\xC5\x95\"\n", "x = 55.\"\xEF\xB7\xBF,y\n", "x = [{a.\"b\" = 1}, 5.\"\xEF\xB7\xBF\"]\n",
        "x = {a = 5.\"\xEF\xB7\xBF\"}\n"})
    CHECK(error_of(text) == "FILE:1: a quote within a word is not allowed outside of strings");
}

TEST_CASE("toml: a bracket within a word is refused before it is read, as what follows has no bounds") {
  for (const std::string text : {"x = 4051-11-[[\"z\xEF\xB9\xBF\"\n", "x = 1{a = 1}\n", "x = true[1]\n"})
    CHECK(error_of(text) == "FILE:1: a bracket within a word is not allowed");
  CHECK(error_of("x=[[1],[2, [3]]]\ny={a=[{b=1},{}]}\n[[z]]\n [w]\n") == "");
}

TEST_CASE("toml: a second = of a key is refused before it is read, as what follows has no bounds") {
  for (const std::string text : {"ci = -QdQ='''\xEF\xB1\xBF"
                                 "b\n",
                                 "x = [a = 1]\n", "x = {a = 1 = 2}\n", "x = 1 y = 2\n"})
    CHECK(error_of(text) == "FILE:1: an = within a value is not allowed");
  CHECK(error_of("x = {a = [1, {b = 2}], c = {d = 3}, e = '='}\n[t]\ny = \"a = b\" # = =\n[[u]]\nz = [\n{v = "
                 "1},\n]\nw = 1\n") == "");
}

TEST_CASE("toml: a quote behind a value is refused before it is read, as what follows has no bounds") {
  for (const std::string text : {"oa=4442-06-43 3 \"\xEF\xB9\xBF\x0f", "x = 1 \"\xEF\xB9\xBF\"\n",
                                 "x = 'a' \"b\"\n", "x = [1 # =\n\"a\"]\n"})
    CHECK(error_of(text) == std::string(text.starts_with("x = [") ? "FILE:2" : "FILE:1") +
                                ": a quote behind a value is not allowed");
  CHECK(error_of("x = [\n1, # c\n\"a\", [ 'b'\n]]\ny = {a = \"b\", \"c\" = 'd', 'e'.\"f\" = [{\"g\" = "
                 "1}]}\n\"h\" = 2\n") == "");
}

TEST_CASE("toml: quoted parts of keys follow dots, wherever keys stand") {
  CHECK(error_of("a.\"b\" = 1\nc.'d' = {a.\"b\" = 1, c.\"d\" = [1, 2], e.\"f\" = 2}\ng.\"h\" = "
                 "[\n1,\n2]\ni.\"j\" = 3\n") == "");
  CHECK(error_of("x = [{a.\"b\" = 1}, {c.\"d\" = {e.\"f\" = 2}, g.\"h\" = 3}]\n[a.\"b\"]\nc.\"d\" = "
                 "1\n[[e.\"f\"]]\n") == "");
}

TEST_CASE(
    "toml: brackets of arrays, letters beyond ASCII in strings and comments, and a byte order mark are "
    "read") {
  CHECK(error_of("x = [\n[ +1 ],\n [-2.5],\n['a', \"b\"]]\n[-name]\ny = {z=[{}]}\n[[\t\"\xC5\x95\"]]\n") ==
        "");
  CHECK(error_of("x = \"\\\\\xC5\x95 \\n \xC5\x95\"\ny = '\\\xC5\x95'\n") == "");
  CHECK(error_of("\xEF\xBB\xBF# \xC5\x95\nx = \"\xC5\x95\"\n'\xC5\x95' = '''\n\xC5\x95'''\n") == "");
}
