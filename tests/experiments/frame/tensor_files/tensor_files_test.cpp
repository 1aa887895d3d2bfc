#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/file_format.h"
#include "experiments/frame/tensor_files/npy.h"
#include "experiments/frame/tensor_files/safetensors.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "fp16/formats.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace {

using namespace experiments::tensor_files;
using test::TemporaryDirectory;

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
  return file.string();
}

template <class Number>
std::vector<Number> numbers_of(const StoredTensor& tensor) {
  const std::vector<std::byte> bytes = read_elements(tensor);
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::vector<std::string> names_of(const TensorSet& set) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : set.tensors()) names.push_back(tensor.name);
  return names;
}

/// Refused in one line that holds the file's name and the text.
void check_refused(const std::string& file, const std::string& text, const RawLayout& raw = {}) {
  INFO(text);
  try {
    const TensorSet set({file}, raw);
    for (const StoredTensor& tensor : set.tensors()) read_elements(tensor);
    FAIL("not refused");
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    INFO(what);
    CHECK(what.find(text) != std::string::npos);
    CHECK(what.find(std::filesystem::path(file).filename().string()) != std::string::npos);
    CHECK(what.find('\n') == std::string::npos);
  }
}

const std::vector<float> six{1, 2, 3, 4, 5, -6};
const std::vector<std::uint16_t> six_halves{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0xc600};

}  // namespace

TEST_CASE("tensor_files: every floating-point format of the table has a type, and no other") {
  for (const ElementType& type : element_types) {
    if (type.format.empty()) continue;
    const auto row = std::ranges::find(fp16::formats, type.format, &fp16::NamedFormat::name);
    REQUIRE(row != fp16::formats.end());
    CHECK(type.bits == row->format.width());
  }
  for (const fp16::NamedFormat& row : fp16::formats) {
    INFO(row.name);
    CHECK((type_of_format(row.name) != nullptr) == (row.name != "tf32"));  // lies in files as binary32
  }
}

TEST_CASE(
    "tensor_files: .npy arrays are read in both byte orders, both index orders, all versions and shapes") {
  const TemporaryDirectory directory;
  const std::string file = directory / "m.npy";
  for (const int version : {1, 2, 3}) {
    write(file, test::npy_file(test::npy_dictionary("<f4", "False", "(2, 3)"), test::bytes_of(six), version));
    const NamedTensor named(file);
    CHECK(named.tensor().name == "m");
    CHECK(named.tensor().shape == Shape{2, 3});
    CHECK(named.tensor().type->format == "binary32");
    CHECK(named.tensor().offset % 64 == 0);
    CHECK(numbers_of<float>(named.tensor()) == six);
  }
  std::string turned = test::bytes_of(six);
  for (std::size_t i = 0; i < turned.size(); i += 4) std::reverse(turned.begin() + i, turned.begin() + i + 4);
  write(file, test::npy_file(test::npy_dictionary(">f4", "True", "(2, 3)"), turned));
  const NamedTensor columns(file);
  CHECK(numbers_of<float>(columns.tensor()) == six);
  std::vector<std::uint64_t> places;
  for (std::uint64_t i = 0; i < 6; ++i) places.push_back(logical_index(columns.tensor(), i));
  CHECK(places == std::vector<std::uint64_t>{0, 3, 1, 4, 2, 5});
  CHECK(index_text(columns.tensor(), 3) == "(1, 1)");

  for (const auto& [shape, count] :
       std::vector<std::pair<std::string, std::uint64_t>>{{"()", 1}, {"(0, 5)", 0}, {"(7,)", 7}}) {
    write(file, test::npy_file(test::npy_dictionary("<f2", "False", shape), std::string(2 * count, '\0')));
    CHECK(NamedTensor(file).tensor().elements == count);
    CHECK(read_elements(NamedTensor(file).tensor()).size() == 2 * count);
  }
}

