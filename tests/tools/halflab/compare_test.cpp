#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "fp16/bulk.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"

namespace {

using experiments::Json;
using test::CommandRun;
using test::run_halflab;
using test::TemporaryDirectory;

struct Array {
  std::string type = "<f4";
  std::string shape;
  std::string order = "False";
};

template <class Number>
std::string npy(const std::vector<Number>& values, const Array& array) {
  const std::string shape = array.shape.empty() ? "(" + std::to_string(values.size()) + ",)" : array.shape;
  return test::npy_file(test::npy_dictionary(array.type, array.order, shape), test::bytes_of(values));
}

template <class Number>
std::string write(const std::filesystem::path& file, const std::vector<Number>& values,
                  const Array& array = {}) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << npy(values, array);
  return file.string();
}

std::vector<float> normal(std::size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

template <const fp16::Format& F>
std::vector<float> rounded(const std::vector<float>& values, fp16::Rounding rounding) {
  std::vector<float> result;
  for (const float value : values)
    result.push_back(
        static_cast<float>(fp16::decode<F>(fp16::encode<F>(value, {.rounding = rounding}).bits)));
  return result;
}

std::vector<float> transposed(const std::vector<float>& values, std::size_t rows) {
  const std::size_t columns = values.size() / rows;
  std::vector<float> result;
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows; ++i) result.push_back(values[i * columns + j]);
  }
  return result;
}

std::vector<std::uint32_t> swapped(const std::vector<float>& values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(__builtin_bswap32(std::bit_cast<std::uint32_t>(value)));
  return result;
}

/// The class, after a check that it stands in the first line, too, and fits the exit code.
std::string class_of(const std::vector<std::string>& words) {
  std::vector<std::string> all{"compare"};
  all.insert(all.end(), words.begin(), words.end());
  const CommandRun text = run_halflab(all);
  all.push_back("--json");
  const CommandRun json = run_halflab(all);
  const std::string found = json.json().at("summary").at("class").string();
  CHECK(text.out.starts_with(found + ":"));
  CHECK(text.exit_code == (found == "different" ? 1 : 0));
  CHECK(json.exit_code == text.exit_code);
  return found;
}

Json summary_of(const std::vector<std::string>& words) {
  std::vector<std::string> all{"compare", "--json"};
  all.insert(all.end(), words.begin(), words.end());
  return run_halflab(all).json().at("summary");
}

}  // namespace

TEST_CASE("halflab compare: equal bits whatever the order, the byte order and the packing of the files") {
  const TemporaryDirectory directory;
  const std::vector<float> values = normal(70'000 * 3);
  const std::string shape = "(70000, 3)";
  const std::vector<float> columns = transposed(values, 70'000);
  const std::vector<std::string> files{
      write(directory / "c.npy", values, {.shape = shape}),
      write(directory / "f.npy", columns, {.shape = shape, .order = "True"}),
      write(directory / "b.npy", swapped(values), {.type = ">f4", .shape = shape}),
      write(directory / "fb.npy", swapped(columns), {.type = ">f4", .shape = shape, .order = "True"}),
      directory / "z.npz",
      directory / "zf.npz"};
  std::ofstream(files[4], std::ios::binary)
      << test::zip_file({{"c.npy", npy(values, {.shape = shape}), true}});
  std::ofstream(files[5], std::ios::binary)
      << test::zip_file({{"c.npy", npy(swapped(columns), {">f4", shape, "True"}), true}});
  for (const std::string& a : files) {
    for (const std::string& b : files) {
      INFO(a << " " << b);
      CHECK(class_of({a, b}) == "equal");
    }
  }
}

TEST_CASE("halflab compare: the first difference is the first by index, in every order of elements") {
  const TemporaryDirectory directory;
  std::vector<float> a(12, 1.0f), b = a;
  b[5] = 1.5f;   // (1, 1)
  b[10] = 2.0f;  // (2, 2), in Fortran order behind the next
  b[4] = 0.5f;   // (1, 0)
  const std::string shape = "(3, 4)";
  const std::string c = write(directory / "c.npy", a, {.shape = shape}),
                    f = write(directory / "f.npy", transposed(a, 3), {.shape = shape, .order = "True"});
  for (const std::string& other :
       {write(directory / "d.npy", b, {.shape = shape}),
        write(directory / "g.npy", transposed(b, 3), {.shape = shape, .order = "True"})}) {
    for (const std::string& file : {c, f}) {
      const CommandRun run = run_halflab({"compare", file, other, "--json"});
      const Json differences = run.json().at("tables").at("differences");
      REQUIRE(differences.elements().size() == 3);
      CHECK(differences.at(0).at("index").string() == "(1, 0)");
      CHECK(differences.at(1).at("index").string() == "(1, 1)");
      CHECK(differences.at(2).at("index").string() == "(2, 2)");
      CHECK(differences.at(0).at("code_b").string() == "0x3f000000");
      CHECK(differences.at(0).at("b").string() == "0.5");
    }
  }
}

TEST_CASE("halflab compare: with --ulp the first difference is the first that is farther apart") {
  const TemporaryDirectory directory;
  const std::vector<float> a(1000, 1.0f);
  std::vector<float> b(1000, std::nextafter(1.0f, 2.0f));
  for (const std::string step : {"step_1", "step_10"}) {
    write(directory / "a" / (step + ".npy"), a);
    write(directory / "b" / (step + ".npy"), b);
    b[777] = 1.5f;
  }
  const auto out = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all{"compare", directory / "a", directory / "b"};
    all.insert(all.end(), words.begin(), words.end());
    return run_halflab(all).out;
  };
  CHECK(out({}).find("The first difference is in step_1 at (0,): 1 (") != std::string::npos);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--ulp", "1"},
                                                {"--as", "binary16"},
                                                {"--as", "binary64", "--ulp", "536870912"}}) {
    INFO(words.back());
    CHECK(out(words).find("The first difference beyond that is in step_10 at (777,): 1 (") !=
          std::string::npos);
  }
  CHECK(out({"--ulp", "4194304"}).find("The first difference") == std::string::npos);
}

