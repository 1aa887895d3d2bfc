#include "sim/trainer/allreduce.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "fp16/half.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"

namespace {

using experiments::Json;
using test::CommandRun;
using test::run_halflab;
using test::TemporaryDirectory;

using Ranks = std::vector<std::vector<float>>;

/// A file for each rank.
std::vector<std::string> write(const TemporaryDirectory& directory, const Ranks& ranks) {
  std::vector<std::string> paths;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto file = directory / ("g" + std::to_string(rank) + ".npy");
    std::ofstream(file, std::ios::binary) << test::npy_file(
        test::npy_dictionary("<f4", "False", "(" + std::to_string(ranks[rank].size()) + ",)"),
        test::bytes_of(ranks[rank]));
    paths.push_back(file.string());
  }
  return paths;
}

CommandRun reduce(const std::vector<std::string>& paths, std::vector<std::string> more) {
  more.insert(more.begin(), paths.begin(), paths.end());
  more.insert(more.begin(), "allreduce");
  return run_halflab(more);
}

Ranks gradients(std::size_t ranks, std::size_t elements, float scale, bool are_halves) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  Ranks all(ranks, std::vector<float>(elements));
  for (auto& rank : all) {
    for (float& value : rank) {
      value = scale * normal(random);
      if (are_halves)
        value = static_cast<float>(fp16::decode<fp16::binary16>(fp16::encode<fp16::binary16>(value).bits));
    }
  }
  return all;
}

const Json& row(const Json& table, const char* order, const char* precision) {
  for (const Json& candidate : table.elements())
    if (candidate.at("order").string() == order && candidate.at("precision").string() == precision)
      return candidate;
  FAIL(order);
  return table;
}

template <const fp16::Format& F>
double rounded(double value) {
  return fp16::decode<F>(fp16::encode<F>(value).bits);
}

/// Two values at a time in a format, in the order of recursive doubling over four ranks.
template <const fp16::Format& F>
double error_of_doubling(const Ranks& ranks) {
  double error = 0, square = 0;
  for (std::size_t i = 0; i < ranks[0].size(); ++i) {
    std::vector<double> quotients;
    double exact = 0;
    for (const auto& rank : ranks) {
      quotients.push_back(rounded<F>(rounded<F>(rank[i]) / 4));
      exact += static_cast<double>(rank[i]) / 4;
    }
    const double sum =
        rounded<F>(rounded<F>(quotients[0] + quotients[1]) + rounded<F>(quotients[2] + quotients[3]));
    error += std::pow(sum - exact, 2);
    square += exact * exact;
  }
  return std::sqrt(error / square);
}

TEST_CASE("halflab allreduce: errors are those of the sums that an order forms") {
  const TemporaryDirectory directory;
  for (const bool are_halves : {true, false}) {
    const Ranks ranks = gradients(4, 500, 1, are_halves);
    const CommandRun run = reduce(write(directory, ranks), {"--json"});
    CHECK(run.err == "");
    REQUIRE(run.exit_code == 0);
    const Json json = run.json();
    const Json& table = json.at("tables").at("allreduce");
    CHECK(table.elements().size() == 35);
    CHECK(row(table, "recursive_doubling", "fp16").at("relative_error").number() ==
          doctest::Approx(error_of_doubling<fp16::binary16>(ranks)).epsilon(1e-9));
    CHECK(row(table, "recursive_doubling", "bf16").at("relative_error").number() ==
          doctest::Approx(error_of_doubling<fp16::bfloat16>(ranks)).epsilon(1e-9));
    CHECK(row(table, "ring", "fp32").at("relative_error").number() < 1e-7);
    CHECK(row(table, "rabenseifner", "fp16").at("relative_error") ==
          row(table, "recursive_doubling", "fp16").at("relative_error"));
    CHECK((json.at("verdict").string().find("hold more than BF16:") != std::string::npos) == are_halves);
    CHECK((json.at("verdict").string().find("more than FP16 and BF16:") == std::string::npos) == are_halves);
  }
}

