#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/formats.h"

namespace {

using experiments::Json;
using test::CommandRun;
using test::run_halflab;
using test::TemporaryDirectory;

template <class Number>
std::string write(const std::filesystem::path& file, const char* type, const std::vector<Number>& values) {
  std::ofstream(file, std::ios::binary)
      << test::npy_file(test::npy_dictionary(type, "False", "(" + std::to_string(values.size()) + ",)"),
                        test::bytes_of(values));
  return file.string();
}

/// Gradient-like, with the borders of formats, zeros and what is not finite among them.
std::vector<float> gradients(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values{0.0f,     -0.0f,     INFINITY, -INFINITY, NAN,    0x1p-25f,  0x1.000002p-25f,
                            0x1p-24f, 65519.99f, 65520.0f, 463.9f,    464.0f, 0x1p-149f, 0x1p127f};
  while (values.size() < count)
    values.push_back(std::ldexp(normal(random), -static_cast<int>(random() % 40)));
  return values;
}

struct Expected {
  std::uint64_t nonzero = 0, flushed = 0, subnormal = 0, overflowed = 0;
  double lost = 0, all = 0;
};

/// One value at a time.
template <const fp16::Format& F, class Number>
Expected expected(const std::vector<Number>& values, int scale_log2) {
  Expected counts;
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    const double scaled = std::ldexp(value, scale_log2);
    const auto result = fp16::encode<F>(scaled);
    const bool is_flushed = fp16::is_zero<F>(result.bits);
    ++counts.nonzero;
    counts.flushed += is_flushed;
    counts.subnormal += fp16::is_subnormal<F>(result.bits);
    counts.overflowed += result.flags.overflow || std::isinf(scaled);
    counts.all += value * value;
    if (is_flushed) counts.lost += value * value;
  }
  return counts;
}

void check_counts(const Json& json, const std::string& at, const Expected& counts) {
  const Json& summary = json.at("summary");
  const auto share = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(counts.nonzero);
  };
  CHECK(summary.at("fraction_flushed_at_" + at).number() == share(counts.flushed));
  CHECK(summary.at("fraction_subnormal_at_" + at).number() == share(counts.subnormal));
  CHECK(summary.at("fraction_overflow_at_" + at).number() == share(counts.overflowed));
}

void check_bound(const Json& json, const std::string& at, const Expected& counts) {
  const double bound = json.at("summary").at("norm_share_flushed_at_" + at + "_at_most").number(),
               norm = std::sqrt(counts.lost / counts.all);
  CHECK(bound >= norm * (1 - 1e-12));
  CHECK(bound <= 2 * norm);
}

/// Every `stride`-th scale of the table.
template <const fp16::Format& F, class Number>
void check_scales(const Json& json, const std::vector<Number>& values, int stride) {
  const Json scales = json.at("tables").at("scales");
  for (const Json& row : scales.elements()) {
    const int scale = static_cast<int>(row.at("scale_log2").integer());
    if (row.at("tensor").string() != "g" || scale % stride != 0) continue;
    const Expected counts = expected<F>(values, scale);
    CHECK(row.at("fraction_flushed").number() ==
          static_cast<double>(counts.flushed) / static_cast<double>(counts.nonzero));
  }
}

}  // namespace

