#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "experiments/frame/tensor_files/safetensors.h"
#include "fp16/block.h"
#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"

namespace {

namespace files = experiments::tensor_files;

using experiments::Json;
using test::CommandRun;
using test::run_halflab;
using test::TemporaryDirectory;

template <class Number>
std::string write(const std::filesystem::path& file, const char* type, const std::string& shape,
                  const std::vector<Number>& values, const char* fortran = "False") {
  std::ofstream(file, std::ios::binary)
      << test::npy_file(test::npy_dictionary(type, fortran, shape), test::bytes_of(values));
  return file.string();
}

/// Weights with what is hard among them: zeros, a block of zeros, subnormal and large numbers.
std::vector<float> weights(std::size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = i % 11 == 0 ? -0.0f : i % 97 < 20 ? 0 : std::ldexp(normal(random), -static_cast<int>(i % 9));
  values[5] = 0x1p-140f;
  values[count - 1] = 3.5f;
  return values;
}

/// What a safetensors file holds, with its bytes.
struct Written {
  explicit Written(const std::filesystem::path& file)
      : content(test::content_of(file)),
        contents(files::parse_safetensors(std::as_bytes(std::span(content)), file, {})) {}

  const files::StoredTensor& tensor(const std::string& name) const {
    for (const files::StoredTensor& tensor : contents.tensors)
      if (tensor.name == name) return tensor;
    FAIL(name);
    return contents.tensors.front();
  }
  std::string bytes(const std::string& name) const {
    const files::Bytes data = tensor(name).data;
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }

  std::string content;
  files::Contents contents;
};

/// Codes packed bit by bit.
std::string packed(std::span<const std::uint8_t> codes, int bits) {
  std::string bytes((codes.size() * static_cast<std::size_t>(bits) + 7) / 8, '\0');
  for (std::size_t i = 0; i < codes.size() * static_cast<std::size_t>(bits); ++i) {
    const std::size_t code = i / static_cast<std::size_t>(bits), bit = i % static_cast<std::size_t>(bits);
    bytes[i / 8] = static_cast<char>(bytes[i / 8] | (codes[code] >> bit & 1) << i % 8);
  }
  return bytes;
}

struct Expected {
  std::string codes, scales;
  std::vector<double> values;
};

template <const fp16::BlockFormat& B>
Expected expected(std::span<const float> values, std::size_t length, const fp16::BlockOptions& options) {
  Expected all;
  for (std::size_t first = 0; first < values.size(); first += length) {
    std::vector<std::uint8_t> scales(B.block_count(length)), codes(length);
    std::vector<double> decoded(length);
    fp16::encode_blocks<B>(values.subspan(first, length), scales, codes, options);
    fp16::decode_blocks<B>(codes, scales, std::span(decoded), options.tensor_scale);
    all.codes += packed(codes, B.element.width());
    all.scales.append(scales.begin(), scales.end());
    all.values.insert(all.values.end(), decoded.begin(), decoded.end());
  }
  return all;
}

double relative_error(std::span<const float> values, std::span<const double> decoded) {
  double error = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(values[i] - decoded[i], 2);
    square += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / square);
}

TEST_CASE("halflab quantize: block formats are encode_blocks bit for bit, along the last dimension") {
  const TemporaryDirectory directory;
  for (const std::size_t length : {75, 4501}) {
    const std::vector<float> values = weights(4 * length);
    const std::string file =
                          write(directory / "w.npy", "<f4", "(2, 2, " + std::to_string(length) + ")", values),
                      to = directory / "q.safetensors";
    fp16::for_each_block_format([&]<const fp16::BlockFormat & B>() {
      for (const char* const rounding : {"nearest_even", "toward_zero"}) {
        for (const fp16::ScaleRule rule : fp16::scale_rules) {
          INFO(B.name, " ", rounding, " ", fp16::name_of(rule));
          if (B.has_tensor_scale && rule != fp16::ScaleRule::floor) continue;
          std::vector<std::string> words{"quantize",   file,     "--format", std::string(B.name),
                                         "--rounding", rounding, "--to",     to,
                                         "--json"};
          if (!B.has_tensor_scale)
            words.insert(words.end(), {"--scale-rule", std::string(fp16::name_of(rule))});
          const CommandRun run = run_halflab(words);
          CHECK(run.err == "");
          REQUIRE(run.exit_code == 0);
          fp16::BlockOptions options{.scale_rule = rule};
          if (rounding == std::string("toward_zero")) options.element.rounding = fp16::Rounding::toward_zero;
          if constexpr (B.has_tensor_scale) options.tensor_scale = fp16::tensor_scale<B>(3.5f);
          const Expected all = expected<B>(values, length, options);
          const Written written(to);
          CHECK(written.bytes("w") == all.codes);
          CHECK(written.bytes("w_scale") == all.scales);
          CHECK(written.tensor("w_scale").shape == files::Shape{2, 2, B.block_count(length)});
          CHECK(written.tensor("w").shape == files::Shape{2, 2, (length * B.element.width() + 7) / 8});
          CHECK(written.contents.tensors.size() == (B.has_tensor_scale ? 3 : 2));
          if constexpr (B.has_tensor_scale)
            CHECK(written.bytes("w_scale_2") == test::bytes_of(std::vector{options.tensor_scale}));
          CHECK(run.json().at("summary").at("relative_error").number() ==
                doctest::Approx(relative_error(values, all.values)));
          words.insert(words.end(), "--decoded");
          REQUIRE(run_halflab(words).exit_code == 0);
          CHECK(Written(to).bytes("w") ==
                test::bytes_of(std::vector<float>(all.values.begin(), all.values.end())));
        }
      }
    });
  }
}