TEST_CASE("tensor_files: .npz members are read, stored or deflated, with 32-bit and ZIP64 fields") {
  const TemporaryDirectory directory;
  std::vector<float> many(1'000'003);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i % 1000);
  const auto array = [](const std::string& shape, const std::vector<float>& values) {
    return test::npy_file(test::npy_dictionary("<f4", "False", shape), test::bytes_of(values));
  };
  for (const bool zip64 : {false, true}) {
    const std::string file =
        write(directory / "a.npz", test::zip_file({{"w/b.npy", array("(2, 3)", six)},
                                                   {"readme.txt", "no array"},
                                                   {"g.npy", array("(1000003,)", many), true}},
                                                  zip64));
    const TensorSet set({file});
    CHECK(names_of(set) == std::vector<std::string>{"w/b", "g"});
    CHECK(set.tensors()[0].packing == Packing::none);
    CHECK(numbers_of<float>(set.tensors()[0]) == six);
    CHECK(set.tensors()[1].packing == Packing::deflate);
    CHECK(pieces_of(set.tensors()[1]).size() == 1);
    CHECK(numbers_of<float>(set.tensors()[1]) == many);
    CHECK(test::content_of(file).substr(set.tensors()[0].offset, 24) == test::bytes_of(six));
  }
}

TEST_CASE("tensor_files: safetensors of every dtype are read, integers named and passed over") {
  const TemporaryDirectory directory;
  std::string header = "{\"__metadata__\":{\"step\":\"7\"}", data;
  for (const ElementType& type : element_types) {
    if (type.safetensors.empty()) continue;
    const std::size_t bytes = static_cast<std::size_t>(type.bits);  // eight elements
    header += ",\"t." + std::string(type.safetensors) + "\":{\"dtype\":\"" + std::string(type.safetensors) +
              "\",\"shape\":[2,4],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes) + "]}";
    for (std::size_t i = 0; i < bytes; ++i) data += static_cast<char>(data.size());
  }
  const TensorSet set({write(directory / "all.safetensors", test::safetensors_file(header + "}", data))});
  CHECK(set.metadata() == std::vector<std::pair<std::string, std::string>>{{"step", "7"}});
  CHECK(set.tensors().size() == 12);
  CHECK(set.passed_over().size() == 10);
  std::string read;
  for (const StoredTensor& tensor : set.tensors()) {
    CHECK(tensor.elements == 8);
    for (const std::byte byte : read_elements(tensor)) read += static_cast<char>(byte);
  }
  CHECK(read == data.substr(0, read.size()));
}

TEST_CASE("tensor_files: what is written as safetensors reads back, and begins as the format says") {
  const TemporaryDirectory directory;
  const std::string file = directory / "w.safetensors";
  write_safetensors(file,
                    {{"a \"b\"", type_of_format("binary16"), {2, 3}, std::as_bytes(std::span(six_halves))},
                     {"empty", type_of_format("binary32"), {0}, {}},
                     {"c", type_of_format("binary32"), {6}, std::as_bytes(std::span(six))}},
                    {{"scale", "1024"}});
  const TensorSet set({file});
  CHECK(names_of(set) == std::vector<std::string>{"a \"b\"", "empty", "c"});
  CHECK(numbers_of<std::uint16_t>(set.tensors()[0]) == six_halves);
  CHECK(numbers_of<float>(set.tensors()[2]) == six);
  CHECK(set.metadata().at(0).second == "1024");
  const std::string bytes = test::content_of(file);
  CHECK(static_cast<unsigned char>(bytes[0]) % 8 == 0);
  CHECK(
      bytes.find("{\"__metadata__\":{\"scale\":\"1024\"},\"a \\\"b\\\"\":{\"dtype\":\"F16\",\"shape\":[2,3],"
                 "\"data_offsets\":[0,12]}") == 8);
  CHECK_THROWS_WITH(write_safetensors(directory / "none" / "w.safetensors", {}),
                    doctest::Contains("cannot be written"));
  CHECK(std::distance(std::filesystem::directory_iterator(directory / "."), {}) == 1);
}

