#include "tools/halflab/show/show.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "fp16/rounding_names.h"
#include "fp16/text.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/show/report.h"

namespace {

using experiments::Json;
using halflab::show::exact_value;
using halflab::show::ExactNumber;
using halflab::show::Findings;
using halflab::show::measure;
using test::CommandRun;
using test::run_halflab;

Json shown(std::vector<std::string> words) {
  words.insert(words.begin(), "show");
  words.push_back("--json");
  const CommandRun run = run_halflab(words);
  CHECK(run.err == "");
  REQUIRE(run.exit_code == 0);
  return run.json();
}

std::string code_of(const std::vector<std::string>& words) {
  return shown(words).at("summary").at("code").string();
}

const Json& row(const Json& table, const char* key, const char* name) {
  for (const Json& candidate : table.elements())
    if (candidate.at(key).string() == name) return candidate;
  FAIL(name);
  return table;
}

const fp16::NamedFormat half{"binary16", fp16::binary16};

TEST_CASE("halflab show: 2048 + 1 is a tie, with every bit of it") {
  const Json json = shown({"2048+1"});
  const Json& summary = json.at("summary");
  CHECK(summary.at("code").string() == "0x6800");
  CHECK(summary.at("fields").string() == "0 11010 0000000000");
  CHECK(summary.at("value_exact").string() == "2048");
  CHECK(summary.at("exact").string() == "2049");
  CHECK(summary.at("exact_hexadecimal").string() == "0x1.002p+11");
  CHECK(summary.at("guard").integer() == 1);
  CHECK(summary.at("round").integer() == 0);
  CHECK(summary.at("sticky").integer() == 0);
  CHECK(summary.at("flags").string() == "inexact");
  CHECK(summary.at("error_ulp").number() == -0.5);
  CHECK(summary.at("ulp_log2").integer() == 1);
  CHECK(summary.at("next_down").string() == "2047");
  CHECK(summary.at("next_up").string() == "2050");
  CHECK(json.at("verdict").string().find("2049 lies halfway between 2048 and 2050") != std::string::npos);
  const Json& roundings = json.at("tables").at("roundings");
  CHECK(roundings.elements().size() == 8);  // stochastic has two results
  for (const char* const up : {"nearest_away", "toward_positive", "to_odd"})
    CHECK(row(roundings, "rounding", up).at("code").string() == "0x6801");
  for (const char* const down : {"nearest_even", "toward_zero", "toward_negative"})
    CHECK(row(roundings, "rounding", down).at("code").string() == "0x6800");
  CHECK(row(roundings, "rounding", "stochastic").at("chance").number() == 0.5);
  const Json& formats = json.at("tables").at("formats");
  CHECK(formats.elements().size() == fp16::formats.size());
  CHECK(row(formats, "format", "binary32").at("value").string() == "2049");
  CHECK(row(formats, "format", "binary32").at("relative_error").number() == 0);
  CHECK(row(formats, "format", "binary16").at("relative_error").number() == doctest::Approx(-1.0 / 2049));
  CHECK(row(formats, "format", "e4m3").at("flags").string() == "overflow, inexact");
}

TEST_CASE("halflab show: below the smallest number of a format without zero there is no way between two") {
  const std::string out = run_halflab({"show", "1e-39", "--format", "e8m0"}).out;
  CHECK(out.find("too large: no number of the format is smaller.") != std::string::npos);
}

TEST_CASE("halflab show: 0x is a code without p and a value with it, and -1.5 is no option") {
  CHECK(code_of({"0x3c01"}) == "0x3c01");
  CHECK(code_of({"-0x3c01"}) == "0xbc01");
  CHECK(code_of({"0x1p0"}) == "0x3c00");
  CHECK(code_of({"-0x1.8p0"}) == "0xbe00");
  CHECK(code_of({"-1.5"}) == "0xbe00");
  CHECK(code_of({"--format", "float32", "-1.5"}) == "0xbfc00000");
  CHECK(code_of({"-1.5", "--format", "F8_E4M3"}) == "0xbc");
  CHECK(code_of({"-inf"}) == "0xfc00");
  CHECK(code_of({"-0"}) == "0x8000");
  CHECK(code_of({"nan"}) == "0x7e00");
  CHECK(code_of({"2^-24"}) == "0x0001");
  CHECK(code_of({"2048", "-", "1"}) == "0x67ff");
  CHECK(code_of({"-", "(1", "+", "2)"}) == "0xc200");
  CHECK(code_of({"-sqrt(4)"}) == "0xc000");
  CHECK(code_of({"-tanh(-0)"}) == "0x0000");
}

TEST_CASE("halflab show prints the state of the teaching page that shows the same") {
  const auto state_of = [](const std::vector<std::string>& words) {
    return shown(words).at("summary").at("page_state").string();
  };
  CHECK(state_of({"2048+1"}) == "#operation&format=binary16&value=2048%2B1");
  CHECK(state_of({"2048", "+", "1"}) == "#operation&format=binary16&value=2048%20%2B%201");
  CHECK(state_of({"0x3c01", "--format", "bf16"}) == "#number&format=bfloat16&value=0x3c01");
  CHECK(state_of({"2^-24"}) == "#number&format=binary16&value=2%5E-24");
  CHECK(state_of({"fma(3, 5, 0.1)", "--format", "e4m3"}) ==
        "#operation&format=e4m3&value=fma(3%2C%205%2C%200.1)");
}

TEST_CASE("halflab show: expressions round every operation, in the usual order") {
  CHECK(code_of({"1 + 2 * 3"}) == "0x4700");
  CHECK(code_of({"(1+2)*3"}) == "0x4880");
  CHECK(code_of({"8/2/2"}) == "0x4000");
  CHECK(code_of({"2048+1+1"}) == "0x6800");    // twice a tie to even
  CHECK(code_of({"2048+(1+1)"}) == "0x6801");  // 2050
  CHECK(code_of({"sqrt(2)"}) == "0x3da8");
  // (1 + 3 * 2^-10)^2 - 1 = 6153 * 2^-20; the product alone loses 9 * 2^-20.
  CHECK(code_of({"fma(0x3c03, 0x3c03, -1)"}) == "0x1e02");
  CHECK(code_of({"0x3c03 * 0x3c03 - 1"}) == "0x1e00");
  CHECK(shown({"1/0"}).at("summary").at("flags").string() == "divide by zero");
  CHECK(shown({"0/0"}).at("summary").at("flags").string() == "invalid");
  CHECK(shown({"65504+16"}).at("summary").at("flags").string() == "overflow, inexact");
  CHECK(shown({"2048+1+1"}).at("tables").at("steps").elements().size() == 2);
}

TEST_CASE(
    "halflab show: guard, round and sticky bits explain every result to nearest even, in every format") {
  std::mt19937_64 random(5);
  for (const fp16::NamedFormat& format : fp16::formats) {
    if (!format.format.has_arithmetic()) continue;
    INFO(format.name);
    const auto code = [&] { return fmt::format("0x{:x}", random() >> (64 - format.format.width())); };
    for (int i = 0; i < 60; ++i) {
      const std::string a = code(), b = code(), c = code();
      for (const std::string& text :
           {fmt::format("{}+{}", a, b), fmt::format("{}-{}", a, b), fmt::format("{}*{}", a, b),
            fmt::format("{}/{}", a, b), fmt::format("sqrt({})", a), fmt::format("fma({},{},{})", a, b, c)}) {
        INFO(text);
        const Findings found = measure(text, format);
        if (!found.discarded || found.flags.overflow) continue;
        const auto& bits = *found.discarded;
        const auto result_of = [&](fp16::Rounding rounding) {
          for (const auto& row : found.roundings)
            if (row.rounding == fp16::named_roundings[static_cast<std::size_t>(rounding)].name)
              return row.result.code;
          return found.result.code;
        };
        const std::uint64_t inner = result_of(fp16::Rounding::toward_zero);
        const bool is_up = bits.guard && (bits.round || bits.sticky || inner % 2 != 0);
        const std::uint64_t sign_bit = std::uint64_t{1} << (format.format.width() - 1);
        CHECK((found.result.code & ~sign_bit) == (inner & ~sign_bit) + is_up);
        CHECK(found.flags.inexact == (bits.guard || bits.round || bits.sticky));
        for (const fp16::NamedRounding& rounding : fp16::named_roundings) {
          if (rounding.rounding == fp16::Rounding::stochastic) continue;
          const auto rounded =
              halflab::show::round(format.format, *found.exact, {.rounding = rounding.rounding});
          CHECK(rounded.code == result_of(rounding.rounding));
        }
        CHECK(std::fabs(found.error_in_ulps()) <= 0.5);
      }
    }
  }
}

TEST_CASE("halflab show: decimals that are rounded are not called exact") {
  CHECK(test::run_halflab({"show", "2^-24"})
            .out.starts_with("2^-24 is a number of binary16, about 5.9605e-08."));
  CHECK(test::run_halflab({"show", "3/4"}).out.starts_with("3/4 is exactly 0.75 in binary16."));
}

TEST_CASE("halflab show: exact numbers are written as the codes that they are, and read as text is") {
  for (std::uint64_t code = 0; code < 0x7c00; code += 7) {
    const auto bits = static_cast<std::uint16_t>(code);
    const ExactNumber number = *exact_value(fp16::binary16, code);
    CHECK(number.decimal() == fp16::to_exact<fp16::binary16>(bits));
    CHECK(number.hexadecimal() == fp16::to_hex<fp16::binary16>(bits));
  }
  for (const char* const text :
       {"0.1", "-65519.999", "6.1e-5", "1e-30", "1e300", "0x1.fffp-15", "2.98e-8", "123456789.125"}) {
    INFO(text);
    for (const fp16::NamedFormat& format : fp16::formats) {
      if (!format.format.is_signed()) continue;
      CHECK(halflab::show::round(format.format, ExactNumber::from_text(text)).code ==
            halflab::show::read(format.format, text).code);
    }
  }
  CHECK(measure("sqrt(2)", half).exact_text == "about 1.41421356237309504880169");
  CHECK(measure("1/3", half).exact_text == "about 0.333333333333333333333333");
  CHECK(measure("2/3", half).exact_text == "about 0.666666666666666666666667");
  CHECK(measure("1/10", half).exact_text == "about 0.1");
  CHECK(measure("1/4", half).exact_text == "0.25");
  CHECK(measure("sqrt(6.25)", half).exact_text == "2.5");
  CHECK(measure("0.1", half).exact_text == "0.1");
  CHECK(measure("0.1", half).formats[0].relative_error ==
        doctest::Approx(5.551115123125783e-17));  // binary64
}

TEST_CASE(
    "halflab show: beyond the largest number a share is one of the way to the number that would follow") {
  const auto sentence = [](std::vector<std::string> words) {
    words.insert(words.begin(), "show");
    return run_halflab(words).out;
  };
  // 15.99 of the 32 between 65504 and 65536
  CHECK(sentence({"65519.99"}).find("it lies 49.969 % of the way from 65504 to 65536, which would follow.") !=
        std::string::npos);
  CHECK(sentence({"6.5", "--format", "e2m1"}).find("25 % of the way from 6 to 8, which would") !=
        std::string::npos);
  CHECK(sentence({"-6.5", "--format", "e2m1"}).find("25 % of the way from -6 to -8, which would") !=
        std::string::npos);
  CHECK(sentence({"tanh(60000)"}).find("almost 100 % of the way from 0.99951171875 to 1.") !=
        std::string::npos);
}

TEST_CASE(
    "halflab show: operands that the format does not hold are named, and the formats' rows are of the rest") {
  const std::string out = run_halflab({"show", "0.1+0.25"}).out;
  CHECK(out.find(" Rounded to binary16 before that: 0.1.\n") != std::string::npos);
  CHECK(out.find("The exact result of these binary16 operands, rounded once to each format.") !=
        std::string::npos);
  CHECK(run_halflab({"show", "0.1"}).out.find("before that") == std::string::npos);
}

TEST_CASE("halflab show: colours are of the bits alone") {
  using halflab::show::colored;
  const std::vector<std::string> fields{"0 01111 0000000000"};
  CHECK(colored("one  0 01111 0000000000\n", fp16::binary16, fields) ==
        "one  \x1b[1;35m0\x1b[0m \x1b[1;32m01111\x1b[0m \x1b[1;36m0000000000\x1b[0m\n");
  CHECK(colored("10 01111 0000000000", fp16::binary16, fields) == "10 01111 0000000000");
  CHECK(colored("01111111", fp16::e8m0, {"01111111"}) == "\x1b[1;32m01111111\x1b[0m");
  CHECK(run_halflab({"show", "1"}).out.find('\x1b') == std::string::npos);  // no terminal
}

TEST_CASE("halflab show: every code of small formats has its page, and --out keeps it") {
  for (const char* const format : {"e8m0", "e2m1", "e4m3", "e4m3_fnuz"}) {
    const int codes = std::string(format) == "e2m1" ? 16 : 256;
    for (int code = 0; code < codes; code += 5)
      CHECK(run_halflab({"show", fmt::format("0x{:x}", code), "--format", format}).exit_code == 0);
  }
  CHECK(run_halflab({"show", "1e-300", "--format", "binary64"}).out.find("characters in full") !=
        std::string::npos);
  CHECK(run_halflab({"show", "0x3c00"}).out.starts_with("0x3c00 is 1 in binary16: a normal number.\n"));
  const test::TemporaryDirectory directory;
  CHECK(run_halflab({"show", "2048+1", "--out", directory / "out"}).exit_code == 0);
  CHECK(std::filesystem::exists(directory / "out" / "report.html"));
}

TEST_CASE("halflab show: what a format lacks is said of it, and the other formats get what was asked for") {
  CHECK(run_halflab({"show", "-0", "--format", "e8m0"})
            .out.starts_with("e8m0 has no zero: -0 becomes 5.9e-39, its smallest positive number.\n"));
  for (const char* const format : {"e4m3", "e2m1", "binary16"}) {
    const Json infinity = shown({"inf", "--format", format});
    CHECK(row(infinity.at("tables").at("formats"), "format", "binary16").at("value").string() == "inf");
  }
  const Json nan = shown({"nan", "--format", "e2m1"});
  CHECK(row(nan.at("tables").at("formats"), "format", "e4m3").at("value").string() == "nan");
}

TEST_CASE("halflab show: stochastic rounding has one result where both of its directions overflow") {
  int rows = 0;
  for (const auto& each : measure("1e400", half).roundings) {
    if (each.rounding != "stochastic") continue;
    ++rows;
    CHECK(each.chance == 1);
    CHECK(each.result.shortest == "inf");
  }
  CHECK(rows == 1);
}

TEST_CASE("halflab show: a format's name may be in capitals") {
  CHECK(code_of({"1", "--format", "FP16"}) == "0x3c00");
  CHECK(code_of({"1", "--format", "E4M3"}) == "0x38");
}

TEST_CASE("halflab show: bad input is one line and exit code 2") {
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"show"}, "VALUE|0xCODE|EXPRESSION is missing"},
           {{"show", "abc"}, "'abc' at 'abc': must be a number"},
           {{"show", "0,1"},
            "'0,1' at ',1': must be an operator or the end; decimals are written with a point: 0.1"},
           {{"show", "1+"}, "'1+' at its end"},
           {{"show", "(1"}, "must be ')'"},
           {{"show", "fma(1,2)"}, "must be ','"},
           {{"show", "tahn(1)"}, "'tahn(1)' at 'tahn(1)': must be one of sqrt(a), fma(a, b, c), exp(a)"},
           {{"show", "exp(1e5)", "--format", "binary32"},
            "100000 is too large for exp: allowed are -65536 to 65536"},
           {{"show", "0x1.8"}, "0x1.8p0"},
           {{"show", "0x10000"}, "too long for binary16"},
           {{"show", "0x11112222333344445"}, "at most 64 bits"},
           {{"show", "1e999999"}, "exponents up to 5000"},
           {{"show", "-0x1p999999"}, "'-0x1p999999' is too long"},
           {{"show", "2^5001"}, "'2^5001' at '2^5001': must be a power of two such as 2^-24, up to 2^5000"},
           {{"show", "2^2000000000"}, "up to 2^5000"},
           {{"show", "1+1", "--format", "e8m0"}, "without arithmetic"},
           {{"show", "1", "--format", "float17"}, "--format: unknown format 'float17'"},
           {{"show", "-format", "1"}, "unknown option -format"},
           {{"show", std::string(1000, '(')}, "less deep"}}) {
    test::check_refused(words, message);
  }
}

}  // namespace
