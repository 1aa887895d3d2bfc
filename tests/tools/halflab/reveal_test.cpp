#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fp16/reveal_order.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/reveal/boxes.h"

namespace {

using experiments::Json;
using test::run_halflab;
using test::TemporaryDirectory;

Json summary_of(const std::vector<std::string>& words) {
  std::vector<std::string> all{"reveal", "--json"};
  all.insert(all.end(), words.begin(), words.end());
  const test::CommandRun run = run_halflab(all);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run.json().at("summary");
}

/// A Python with numpy; empty where there is none.
std::string python() {
  for (const char* const candidate : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(candidate) + " -c 'import numpy' >/dev/null 2>&1").c_str()) == 0)
      return candidate;
  }
  return {};
}

}  // namespace

TEST_CASE("halflab reveal: each of our orders is found by its name, with its arithmetic") {
  for (const std::string& order : halflab::reveal::order_names()) {
    for (const std::string dtype : {"float16", "bfloat16", "float32", "float64"}) {
      INFO(order);
      INFO(dtype);
      const Json summary = summary_of({"--order", order, "--dtype", dtype, "--terms", "45"});
      CHECK(summary.at("known_as").string().find(order) != std::string::npos);
      const std::string arithmetic = dtype == "float16"   ? "binary16"
                                     : dtype == "float32" ? "binary32"
                                     : dtype == "float64" ? "binary64"
                                                          : dtype;
      CHECK(summary.at("arithmetic").string() == arithmetic);
    }
    for (const std::string dtype : {"e5m2", "e4m3", "e3m2", "e2m3", "e2m1"}) {
      INFO(order);
      INFO(dtype);
      const Json summary = summary_of({"--order", order, "--dtype", dtype, "--terms", "19", "--trials", "0"});
      CHECK(summary.at("known_as").string().find(order) != std::string::npos);
      CHECK(summary.at("arithmetic").string() == "none");  // nothing was tried
    }
  }
}

TEST_CASE("halflab reveal: a tree is known by the orders whose own trees are the same, and by no other") {
  const fp16::NamedFormat binary64{"binary64", fp16::binary64};
  const std::vector<std::string> orders = halflab::reveal::order_names();
  for (const std::size_t terms : {1, 2, 3, 8, 9, 17, 33, 40, 130}) {
    std::vector<fp16::SummationTree> trees;
    for (const std::string& order : orders)
      trees.push_back(fp16::reveal_order(halflab::reveal::order_box(order, binary64), terms,
                                         fp16::masks_for(fp16::binary64)));
    for (std::size_t i = 0; i < orders.size(); ++i) {
      std::string known;
      for (std::size_t j = 0; j < orders.size(); ++j) {
        if (trees[j] == trees[i]) known += (known.empty() ? "" : ", ") + orders[j];
      }
      INFO(orders[i], " of ", terms);
      CHECK(summary_of({"--order", orders[i], "--terms", std::to_string(terms), "--trials", "1"})
                .at("known_as")
                .string() == known);
    }
  }
}

TEST_CASE("halflab reveal: many terms take about as many sums of each order of ours, not one for each pair") {
  CHECK(summary_of({"--order", "sequential", "--terms", "2000", "--trials", "1"}).at("known_as").string() ==
        "sequential");
}