TEST_CASE("halflab compare: distances are counted in steps of the format of comparison") {
  const TemporaryDirectory directory;
  const std::vector<std::uint16_t> a{0x3c00, 0x3c00, 0x8001, 0x7bff, 0x0000, 0x3c00},
      b{0x3c00, 0x3c01, 0x0001, 0x7c00, 0x8000, 0x3c07};
  const std::string x = write(directory / "a.npy", a, {.type = "<f2"}),
                    y = write(directory / "b.npy", b, {.type = "<f2"});
  CHECK(class_of({x, x}) == "equal");
  CHECK(class_of({x, y}) == "different");
  CHECK(class_of({x, y, "--ulp", "6"}) == "different");
  CHECK(class_of({x, y, "--ulp", "7"}) == "within");
  const CommandRun run = run_halflab({"compare", x, y, "--ulp", "1", "--json"});
  const Json summary = run.json().at("summary");
  CHECK(summary.at("differing").unsigned_integer() == 5);
  CHECK(summary.at("beyond").unsigned_integer() == 2);  // -2^-24 and 2^-24 are two steps apart
  CHECK(summary.at("most_ulp").unsigned_integer() == 7);
  CHECK(summary.at("zero_signs").unsigned_integer() == 1);
  CHECK(summary.at("one_infinite").unsigned_integer() == 1);
  std::vector<std::uint64_t> bins;
  const Json distances = run.json().at("tables").at("distances");
  for (const Json& row : distances.elements()) {
    if (row.at("tensor").string() == "all tensors") bins.push_back(row.at("values").unsigned_integer());
  }
  CHECK(bins == std::vector<std::uint64_t>{2, 2, 1, 1});
}

TEST_CASE("halflab compare: NaNs and zeros are equal in bits, or as numbers where numbers are asked for") {
  const TemporaryDirectory directory;
  const std::string x = write<std::uint16_t>(directory / "a.npy", {0x7e00, 0x0000}, {.type = "<f2"}),
                    y = write<std::uint16_t>(directory / "b.npy", {0x7e01, 0x8000}, {.type = "<f2"}),
                    z = write<std::uint16_t>(directory / "c.npy", {0x3c00, 0x0000}, {.type = "<f2"});
  CHECK(class_of({x, x}) == "equal");
  CHECK(class_of({x, y}) == "different");
  CHECK(class_of({x, y, "--ulp", "0"}) == "within");
  CHECK(class_of({x, y, "--as", "binary16"}) == "within");
  CHECK(class_of({x, z, "--ulp", "60000"}) == "different");
  CHECK(summary_of({x, z}).at("one_nan").unsigned_integer() == 1);
  CHECK(class_of({write<float>(directory / "n.npy", {NAN, 0}), x, "--ulp", "0"}) == "within");
}