TEST_CASE("tensor_files: folders, shards and several paths give names that tell tensors apart") {
  const TemporaryDirectory directory;
  const auto shard = [](const std::string& name) {
    return test::safetensors_file(
        "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", std::string(4, '\0'));
  };
  const std::string one = test::npy_file(test::npy_dictionary("<f2", "False", "(1,)"), "\1\2");
  write(directory / "d/b.npy", one);
  write(directory / "d/deep/a.npy", one);
  write(directory / "d/s.safetensors", shard("w"));
  write(directory / "d/notes.txt", "");
  CHECK(names_of(TensorSet({directory / "d"})) == std::vector<std::string>{"b", "deep/a", "s/w"});
  const std::string index = write(directory / "m/x.safetensors.index.json",
                                  R"({"weight_map":{"w":"1.safetensors","v":"2.safetensors"}})");
  write(directory / "m/1.safetensors", shard("w"));
  write(directory / "m/2.safetensors", shard("v"));
  CHECK(names_of(TensorSet({index})) == std::vector<std::string>{"w", "v"});
  CHECK(names_of(TensorSet({directory / "m"})) == std::vector<std::string>{"w", "v"});
  CHECK(names_of(
            TensorSet({directory / "m", (directory / "d/b.npy").string(), directory / "d/s.safetensors"})) ==
        std::vector<std::string>{"m/w", "m/v", "b", "s/w"});
  const std::string again = write(directory / "e/b.npy", one), first = directory / "d/b.npy";
  CHECK(names_of(TensorSet({first, again})) == std::vector<std::string>{first, again});

  TensorSet set({directory / "d"});
  CHECK_THROWS_WITH(set.select("z+"),
                    doctest::Contains("found in none of the 3 names of tensors, such as 'b'"));
  CHECK_THROWS_WITH(set.select("("), doctest::Contains("no regular expression"));
  set.select("^s|a$");
  CHECK(names_of(set) == std::vector<std::string>{"deep/a", "s/w"});
  CHECK_THROWS_WITH(TensorSet({first, again, first}), doctest::Contains("is given twice"));
  CHECK(NamedTensor((directory / "d/s.safetensors:w").string()).tensor().name == "w");
  CHECK_THROWS_WITH(NamedTensor((directory / "d/s.safetensors:v").string()), doctest::Contains("as in '"));
  write(directory / "d/t.safetensors", shard("x:0"));
  CHECK(NamedTensor((directory / "d/t.safetensors:x:0").string()).tensor().name == "x:0");
  CHECK_THROWS_WITH(NamedTensor("none:x:0"), doctest::Contains("'none:x'"));
}

TEST_CASE("tensor_files: what stands in a name selects before it is taken for a regular expression") {
  const TemporaryDirectory directory;
  const std::string one = test::npy_file(test::npy_dictionary("<f2", "False", "(1,)"), "\1\2");
  const std::string file =
      write(directory / "g.npz", test::zip_file({{"['p']['w'].npy", one}, {"['p']['b'].npy", one}}));
  TensorSet set({file});
  set.select("['p']['w']");
  CHECK(names_of(set) == std::vector<std::string>{"['p']['w']"});
  TensorSet both({file});
  both.select("[wb]'\\]$");
  CHECK(both.tensors().size() == 2);
}

