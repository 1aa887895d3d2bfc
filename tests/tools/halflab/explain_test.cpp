#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fp16/half_functions.h"
#include "sim/tensor/random.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"

TEST_CASE("halflab explain: is the engine of explain_gemm, and leaves nothing unless asked") {
  const test::TemporaryDirectory directory;
  const auto old = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const test::CommandRun run = test::run_halflab({"explain", "--example-depth", "64", "--json"});
  std::filesystem::current_path(old);
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.json().at("summary").at("classification").is_string());
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("halflab explain: options that nothing would come of are refused") {
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--alpha", "2"},
                                                        {"--beta", "0"},
                                                        {"--tree", "t.json"},
                                                        {"--budget", "1"},
                                                        {"--most-algorithms", "7"}}) {
    const test::CommandRun run = test::run_halflab({"explain", option, value});
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.starts_with("halflab explain: " + option + ": "));
  }
  for (const auto& [option, value] :
       std::vector<std::pair<std::string, std::string>>{{"--seed", "7"}, {"--example-depth", "32"}}) {
    const test::CommandRun run =
        test::run_halflab({"explain", "--a", "a.npy", "--b", "b.npy", "--d", "d.npy", option, value});
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.starts_with("halflab explain: " + option + ": is of the example"));
  }
}

TEST_CASE("halflab explain: most of D is never all of it") {
  const test::TemporaryDirectory directory;
  const auto write = [&](const char* name, const std::string& shape,
                         const std::vector<std::uint16_t>& codes) {
    std::ofstream(directory / name, std::ios::binary)
        << test::npy_file(test::npy_dictionary("<f2", "False", shape), test::bytes_of(codes));
  };
  std::vector<std::uint16_t> a(64), b(64), d(64 * 64, 0x5640);  // 100
  for (std::size_t i = 0; i < 64; ++i) a[i] = b[i] = fp16::float_to_half_bits(1 + static_cast<float>(i) / 64);
  d[0] = 0x3c00;  // 1 x 1
  write("a.npy", "(64, 1)", a);
  write("b.npy", "(1, 64)", b);
  write("d.npy", "(64, 64)", d);
  const std::string out = test::run_halflab({"explain", "--a", directory / "a.npy", "--b",
                                             directory / "b.npy", "--d", directory / "d.npy"})
                              .out;
  CHECK(out.find("4095 of 4096 outputs (99.9 %) unexplained") != std::string::npos);
}

TEST_CASE(
    "halflab explain: sums in FP64 are exact values rounded once, and another order is asked for by --tree") {
  constexpr std::size_t rows = 16, depth = 64;
  const test::TemporaryDirectory directory;
  const sim::RandomStream stream(1, "operands of explain_test");
  std::vector<std::uint16_t> a(rows * depth), b(depth * rows);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = fp16::float_to_half_bits(static_cast<float>(stream.normal(2 * i)));
    b[i] = fp16::float_to_half_bits(static_cast<float>(stream.normal(2 * i + 1)));
  }
  std::vector<float> d(rows * rows);
  const auto write = [&](const char* name, const char* type, const std::string& shape, const auto& values) {
    std::ofstream(directory / name, std::ios::binary)
        << test::npy_file(test::npy_dictionary(type, "False", shape), test::bytes_of(values));
  };
  write("a.npy", "<f2", "(16, 64)", a);
  write("b.npy", "<f2", "(64, 16)", b);
  const auto explained = [&](const auto& sum_of) {
    for (std::size_t i = 0; i < d.size(); ++i) {
      std::vector<double> products;
      for (std::size_t k = 0; k < depth; ++k)
        products.push_back(double{fp16::half_bits_to_float(a[i / rows * depth + k])} *
                           fp16::half_bits_to_float(b[k * rows + i % rows]));
      d[i] = sum_of(products);
    }
    write("d.npy", "<f4", "(16, 16)", d);
    return test::run_halflab({"explain", "--a", directory / "a.npy", "--b", directory / "b.npy", "--d",
                              directory / "d.npy"})
        .out;
  };
  const std::string once = "Each is its exact value rounded once, as sums in FP64 make it.";
  const std::string exact = explained([](const std::vector<double>& products) {
    return static_cast<float>(std::accumulate(products.begin(), products.end(), 0.0));
  });
  CHECK(exact.find(once) != std::string::npos);
  const std::string from_the_last = explained([](const std::vector<double>& products) {
    float sum = 0;
    for (std::size_t k = depth; k-- > 0;) sum += static_cast<float>(products[k]);
    return sum;
  });
  CHECK(from_the_last.find("Rounding only") != std::string::npos);
  CHECK(from_the_last.find(once) == std::string::npos);
  CHECK(from_the_last.find("is tried by --tree.") != std::string::npos);
}

TEST_CASE("halflab explain: operands of bfloat16 are explained without tensor cores, those of FP8 refused") {
  const test::TemporaryDirectory directory;
  const std::string file = directory / "x.safetensors";
  const auto explain = [&](const std::string& dtype, const std::string& data) {
    const std::string header = R"({"x":{"dtype":")" + dtype + R"(","shape":[1,1],"data_offsets":[0,)" +
                               std::to_string(data.size()) + "]}}";
    std::ofstream(file, std::ios::binary) << test::safetensors_file(header, data);
    return test::run_halflab({"explain", "--a", file, "--b", file, "--d", file});
  };
  const test::CommandRun in_bfloat16 = explain("BF16", std::string("\x80\x3f", 2));  // 1 = 1 x 1
  CHECK(in_bfloat16.exit_code == 0);
  CHECK(in_bfloat16.out.find(
            "A and B hold bfloat16: chains of FP32 fused multiply-adds are tried, and no tensor cores") !=
        std::string::npos);
  const test::CommandRun in_fp8 = explain("F8_E4M3", "1");
  CHECK(in_fp8.exit_code == 2);
  CHECK(in_fp8.err.find("holds e4m3; allowed: binary16 (float16), bfloat16, binary32 (float32)") !=
        std::string::npos);
}