TEST_CASE("halflab hist: counts are those of the scalar cast, in every format, at S = 1 and another scale") {
  const TemporaryDirectory directory;
  const std::vector<float> values = gradients(20'000);
  const std::string file = write(directory / "g.npy", "<f4", values);
  for (const fp16::NamedFormat& format : fp16::formats) {
    if (!format.format.has_zero()) continue;
    INFO(format.name);
    const CommandRun run =
        run_halflab({"hist", file, "--format", std::string(format.name), "--scale", "2^-3", "--json"});
    CHECK(run.err == "");
    REQUIRE(run.exit_code == 0);
    halflab::with_format(format.format, [&]<const fp16::Format & F>() {
      for (const auto& [at, scale_log2] : std::map<std::string, int>{{"1", 0}, {"shown", -3}}) {
        check_counts(run.json(), at, expected<F>(values, scale_log2));
        check_bound(run.json(), at, expected<F>(values, scale_log2));
      }
      check_scales<F>(run.json(), values, 5);
    });
  }
}

TEST_CASE("halflab hist: doubles beyond binary32 are counted one by one, in every format, at every scale") {
  const TemporaryDirectory directory;
  const std::vector<std::vector<double>> rows{{1e-200, 3e-200},
                                              {1e200, 1.0},
                                              {1e-60, 1e-50, 1e-46},
                                              {0x1p-1074, 0x1p-150, 0x1p-149, 3e-320, 1.0, 0x1p127, 0x1p128,
                                               0x1.fffffffffffffp1023, 0, INFINITY, NAN},
                                              {1e-300, 0x1p-25, 0x1p-160, -1e-170, 2e-170}};
  for (const std::vector<double>& values : rows) {
    const std::string file = write(directory / "g.npy", "<f8", values);
    for (const fp16::NamedFormat& format : fp16::formats) {
      if (!format.format.has_zero()) continue;
      CAPTURE(format.name);
      CAPTURE(values.front());
      const CommandRun run = run_halflab({"hist", file, "--format", std::string(format.name), "--json"});
      CHECK(run.err == "");
      REQUIRE(run.exit_code == 0);
      const Json json = run.json(), summary = json.at("summary");
      const auto shown = static_cast<int>(summary.at("shown_scale_log2").integer()),
                 highest = static_cast<int>(summary.at("plateau_highest_log2").integer());
      halflab::with_format(format.format, [&]<const fp16::Format & F>() {
        check_counts(json, "1", expected<F>(values, 0));
        check_counts(json, "shown", expected<F>(values, shown));
        CHECK(expected<F>(values, highest).overflowed == 0);
        CHECK(expected<F>(values, highest + 1).overflowed > 0);
        check_scales<F>(json, values, 25);
      });
      const double bound = summary.at("norm_share_flushed_at_1_at_most").number();
      CHECK((bound >= 0 && bound <= 1));
    }
    std::map<int, std::uint64_t> octaves;
    for (const double value : values) {
      if (value != 0 && std::isfinite(value)) ++octaves[std::ilogb(value)];
    }
    const Json histogram = run_halflab({"hist", file, "--json"}).json().at("tables").at("histogram");
    for (const Json& row : histogram.elements()) {
      const auto counted = octaves.find(static_cast<int>(row.at("exponent_log2").integer()));
      CHECK(row.at("values").integer() ==
            static_cast<std::int64_t>(counted == octaves.end() ? 0 : counted->second));
    }
    CHECK(histogram.elements().size() ==
          2 * static_cast<std::size_t>(octaves.rbegin()->first - octaves.begin()->first + 1));
  }
}

TEST_CASE("halflab hist: a largest value that rounds down to the format's needs no smaller scale") {
  const TemporaryDirectory directory;
  const auto highest_of = [&](float value, const char* format) {
    const std::string file = write<float>(directory / "x.npy", "<f4", {value, 0.5f});
    return run_halflab({"hist", file, "--format", format, "--json"})
        .json()
        .at("summary")
        .at("plateau_highest_log2")
        .integer();
  };
  CHECK(highest_of(6.5f, "e2m1") == 0);
  CHECK(highest_of(7.0f, "e2m1") == -1);
  CHECK(highest_of(460.0f, "e4m3") == 0);
  CHECK(highest_of(465.0f, "e4m3") == -1);
  CHECK(highest_of(65519.0f, "binary16") == 0);
  CHECK(highest_of(65520.0f, "binary16") == -1);
}

TEST_CASE("halflab hist: the recommended scale is an octave below the largest without overflow") {
  const TemporaryDirectory directory;
  const std::string file = write<float>(directory / "g.npy", "<f4", {1e-9f, 3.0f, -0x1p-20f});
  const Json summary = run_halflab({"hist", file, "--json"}).json().at("summary");
  CHECK(summary.at("plateau_highest_log2").integer() == 14);  // 3 * 2^14 = 49152
  CHECK(summary.at("recommended_scale_log2").integer() == 13);
  CHECK(summary.at("plateau_lowest_log2").integer() == 5);  // 1e-9 * 2^5 > 2^-25
  CHECK(run_halflab({"hist", file, "--format", "float8_e4m3fn", "--json"})
            .json()
            .at("summary")
            .at("plateau_highest_log2")
            .integer() == 7);
}

TEST_CASE("halflab hist: the largest scale without overflow is exact, of the smallest doubles too") {
  const TemporaryDirectory directory;
  const auto highest_of = [&](double value) {
    const std::string file = write(directory / "x.npy", "<f8", std::vector<double>{value});
    return run_halflab({"hist", file, "--json"}).json().at("summary").at("plateau_highest_log2").integer();
  };
  CHECK(highest_of(0x1p-1074) == 1074 + 15);
  CHECK(highest_of(std::nextafter(65520 * 0x1p-20, 0)) == 20);
  CHECK(highest_of(65520 * 0x1p-20) == 19);
  CHECK(highest_of(0x1p1023) == -1023 + 15);
}

TEST_CASE("halflab hist: values that are still multiplied by a scale give what they give without") {
  const TemporaryDirectory directory;
  std::vector<float> values, scaled;
  for (const float value : gradients(5'000)) {
    if (std::isfinite(value) && (value == 0 || (std::fabs(value) > 1e-30f && std::fabs(value) < 1e30f)))
      values.push_back(value);
  }
  for (const float value : values) scaled.push_back(std::ldexp(value, 10));
  const std::string plain = write(directory / "g.npy", "<f4", values),
                    large = write(directory / "s.npy", "<f4", scaled);
  for (const std::string format : {"binary16", "e5m2", "bfloat16"}) {
    const Json one = run_halflab({"hist", plain, "--format", format, "--json"}).json().at("summary");
    const Json other = run_halflab({"hist", large, "--format", format, "--scaled-by", "1024", "--json"})
                           .json()
                           .at("summary");
    for (const auto& [key, value] : one.members()) {
      INFO(key);
      if (key != "max_abs" && !key.starts_with("norm_share")) CHECK(other.at(key) == value);
    }
  }
}

TEST_CASE("halflab hist: files of halves, bfloat16, doubles and packed codes count what they hold") {
  const TemporaryDirectory directory;
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  const auto values_of = [](const CommandRun& run) {
    const Json summary = run.json().at("summary");
    return std::vector<std::uint64_t>{summary.at("values").unsigned_integer(),
                                      summary.at("zero").unsigned_integer(),
                                      summary.at("nonfinite").unsigned_integer()};
  };
  using Counts = std::vector<std::uint64_t>;
  CHECK(values_of(run_halflab({"hist", write(directory / "h.npy", "<f2", codes), "--json"})) ==
        Counts{65536, 2, 2048});
  for (const char* const type : {"|V2", "<u2", "<i2"})
    CHECK(values_of(run_halflab({"hist", write(directory / "b.npy", type, codes), "--dtype", "bf16",
                                 "--json"})) == Counts{65536, 2, 256});
  CHECK(values_of(run_halflab({"hist", write<double>(directory / "d.npy", "<f8", {0, 1e-300, 1e300, NAN, 5}),
                               "--json"})) == Counts{5, 1, 1});
  const auto used =
      run_halflab(
          {"hist", write<std::uint16_t>(directory / "u.npy", "<f2", {1, 1, 0x3c00, 0x8000, 1}), "--json"})
          .json();
  CHECK(used.at("tables").at("tensors").at(0).at("codes_in_use").unsigned_integer() == 3);
  std::ofstream(directory / "p.bin", std::ios::binary) << std::string("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
  CHECK(values_of(run_halflab({"hist", directory / "p.bin", "--dtype", "F4", "--json"})) == Counts{16, 2, 0});
  const Json summary =
      run_halflab({"hist", directory / "p.bin", "--dtype", "F4", "--json"}).json().at("summary");
  CHECK(summary.at("max_abs").number() == 6);
}

TEST_CASE("halflab hist: results do not depend on the threads, and nothing is written unless asked") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "in");
  const std::string file = write(directory / "in/g.npy", "<f4", gradients(9'000'000));
  const std::string one = run_halflab({"hist", file, "--json", "--threads", "1"}).out;
  CHECK(run_halflab({"hist", file, "--json", "--threads", "5"}).out == one);
  CHECK(one.find("\"verdict\": \"") != std::string::npos);
  CHECK(test::contents_of(directory / "in").size() == 1);
}

TEST_CASE("halflab hist: --out keeps tables, figures and a page of them") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "g.npy", "<f4", gradients(2'000));
  const CommandRun run = run_halflab({"hist", file, "--out", directory / "out"});
  CHECK(run.exit_code == 0);
  CHECK(run.out == test::content_of(directory / "out" / "verdict.txt"));
  for (const char* const name : {"manifest.json", "summary.json", "tensors.csv", "histogram.gp", "scales.gp",
                                 "tensors.gp", "report.html"})
    CHECK(std::filesystem::exists(directory / "out" / name));
  CHECK(test::content_of(directory / "out" / "report.html").find("Without a scale") != std::string::npos);
}

TEST_CASE("halflab hist: --figure paper3 needs a directory") {
  const TemporaryDirectory directory;
  const CommandRun run =
      run_halflab({"hist", write<float>(directory / "g.npy", "<f4", {1, 2}), "--figure", "paper3"});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("must come with --out") != std::string::npos);
}

