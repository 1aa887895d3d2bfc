#include <doctest/doctest.h>

#include <fstream>
#include <string>

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