TEST_CASE(
    "halflab compare: a NaN is no number, nor the other infinity, in formats without NaN or infinity "
    "either") {
  const TemporaryDirectory directory;
  const std::string large = write<float>(directory / "large.npy", {1000, 2000, 1}),
                    nans = write<float>(directory / "nans.npy", {NAN, NAN, 1}),
                    infinite = write<float>(directory / "infinite.npy", {INFINITY, INFINITY, 1}),
                    negative = write<float>(directory / "negative.npy", {-INFINITY, -2000, 1});
  for (const char* const format : {"e4m3", "e4m3_fnuz", "e2m1", "binary16"}) {
    INFO(format);
    CHECK(class_of({large, nans, "--as", format}) == "different");
    CHECK(class_of({large, negative, "--as", format}) == "different");
    CHECK(class_of({large, nans, "--as", format, "--ulp", "60000"}) == "different");
    CHECK(class_of({large, infinite, "--as", format}) ==
          (std::string(format) == "binary16" ? "different" : "within"));
    const Json summary = summary_of({large, nans, "--as", format});
    CHECK(summary.at("beyond").unsigned_integer() == 2);
    CHECK(summary.at("one_nan").unsigned_integer() == 2);
  }
  const std::string text = run_halflab({"compare", large, nans, "--as", "e4m3"}).out;
  CHECK(text.starts_with("different: at 2 places one side alone is a NaN"));
}

TEST_CASE("halflab compare: where NaNs differ in bits beside the signs of zeros, both are told") {
  const TemporaryDirectory directory;
  const std::string x = write<std::uint16_t>(directory / "a.npy", {0x7e00, 0x0000, 0x3c00}, {.type = "<f2"}),
                    y = write<std::uint16_t>(directory / "b.npy", {0x7e01, 0x8000, 0x3c00}, {.type = "<f2"});
  CHECK(summary_of({x, y}).at("explanation").string() ==
        "only the signs of zeros and the bits of NaNs differ");
}

TEST_CASE("halflab compare: says which rounding one side went through, and none where none did") {
  const TemporaryDirectory directory;
  std::vector<float> values = normal(200'000);
  values[7] = NAN;
  values[8] = -0.0f;
  const std::string plain = write(directory / "x.npy", values);
  const auto explanation = [&](const std::vector<float>& other) {
    const std::string file = write(directory / "y.npy", other);
    CHECK(class_of({plain, file}) == "different");
    return summary_of({file, plain}).at("explanation").string();
  };
  using enum fp16::Rounding;
  CHECK(explanation(rounded<fp16::binary16>(values, nearest_even)) == "A is B rounded to binary16");
  CHECK(explanation(rounded<fp16::bfloat16>(values, nearest_even)) == "A is B rounded to bfloat16");
  CHECK(explanation(rounded<fp16::tf32>(values, nearest_even)) == "A is B rounded to tf32");
  CHECK(explanation(rounded<fp16::bfloat16>(values, toward_zero)) ==
        "A is B cut off (rounded toward zero) to bfloat16");
  std::vector<float> planted = rounded<fp16::bfloat16>(values, nearest_even);
  planted[199'999] = std::nextafter(planted[199'999], 9.0f);
  CHECK(explanation(planted) == "");
  std::vector<float> near = values;
  for (float& value : near) value = std::fabs(value) > 0.01f ? std::nextafter(value, 0.0f) : value;
  CHECK(explanation(near) == "");
  std::vector<float> flushed = values;
  for (std::size_t i = 0; i < 100; ++i) values[i * 50] = 0x1p-140f, flushed[i * 50] = 0;
  write(directory / "x.npy", values);
  CHECK(explanation(flushed) == "A has zeros where B has subnormal numbers");
}

