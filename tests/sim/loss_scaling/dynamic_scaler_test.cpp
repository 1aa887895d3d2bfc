#include "sim/loss_scaling/dynamic_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/sim/loss_scaling/scaler_traces.h"

using scaler_traces::check;
using scaler_traces::follow;
using scaler_traces::Trace;

namespace {

constexpr double infinite = HUGE_VAL;

names::GivenOptions with(names::GivenOptions options) {
  options.merge(names::GivenOptions{{"init_scale", 1024}, {"growth_interval", 4}});
  return options;
}

// S starts at 2^10 and grows after four clean steps.
constexpr std::string_view first_pattern = "....X....XX.X.......";
constexpr std::string_view second_pattern = "....XXXXX....XX.XX......";

struct Family {
  Trace first;
  Trace second;
  std::vector<std::pair<std::string, names::GivenOptions>> members;
};

const std::vector<Family> families{
    {.first = {10, 10, 10, 11, 10, 10, 10, 10, 11, 10, 9, 9, 8, 8, 8, 8, 9, 9, 9, 9},
     .second = {10, 10, 10, 11, 10, 9, 8, 7, 6, 6, 6, 6, 7, 6, 5, 5, 4, 3, 3, 3, 3, 4, 4, 4},
     .members = {{"dynamic", {}},
                 {"apex_amp", {}},
                 {"apex_fp16_optimizer", {}},
                 {"tensorflow", {}},
                 {"keras", {}},
                 {"jmp", {}},
                 {"fairseq", {}},
                 {"mindspore", {}},
                 {"mindspore_manager", {}},
                 {"openseq2seq_backoff", {}},
                 {"paddle", {}},
                 {"paddle_static", {}},
                 {"megatron", {{"hysteresis", 1}}},
                 {"colossalai", {{"hysteresis", 1}}},
                 {"apex_hysteresis", {{"hysteresis", 1}}}}},
    {.first = {10, 10, 10, 11, 11, 11, 11, 11, 12, 12, 11, 11, 10, 10, 10, 10, 11, 11, 11, 11},
     .second = {10, 10, 10, 11, 11, 10, 9, 8, 7, 7, 7, 7, 8, 8, 7, 7, 6, 5, 5, 5, 5, 6, 6, 6},
     .members = {{"megatron", {}}, {"colossalai", {}}}},
    {.first = {10, 10, 10, 11, 11, 11, 11, 11, 12, 12, 11, 11, 11, 11, 11, 11, 12, 12, 12, 12},
     .second = {10, 10, 10, 11, 11, 10, 9, 8, 7, 7, 7, 7, 8, 8, 7, 7, 7, 6, 6, 6, 6, 7, 7, 7},
     .members = {{"apex_hysteresis", {}}}},
    {.first = {10, 10, 10, 10, 10, 10, 10, 10, 10, 9, 8, 8, 7, 7, 7, 7, 7, 8, 8, 8},
     .second = {10, 10, 10, 10, 10, 9, 8, 7, 6, 6, 6, 6, 6, 5, 4, 4, 3, 2, 2, 2, 2, 2, 3, 3},
     .members = {{"deepspeed", {}}}},
    {.first = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 9, 9, 9, 9, 9, 9, 9, 10, 10, 10},
     .second = {10, 10, 10, 10, 10, 9, 8, 7, 6, 6, 6, 6, 6, 6, 5, 5, 5, 4, 4, 4, 4, 4, 5, 5},
     .members = {{"deepspeed", {{"consecutive_hysteresis", 1}}}}},
    {.first = {10, 10, 10, 10, 9, 9, 9, 9, 9, 8, 7, 7, 6, 6, 6, 6, 6, 7, 7, 7},
     .second = {10, 10, 10, 10, 9, 8, 7, 6, 5, 5, 5, 5, 5, 4, 3, 3, 2, 1, 1, 1, 1, 1, 2, 2},
     .members = {{"deepspeed", {{"hysteresis", 1}}}, {"flax", {}}}},
    {.first = {10, 10, 10, 11, 11, 11, 11, 11, 12, 12, 11, 11, 11, 11, 11, 11, 12, 12, 12, 12},
     .second = {10, 10, 10, 11, 11, 10, 10, 9, 9, 9, 9, 9, 10, 10, 9, 9, 9, 8, 8, 8, 8, 9, 9, 9},
     .members = {{"paddle", {{"hysteresis", 2}}}, {"paddle_static", {{"hysteresis", 2}}}}},
};

}  // namespace