TEST_CASE("halflab allreduce: long chains lose what stays away from large sums") {
  const TemporaryDirectory directory;
  Ranks ranks(64, {0x1p-11f});
  ranks[0] = {1};  // 1 + 2^-11 is a tie, to 1, and so on
  const Json table =
      reduce(write(directory, ranks), {"--division", "after", "--json"}).json().at("tables").at("allreduce");
  const double exact = 1 + 63 * 0x1p-11;
  CHECK(row(table, "direct", "fp16").at("relative_error").number() == doctest::Approx(1 - 1 / exact));
  CHECK(row(table, "direct", "fp32_accumulation").at("relative_error").number() < 0x1p-11);
  CHECK(row(table, "recursive_doubling", "fp16").at("relative_error").number() < 0x1p-10);
}

TEST_CASE("halflab allreduce: what vanishes, overflows or is not finite is counted") {
  const TemporaryDirectory directory;
  const Ranks ranks{{0x1p-24f, 60000, 1, 1e-9f}, {0x1p-24f, 60000, NAN, 1e-9f}};
  const auto paths = write(directory, ranks);
  const Json after = reduce(paths, {"--division", "after", "--json"}).json();
  const Json& table = after.at("tables").at("allreduce");
  CHECK(row(table, "ring", "fp16").at("overflowed").integer() == 1);
  CHECK(row(table, "ring", "fp32").at("overflowed").integer() == 0);
  CHECK(row(table, "ring", "fp16").at("fraction_flushed").number() == doctest::Approx(1.0 / 3));
  CHECK(row(table, "ring", "fp16").at("fraction_inputs_flushed").number() == doctest::Approx(2.0 / 6));
  CHECK(after.at("summary").at("nonfinite_places").integer() == 1);
  const Json before = reduce(paths, {"--json"}).json();
  CHECK(row(before.at("tables").at("allreduce"), "ring", "fp16").at("overflowed").integer() == 0);
  CHECK(row(before.at("tables").at("allreduce"), "ring", "fp16").at("fraction_inputs_flushed").number() ==
        doctest::Approx(4.0 / 6));
  CHECK(before.at("verdict").string().starts_with(
      "This is of the 3 of 4 elements that are finite at every rank. Left out, as NaN or "
      "infinite at some rank already: 1. "));
}

TEST_CASE("halflab allreduce: it is said which of FP16 and BF16 is nearer to the exact mean") {
  const TemporaryDirectory directory;
  const auto out = [&](float scale) {
    return reduce(write(directory, gradients(4, 500, scale, false)), {"--orders", "ring"}).out;
  };
  const auto says = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  CHECK(says(out(1), "FP16 is nearer than BF16, by "));
  CHECK(says(out(0x1p-24f), "BF16 is nearer than FP16, by "));
  CHECK(says(out(0x1p20f), "BF16 holds what overflows in FP16"));
}

TEST_CASE("halflab allreduce: a mean that is exactly zero, or nowhere finite, is told as such") {
  const TemporaryDirectory directory;
  const auto out = [&](const Ranks& ranks) {
    return reduce(write(directory, ranks), {"--precisions", "fp16,fp32_accumulation,fp32"}).out;
  };
  CHECK(out({{0, 0}, {0, 0}}).starts_with("There is nothing to lose"));
  const std::string missed = out({{1}, {1000}, {-1001}});  // 0.33325 + 333.25 - 333.75 in FP16
  CHECK(missed.starts_with("The exact mean is zero everywhere, and "));
  CHECK(missed.find("has the norm 0.25") != std::string::npos);
  CHECK(out({{NAN, 1}, {1, NAN}}).starts_with("It cannot be told: every element is NaN or infinite"));
  CHECK(out({{NAN, 1}, {1, 1}}).starts_with("This is of the 1 of 2 elements"));
}