TEST_CASE("halflab hist: integers beside floats are named, whether passed over or read as codes") {
  const TemporaryDirectory directory;
  const std::string w = write<float>(directory / "w.npy", "<f4", {1, 2}),
                    labels = write<std::uint8_t>(directory / "labels.npy", "|u1", {1, 0x38});
  CHECK(run_halflab({"hist", w, labels}).out.find("no floating-point numbers: labels.") != std::string::npos);
  const std::string read = run_halflab({"hist", w, labels, "--dtype", "e4m3"}).out;
  CHECK(read.find("Read as codes of e4m3: labels.") != std::string::npos);
  CHECK(read.find("Passed over") == std::string::npos);
}

TEST_CASE("halflab hist: titles of --figure paper3 tell counted shares, not differences of rounded ones") {
  const TemporaryDirectory directory;
  const std::string file = write<float>(directory / "g.npy", "<f4", {1e-30f, 1e-30f, 0});
  REQUIRE(run_halflab({"hist", file, "--figure", "paper3", "--out", directory / "out"}).exit_code == 0);
  CHECK(test::content_of(directory / "out" / "paper3.gp")
            .find("S = 1: 66.7 % more become zero, 0 % are left") != std::string::npos);
}

TEST_CASE(
    "halflab hist: --figure paper3 is drawn of zeros, of the ends of binary64 and of NaNs, and not of "
    "nothing") {
  const TemporaryDirectory directory;
  const auto draws = [&](const std::string& name, const std::vector<double>& values) {
    const std::string out = directory / name;
    const CommandRun run = run_halflab(
        {"hist", write(directory / (name + ".npy"), "<f8", values), "--figure", "paper3", "--out", out});
    CHECK(run.exit_code == 0);
    return std::filesystem::exists(out + "/paper3.svg");
  };
  CHECK(draws("zeros", {0, 0}));
  CHECK(draws("ends", {1e300, 1, 1e-300}));
  CHECK(draws("small", {1e-300, 5e-324}));
  CHECK(draws("nans", {NAN, INFINITY}));
  CHECK(!draws("nothing", {}));
}