TEST_CASE("every scheduler follows its literal traces of growth, lone overflows and runs of overflows") {
  for (const Family& family : families) {
    for (const auto& [name, options] : family.members) {
      check({{name, with(options), first_pattern, family.first},
             {name, with(options), second_pattern, family.second}});
    }
  }
}

TEST_CASE("DeepSpeed grows a step late only after its start and bad steps, flax always, the others never") {
  const names::GivenOptions options{{"init_scale", 1024}, {"growth_interval", 2}};
  check({{"deepspeed", options, "......X.....", {10, 10, 11, 11, 12, 12, 12, 12, 12, 13, 13, 14}},
         {"flax", options, "......X.....", {10, 10, 11, 11, 11, 12, 11, 11, 11, 12, 12, 12}},
         {"dynamic", options, "......X.....", {10, 11, 11, 12, 12, 13, 12, 12, 13, 13, 14, 14}}});
  check(
      {{"deepspeed", {{"init_scale", 1024}, {"growth_interval", 1}}, "...X...", {10, 11, 12, 12, 12, 13, 14}},
       {"flax", {{"init_scale", 1024}, {"growth_interval", 1}}, "...X...", {10, 11, 11, 10, 10, 11, 11}}});
}

TEST_CASE("floors: 1 where the original has one, and none elsewhere") {
  const names::GivenOptions four{{"init_scale", 4}};
  for (const char* name : {"apex_fp16_optimizer", "openseq2seq_backoff", "tensorflow", "jmp", "paddle_static",
                           "mindspore", "mindspore_manager"}) {
    check({{name, four, "XXXX", {1, 0, 0, 0}}});
  }
  for (const char* name : {"dynamic", "apex_amp", "keras", "flax", "paddle"}) {
    check({{name, four, "XXXX", {1, 0, -1, -2}}});
  }
  check({{"megatron", four, "XXXXX", {2, 1, 0, 0, 0}},
         {"colossalai", four, "XXXXX", {2, 1, 0, -1, -2}},
         {"apex_hysteresis", four, "XXXXX", {2, 1, 0, -1, -2}}});
}

TEST_CASE("floors that are options") {
  check({{"apex_amp",
          {{"init_scale", 4}, {"min_scale", 0.75}},
          "XXXX",
          {1, 0, std::log2(0.75), std::log2(0.75)}},
         {"megatron", {{"init_scale", 4}, {"min_scale", 2}}, "XXXX", {2, 1, 1, 1}},
         {"colossalai", {{"init_scale", 4}, {"min_scale", 0.5}}, "XXXXX", {2, 1, 0, -1, -1}},
         {"openseq2seq_backoff", {{"init_scale", 4}, {"min_scale", 2}}, "XXX", {1, 1, 1}},
         {"flax", {{"init_scale", 4}, {"min_scale", 2}}, "XXX", {1, 1, 1}}});
  const names::GivenOptions jmp{{"init_scale", 4}, {"min_scale", 0.25}};
  check({{"jmp", jmp, "XXXXX", {1, 0, -1, -2, -2}}});
  names::GivenOptions under_jit = jmp;
  under_jit["jit_forgets_min_scale"] = 1;
  check({{"jmp", under_jit, "XXXXX", {1, 0, 0, 0, 0}}});
}