TEST_CASE("halflab reveal: the tree is text and a figure") {
  const TemporaryDirectory directory;
  const test::CommandRun run =
      run_halflab({"reveal", "--order", "pairwise", "--terms", "5", "--out", directory / "out"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("pairwise sums 5 numbers of binary32 in the order \"pairwise\".") == 0);
  CHECK(run.out.find("(((0+1)+(2+3))+4)") != std::string::npos);
  CHECK(std::filesystem::exists(directory / "out" / "tree.gp"));
  CHECK(test::content_of(directory / "out" / "edges.csv").find("4,4,0,") != std::string::npos);
}

TEST_CASE("halflab reveal: functions of Python are asked in a process of their own") {
  const std::string interpreter = python();
  if (interpreter.empty()) {
    MESSAGE("skipped: no Python with numpy was found");
    return;
  }
  const TemporaryDirectory directory;
  std::ofstream(directory / "boxes.py") << "import numpy\nprint('what is printed is no answer')\n"
                                           "def chain(x):\n    s = x[0]\n    for "
                                           "v in x[1:]:\n        s = s + v\n    return s\n"
                                           "def wide(x):\n    s = numpy.float32(0)\n    for v in x[::-1]:\n  "
                                           "      s = s + numpy.float32(v)\n    return numpy.float16(s)\n"
                                           "def left(x):\n    s = 0.0\n    for v in x:\n        s = s + "
                                           "float(v)\n    return s\n"
                                           "def exact(x):\n    import math\n    return math.fsum(x)\n"
                                           "def broken(x):\n    raise ValueError('no sum')\n"
                                           "def product(x):\n    return x[0] * 2\n"
                                           "def interrupted(x):\n    import os, signal\n    "
                                           "os.kill(os.getppid(), signal.SIGINT)\n    "
                                           "os.kill(os.getpid(), signal.SIGINT)\n";
  ::setenv("PYTHONPATH", directory.path().c_str(), 1);
  const auto summary = [&](const std::string& box, const std::string& dtype) {
    return summary_of({"--python", box, "--interpreter", interpreter, "--dtype", dtype, "--terms", "20"});
  };
  CHECK(summary("boxes:chain", "float16").at("known_as").string().find("sequential") == 0);
  CHECK(summary("boxes:chain", "float16").at("arithmetic").string() == "binary16");
  CHECK(summary("boxes:wide", "float16").at("known_as").string().find("reversed") != std::string::npos);
  CHECK(summary("boxes:wide", "float16").at("arithmetic").string() == "binary32");
  CHECK(summary("numpy:sum", "float32").at("arithmetic").string() == "binary32");
  for (const char* const box : {"boxes:left", "boxes:exact"})
    CHECK(summary(box, "float32").at("arithmetic").string() == "binary64, not rounded to binary32");
  const auto all_at_once = run_halflab({"reveal", "--python", "boxes:exact", "--interpreter", interpreter,
                                        "--dtype", "float16", "--terms", "8"});
  CHECK(all_at_once.out.find("sums 8 numbers of binary16 at one time") != std::string::npos);
  const auto check_refused = [&](const std::string& box, const std::string& message) {
    const test::CommandRun run = run_halflab({"reveal", "--python", box, "--interpreter", interpreter});
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(message) != std::string::npos);
    CHECK(run.err.find('\n') == run.err.size() - 1);
  };
  check_refused("boxes:broken", "'boxes:broken' failed: ");
  check_refused("boxes:nothing", "'boxes:nothing' failed: AttributeError: ");
  check_refused("no_such_boxes:sum", "failed: ModuleNotFoundError: No module named 'no_such_boxes'");
  check_refused("boxes:product", "is no sum in a fixed order");
  check_refused("boxes", "must be MODULE:FUNCTION");
  CHECK(run_halflab({"reveal", "--python", "boxes:interrupted", "--interpreter", interpreter}).exit_code ==
        130);
  const test::CommandRun run =
      run_halflab({"reveal", "--python", "boxes:chain", "--interpreter", "/nowhere/python"});
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("failed: /nowhere/python: No such file or directory") != std::string::npos);
  ::unsetenv("PYTHONPATH");
}

TEST_CASE("halflab reveal: bad options are one line and exit code 2") {
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--order", "backwards"}, "--order: unknown order 'backwards'"},
           {{"--order", "pairwise", "--python", "numpy:sum"}, "--order: is one of our own"},
           {{"--dtype", "e8m0"}, "--dtype: e8m0 holds scales"},
           {{"--terms", "0"}, "--terms"},
           {{"--python", "numpy:sum", "--dtype", "e2m1"}, "--dtype: Python has no sums of e2m1"}}) {
    std::vector<std::string> all{"reveal"};
    all.insert(all.end(), words.begin(), words.end());
    const test::CommandRun run = run_halflab(all);
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(message) != std::string::npos);
  }
}