TEST_CASE("tensor_files: raw files and arrays of unnamed types are read as told") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "g.bin", test::bytes_of(six_halves));
  const RawLayout halves{.type = type_of_format("binary16")};
  CHECK(NamedTensor(file, halves).tensor().shape == Shape{6});
  CHECK(numbers_of<std::uint16_t>(NamedTensor(file, {.type = halves.type, .shape = Shape{3, 2}}).tensor()) ==
        six_halves);
  CHECK(NamedTensor(file, {.type = type_of_format("e2m1")}).tensor().elements == 24);
  check_refused(file, "is none of .npy, .npz, .safetensors; halflab reads raw numbers with --dtype");
  check_refused(file, "has 12 bytes where the shape (4,) and binary16 want 8",
                {.type = halves.type, .shape = Shape{4}});
  check_refused(write(directory / "w.pt", "PK"), "is a pickle");
  const std::string voids =
      write(directory / "v.npy",
            test::npy_file(test::npy_dictionary("|V2", "False", "(6,)"), test::bytes_of(six_halves)));
  check_refused(voids, "elements of two bytes that name no type");
  CHECK(NamedTensor(voids, {.type = type_of_format("bfloat16")}).tensor().type->format == "bfloat16");
  const std::string bytes =  // as ml_dtypes' float8_e5m2
      write(directory / "f1.npy", test::npy_file(test::npy_dictionary("<f1", "False", "(2,)"), "12"));
  check_refused(bytes, "elements of one byte that name no type");
  CHECK(NamedTensor(bytes, {.type = type_of_format("e5m2")}).tensor().type->format == "e5m2");
}

TEST_CASE(
    "tensor_files: arrays of formats below 8 bits have a byte for each element, as ml_dtypes saves them") {
  const TemporaryDirectory directory;
  const auto bytes_of = [](const StoredTensor& tensor) {
    std::string bytes;
    for (const std::byte byte : read_elements(tensor)) bytes += static_cast<char>(byte);
    return bytes;
  };
  const auto array = [](const std::string& codes) {
    return test::npy_file(test::npy_dictionary("<V1", "False", "(" + std::to_string(codes.size()) + ",)"),
                          codes);
  };
  const RawLayout four{.type = type_of_format("e2m1")}, six_bits{.type = type_of_format("e2m3")};
  // Numbers of float4_e2m1fn and float6_e2m3fn, from 0 to 6, and -6: as numpy.save writes them.
  const std::string fours("\x00\x02\x04\x05\x06\x06\x07\x0f", 8),
      sixes("\x00\x08\x10\x14\x18\x1a\x1c\x3c", 8);
  const std::string of_fours("\x20\x54\x66\xf7", 4), of_sixes("\x00\x02\x51\x98\xc6\xf1", 6);
  for (const bool is_deflated : {false, true}) {
    const auto packed = [&](const std::string& codes, const RawLayout& raw) {
      std::string bytes = array(codes);
      if (is_deflated) bytes = test::zip_file({{"v.npy", bytes, true}});
      const std::string file = write(directory / (is_deflated ? "v.npz" : "v.npy"), bytes);
      const NamedTensor named(file, raw);
      CHECK(named.tensor().elements == codes.size());
      return bytes_of(named.tensor());
    };
    CHECK(packed(fours, four) == of_fours);
    CHECK(packed(fours.substr(0, 7), four) == std::string("\x20\x54\x66\x07", 4));
    CHECK(packed(sixes, six_bits) == of_sixes);
    CHECK(packed("", four) == "");
    CHECK_THROWS_WITH(packed("\x01\x10", four),
                      doctest::Contains("has the byte 0x10 where a code of 4 bits is needed"));
    CHECK_THROWS_WITH(packed("\x3f\xbf", six_bits),
                      doctest::Contains("has the byte 0xbf where a code of 6 bits is needed"));
  }
  check_refused(
      write(directory / "short.npy", test::npy_file(test::npy_dictionary("<V1", "False", "(7,)"), "1234")),
      "has 4 bytes of data where its shape (7,) and type want 7", four);
  // More than a copy at a time holds.
  std::string many;
  for (std::size_t i = 0; i < 5'000'001; ++i) many += static_cast<char>(i % 61);
  const NamedTensor named(write(directory / "many.npy", array(many)), six_bits);
  std::string expected((many.size() * 6 + 7) / 8, '\0');
  for (std::size_t bit = 0; bit < many.size() * 6; ++bit)
    expected[bit / 8] |= static_cast<char>((many[bit / 6] >> bit % 6 & 1) << bit % 8);
  CHECK(bytes_of(named.tensor()) == expected);
  CHECK(pieces_of(
            NamedTensor(write(directory / "long.npy", array(std::string(40'000'000, '\3'))), four).tensor())
            .size() == 2);
}