TEST_CASE("floors at the end of the number range: zero in binary32, later in binary64, flax's above both") {
  // 2^-150 is a tie and goes to the even neighbour, 0.
  for (const char* name : {"dynamic", "keras", "paddle"}) {
    check({{name,
            {{"init_scale", 0x1p-148}, {"growth_interval", 1}},
            "XX..",
            {-149, -infinite, -infinite, -infinite}}});
  }
  check({{"apex_amp",
          {{"init_scale", 0x1p-148}, {"growth_interval", 1}},
          "XX..",
          {-149, -infinite, -149, -148}},
         {"flax", {{"init_scale", 0x1p-125}}, "XXX", {-126, -126, -126}}});
}

TEST_CASE("ceilings: 2^24 in Apex amp, 2^14 in OpenSeq2Seq, the largest binary32 number in flax") {
  check({{"apex_amp", {{"init_scale", 0x1p23}, {"growth_interval", 1}}, "..X.", {24, 24, 23, 24}},
         {"apex_amp",
          {{"init_scale", 8}, {"max_scale", 24}, {"growth_interval", 1}},
          "..X",
          {4, std::log2(24.0), std::log2(12.0)}},
         {"openseq2seq_backoff", {{"growth_interval", 1}}, ".X..", {14, 13, 14, 14}},
         {"colossalai", {{"init_scale", 8}, {"max_scale", 32}, {"growth_interval", 1}}, "...", {4, 5, 5}}});
  const auto flax = sim::make_scaler("flax", {{"init_scale", 0x1p127}, {"growth_interval", 1}});
  follow(*flax, "..");
  CHECK(flax->scale() == 0x1.fffffep+127F);
  follow(*flax, "X");
  CHECK(flax->scale() == 0x1.fffffep+126F);
}

TEST_CASE("growth beyond binary32 is refused, and the clean steps count anew all the same") {
  const names::GivenOptions options{{"init_scale", 0x1p127}, {"growth_interval", 2}};
  for (const char* name : {"dynamic", "tensorflow", "jmp", "paddle_static", "mindspore"}) {
    check({{name, options, "...X..", {127, 127, 127, 126, 126, 127}}});
  }
  check({{"apex_hysteresis", options, "...XX..", {127, 127, 127, 127, 126, 126, 127}}});
  const auto scaler = sim::make_scaler("dynamic", options);
  follow(*scaler, "..");
  CHECK(scaler->state()[1] == std::pair<std::string, double>("growth_tracker", 0));
}

TEST_CASE("growth beyond binary32 is stored as infinity for ever, in binary64 until the next overflow") {
  const names::GivenOptions options{{"init_scale", 0x1p127}, {"growth_interval", 1}};
  for (const char* name : {"keras", "paddle"})
    check({{name, options, ".XX", {infinite, infinite, infinite}}});
  for (const char* name : {"megatron", "colossalai"}) {
    check({{name, options, ".XXX", {infinite, infinite, infinite, infinite}}});
  }
  for (const char* name : {"apex_fp16_optimizer", "mindspore_manager"}) {
    check({{name, options, ".XX", {infinite, 127, 126}}});
  }
  check({{"deepspeed", options, "..XX", {127, infinite, infinite, 127}}});
}

TEST_CASE("DeepSpeed ends the run at a bad step that finds S exactly at the minimum, and not before") {
  check({{"deepspeed", {{"init_scale", 4}}, "XXX!", {2, 1, 0, 0}},
         {"deepspeed",
          {{"init_scale", 4}, {"hysteresis", 1}, {"min_scale", 0.75}},
          "XXX!",
          {1, 0, std::log2(0.75), std::log2(0.75)}},
         {"deepspeed", {{"init_scale", 4}, {"raise_error_at_min_scale", 0}}, "XXXXX", {2, 1, 0, 0, 0}},
         // a bad step that the hysteresis forgives does not end the run either
         {"deepspeed", {{"init_scale", 1}}, "X!", {0, 0}}});
  const auto scaler = sim::make_scaler("deepspeed", {{"init_scale", 1}, {"hysteresis", 1}});
  follow(*scaler, "!");
  CHECK(scaler->abort_reason() ==
        "scaler 'deepspeed': the scale is already at its minimum, 1, and the gradients are still not finite");
  follow(*scaler, ".");
}