TEST_CASE("halflab quantize: types are those that safetensors and PyTorch have") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "w.npy", "<f4", "(4, 64)", weights(256)),
                    to = directory / "q.safetensors";
  const auto types = [&](const char* format) {
    REQUIRE(run_halflab({"quantize", file, "--format", format, "--to", to}).exit_code == 0);
    std::vector<std::string> found;
    const Written written(to);
    for (const char* const name : {"w", "w_scale", "w_scale_2"})
      for (const files::StoredTensor& tensor : written.contents.tensors)
        if (tensor.name == name) found.emplace_back(tensor.type->safetensors);
    return found;
  };
  using Types = std::vector<std::string>;
  CHECK(types("nvfp4") == Types{"U8", "F8_E4M3", "F32"});
  CHECK(types("mxfp4") == Types{"U8", "F8_E8M0"});
  CHECK(types("mxfp6_e2m3") == Types{"U8", "F8_E8M0"});
  CHECK(types("mxfp8_e4m3") == Types{"F8_E4M3", "F8_E8M0"});
  CHECK(types("float8_e5m2") == Types{"F8_E5M2"});
  CHECK(types("bf16") == Types{"BF16"});
  CHECK(types("e2m1") == Types{"U8"});
}

TEST_CASE("halflab quantize: scalar formats are one cast, or one of the quotient by the tensor's scale") {
  const TemporaryDirectory directory;
  std::vector<float> values = weights(300);
  values[7] = 1000;
  const std::string file = write(directory / "w.npy", "<f4", "(300,)", values),
                    to = directory / "q.safetensors";
  const auto codes = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"quantize", file, "--format", "float8_e4m3fn", "--to", to});
    REQUIRE(run_halflab(more).exit_code == 0);
    return Written(to);
  };
  const auto cast = [&](double scale, fp16::Attributes attributes) {
    std::string bytes;
    for (const float value : values)
      bytes +=
          static_cast<char>(fp16::encode<fp16::e4m3>(static_cast<double>(value) / scale, attributes).bits);
    return bytes;
  };
  CHECK(codes({}).bytes("w") == cast(1, {}));
  CHECK(codes({"--saturate"}).bytes("w") == cast(1, {.saturate = true}));
  CHECK(codes({"--rounding", "to_odd"}).bytes("w") == cast(1, {.rounding = fp16::Rounding::to_odd}));
  const Written scaled = codes({"--per-tensor-scale"});
  const float scale = 1000.0f / 448.0f;
  CHECK(scaled.bytes("w_scale") == test::bytes_of(std::vector{scale}));
  CHECK(scaled.tensor("w_scale").shape.empty());
  CHECK(scaled.bytes("w") == cast(scale, {}));
  const Json summary = run_halflab({"quantize", file, "--format", "e4m3", "--json"}).json().at("summary");
  CHECK(summary.at("lost").integer() == 1);
  CHECK(summary.at("fraction_overflow").number() > 0);
}

TEST_CASE(
    "halflab quantize: by the tensor's scale the largest value does not overflow, however it is rounded") {
  const TemporaryDirectory directory;
  for (const std::vector<float>& values : std::vector<std::vector<float>>{
           {9.3e-43f, 1e-43f}, {-1e-45f, 0}, {0.1f, -0.1f}, {1e-3f, 0}, {-0.7f, 0.1f}, {3e38f, 1}}) {
    const std::string file = write(directory / "w.npy", "<f4", "(2,)", values);
    for (const char* const rounding : {"nearest_even", "toward_positive", "toward_negative", "stochastic"}) {
      for (const char* const format : {"e4m3", "binary16"}) {
        INFO(values[0], " ", rounding, " ", format);
        const Json summary = run_halflab({"quantize", file, "--format", format, "--per-tensor-scale",
                                          "--rounding", rounding, "--json"})
                                 .json()
                                 .at("summary");
        CHECK(summary.at("fraction_overflow").number() == 0);
        CHECK(summary.at("lost").integer() == 0);
        CHECK(summary.at("relative_error").number() < 1);
      }
    }
  }
}