TEST_CASE("halflab hist: --figure paper3 tells what FP16 leaves of all values at each scale that it draws") {
  const TemporaryDirectory directory;
  std::vector<float> values = gradients(4000);
  const std::string file = write(directory / "g.npy", "<f4", values);
  for (const int scaled_by : {0, 4}) {
    const std::string scale = "2^" + std::to_string(9 + scaled_by);
    const CommandRun run =
        run_halflab({"hist", file, "--figure", "paper3", "--scale", scale, "--scaled-by",
                     "2^" + std::to_string(scaled_by), "--json", "--out", directory / "out"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(std::filesystem::exists(directory / "out" / "paper3.svg"));
    const Json found = run.json();
    std::map<std::int64_t, double> percent;
    for (const Json& bar : found.at("tables").at("paper3").elements())
      percent[bar.at("scale_log2").integer()] += bar.at("share_percent").number();
    const std::vector<int> scales{0, 3, 9 + scaled_by};
    CHECK(percent.size() == scales.size());
    for (const int log2 : scales) {
      const Expected counts = expected<fp16::binary16>(values, log2 - scaled_by);
      CHECK(found.at("summary").at("paper3_share_flushed_at_scale_2^" + std::to_string(log2)).number() ==
            doctest::Approx(static_cast<double>(counts.flushed) / 4000));
      CHECK(percent.at(log2) == doctest::Approx(100.0 * 3997 / 4000));  // what is not finite has no bar
    }
  }
}

TEST_CASE("halflab hist: what is empty, all zero or not finite is answered in words") {
  const TemporaryDirectory directory;
  CHECK(run_halflab({"hist", write<float>(directory / "e.npy", "<f4", {})}).out.find("nothing to lose") !=
        std::string::npos);
  CHECK(run_halflab({"hist", write<float>(directory / "z.npy", "<f4", {0, 0})}).out.find("nothing to lose") !=
        std::string::npos);
  const CommandRun bad = run_halflab({"hist", write<float>(directory / "n.npy", "<f4", {NAN, 1, INFINITY})});
  CHECK(bad.out.find(
            "2 values are NaN or infinite already, which no scale cures, in 1 of 1 tensors, first in n.") ==
        0);
  CHECK(run_halflab({"hist", write<float>(directory / "a.npy", "<f4", {NAN})}).out ==
        "1 value is NaN or infinite already, which no scale cures, in 1 of 1 tensors, first in a. No value "
        "is finite "
        "and other than zero.\n");
  CHECK(run_halflab({"hist", write<float>(directory / "o.npy", "<f4", {1e6f, 1}), "--out", directory / "o"})
            .out.find("50.0 % of the values overflow") != std::string::npos);
}

TEST_CASE("halflab hist: products with a scale that leave the range of doubles are lost, too") {
  const TemporaryDirectory directory;
  const std::string file = write<double>(directory / "d.npy", "<f8", {1e300, 5e-324, 1, INFINITY});
  const auto share = [&](const char* scale, const char* key) {
    return run_halflab({"hist", file, "--format", "bfloat16", "--scale", scale, "--json"})
        .json()
        .at("summary")
        .at(key)
        .number();
  };
  CHECK(share("2^100", "fraction_overflow_at_shown") == doctest::Approx(1 / 3.0));
  CHECK(share("2^-100", "fraction_flushed_at_shown") == doctest::Approx(1 / 3.0));
}

TEST_CASE("halflab hist: a scale is recommended where it helps alone") {
  const TemporaryDirectory directory;
  const auto verdict = [&](std::vector<float> values, const std::string& format) {
    return run_halflab(
               {"hist", write<float>(directory / "v.npy", "<f4", std::move(values)), "--format", format})
        .out;
  };
  CHECK(verdict({1e-9f, 1.0f}, "binary16")
            .find("At the recommended S = 2^14, 0 % become zero and 50.0 % subnormal.") != std::string::npos);
  const std::string subnormal = verdict({3e-6f}, "binary16");
  CHECK(subnormal.find("but 100.0 % subnormal, which takes digits from them; ") != std::string::npos);
  CHECK(subnormal.find("At the recommended S = 2^33, 0 % become zero and 0 % subnormal.") !=
        std::string::npos);
  for (const std::string& none :
       {verdict({1e-9f, 1.0f}, "bfloat16"), verdict({1e-7f, 1e-3f, 65504}, "binary16")}) {
    INFO(none);
    CHECK(none.find("needs no loss scale") != std::string::npos);
    CHECK(none.find("recommended") == std::string::npos);
    CHECK(none.find("zero at 2^") == std::string::npos);
  }
}

TEST_CASE("halflab hist: what a scale cannot keep is not called kept, and what decides of it is named") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "d");
  const auto add = [&](const std::string& name, std::vector<float> values) {
    write<float>(directory / (name + ".npy"), "<f4", values);
  };
  add("d/large", {3e5f, 1.0f});
  add("d/small", std::vector<float>(1000, 1e-9f));
  add("d/spread", {1e-3f, 1e-8f, 1e-3f});
  const std::string out = run_halflab({"hist", (directory / "d").string()}).out;
  INFO(out);
  for (const char* const sentence :
       {"overflow binary16 and 99.6 % become zero; S must be 2^-3 or less.",
        "large alone sets the limit of S: without it, 0 % of the values become zero at S = 2^25, the largest "
        "for the others.",
        "All that is not zero in 1 of 3 tensors becomes zero.", "  2^-15 to 2^-3: 99.6 %\n"})
    CHECK(out.find(sentence) != std::string::npos);
  CHECK(out.find("hold exact zeros") == std::string::npos);
  REQUIRE(run_halflab({"hist", (directory / "d").string(), "--out", directory / "out"}).exit_code == 0);
  const std::string scales = test::content_of(directory / "out" / "scales.gp");
  CHECK(scales.find("set object rectangle from -2.5,0.5 to ") !=
        std::string::npos);  // of large, where it overflows
  write<std::uint16_t>(directory / "h.npy", "<f2", {0x0000, 0x0001, 0x3c00});
  CHECK(run_halflab({"hist", (directory / "h.npy").string()})
            .out.find("1 tensor stored as binary16 holds exact zeros beside subnormal numbers") !=
        std::string::npos);
}