TEST_CASE("MindSpore's manager ends the run at the 1001st bad step in a row") {
  const std::string thousand(1000, 'X');
  const auto scaler = sim::make_scaler("mindspore_manager");
  follow(*scaler, thousand + "." + thousand + "!");
  CHECK(scaler->abort_reason() ==
        "scaler 'mindspore_manager': 1001 steps in a row had gradients that are not finite; allowed: 1000");
  check({{"mindspore_manager",
          {{"init_scale", 1024}, {"max_consecutive_bad", 2}},
          "XX.XX!",
          {9, 8, 8, 7, 6, 5}}});
  const auto patient = sim::make_scaler("mindspore_manager", {{"max_consecutive_bad", 0}});
  follow(*patient, thousand + thousand);
}

TEST_CASE("DeepSpeed divides the gradients of a step by the scale that follows it, the others by its own") {
  const names::GivenOptions options{{"init_scale", 1024}, {"growth_interval", 1}};
  const auto deepspeed = sim::make_scaler("deepspeed", options);
  follow(*deepspeed, ".");
  CHECK(deepspeed->unscale_scale() == 1024);
  follow(*deepspeed, ".");
  CHECK(deepspeed->unscale_scale() == 2048);
  for (auto [name, given] : std::vector<std::pair<std::string, names::GivenOptions>>{
           {"deepspeed", {{"unscale_by_updated_scale", 0}}}, {"dynamic", {}}, {"megatron", {}}}) {
    given.merge(names::GivenOptions(options));
    const auto scaler = sim::make_scaler(name, given);
    follow(*scaler, ".");
    const float before = scaler->scale();
    follow(*scaler, ".");
    CHECK(scaler->scale() == 2 * before);
    CHECK(scaler->unscale_scale() == before);
  }
}

TEST_CASE("Apex amp updates at each backward pass unless unscaling is delayed, with a scaler for each loss") {
  CHECK(sim::make_scaler("apex_amp")->update_granularity() == sim::UpdateGranularity::per_backward);
  CHECK(sim::make_scaler("apex_amp", {{"delay_unscale", 1}})->update_granularity() ==
        sim::UpdateGranularity::per_step);
  CHECK(sim::make_scaler("apex_amp", {{"num_losses", 3}})->num_losses() == 3);
  CHECK(sim::make_scaler("dynamic")->update_granularity() == sim::UpdateGranularity::per_step);
  CHECK(sim::make_scaler("dynamic")->num_losses() == 1);
}

TEST_CASE("ColossalAI's saved state lacks the counters when asked to, and a resumed run counts anew") {
  const auto whole = sim::make_scaler("colossalai", with({}));
  const auto lossy = sim::make_scaler("colossalai", with({{"state_lacks_counters", 1}}));
  follow(*whole, "...X...");
  follow(*lossy, "...X...");
  CHECK(whole->state().size() == 4);
  CHECK(lossy->state() == names::NamedValues{{"scale", 1024}});
  for (sim::LossScaler* scaler : {whole.get(), lossy.get()}) scaler->restore(scaler->state());
  CHECK(follow(*whole, ".X") == Trace{11, 11});
  CHECK(follow(*lossy, ".X..XX") == Trace{10, 10, 10, 10, 9, 8});
  CHECK_THROWS_AS(lossy->restore(whole->state()), std::invalid_argument);
}