TEST_CASE("halflab compare: rounds both with --as, also files of other formats") {
  const TemporaryDirectory directory;
  const std::vector<float> values = normal(100'000);
  std::vector<std::uint16_t> halves(values.size());
  fp16::float_to_half(values, halves);
  std::vector<double> doubles(values.begin(), values.end());
  const std::string f = write(directory / "f.npy", values),
                    h = write(directory / "h.npy", halves, {.type = "<f2"}),
                    d = write(directory / "d.npy", doubles, {.type = "<f8"});
  CHECK(class_of({f, h}) == "different");
  CHECK(class_of({f, d}) == "different");
  CHECK(class_of({f, d, "--ulp", "0"}) == "within");
  CHECK(class_of({f, h, "--as", "binary16"}) == "within");
  CHECK(class_of({d, h, "--as", "F16"}) == "within");
  CHECK(class_of({h, f, "--ulp", "0"}) == "within");  // the coarser of the two formats
  CHECK(class_of({f, h, "--as", "binary32"}) == "different");
  CHECK(class_of({f, h, "--as", "binary32", "--ulp", "8000000"}) == "within");
  CHECK(summary_of({h, d}).at("explanation").string() == "A is B rounded to binary16");
  doubles[77] = values[77] + 1e-12;
  write(directory / "d.npy", doubles, {.type = "<f8"});
  CHECK(summary_of({f, d}).at("explanation").string() == "A is B rounded to binary32");
}

TEST_CASE(
    "halflab compare: a format that a file is stored in explains before wider ones, and equal ones are all "
    "named") {
  const TemporaryDirectory directory;
  const std::vector<float> values = {0.1f, 1.7f, -33.3f};
  std::vector<std::uint16_t> halves(values.size());
  fp16::float_to_half(values, halves);
  const std::string f = write(directory / "f.npy", values),
                    h = write(directory / "h.npy", halves, {.type = "<f2"}),
                    r = write(directory / "r.npy",
                              rounded<fp16::binary16>(values, fp16::Rounding::nearest_even));
  CHECK(summary_of({f, h}).at("explanation").string() == "B is A rounded to binary16");
  CHECK(summary_of({h, f}).at("explanation").string() == "A is B rounded to binary16");
  CHECK(summary_of({f, r}).at("explanation").string() == "B is A rounded to tf32 or binary16");
}

TEST_CASE(
    "halflab compare: the first difference is that of the first step, whose numbers are read as numbers") {
  const TemporaryDirectory directory;
  for (const int step : {0, 1, 2, 9, 10, 11, 100}) {
    const std::string name = "step_" + std::to_string(step) + ".npy";
    write<float>(directory / "a" / name, {1});
    write<float>(directory / "b" / name, {step < 9 ? 1.0f : 2.0f});
  }
  const std::string out = run_halflab({"compare", directory / "a", directory / "b"}).out;
  INFO(out);
  CHECK(out.find("The first difference is in step_9 at") != std::string::npos);
}

TEST_CASE("halflab compare: tensors are matched by name, and names on one side are listed") {
  const TemporaryDirectory directory;
  for (const std::string side : {"a", "b"}) {
    write<float>(directory / side / "w.npy", {1, 2});
    write<float>(directory / side / "layer/v.npy", {3, 4});
  }
  const std::string a = directory / "a", b = directory / "b";
  CHECK(class_of({a, b}) == "equal");
  write<float>(directory / "b/layer/v.npy", {3, 5});
  CHECK(class_of({a, b}) == "different");
  CHECK(class_of({a, b, "--select", "^w$"}) == "equal");
  write<float>(directory / "b/layer/v.npy", {3, 4, 5});
  CHECK(run_halflab({"compare", a, b}).out.find("different shapes: layer/v (2,) and (3,)") !=
        std::string::npos);
  std::filesystem::remove(directory / "b/layer/v.npy");
  write<float>(directory / "b/u.npy", {});
  const CommandRun run = run_halflab({"compare", a, b});
  CHECK(run.exit_code == 1);
  CHECK(run.out.starts_with("different: 1 tensor in A alone: layer/v; 1 tensor in B alone: u; all 2 values"));
  CHECK(run.err == "halflab compare: check failed: '" + a + "' and '" + b + "' are different\n");
  CHECK(class_of({directory / "a/w.npy", directory / "a/layer/v.npy"}) == "different");
  CHECK(class_of({directory / "b/u.npy", directory / "b/u.npy"}) == "equal");
}

TEST_CASE("halflab compare: tensors that are no floating-point numbers must have the same bits") {
  const TemporaryDirectory directory;
  for (const std::string side : {"a", "b"}) {
    write<float>(directory / side / "w.npy", {1, 2});
    write<std::int64_t>(directory / side / "step.npy", {100}, {.type = "<i8"});
  }
  const std::string a = directory / "a", b = directory / "b";
  CHECK(class_of({a, b}) == "equal");
  write<std::int64_t>(directory / "b/step.npy", {101}, {.type = "<i8"});
  CHECK(class_of({a, b, "--ulp", "5"}) == "different");
  CHECK(run_halflab({"compare", a, b}).out.find("different, though no floating-point numbers: step") !=
        std::string::npos);
  CHECK(class_of({a, b, "--select", "w"}) == "equal");
  write<std::int64_t>(directory / "copy.npy", {101}, {.type = "<i8"});  // one tensor each, of two names
  CHECK(run_halflab({"compare", directory / "copy.npy", directory / "b/step.npy"})
            .out.starts_with("equal: A and B have the same bits, 1 value."));
}

TEST_CASE("halflab compare: tensors of two names are compared where each side holds one in all") {
  const TemporaryDirectory directory;
  const auto archive = [&](const std::string& name, const std::vector<test::ZipMember>& members) {
    std::ofstream(directory / name, std::ios::binary) << test::zip_file(members);
    return (directory / name).string();
  };
  const std::string one = npy<float>({1, 2}, {}), two = npy<float>({2, 3}, {}),
                    step = npy<std::int64_t>({7}, {.type = "<i8"});
  const std::string a = archive("a.npz", {{"w.npy", one}, {"step.npy", step}}),
                    b = archive("b.npz", {{"v.npy", one}, {"count.npy", step}});
  CHECK(class_of({a, b}) == "different");
  CHECK(run_halflab({"compare", a, b})
            .out.starts_with("different: 2 tensors in A alone: w, step; 2 tensors in B alone: v, count."));
  CHECK(class_of({archive("w.npz", {{"w.npy", one}}), archive("v.npz", {{"v.npy", one}})}) == "equal");
  const std::string e = archive("e.npz", {{"a.npy", one}, {"b.npy", one}}),
                    f = archive("f.npz", {{"a.npy", two}, {"c.npy", one}});
  CHECK(run_halflab({"compare", e, f, "--select", "[bc]"})
            .out.starts_with("different: 1 tensor in A alone: b; 1 tensor in B alone: c."));
  CHECK(class_of({e, archive("g.npz", {{"a.npy", two}, {"b.npy", one}}), "--select", "b"}) == "equal");
}

TEST_CASE("halflab compare: a number and an infinity are infinitely far apart, as two infinities are") {
  const TemporaryDirectory directory;
  const auto largest = [&](const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
    const std::string x = write(directory / "a.npy", a, {.type = "<f2"}),
                      y = write(directory / "b.npy", b, {.type = "<f2"});
    CHECK(summary_of({x, y}).at("largest_difference") == summary_of({y, x}).at("largest_difference"));
    return summary_of({x, y}).at("largest_difference").to_text();
  };
  const std::string infinite = "\"inf\"";
  CHECK(largest({0x7c00, 0x3c00}, {0x7bff, 0x4000}) == infinite);
  CHECK(largest({0xfc00}, {0x7c00}) == infinite);
  CHECK(largest({0x7c00, 0x3c00}, {0x7c00, 0x4000}) == "1.0");
  CHECK(largest({0x7e00, 0x3c00}, {0x7c00, 0x4000}) == "1.0");  // a NaN is no distance away
  const std::string x = write<float>(directory / "a.npy", {INFINITY}),
                    y = write<double>(directory / "b.npy", {65504}, {.type = "<f8"});
  CHECK(summary_of({x, y}).at("largest_difference").to_text() == infinite);
}

TEST_CASE("halflab compare: packed codes") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "a.bin", std::ios::binary) << std::string("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
  std::ofstream(directory / "b.bin", std::ios::binary) << std::string("\x10\x32\x54\x76\x98\xba\xdc\xff", 8);
  const std::vector<std::string> words{directory / "a.bin", directory / "b.bin", "--dtype", "F4"};
  CHECK(class_of(words) == "different");
  const Json summary = summary_of(words);
  CHECK(summary.at("values").unsigned_integer() == 16);
  CHECK(summary.at("differing").unsigned_integer() == 1);
  CHECK(summary.at("most_ulp").unsigned_integer() == 1);
}