TEST_CASE("halflab hist: the scales that keep as much reach as far as the format does") {
  const TemporaryDirectory directory;
  const std::string file = write<float>(directory / "x.npy", "<f4", {1.0f, 0.5f});
  for (const auto& [format, scales] :
       {std::pair{"binary64", "2^-1073 to 2^1023"}, {"binary16", "2^-23 to 2^15"}, {"e2m1", "1 to 2^2"}}) {
    INFO(format);
    CHECK(run_halflab({"hist", file, "--format", format}).out.find(scales) != std::string::npos);
  }
}

TEST_CASE(
    "halflab hist: what is all zero in FP16 is not said to have nothing to lose, and formats are named") {
  const TemporaryDirectory directory;
  for (const char* const folder : {"z", "f"}) std::filesystem::create_directory(directory / folder);
  const auto out = [&](const std::string& folder) { return run_halflab({"hist", directory / folder}).out; };
  write<std::uint16_t>(directory / "z/flushed.npy", "<f2", {0x0000, 0x8000});
  CHECK(
      out("z").starts_with("No value is other than zero. 1 tensor stored as binary16 holds nothing but "
                           "zeros: whether all was zero "
                           "before it was stored cannot be told."));
  write<std::uint16_t>(directory / "z/other.npy", "<f2", {0x0000, 0x3c00});
  write<float>(directory / "z/plain.npy", "<f4", {0, 0});
  CHECK(out("z").find("1 tensor stored as binary16 holds nothing but zeros, first flushed: ") !=
        std::string::npos);
  write<float>(directory / "f/plain.npy", "<f4", {0, 0});
  CHECK(out("f").starts_with("There is nothing to lose: no value is other than zero."));
}