TEST_CASE("a count of clean steps above the interval is held against it as the original does") {
  const auto resumed_at = [](const char* name, double count) {
    const auto scaler = sim::make_scaler(name, {{"init_scale", 1024}, {"growth_interval", 5}});
    names::NamedValues state = scaler->state();
    for (auto& [entry, value] : state) {
      if (entry == "growth_tracker") value = count;
    }
    scaler->restore(state);
    return follow(*scaler, "......");
  };
  const Trace never{10, 10, 10, 10, 10, 10}, at_the_fifth{10, 10, 10, 10, 11, 11},
      at_the_sixth{10, 10, 10, 10, 10, 11}, at_once{11, 11, 11, 11, 11, 12};
  for (const char* name : {"dynamic", "apex_amp", "apex_hysteresis", "megatron", "colossalai", "keras",
                           "flax", "paddle", "paddle_static"}) {
    CAPTURE(name);
    CHECK(resumed_at(name, 20) == never);
    const auto scaler = sim::make_scaler(name, {{"init_scale", 1024}, {"growth_interval", 5}});
    scaler->restore({{"scale", 1024},
                     {"growth_tracker", std::numeric_limits<int>::max()},
                     {"bad_steps", 0},
                     {"consecutive_bad", 0}});
    CHECK(follow(*scaler, "......") == never);
  }
  CHECK(resumed_at("tensorflow", 20) == at_once);
  for (const char* name : {"apex_fp16_optimizer", "deepspeed", "mindspore_manager", "jmp", "mindspore"}) {
    CAPTURE(name);
    CHECK(resumed_at(name, 20) == at_the_fifth);
  }
  for (const char* name : {"apex_fp16_optimizer", "deepspeed", "mindspore_manager"}) {
    CAPTURE(name);
    CHECK(resumed_at(name, 19) == at_once);
  }
  for (const char* name : {"jmp", "mindspore"}) CHECK(resumed_at(name, 19) == at_the_sixth);
}

TEST_CASE("MindSpore's manager multiplies by a rounded reciprocal, where the others divide") {
  const auto after_bad_step = [](const char* name) {
    const auto scaler = sim::make_scaler(name, {{"init_scale", 5}, {"growth_factor", 3}});
    follow(*scaler, "X");
    return scaler->state()[0].second;
  };
  CHECK(after_bad_step("mindspore_manager") == 5 * (1 / 3.0));
  CHECK(after_bad_step("apex_fp16_optimizer") == 5 / 3.0);
  CHECK(5 * (1 / 3.0) != 5 / 3.0);
}

TEST_CASE("scales are options in the numbers that the original keeps them in") {
  const double start = 114447.8889920287, least = 0.1;
  const auto wide = sim::make_scaler(
      "deepspeed",
      {{"init_scale", start}, {"min_scale", least}, {"hysteresis", 1}, {"raise_error_at_min_scale", 0}});
  CHECK(wide->state()[0].second == start);
  CHECK(wide->options()[0] == std::pair<std::string, double>("init_scale", start));
  follow(*wide, std::string(30, 'X'));
  CHECK(wide->state()[0].second == least);
  const auto narrow = sim::make_scaler("dynamic", {{"init_scale", start}});
  CHECK(narrow->state()[0].second == static_cast<float>(start));
  CHECK(narrow->options()[0].second == static_cast<float>(start));
}