TEST_CASE(
    "halflab compare: codes of fewer than 8 bits in arrays with a byte each, in every order and packing") {
  const TemporaryDirectory directory;
  std::vector<std::uint8_t> codes;
  for (int i = 0; i < 300 * 31; ++i) codes.push_back(static_cast<std::uint8_t>(i * 7 % 64));
  std::vector<std::uint8_t> columns;
  for (int j = 0; j < 31; ++j) {
    for (int i = 0; i < 300; ++i) columns.push_back(codes[static_cast<std::size_t>(i * 31 + j)]);
  }
  const Array rows{"|V1", "(300, 31)", "False"}, fortran{"|V1", "(300, 31)", "True"};
  std::vector<std::string> files{write(directory / "c.npy", codes, rows),
                                 write(directory / "f.npy", columns, fortran), directory / "c.npz",
                                 directory / "f.npz"};
  std::ofstream(files[2], std::ios::binary) << test::zip_file({{"a.npy", npy(codes, rows), true}});
  std::ofstream(files[3], std::ios::binary) << test::zip_file({{"a.npy", npy(columns, fortran), true}});
  for (const std::string format : {"e3m2", "e2m3"}) {
    for (const std::string& a : files) {
      for (const std::string& b : files) CHECK(class_of({a, b, "--dtype", format}) == "equal");
    }
  }
  codes[31 * 5 + 4] ^= 32;  // the sign
  const std::string other = write(directory / "d.npy", codes, rows);
  for (const std::string& a : files) {
    const Json json = run_halflab({"compare", a, other, "--dtype", "e2m3", "--json"}).json();
    CHECK(json.at("summary").at("differing").unsigned_integer() == 1);
    CHECK(json.at("tables").at("differences").at(0).at("index").string() == "(5, 4)");
  }
}