TEST_CASE("halflab hist: block formats count scales, the dead zone and clipping, and name the worst block") {
  const TemporaryDirectory directory;
  std::vector<float> values(7 * 40);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  for (std::size_t i = 0; i < 8; ++i)
    values[3 * 40 + 32 + i] = i == 0 ? 1e6f : 1.0f;  // the last block of line 3
  const std::string file = (directory / "w.npy").string();
  std::ofstream(file, std::ios::binary)
      << test::npy_file(test::npy_dictionary("<f4", "False", "(7, 40)"), test::bytes_of(values));
  for (const fp16::BlockFormat* const format : fp16::block_formats) {
    INFO(format->name);
    const Json hist = run_halflab({"hist", file, "--format", std::string(format->name), "--json"}).json();
    const Json quantized =
        run_halflab({"quantize", file, "--format", std::string(format->name), "--json"}).json();
    const Json& summary = hist.at("summary");
    CHECK(summary.at("relative_error").number() ==
          doctest::Approx(quantized.at("summary").at("relative_error").number())
              .epsilon(1e-12));  // sums of other orders
    CHECK(summary.at("blocks").unsigned_integer() == 7 * format->block_count(40));
    std::uint64_t blocks = 0;
    for (const Json& row : hist.at("tables").at("block_scales").elements())
      blocks += row.at("tensor").string() == "w" ? row.at("blocks").unsigned_integer() : 0;
    CHECK(blocks == 7 * format->block_count(40));
    CHECK(hist.at("tables").at("worst_blocks").elements().size() == 5);
  }
  const Json mx = run_halflab({"hist", file, "--format", "mxfp4", "--json"}).json();
  CHECK(mx.at("tables").at("blocks").at(0).at("fraction_dead").number() >=
        7.0 / 280);  // the ones beside 10^6
  CHECK(run_halflab({"hist", file, "--format", "nvfp4", "--scale", "2"}).exit_code == 2);

  values[5] =
      std::numeric_limits<float>::quiet_NaN();  // its whole tensor's in NVFP4, its block's in MX formats
  std::ofstream(file, std::ios::binary)
      << test::npy_file(test::npy_dictionary("<f4", "False", "(7, 40)"), test::bytes_of(values));
  CHECK(run_halflab({"hist", file, "--format", "nvfp4"})
            .out.starts_with("nvfp4 keeps nothing of these tensors"));
  CHECK(run_halflab({"hist", file, "--format", "mxfp4"}).out.find(" 31 finite values become NaN") !=
        std::string::npos);
}

