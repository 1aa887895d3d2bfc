#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/half_functions.h"
#include "fp16/math.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tests/tools/halflab/trial.h"

using namespace test;
using experiments::Json;

TEST_CASE("halflab validate: right kernels are equal") {
  CHECK(Trial("tanh")
            .validate([](const Operands& x) { return fp16::math::tanh(x[0], {}).bits; })
            .at("class")
            .string() == "equal");
  // Floats hold sums of halves exactly enough; x86's NaNs are what add gives.
  CHECK(Trial("add", {"--shard", "7/1000"})
            .validate([](const Operands& x) { return as_half(as_float(x[0]) + as_float(x[1])); },
                      {"--nan", "any"})
            .at("class")
            .string() == "equal");
  const Json truncated = Trial("sqrt").validate(
      [](const Operands& x) {
        return fp16::sqrt<fp16::binary16>(x[0], {.rounding = fp16::Rounding::toward_zero}).bits;
      },
      {"--rounding", "toward_zero"});
  CHECK(truncated.at("class").string() == "equal");
  CHECK(truncated.at("results").unsigned_integer() == 65536);
}

TEST_CASE("halflab validate: an approximation is within so many ulp, and says how many it has") {
  Trial tanh("tanh");
  const auto off_by_two = [](const Operands& x) {
    const std::uint16_t y = fp16::math::tanh(x[0], {}).bits;
    return (y & 0x7fff) > 0x1000 && !is_nan(y) && x[0] % 3 == 0 ? static_cast<std::uint16_t>(y - 2) : y;
  };
  const Json two = tanh.validate(off_by_two, {"--ulp", "2"});
  CHECK(two.at("class").string() == "within");
  CHECK(two.at("most_ulp").unsigned_integer() == 2);
  CHECK(tanh.validate(off_by_two, {"--ulp", "1"}).at("class").string() == "different");
  CHECK(tanh.validate(off_by_two).at("beyond").unsigned_integer() > 5000);
}

TEST_CASE("halflab validate: NaN and zero rules of minimum, and expected flushes") {
  Trial minimum("minimum", {"--shard", "31800/65536"});
  CHECK(minimum.explanation([](const Operands& x) {
    return fp16::minimum_number<fp16::binary16>(x[0], x[1]).bits;
  }) == "it takes the number where one operand is a NaN");
  const auto flushing = [](const Operands& x) {
    return fp16::multiply<fp16::binary16>(x[0], x[1], {.flush_to_zero = true, .denormals_are_zero = true})
        .bits;
  };
  Trial multiply("multiply", {"--shard", "2000/65536"});
  CHECK(multiply.validate(flushing, {"--flush-subnormals"}).at("class").string() == "equal");
  CHECK(multiply.explanation(flushing).find("subnormal") != std::string::npos);
}

TEST_CASE("halflab validate: operands are read as they are, whatever is expected of results") {
  using fp16::e5m2, fp16::bfloat16, fp16::binary16, fp16::binary32;
  constexpr auto nearest = fp16::Rounding::nearest_even;
  const fp16::Attributes saturating{.saturate = true};
  const auto function = [&](const char* name, const fp16::Format& operands, const fp16::Format& result) {
    return halflab::validate::find_function(name).in(operands, result, nearest);
  };
  CHECK(fp16::is_nan<e5m2>(function("sin", e5m2, e5m2)({0x7c}, saturating)));
  CHECK(fp16::is_nan<binary32>(function("subtract", binary16, binary32)({0x7c00, 0x7c00}, saturating)));
  CHECK(function("softplus", bfloat16, bfloat16)({0x7f80}, saturating) == 0x7f7f);
  CHECK(function("rcp", bfloat16, bfloat16)({0x7f80}, saturating) == 0);
}

TEST_CASE("halflab validate: other formats, results in floats, and casts") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy";
  const auto class_of = [&](const std::vector<std::string>& words) {
    const CommandRun run = run_halflab(words);
    INFO(run.err);
    return run.out.substr(0, run.out.find(':'));
  };
  Codes codes(65536), results;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  for (const auto code : codes) results.push_back(fp16::sqrt<fp16::bfloat16>(code).bits);
  REQUIRE(run_halflab({"inputs", "sqrt", "--format", "bfloat16", "--to", x}).exit_code == 0);
  CHECK(read(x) == codes);
  for (const char* const type : {"|V2", "<u2"}) {
    write(y, results, type);
    CHECK(class_of({"validate", "sqrt", x, y, "--dtype", "bf16"}) == "equal");
  }
  CHECK(run_halflab({"validate", "sqrt", x, y}).err.find("--dtype") != std::string::npos);
  CHECK(
      run_halflab({"validate", "sqrt", y, y}).err.find("but integers: codes as wide as a format are read") !=
      std::string::npos);
  CHECK(run_halflab({"validate", "sqrt", y, y, "--dtype", "e4m3"}).exit_code == 2);
  const std::string halves = directory / "halves.npy";
  write(halves, {1, 2});
  CHECK(run_halflab({"validate", "sqrt", halves, halves, "--dtype", "bf16"})
            .err.find("of the file's own type, binary16; allowed: none") != std::string::npos);
  // Every function that is known in bfloat16 is known at every number.
  for (const char* const name : {"exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh", "erf"}) {
    INFO(name);
    CHECK(run_halflab({"validate", name, x, y, "--dtype", "bf16"}).err.find("results are wrong") !=
          std::string::npos);
  }
  std::vector<float> floats;
  for (const auto code : codes) floats.push_back(std::sqrt(as_float(code)));
  write(x, codes);
  const auto write_floats = [&](const std::string& file) {
    std::ofstream(file, std::ios::binary)
        << test::npy_file(test::npy_dictionary("<f4", "False", "(65536,)"), test::bytes_of(floats));
  };
  write_floats(y);
  CHECK(class_of({"validate", "sqrt", x, y, "--nan", "any"}) == "equal");
  for (std::size_t i = 0; i < codes.size(); ++i)
    floats[i] = std::ldexp(static_cast<float>(i * 40503 % 65536), -30);
  write_floats(x);
  results.clear();
  for (const float value : floats) results.push_back(as_half(value));
  write(y, results);
  CHECK(class_of({"validate", "cast", x, y}) == "equal");
  for (std::size_t i = 0; i < codes.size(); ++i)
    results[i] = fp16::encode<fp16::binary16>(floats[i], {.rounding = fp16::Rounding::nearest_away}).bits;
  write(y, results);
  CHECK(run_halflab({"validate", "cast", x, y}).out.find("ties away from zero") != std::string::npos);
}