TEST_CASE("halflab allreduce: what only the rounding of binary64 to FP32 loses is told apart") {
  const TemporaryDirectory directory;
  const auto reduced = [&](const std::vector<double>& values, const std::vector<std::string>& more = {}) {
    const auto file = (directory / "d.npy").string();
    std::ofstream(file, std::ios::binary)
        << test::npy_file(test::npy_dictionary("<f8", "False", "(" + std::to_string(values.size()) + ",)"),
                          test::bytes_of(values));
    const CommandRun run = reduce({file, file}, more);
    CHECK(run.exit_code == 0);
    return run;
  };
  const std::string beyond = reduced({1e300, 1, NAN}).out;
  CHECK(
      beyond.starts_with("This is of the 1 of 3 elements that are finite at every rank. Left out, as NaN or "
                         "infinite at some rank already: 1, and as beyond FP32, to which values are rounded "
                         "first: 1. "));
  CHECK(reduced({1e300}).out.starts_with(
      "It cannot be told: no element is finite at every rank, 1 of 1 since FP32"));
  const std::string tiny = reduced({3e-200, -4e-200}).out;
  CHECK(tiny.starts_with("It cannot be told: of what FP32 holds"));
  CHECK(tiny.find("to FP32 first loses 100.0 % of their norm") != std::string::npos);
  CHECK(tiny.find(": 4 of 4 non-zero values become zero.") != std::string::npos);

  const Json summary = reduced({1e300, 1 + 0x1p-24, 3e-200}, {"--json"}).json().at("summary");
  CHECK(summary.at("nonfinite_places").integer() == 0);
  CHECK(summary.at("places_beyond_fp32").integer() == 1);
  CHECK(summary.at("inputs_flushed_in_fp32").integer() == 2);
  CHECK(summary.at("relative_error.inputs_in_fp32").number() == doctest::Approx(0x1p-24));
  CHECK(reduced({1, 2}).out.find("to FP32 first") == std::string::npos);
}

TEST_CASE("halflab allreduce: tensors of integers are named and passed over") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "i.npy", std::ios::binary)
      << test::npy_file(test::npy_dictionary("<i4", "False", "(1,)"), test::bytes_of(std::vector<int>{1}));
  const std::string file = (directory / "i.npy").string();
  const CommandRun run = run_halflab({"allreduce", file, file});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("holds no floating-point numbers; passed over: i") != std::string::npos);
}

TEST_CASE("halflab allreduce: where to divide is named where that alone prevents an overflow") {
  const TemporaryDirectory directory;
  const auto verdict = [&](float value, const std::string& division) {
    return reduce(write(directory, {{value}, {value}}), {"--precisions", "fp16", "--division", division}).out;
  };
  const std::string hint = "overflows in every order, which --division before prevents.";
  CHECK(verdict(60000, "after").find(hint) != std::string::npos);
  CHECK(verdict(70000, "after").find("overflows in every order.") != std::string::npos);
  CHECK(verdict(60000, "before").find("mean overflows in") == std::string::npos);
}

TEST_CASE("halflab allreduce: orders are chosen, threads change nothing, and --out keeps a page") {
  const TemporaryDirectory directory;
  const auto paths = write(directory, gradients(5, 3000, 1e-6f, false));
  const CommandRun one =
      reduce(paths, {"--orders", "ring,direct", "--precisions", "fp16", "--json", "--threads", "1"});
  CHECK(one.json().at("tables").at("allreduce").elements().size() == 2);
  CHECK(reduce(paths, {"--orders", "ring,direct", "--precisions", "fp16", "--json", "--threads", "4"}).out ==
        one.out);
  CHECK(reduce(paths, {"--orders", "all", "--out", directory / "out"}).exit_code == 0);
  for (const char* const name : {"allreduce.csv", "error.gp", "report.html"})
    CHECK(std::filesystem::exists(directory / "out" / name));
}

TEST_CASE("halflab allreduce: bad input is one line and exit code 2") {
  const TemporaryDirectory directory;
  const auto paths = write(directory, {{1, 2}, {1, 2, 3}});
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{paths[0]}, "PATH"},
           {{paths[0], paths[1]}, "has the shape (3,) at rank 1 and (2,) at rank 0"},
           {{paths[0], directory.path().string()}, "rank 1 has 2 tensors and rank 0 1"},
           {{paths[0], paths[0], "--orders", "rign"}, "--orders: unknown order 'rign'; did you mean 'ring'"},
           {{paths[0], paths[0], "--precisions", "fp8"}, "--precisions: unknown precision 'fp8'"},
           {{paths[0], paths[0], "--division", "never"}, "--division: unknown division 'never'"},
           {{paths[0], paths[0], "--division", "all"}, "--division: 'all' is not one"}}) {
    const CommandRun run = reduce(words, {});
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err.find(message) != std::string::npos);
    CHECK(run.err.find('\n') == run.err.size() - 1);
  }
}

}  // namespace