TEST_CASE("a scale is rounded once, by a factor in the numbers of the original") {
  // 3 * 1.1 rounded from binary64 is 0x1.a66666p+1; with both in binary32 it is 0x1.a66668p+1.
  const names::GivenOptions options{{"init_scale", 3}, {"growth_factor", 1.1}, {"growth_interval", 1}};
  const auto after_growth = [&options](const char* name) {
    const auto scaler = sim::make_scaler(name, options);
    scaler->update({});
    return scaler->scale();
  };
  CHECK(after_growth("dynamic") == 0x1.a66666p+1F);
  CHECK(after_growth("apex_hysteresis") == 0x1.a66666p+1F);
  CHECK(after_growth("megatron") == 0x1.a66668p+1F);
  CHECK(after_growth("tensorflow") == 0x1.a66668p+1F);
  // Thirds in binary64 do not gather binary32's error.
  const names::GivenOptions thirds{{"init_scale", 1024}, {"growth_factor", 3}, {"growth_interval", 1}};
  for (const char* name : {"apex_fp16_optimizer", "mindspore_manager"}) {
    const auto scaler = sim::make_scaler(name, thirds);
    follow(*scaler, "XXXX");
    CHECK(scaler->state()[0].second == doctest::Approx(1024.0 / 81).epsilon(1e-15));
  }
}

TEST_CASE("defaults are those of the originals") {
  using names::NamedValues;
  const auto defaults = [](const char* name) { return sim::make_scaler(name)->options(); };
  CHECK(defaults("dynamic") ==
        NamedValues{
            {"init_scale", 65536}, {"growth_factor", 2}, {"backoff_factor", 0.5}, {"growth_interval", 2000}});
  CHECK(defaults("apex_amp") == NamedValues{{"init_scale", 65536},
                                            {"growth_interval", 2000},
                                            {"min_scale", 0},
                                            {"max_scale", 0x1p24},
                                            {"num_losses", 1},
                                            {"delay_unscale", 0}});
  CHECK(defaults("apex_fp16_optimizer") ==
        NamedValues{{"init_scale", 0x1p32}, {"growth_factor", 2}, {"growth_interval", 1000}});
  CHECK(defaults("apex_hysteresis") == NamedValues{{"init_scale", 65536},
                                                   {"growth_factor", 2},
                                                   {"backoff_factor", 0.5},
                                                   {"growth_interval", 2000},
                                                   {"hysteresis", 2}});
  CHECK(defaults("megatron") == NamedValues{{"init_scale", 0x1p32},
                                            {"growth_factor", 2},
                                            {"backoff_factor", 0.5},
                                            {"growth_interval", 1000},
                                            {"min_scale", 1},
                                            {"hysteresis", 2}});
  CHECK(defaults("colossalai") == NamedValues{{"init_scale", 65536},
                                              {"growth_factor", 2},
                                              {"backoff_factor", 0.5},
                                              {"growth_interval", 1000},
                                              {"min_scale", 0},
                                              {"max_scale", 0},
                                              {"hysteresis", 2},
                                              {"state_lacks_counters", 0}});
  CHECK(defaults("deepspeed") == NamedValues{{"init_scale", 65536},
                                             {"growth_factor", 2},
                                             {"growth_interval", 1000},
                                             {"min_scale", 1},
                                             {"hysteresis", 2},
                                             {"consecutive_hysteresis", 0},
                                             {"raise_error_at_min_scale", 1},
                                             {"unscale_by_updated_scale", 1}});
  CHECK(defaults("openseq2seq_backoff") == NamedValues{{"init_scale", 16384},
                                                       {"growth_factor", 2},
                                                       {"growth_interval", 2000},
                                                       {"min_scale", 1},
                                                       {"max_scale", 16384}});
  CHECK(defaults("tensorflow") ==
        NamedValues{{"init_scale", 32768}, {"growth_factor", 2}, {"growth_interval", 2000}});
  CHECK(defaults("keras") == NamedValues{{"init_scale", 32768}, {"growth_interval", 2000}});
  CHECK(defaults("jmp") == NamedValues{{"init_scale", 32768},
                                       {"growth_factor", 2},
                                       {"growth_interval", 2000},
                                       {"min_scale", 1},
                                       {"jit_forgets_min_scale", 0}});
  CHECK(defaults("flax") == NamedValues{{"init_scale", 65536},
                                        {"growth_factor", 2},
                                        {"backoff_factor", 0.5},
                                        {"growth_interval", 2000},
                                        {"min_scale", 0x1p-126}});
  for (const char* name : {"paddle", "paddle_static"}) {
    CHECK(defaults(name) == NamedValues{{"init_scale", 65536},
                                        {"growth_factor", 2},
                                        {"backoff_factor", 0.5},
                                        {"growth_interval", 2000},
                                        {"hysteresis", 1}});
  }
  CHECK(defaults("mindspore") ==
        NamedValues{{"init_scale", 0x1p24}, {"growth_factor", 2}, {"growth_interval", 2000}});
  CHECK(defaults("mindspore_manager") == NamedValues{{"init_scale", 0x1p24},
                                                     {"growth_factor", 2},
                                                     {"growth_interval", 2000},
                                                     {"max_consecutive_bad", 1000}});
}

