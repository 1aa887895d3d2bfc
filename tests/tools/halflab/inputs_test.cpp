#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tests/tools/halflab/trial.h"

using test::Codes;
using test::run_halflab;
using test::TemporaryDirectory;
using test::Trial;

TEST_CASE("halflab inputs: all halves, each once, and shards that together are all pairs") {
  const Trial unary("tanh");
  CHECK(std::set(unary.operand(0).begin(), unary.operand(0).end()).size() == 65536);
  CHECK(unary.operand(0)[0x3c00] == 0x3c00);
  const Trial shard("add", {"--shard", "3/65536"});
  CHECK(shard.operand(0).size() == 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    if (shard.operand(0)[i] != 2 || shard.operand(1)[i] != i) FAIL("pair " << i);
  }
  const Trial last("add", {"--shard", "100000/100000"}), one_before("add", {"--shard", "99999/100000"});
  CHECK(last.operand(1).back() == 0xffff);
  CHECK(one_before.operand(1).back() + 1 == last.operand(1).front());
}

TEST_CASE("halflab inputs: weighted triples do not depend on shards or threads, and reach the borders") {
  const Trial all("fma", {"--count", "30000"}), again("fma", {"--count", "30000", "--threads", "3"}),
      part("fma", {"--count", "30000", "--shard", "2/3"}), other("fma", {"--count", "30000", "--seed", "2"});
  for (std::size_t k = 0; k < 3; ++k) {
    const Codes& codes = all.operand(k);
    CHECK(codes == again.operand(k));
    CHECK(codes != other.operand(k));
    CHECK(Codes(codes.begin() + 10000, codes.begin() + 20000) == part.operand(k));
    for (const std::uint16_t border :
         {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x7e00})
      CHECK((std::ranges::count(codes, border) > 0 || border == 0x7e00));
    CHECK(std::ranges::count_if(codes, test::is_nan) > 1000);
  }
}

TEST_CASE("halflab inputs: casts of wide formats meet the numbers at which narrower ones turn") {
  const TemporaryDirectory directory;
  const std::string file = directory / "x.npy";
  REQUIRE(
      run_halflab({"inputs", "cast", "--format", "binary32", "--count", "100000", "--to", file}).exit_code ==
      0);
  const auto values = test::read<float>(file);
  for (const float border : {65520.0f, std::nextafter(65520.0f, 0.0f), 0x1p-25f,
                             std::nextafter(0x1p-25f, 1.0f), 464.0f, 61440.0f, 0x1.ffcp-15f}) {
    CAPTURE(border);
    CHECK(std::ranges::count(values, border) + std::ranges::count(values, -border) > 0);
  }
  const auto is_tie = [](float value) { return (std::bit_cast<std::uint32_t>(value) & 0x1fff) == 0x1000; };
  CHECK(std::ranges::count_if(values, is_tie) > 1000);
}

TEST_CASE("halflab inputs: --count draws pairs, too, in place of all") {
  const Trial pairs("add", {"--count", "5000"});
  CHECK(pairs.operand(0).size() == 5000);
  CHECK(std::set(pairs.operand(0).begin(), pairs.operand(0).end()).size() > 1000);
  CHECK(std::ranges::count(pairs.operand(1), 0x7bff) > 0);
}

TEST_CASE("halflab inputs: the command that it names is one, with files of its own for results") {
  const TemporaryDirectory directory;
  const auto command_of = [&](const std::vector<std::string>& words) {
    const test::CommandRun run = run_halflab(words);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return run.out.substr(run.out.find("\n  halflab") + 3);
  };
  const std::string y = directory / "y.npy", other = directory / "it's here.npy", x = directory / "x.hex";
  CHECK(command_of({"inputs", "add", "--count", "9", "--to", y + "," + other}) ==
        "halflab validate add " + y + " '" + std::string(directory / "it'\\''s here.npy") +
            "' kernel_y.npy\n");
  for (const auto& [operation, format, options] :
       {std::tuple{"tanh", "binary16", ""}, std::tuple{"sqrt", "binary32", " --dtype binary32"},
        std::tuple{"cast", "bfloat16", " --dtype bfloat16 --result-dtype binary16"},
        std::tuple{"cast", "binary16", " --result-dtype bfloat16"}})
    CHECK(command_of({"inputs", operation, "--format", format, "--count", "9", "--to", x}) ==
          std::string("halflab validate ") + operation + " " + x + " y.hex" + options + "\n");
}

TEST_CASE("halflab inputs: bad input is one line and exit code 2, and a file of a pair stays what it was") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy", none = directory / "none.npy";
  test::write(none, {});
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"inputs"}, "OP"},
           {{"inputs", "tanhh", "--to", x}, "unknown operation 'tanhh'; did you mean 'tanh'?"},
           {{"inputs", "tanh"}, "--to: is needed"},
           {{"inputs", "add", "--to", x}, "--to: names 1 files; allowed: 2"},
           {{"inputs", "tanh", "--to", "x.txt"}, "is no .npy, .hex or .safetensors file"},
           {{"inputs", "tanh", "--to", x, "--shard", "0/4"},
            "--shard: '0/4' is given; must be from 1/4 to 4/4"},
           {{"inputs", "tanh", "--to", x, "--shard", "5/4"},
            "--shard: '5/4' is given; must be from 1/4 to 4/4"},
           {{"inputs", "tanh", "--to", x, "--format", "tf32"},
            "known for operands of tf32 in a file; allowed: b"},
           {{"inputs", "exp", "--to", x, "--format", "e2m1"},
            "known for operands of e2m1 in a file; allowed: b"},
           {{"inputs", "add", "--to", x + "," + y},
            "such as --shard 1/16, or the boundary-weighted ones of --count"},
           {{"inputs", "add", "--to", x + "," + x, "--count", "9"},
            "x.npy' is given twice; allowed: a file for each"},
           {{"inputs", "mul", "--to", x}, "unknown operation 'mul'; did you mean 'multiply'?"},
           {{"inputs", "fma", "--to", "a.npy,b.npy,c.npy", "--count", "0"}, "--count"},
           {{"inputs", "tanh", "--to", y, "--format", "binary32", "--count", "9"},
            "no results of tanh are known for operands of binary32 in a file; allowed: bfloat16, binary16, "},
           {{"inputs", "add", "--to", none + ",/nowhere/b.npy", "--count", "9"}, "/nowhere/b.npy"}}) {
    test::check_refused(words, message);
  }
  CHECK(test::read(none).empty());
}