TEST_CASE(
    "halflab quantize: a tensor whose scale is beyond binary32 is told to overflow, and is not called "
    "exact") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "d.npy", "<f8", "(3,)", std::vector<double>{1e300, 1e290, 3});
  const CommandRun run = run_halflab({"quantize", file, "--format", "e4m3", "--per-tensor-scale"});
  CHECK(run.out.starts_with("e4m3 is off by 100.0 % of the norm of what stays finite of these tensors"));
  CHECK(run.out.find("2 finite values become NaN or infinite") != std::string::npos);
}

TEST_CASE("halflab quantize: a tensor of which nothing is left is the worst") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "in");
  write(directory / "in/v.npy", "<f4", "(2,)", std::vector<float>{0.1f, 0.2f});
  write(directory / "in/w.npy", "<f4", "(2,)", std::vector<float>{1e6f, 1e6f});
  const std::string out = run_halflab({"quantize", directory / "in", "--format", "binary16"}).out;
  CHECK(out.find("; of w nothing is left.") != std::string::npos);
}

TEST_CASE("halflab quantize: stochastic bits follow the seed alone") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "w.npy", "<f4", "(8, 64)", weights(512)),
                    to = directory / "q.safetensors";
  for (const char* const format : {"nvfp4", "e4m3"}) {
    const auto bytes = [&](const char* seed, const char* threads) {
      REQUIRE(run_halflab({"quantize", file, "--format", format, "--rounding", "stochastic", "--seed", seed,
                           "--threads", threads, "--to", to})
                  .exit_code == 0);
      return test::content_of(to);
    };
    const std::string one = bytes("1", "1");
    CHECK(bytes("1", "3") == one);
    CHECK(bytes("2", "1") != one);
  }
}

TEST_CASE("halflab quantize: errors of doubles are theirs, however small or large") {
  const TemporaryDirectory directory;
  const auto quantized = [&](const std::vector<double>& values, std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"quantize", write(directory / "d.npy", "<f8", "(2,)", values), "--json", "--format"});
    const CommandRun run = run_halflab(words);
    CAPTURE(run.out);
    CHECK(run.exit_code == 0);
    CHECK(run.out.find("holds these tensors exactly") == std::string::npos);
    CHECK(run.json().at("summary").at("nonfinite").integer() == 0);
    return run.json().at("summary");
  };
  const std::vector<double> tiny{1e-200, 3e-200}, huge{1e200, 1};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"e4m3", "--per-tensor-scale"}, {"binary16"}, {"nvfp4"}, {"mxfp8_e4m3"}}) {
    CAPTURE(words.front());
    const Json summary = quantized(tiny, words);
    CHECK(summary.at("relative_error").number() == doctest::Approx(1));
    CHECK(summary.at("sqnr_db").number() == doctest::Approx(0).epsilon(1e-9));
    CHECK(summary.at("max_abs").number() == 3e-200);
    CHECK(summary.at("fraction_flushed").number() == 1);
  }
  CHECK(quantized(huge, {"binary32", "--saturate"}).at("relative_error").number() == doctest::Approx(1));
  CHECK(quantized(huge, {"mxfp8_e4m3"}).at("lost").integer() == 2);
  CHECK(quantized(huge, {"mxfp8_e4m3"}).at("max_abs").number() == 1e200);
}

TEST_CASE("halflab quantize: --decoded writes the values, of any order and type of the file") {
  const TemporaryDirectory directory;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};  // of a (2, 3) matrix in columns: rows 1 3 5 and 2 4 6
  const std::string file = write(directory / "w.npy", "<f4", "(2, 3)", values, "True"),
                    to = directory / "q.safetensors";
  REQUIRE(run_halflab({"quantize", file, "--format", "mxfp4", "--decoded", "--to", to}).exit_code == 0);
  const Written written(to);
  CHECK(written.tensor("w").shape == files::Shape{2, 3});
  CHECK(written.bytes("w") ==
        test::bytes_of(std::vector<float>{1, 3, 4, 2, 4, 6}));  // 5 is a tie: 4, the even code
  const std::string doubles = write<double>(directory / "d.npy", "<f8", "(2,)", {0x1.0000000000001p0, 3});
  CHECK(run_halflab({"quantize", doubles, "--format", "mxfp4"}).out.find("rounded first") !=
        std::string::npos);
  const std::string number = write<float>(directory / "n.npy", "<f4", "()", {2});
  const std::string nothing = write<float>(directory / "e.npy", "<f4", "(0, 4)", {});
  for (const char* const format : {"nvfp4", "mxfp6_e3m2", "e4m3", "binary16"}) {
    CHECK(run_halflab({"quantize", number, nothing, "--format", format, "--to", to}).exit_code == 0);
    CHECK(Written(to).tensor("e").elements == 0);
  }
}