TEST_CASE("tensor_files: .npy files that are damaged are refused before anything is allocated") {
  const TemporaryDirectory directory;
  const std::string good = test::npy_dictionary("<f2", "False", "(2, 3)"), data = test::bytes_of(six_halves);
  for (const auto& [bytes, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "does not begin with"},
           {"PK\x03\x04 not one array", "does not begin with"},
           {"\x93NUMPY", "cut off in its header"},
           {test::npy_file(good, data).substr(0, 40), "cut off in its header"},
           {test::npy_file(good, data, 4), "has version 4; allowed: 1.0, 2.0, 3.0"},
           {test::npy_file(good, data.substr(1)),
            "has 11 bytes of data where its shape (2, 3) and type want 12"},
           {test::npy_file(good, data + "x"), "has 13 bytes of data"},
           {test::npy_file(test::npy_dictionary("|O", "False", "(2, 3)"), data), "Python objects"},
           {test::npy_file(test::npy_dictionary("<U3", "False", "(2, 3)"), data), "type '<U3'; allowed: f2"},
           {test::npy_file("{'descr': [('a', '<f2')], 'fortran_order': False, 'shape': (6,)}", data),
            "several fields"},
           {test::npy_file(test::npy_dictionary("<f2", "Maybe", "(2, 3)"), data), "neither True nor False"},
           {test::npy_file(test::npy_dictionary("<f2", "False", "(-2, 3)"), data), "no integer"},
           {test::npy_file(test::npy_dictionary("<f2", "False", "(2, 3"), data), "no integer"},
           {test::npy_file(test::npy_dictionary("<f2", "False", "(1152921504606846976,)"), data),
            "fewer than 2^60"},
           {test::npy_file(test::npy_dictionary("<f2", "False", "(4294967296, 4294967296)"), data),
            "fewer than 2^60"},
           {test::npy_file(test::npy_dictionary("<f2", "False", "(1073741824, 1073741823)"), data),
            "has 12 bytes of data"},
           {test::npy_file(test::npy_dictionary("<f2", "False", "(6, " + repeated("1, ", 64) + ")"), data),
            "has 65 dimensions; at most 64 are allowed"},
           {test::npy_file("{'descr': '<f2', 'fortran_order': False}", data),
            "needs descr, fortran_order and shape"},
           {std::string("\x93NUMPY\2\0", 8) + test::little_endian(0xffffffff, 4),
            "header of 4294967295 bytes"},
       })
    check_refused(write(directory / "bad.npy", bytes), message);
  check_refused((directory / "none.npy").string(), "cannot be read");
}

TEST_CASE("tensor_files: .npz files that are damaged are refused") {
  const TemporaryDirectory directory;
  const std::string array = test::npy_file(test::npy_dictionary("<f4", "False", "(6,)"), test::bytes_of(six));
  const std::string good = test::zip_file({{"a.npy", array, true}});
  const auto changed = [&](std::size_t from_end, char value) {
    std::string bytes = good;
    bytes[bytes.size() - from_end] = value;
    return bytes;
  };
  const std::string long_array =
      test::npy_file(test::npy_dictionary("<f4", "False", "(5,)"), test::bytes_of(six));
  const auto flipped = [&](bool is_deflated) {  // a bit of the checksum, which is as good as one of the data
    std::string bytes = test::zip_file({{"a.npy", array, is_deflated}});
    bytes[bytes.size() - 22 - 5 - 46 + 16] ^= 1;
    return bytes;
  };
  std::string damaged = good;
  for (std::size_t i = 120; i < 140; ++i) damaged[i] = '\xff';
  for (const auto& [bytes, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "cut off"},
           {good.substr(0, good.size() - 1), "cut off"},
           {changed(12, '\x7f'), "cannot name 127 members"},  // hence more than the directory has bytes for
           {changed(4, '\x7f'), "are not all there"},
           {changed(22 + 5 + 46 - 10, 99), "method 99"},
           {changed(22 + 5 + 4, 1), "does not begin where"},
           {damaged, "damaged"},
           {test::zip_file({{"a.npy", long_array, true}}), "want"},
           {flipped(false), "a.npy' is damaged: its checksum is that of other bytes"},
           {flipped(true), "a.npy' is damaged: its checksum is that of other bytes"},
           {test::zip_file({{"a.npy", "no array"}}), "does not begin with"},
       })
    check_refused(write(directory / "bad.npz", bytes), message);
}