TEST_CASE("impossible options are refused") {
  const auto refused = [](const char* name, const names::GivenOptions& options) {
    CHECK_THROWS_AS(sim::make_scaler(name, options), std::invalid_argument);
  };
  for (const double init_scale : {0.0, -1.0, HUGE_VAL, std::nan(""), 1e-50}) {
    refused("dynamic", {{"init_scale", init_scale}});
  }
  for (const double growth_factor : {1.0, 0.5, -2.0, HUGE_VAL, std::nan("")}) {
    refused("dynamic", {{"growth_factor", growth_factor}});
  }
  for (const double backoff_factor : {0.0, 1.0, 2.0, -0.5, std::nan("")}) {
    refused("dynamic", {{"backoff_factor", backoff_factor}});
  }
  for (const double count : {0.0, -1.0, 1.5}) {
    refused("dynamic", {{"growth_interval", count}});
    refused("megatron", {{"hysteresis", count}});
    refused("apex_amp", {{"num_losses", count}});
  }
  refused("deepspeed", {{"consecutive_hysteresis", 0.5}});
  refused("deepspeed", {{"consecutive_hysteresis", 2}});
  refused("tensorflow", {{"min_scale", 0.5}});
  CHECK_THROWS_WITH_AS(sim::make_scaler("dynamic", {{"growth_factor", 1}}),
                       "scaler 'dynamic': growth_factor = 1 is not allowed; allowed: numbers in (1, inf)",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("megatron", {{"histeresis", 1}}),
                       "scaler 'megatron': unknown option 'histeresis'; did you mean 'hysteresis'? allowed: "
                       "init_scale, growth_factor, backoff_factor, growth_interval, min_scale, hysteresis",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("apex_amp", {{"min_scale", 8}, {"max_scale", 4}}),
                       "scaler 'apex_amp': min_scale = 8 is not allowed; allowed: at most max_scale = 4",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      sim::make_scaler("apex_amp", {{"init_scale", 0x1p25}}),
      "scaler 'apex_amp': init_scale = 33554432 is not allowed; allowed: at most max_scale = "
      "16777216",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(sim::make_scaler("megatron", {{"init_scale", 0.5}}),
                       "scaler 'megatron': init_scale = 0.5 is not allowed; allowed: at least min_scale = 1",
                       std::invalid_argument);
}

TEST_CASE("impossible state is refused and leaves the scaler as it was") {
  const auto scaler = sim::make_scaler("dynamic");
  const names::NamedValues before = scaler->state();
  for (const auto& [entry, value] : names::NamedValues{{"scale", -1},
                                                       {"scale", std::nan("")},
                                                       {"growth_tracker", -2},
                                                       {"bad_steps", 0.5},
                                                       {"consecutive_bad", -1}}) {
    names::NamedValues state = before;
    for (auto& [name, saved] : state) {
      if (name == entry) saved = value;
    }
    CHECK_THROWS_AS(scaler->restore(state), std::invalid_argument);
    CHECK(scaler->state() == before);
  }
  CHECK_THROWS_AS(scaler->restore({{"scale", 1}}), std::invalid_argument);
}