TEST_CASE(
    "halflab compare: results do not depend on the threads, and --out keeps tables, figures and a page") {
  const TemporaryDirectory directory;
  std::vector<float> values = normal(9'000'001), others = values;
  for (std::size_t i = 0; i < values.size(); i += 1000) others[i] = std::nextafter(values[i], 0.0f);
  std::filesystem::create_directory(directory / "in");
  const std::string a = write(directory / "in/a.npy", values), b = write(directory / "in/b.npy", others);
  const std::string one = run_halflab({"compare", a, b, "--json", "--threads", "1"}).out;
  CHECK(run_halflab({"compare", a, b, "--json", "--threads", "5"}).out == one);
  CHECK(test::contents_of(directory / "in").size() == 2);
  const CommandRun run = run_halflab({"compare", a, b, "--out", directory / "out"});
  CHECK(run.exit_code == 1);
  CHECK(run.out == test::content_of(directory / "out/verdict.txt"));
  for (const char* const name : {"manifest.json", "summary.json", "tensors.csv", "distances.csv",
                                 "differences.csv", "explanations.csv", "distances.gp", "report.html"})
    CHECK(std::filesystem::exists(directory / "out" / name));
}

TEST_CASE("halflab compare: bad input is one line and exit code 2") {
  const TemporaryDirectory directory;
  const std::string file = write<float>(directory / "g.npy", {1, 2}), empty = directory / "empty.npz";
  std::ofstream(empty, std::ios::binary) << test::zip_file({});
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "PATH"},
           {{file}, "PATH"},
           {{file, file, file}, "compares two files or folders, not 3"},
           {{file, "none.npy"}, "file 'none.npy' cannot be read"},
           {{file}, "PATH: 1 is given; must be at least 2"},
           {{file, file, "--as", "float17"}, "--as: unknown format 'float17'"},
           {{file, file, "--as", "e8m0"}, "--as: e8m0 has no zero"},
           {{file, file, "--ulp", "-1"}, "--ulp"},
           {{file, file, "--select", "weights?"}, "is found in none"},
           {{file, file, "--dtype", "binary32", "--shape", "7,9"}, "--shape: no raw file is read"},
           {{empty, empty}, "empty.npz' holds no tensor, and neither does '"}}) {
    std::vector<std::string> all{"compare"};
    all.insert(all.end(), words.begin(), words.end());
    test::check_refused(all, message);
  }
}