TEST_CASE("halflab validate: codes as hexadecimal text") {
  const TemporaryDirectory directory;
  const std::string a = directory / "a.hex", b = directory / "b.hex", y = directory / "y.hex";
  REQUIRE(run_halflab({"inputs", "multiply", "--shard", "15000/65536", "--to", a + "," + b}).exit_code == 0);
  CHECK(test::content_of(a).starts_with("3a97\n3a97\n"));
  CHECK(test::content_of(b).starts_with("0000\n0001\n"));
  CHECK(run_halflab({"validate", "multiply", a, b, a}).out.starts_with("different:"));
  std::string one_with_address = "@0\n", all = test::content_of(a);  // as simulators write them, too
  for (std::size_t i = 0; i < all.size(); i += 5) one_with_address += "0x" + all.substr(i, 5);
  std::ofstream(y) << one_with_address;
  CHECK(run_halflab({"validate", "multiply", a, b, y, "--json"}).out ==
        run_halflab({"validate", "multiply", a, b, a, "--json"}).out);
  std::ofstream(y) << "3c00\n3c01\n";
  CHECK(run_halflab({"validate", "tanh", y, y, "--dtype", "binary32"})
            .err.find("has codes of at most 4 digits; one at least must have 8, as codes of 32 bits do") !=
        std::string::npos);
  std::ofstream(y) << "@1\n3c00\n";
  CHECK(run_halflab({"validate", "multiply", a, b, y}).err.find("has '@1' in line 1") != std::string::npos);
  std::ofstream(y) << "// results\n 3c00 // one\n3XYZ\n";
  CHECK(run_halflab({"validate", "multiply", a, b, y})
            .err.find("has '3XYZ' in line 3, which is no code of 16 bits") != std::string::npos);
}

TEST_CASE("halflab validate: --out keeps tables, figure and page, and threads change nothing") {
  const TemporaryDirectory directory;
  const std::string a = directory / "a.npy", b = directory / "b.npy", y = directory / "y.npy";
  REQUIRE(run_halflab({"inputs", "add", "--shard", "100/4000", "--to", a + "," + b}).exit_code == 0);
  Codes results;
  const Codes x = read(a), z = read(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    results.push_back(fp16::add<fp16::binary16>(x[i], z[i], {.rounding = fp16::Rounding::toward_zero}).bits);
  write(y, results);
  const std::string one = run_halflab({"validate", "add", a, b, y, "--json", "--threads", "1"}).out;
  CHECK(run_halflab({"validate", "add", a, b, y, "--json", "--threads", "4"}).out == one);
  const CommandRun run = run_halflab({"validate", "add", a, b, y, "--out", directory / "out"});
  CHECK(run.exit_code == 1);
  CHECK(run.out.find("it truncates (rounds toward zero).") != std::string::npos);
  for (const char* const name : {"manifest.json", "counterexamples.csv", "deviations.csv", "distances.csv",
                                 "parts.csv", "operands.gp", "report.html"})
    CHECK(std::filesystem::exists(directory / "out" / name));
}

TEST_CASE("halflab validate: bad input is one line and exit code 2") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy", f = directory / "f.npy",
                    none = directory / "none.npy";
  write(x, Codes(10));
  write(none, {});
  write(y, Codes(11));
  std::ofstream(f, std::ios::binary) << test::npy_file(test::npy_dictionary("<f4", "False", "(10,)"),
                                                       std::string(40, 0));
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"validate"}, "OP"},
           {{"validate", "tanh", x}, "tanh takes 2 files, of its operand and of results, not 1"},
           {{"validate", "tanh", x, y}, "they must be as many"},
           {{"validate", "tanh", none, none}, "has no element, so that nothing can be checked"},
           {{"validate", "exp2", x, f},
            "allowed: results of binary16, to which the kernel rounds them itself"},
           {{"validate", "add", x, f, x}, "operands must be of one format"},
           {{"validate", "tanh", f, x}, "is not known for operands of binary32"},
           {{"validate", "tanh", x, x, "--result-dtype", "bf16"},
            "is of the file's own type, binary16; allowed: none"},
           {{"validate", "tanh", x, x, "--rounding", "up"}, "--rounding: unknown rounding 'up'"},
           {{"validate", "tanh", x, x, "--rounding", "stochastic"}, "stochastic"},
           {{"validate", "tanh", x, x, "--nan", "none"}, "--nan: unknown rule 'none'"},
           {{"validate", "tanh", x, directory / "absent.npy"}, "cannot be read"}}) {
    test::check_refused(words, message);
  }
}