TEST_CASE("halflab quantize: blocks with a NaN are NaN, and it says so") {
  const TemporaryDirectory directory;
  std::vector<float> values(64, 1.0f);
  values[3] = NAN;
  const std::string file = write(directory / "w.npy", "<f4", "(64,)", values);
  const CommandRun run = run_halflab({"quantize", file, "--format", "mxfp8_e5m2", "--json"});
  CHECK(run.json().at("summary").at("nonfinite").integer() == 1);
  CHECK(run.json().at("summary").at("lost").integer() == 31);
  CHECK(run.json().at("verdict").string().find("1 value is NaN or infinite in the file; one makes its whole "
                                               "block NaN.") != std::string::npos);
}

TEST_CASE(
    "halflab quantize: where a NaN or an infinity takes its whole tensor along, nothing is called exact") {
  const TemporaryDirectory directory;
  std::vector<float> values = weights(64);
  values[3] = INFINITY;
  const std::string file = write(directory / "w.npy", "<f4", "(64,)", values);
  const CommandRun run = run_halflab({"quantize", file, "--format", "nvfp4", "--json"});
  const std::string verdict = run.json().at("verdict").string();
  CHECK(run.json().at("summary").at("lost").integer() == 63);
  CHECK(run.json().at("summary").at("relative_error").string() == "inf");
  CHECK(verdict.find("nvfp4 keeps nothing of these tensors") != std::string::npos);
  CHECK(verdict.find("makes its whole tensor NaN") != std::string::npos);
  CHECK(verdict.find("exact") == std::string::npos);
}

TEST_CASE("halflab quantize: --out keeps tables and a page, --to nothing where something is wrong") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "w.npy", "<f4", "(300,)", weights(300));
  CHECK(run_halflab({"quantize", file, "--out", directory / "out"}).exit_code == 0);
  CHECK(std::filesystem::exists(directory / "out" / "report.html"));
  std::filesystem::create_directory(directory / "two");
  write(directory / "two/w.npy", "<f4", "(300,)", weights(300));
  write(directory / "two/w_scale.npy", "<f4", "(300,)", weights(300));
  const std::string to = directory / "q.safetensors",
                    integers = write(directory / "i.npy", "<i4", "(300,)", weights(300));
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"quantize"}, "PATH"},
           {{"quantize", file, "--format", "nvfp5"}, "--format: unknown format 'nvfp5'"},
           {{"quantize", file, "--format", "e8m0"}, "has no zero"},
           {{"quantize", file, "--format", "tf32"}, "lies in no file"},
           {{"quantize", file, "--rounding", "up"}, "--rounding: unknown rounding 'up'"},
           {{"quantize", file, "--scale-rule", "floor"},
            "--scale-rule: nvfp4 has no scales that are powers of two"},
           {{"quantize", file, "--format", "mxfp4", "--scale-rule", "up"},
            "--scale-rule: unknown scale rule 'up'"},
           {{"quantize", file, "--per-tensor-scale"}, "--per-tensor-scale: nvfp4 has scales of its own"},
           {{"quantize", file, "--saturate"}, "--saturate: nvfp4 always saturates"},
           {{"quantize", directory / "two"}, "two tensors would be called 'w_scale'"},
           {{"quantize", integers}, "holds no floating-point numbers; passed over: i"},
           {{"quantize", "none.npy"}, "file 'none.npy' cannot be read"}}) {
    std::vector<std::string> all = words;
    if (all.size() > 1) all.insert(all.end(), {"--to", to});
    const CommandRun run = run_halflab(all);
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(message) != std::string::npos);
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CHECK(!std::filesystem::exists(to));
  }
  CHECK(run_halflab({"quantize", file, "--to", to}).exit_code == 0);
  CHECK(run_halflab({"quantize", to, "--to", to}).err.find("is read") != std::string::npos);
  const std::string folder = directory / "two", read = directory / "two/q.safetensors";
  std::filesystem::copy(to, read);
  CHECK(run_halflab({"quantize", folder, "--select", "^w$", "--to", read}).err.find("is read") !=
        std::string::npos);
  CHECK(test::content_of(read) == test::content_of(to));
  CHECK(run_halflab({"quantize", file, "--decoded"}).err.find("allowed beside --to FILE") !=
        std::string::npos);
  CHECK(run_halflab({"quantize", file, "--to", file}).err.find("allowed: names that end in .safetensors") !=
        std::string::npos);
}

}  // namespace
