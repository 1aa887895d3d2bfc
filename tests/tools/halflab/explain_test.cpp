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

TEST_CASE("halflab explain: operands of other formats are said to be outside of the hypotheses") {
  const test::TemporaryDirectory directory;
  const std::string header = R"({"a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}})";
  std::ofstream(directory / "a.safetensors", std::ios::binary) << test::safetensors_file(header, "1234");
  const std::string file = directory / "a.safetensors";
  const test::CommandRun run = test::run_halflab({"explain", "--a", file, "--b", file, "--d", file});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("bfloat16, whose products are not among the hypotheses") != std::string::npos);
}