TEST_CASE("tensor_files: safetensors that are damaged are refused before anything is allocated") {
  const TemporaryDirectory directory;
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::string data(16, '\0');
  for (const auto& [header, message] : std::vector<std::pair<std::string, std::string>>{
           {"[1]", "no JSON object"},
           {"{\"w\"", "no JSON object"},
           {std::string(200, '[') + std::string(200, ']'), "no JSON object"},
           {"{\"w\":5}", "has a bad header at 'w'"},
           {"{" + entry("F99", "[4]", "[0,16]") + "}", "unknown dtype 'F99'"},
           {"{" + entry("F32", "[-4]", "[0,16]") + "}", "has a bad header at 'w'"},
           {"{" + entry("F32", "[4.0]", "[0,16]") + "}", "has a bad header at 'w'"},
           {"{" + entry("F32", "[3]", "[0,16]") + "}",
            "data_offsets [0, 16] where its shape (3,) and F32 want 12"},
           {"{" + entry("F32", "[4]", "[16,0]") + "}", "data_offsets [16, 0]"},
           {"{" + entry("F32", "[4]", "[4,20]") + "}", "cut off"},
           {"{" + entry("F32", "[1152921504606846976]", "[0,16]") + "}", "fewer than 2^60"},
           {"{" + entry("F32", "[4" + repeated(",1", 64) + "]", "[0,16]") + "}", "has 65 dimensions"},
           {"{" + entry("F4", "[3]", "[0,2]") + "}", "fill no whole bytes"},
           {"{" + entry("F32", "[4]", "[0,16]") +
                ",\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}",
            "overlaps"},
       })
    check_refused(write(directory / "bad.safetensors", test::safetensors_file(header, data)), message);
  check_refused(write(directory / "bad.safetensors", "1234567"), "at least 8 are needed");
  check_refused(write(directory / "bad.safetensors", test::little_endian(~std::uint64_t{0}, 8) + data),
                "cut off");
  check_refused(write(directory / "i.safetensors.index.json", "{}"), "no object 'weight_map'");
  check_refused(write(directory / "i.safetensors.index.json", R"({"weight_map":{"w":"../up"}})"),
                "a file beside the index");
  check_refused((directory / "empty").string(), "cannot be read");
  std::filesystem::create_directory(directory / "empty");
  check_refused((directory / "empty").string(), "has no .npy, .npz or .safetensors file");
  std::filesystem::create_directory(directory / "half");
  write(directory / "half/m.safetensors.index.json",
        R"({"weight_map":{"v":"m-1.safetensors","w":"m-2.safetensors"}})");
  write(directory / "half/m-1.safetensors",
        test::safetensors_file("{" + entry("F32", "[4]", "[0,16]") + "}", data));
  check_refused((directory / "half").string(), "m-2.safetensors' cannot be read");
  // An index that puts a tensor into a shard without it: asked for by itself, and in its folder.
  const std::string index = write(directory / "less/m.safetensors.index.json",
                                  R"({"weight_map":{"v":"m-1.safetensors","w":"m-1.safetensors"}})");
  write(directory / "less/m-1.safetensors",
        test::safetensors_file("{" + entry("F32", "[4]", "[0,16]") + "}", data));
  const std::string missing =
      "m.safetensors.index.json' puts tensor 'v' into 'm-1.safetensors', which does not hold it";
  check_refused(index, missing);
  CHECK_THROWS_WITH(TensorSet({directory / "less"}), doctest::Contains(missing.c_str()));
  write(index, R"({"weight_map":{"w":"m-1.bin"}})");
  write(directory / "less/m-1.bin", data);
  CHECK_THROWS_WITH(TensorSet({directory / "less"}), doctest::Contains("puts tensor 'w' into 'm-1.bin'"));
}