TEST_CASE("halflab hist: bad input is one line and exit code 2, and leaves nothing") {
  const TemporaryDirectory directory;
  const std::string file = write<float>(directory / "g.npy", "<f4", {1, 2}),
                    integers = write<int>(directory / "i.npy", "<i4", {1, 2});
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"hist"}, "PATH"},
           {{"hist", "none.npy"}, "file 'none.npy' cannot be read"},
           {{"hist", file, "--select", "weights?"}, "--select: 'weights?' is found in none of the 1 names"},
           {{"hist", file, "--format", "float17"}, "--format: unknown format 'float17'"},
           {{"hist", file, "--format", "fp8"}, "mxfp4, nvfp4; FP8 is e4m3"},
           {{"hist", integers}, "holds no floating-point numbers; passed over: i (--dtype bfloat16 reads"},
           {{"hist", file, "--format", "e8m0"}, "has no zero"},
           {{"hist", file, "--scale", "1000"}, "--scale: '1000' is no scale"},
           {{"hist", file, "--scaled-by", "0"}, "--scaled-by: '0' is no scale"},
           {{"hist", file, "--figure", "paper3", "--format", "e4m3"}, "allowed: binary16"},
           {{"hist", file, "--figure", "paper3", "--format", "mxfp4"}, "allowed: binary16"},
           {{"hist", file, "--figure", "paper2"}, "must be one of magnitudes, paper3"},
           {{"hist", file, "--shape", "3"}, "--shape: is of raw files"},
           {{"hist", file, "--dtype", "bfloat16"}, "of the file's own type, binary32; allowed: none"},
           {{"hist", file, "--dtype", "tf32"}, "--dtype: 'tf32' lies in no file"},
           {{"hist", file, "--dtype", "float16", "--shape", "3,x"}, "'3,x' is no shape"},
           {{"hits", file}, "unknown command 'hits'"},
           {{"watch"}, "docs/pytorch.md"},
       }) {
    std::vector<std::string> all = words;
    if (all.size() > 1) all.insert(all.end(), {"--out", directory / "out"});
    test::check_refused(all, message);
    CHECK(!std::filesystem::exists(directory / "out"));
  }
}