TEST_CASE(
    "tensor_files: an entry of a folder that cannot be read stops it where its name is that of tensors") {
  const TemporaryDirectory directory;
  const std::string one = test::npy_file(test::npy_dictionary("<f2", "False", "(1,)"), "\1\2");
  write(directory / "t/a.npy", one);
  const auto link = [&](const std::string& name, const std::string& target) {
    std::filesystem::create_symlink(target, directory / "t" / name);
  };
  link("loop", "loop");
  link("gone", "nothing");
  link("b.npy", "a.npy");
  std::filesystem::create_directory(directory / "t/folder.npy");
  CHECK(names_of(TensorSet({directory / "t"})) == std::vector<std::string>{"a", "b"});
  for (const std::string name : {"loop.npy", "loop.safetensors.index.json", "loop.npz"}) {
    link(name, name);
    CHECK_THROWS_WITH(TensorSet({directory / "t"}), ("file '" + (directory / "t" / name).string() +
                                                     "' cannot be read (Too many levels of symbolic links)")
                                                        .c_str());
    std::filesystem::remove(directory / "t" / name);
  }
  link("gone.npy", "nothing");
  CHECK_THROWS_WITH(TensorSet({directory / "t"}),
                    doctest::Contains("gone.npy' cannot be read (No such file"));
  check_refused((directory / "t/loop").string(), "cannot be read (Too many levels");
  CHECK_THROWS_WITH(NamedTensor((directory / "t/loop").string()), doctest::Contains("cannot be read"));
}

TEST_CASE("tensor_files: elements that lie misaligned, packed or beyond one piece arrive in order") {
  const TemporaryDirectory directory;
  std::vector<float> many(9'000'001);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  std::string header = R"({"w":{"dtype":"F32","shape":[9000001],"data_offsets":[0,36000004]}})";
  for (const std::size_t padding : {std::size_t{0}, std::size_t{1}}) {
    header.resize((header.size() + 7) / 8 * 8 + padding, ' ');
    const NamedTensor named(
        write(directory / "w.safetensors", test::safetensors_file(header, test::bytes_of(many))));
    CHECK(pieces_of(named.tensor()).size() == 3);
    std::uint64_t expected = 0;
    bool is_right = true;
    for (const Piece& piece : pieces_of(named.tensor())) {
      read_piece(piece, [&](Bytes elements, std::uint64_t first) {
        is_right =
            is_right && first == expected && reinterpret_cast<std::uintptr_t>(elements.data()) % 4 == 0;
        const auto* const values = reinterpret_cast<const float*>(elements.data());
        is_right = is_right && std::equal(values, values + elements.size() / 4,
                                          many.begin() + static_cast<std::ptrdiff_t>(first));
        expected += elements.size() / 4;
      });
    }
    CHECK(is_right);
    CHECK(expected == many.size());
  }
  const std::string six_bits = write(directory / "w.bin", std::string(30'000'000, 'x'));
  const NamedTensor packed(six_bits, {.type = type_of_format("e3m2")});
  CHECK(packed.tensor().elements == 40'000'000);
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces_of(packed.tensor())) {
    CHECK(piece.first % 8 == 0);
    read_piece(piece, [&](Bytes elements, std::uint64_t first) {
      CHECK(first * 6 / 8 == bytes);
      bytes += elements.size();
    });
  }
  CHECK(bytes == 30'000'000);
}
