#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/half_functions.h"
#include "fp16/math.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tests/tools/halflab/trial.h"
#include "tools/halflab/validate/deviations.h"
#include "tools/halflab/validate/functions.h"

using namespace test;
using experiments::Json;

TEST_CASE("halflab validate: right kernels are equal") {
  CHECK(Trial("tanh")
            .validate([](const Operands& x) { return fp16::math::tanh(x[0], {}).bits; })
            .at("class")
            .string() == "equal");
  // Floats hold sums of halves exactly enough; x86's NaNs are what add gives.
  CHECK(Trial("add", {"--shard", "7/1000"})
            .validate([](const Operands& x) { return as_half(as_float(x[0]) + as_float(x[1])); },
                      {"--nan", "any"})
            .at("class")
            .string() == "equal");
  const Json truncated = Trial("sqrt").validate(
      [](const Operands& x) {
        return fp16::sqrt<fp16::binary16>(x[0], {.rounding = fp16::Rounding::toward_zero}).bits;
      },
      {"--rounding", "toward_zero"});
  CHECK(truncated.at("class").string() == "equal");
  CHECK(truncated.at("results").unsigned_integer() == 65536);
}

TEST_CASE("halflab validate: names the deviation that was planted") {
  const auto exact = [](std::uint16_t x) { return fp16::math::exp(x, {}).bits; };
  Trial exp("exp");
  CHECK(exp.explanation([&](const Operands& x) {
    const std::uint16_t y = exact(x[0]);
    return is_subnormal(y) ? std::uint16_t{0} : y;
  }) == "it flushes subnormal results to zero");
  CHECK(exp.explanation([](const Operands& x) {
    return fp16::math::exp(x[0], {.rounding = fp16::Rounding::toward_zero}).bits;
  }) == "it truncates (rounds toward zero)");
  CHECK(exp.explanation([&](const Operands& x) {
    const std::uint16_t y = exact(x[0]);
    return y == 0x7c00 && x[0] != 0x7c00 ? std::uint16_t{0x7bff} : y;
  }) == "it saturates what overflows alone: infinities of operands and of divisions by zero stay");
  CHECK(exp.explanation([&](const Operands& x) {
    return is_nan(x[0]) ? std::uint16_t{0x7fff} : exact(x[0]);
  }) == "its NaNs are all 0x7fff (NVIDIA's rule)");
  CHECK(exp.explanation([&](const Operands& x) {
    const std::uint16_t y = exact(x[0]);
    return is_nan(x[0]) ? std::uint16_t{0x7fff} : is_subnormal(y) ? std::uint16_t{0} : y;
  }) == "its NaNs are all 0x7fff (NVIDIA's rule); it flushes subnormal results to zero");
  CHECK(exp.explanation([&](const Operands& x) {
    const std::uint16_t y = exact(x[0]);
    return x[0] % 7 == 0 && y > 0 && y < 0x7000 ? static_cast<std::uint16_t>(y + 2) : y;
  }) == "");
}

TEST_CASE("halflab validate: of a flush and a rounding together both are named") {
  Trial multiply("multiply", {"--count", "100000"});
  for (const auto& [flushes, reads, text] :
       {std::tuple{false, true, "it reads subnormal operands as zeros; it rounds ties away from zero"},
        std::tuple{true, false, "it flushes subnormal results to zero; it rounds ties away from zero"},
        std::tuple{true, true,
                   "it reads subnormal operands as zeros and flushes subnormal results; it rounds ties away "
                   "from zero"}}) {
    const fp16::Attributes attributes{
        .rounding = fp16::Rounding::nearest_away, .flush_to_zero = flushes, .denormals_are_zero = reads};
    CHECK(multiply.explanation([&](const Operands& x) {
      return fp16::multiply<fp16::binary16>(x[0], x[1], attributes).bits;
    }) == text);
  }
  // Ties that go toward zero are results of floats that are a little too small, too.
  CHECK(multiply
            .text([](const Operands& x) {
              const auto rounded = [&](fp16::Rounding rounding) {
                return fp16::multiply<fp16::binary16>(x[0], x[1], {.rounding = rounding}).bits;
              };
              const std::uint16_t down = rounded(fp16::Rounding::toward_zero),
                                  away = rounded(fp16::Rounding::nearest_away);
              const float exact = as_float(x[0]) * as_float(x[1]);
              const bool is_tie = exact - as_float(down) == as_float(away) - exact;
              return is_tie ? down : rounded(fp16::Rounding::nearest_even);
            })
            .find("What can explain them: it computes in floats that are wrong by at most 4 ulp") !=
        std::string::npos);
}

TEST_CASE("halflab validate: knows both ways to saturate") {
  Trial multiply("multiply", {"--count", "100000"});
  const auto saturating = [](const Operands& x) {
    return fp16::multiply<fp16::binary16>(x[0], x[1], {.saturate = true}).bits;
  };
  const auto overflowing = [&](const Operands& x) {
    const bool has_infinity = (x[0] & 0x7fff) == 0x7c00 || (x[1] & 0x7fff) == 0x7c00;
    return has_infinity ? fp16::multiply<fp16::binary16>(x[0], x[1]).bits : saturating(x);
  };
  CHECK(multiply.explanation(saturating) ==
        "it saturates: what would be infinite becomes the largest finite number");
  const std::string of_overflow =
      "it saturates what overflows alone: infinities of operands and of divisions by zero stay";
  CHECK(multiply.explanation(overflowing) == of_overflow);
  CHECK(multiply.explanation(overflowing, {"--saturate"}) == of_overflow);
}

TEST_CASE("halflab validate: where zeros' signs alone are wrong it says so, and whose they are") {
  const std::string trifle = " Only signs of zeros are wrong: --ulp 1 allows that.";
  CHECK(Trial("multiply", {"--count", "100000"})
            .text([](const Operands& x) {
              const std::uint16_t y = fp16::multiply<fp16::binary16>(x[0], x[1]).bits;
              return y == 0x8000 ? std::uint16_t{0} : y;
            })
            .find("its zeros are all +0." + trifle) != std::string::npos);
  for (const std::string name : {"minimum", "maximum_number"}) {
    Trial trial(name, {"--count", "300000"});
    for (const std::size_t taken : {0u, 1u}) {
      const std::string text = trial.text([&](const Operands& x) {
        const bool are_zeros = ((x[0] | x[1]) & 0x7fff) == 0;
        return are_zeros           ? x[taken]
               : name == "minimum" ? fp16::minimum<fp16::binary16>(x[0], x[1]).bits
                                   : fp16::maximum_number<fp16::binary16>(x[0], x[1]).bits;
      });
      INFO(text);
      CHECK(text.find(fmt::format("of two zeros it takes the {}.", taken == 0 ? "first" : "second") +
                      trifle) != std::string::npos);
    }
  }
}

TEST_CASE("halflab validate: casts to bytes are rounded twice by way of halves, too") {
  constexpr auto& e4m3 = fp16::e4m3;
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy";
  REQUIRE(run_halflab({"inputs", "cast", "--format", "binary32", "--count", "300000", "--to", x}).exit_code ==
          0);
  const auto floats = read<float>(x);
  std::vector<std::uint8_t> results(floats.size());
  std::ranges::transform(floats, results.begin(),
                         [](float value) { return fp16::encode<e4m3>(as_float(as_half(value))).bits; });
  std::ofstream(y, std::ios::binary) << test::npy_file(
      test::npy_dictionary("|u1", "False", fmt::format("({},)", results.size())), test::bytes_of(results));
  const std::string found =
      run_halflab({"validate", "cast", x, y, "--nan", "any", "--result-dtype", "e4m3"}).out;
  INFO(found);
  CHECK(found.find("it rounds twice: to binary16, and then to the format.") != std::string::npos);
}

TEST_CASE("halflab validate: knows two roundings from one") {
  Trial fma("fma", {"--count", "300000"});
  const std::vector<std::string> any{"--nan", "any"};
  CHECK(fma.explanation(
            [](const Operands& x) {
              const std::uint16_t product = as_half(as_float(x[0]) * as_float(x[1]));
              return as_half(as_float(product) + as_float(x[2]));
            },
            any) == "it rounds twice: the product, and then the sum");
  CHECK(fma.explanation(
            [](const Operands& x) { return as_half(as_float(x[0]) * as_float(x[1]) + as_float(x[2])); },
            any) == "it rounds twice: to float, and then to the format");
  CHECK(fma.explanation(
               [](const Operands& x) {
                 const auto read = [](std::uint16_t code) {
                   return as_float(is_subnormal(code) ? code & 0x8000 : code);
                 };
                 const double sum = static_cast<double>(read(x[0])) * read(x[1]) + read(x[2]);
                 return fp16::double_to_half_bits(sum);
               },
               any)
            .starts_with("it reads subnormal operands as zeros"));
}

TEST_CASE("halflab validate: doubles that become floats before they become halves are rounded twice") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy";
  REQUIRE(run_halflab({"inputs", "cast", "--format", "binary64", "--count", "300000", "--to", x}).exit_code ==
          0);
  Codes halves;
  for (const double value : read<double>(x)) halves.push_back(as_half(static_cast<float>(value)));
  write(y, halves);
  const std::string found = run_halflab({"validate", "cast", x, y, "--nan", "any"}).out;
  INFO(found);
  CHECK(found.find("What explains all of them: it rounds twice: to float, and then to the format.") !=
        std::string::npos);
}

TEST_CASE("halflab validate: errors up and down are an approximation, and no two roundings at one time") {
  Trial tanh("tanh");
  const auto off_by_one = [](const Operands& x) {
    const std::uint16_t y = fp16::math::tanh(x[0], {}).bits;
    const bool is_tried = (y & 0x7fff) > 0x1000 && !is_nan(y) && x[0] % 3 == 0;
    return static_cast<std::uint16_t>(y + (is_tried ? (x[0] % 2 == 0 ? 1 : -1) : 0));
  };
  CHECK(tanh.explanation(off_by_one) == "");
  CHECK(tanh.text(off_by_one).find("It is an approximation of at most 1 ulp.") != std::string::npos);
}

TEST_CASE("halflab validate: knows what programs make of an operation") {
  const std::vector<std::string> any{"--nan", "any"}, sample{"--count", "100000"};
  CHECK(Trial("subtract", sample).explanation([](const Operands& x) {
    return fp16::subtract<fp16::binary16>(x[1], x[0]).bits;
  }) == "its operands are swapped");
  Trial add("add", sample);
  const auto second_nan = [](const Operands& x) { return fp16::add<fp16::binary16>(x[1], x[0]).bits; };
  CHECK(add.explanation(second_nan) == "of two NaNs it takes the second");
  CHECK(add.text(second_nan).find("Only bits of NaNs are wrong: --nan any allows that.") !=
        std::string::npos);
  CHECK(Trial("divide", sample)
            .explanation(
                [](const Operands& x) {
                  return fp16::multiply<fp16::binary16>(
                             x[0], fp16::divide<fp16::binary16>(std::uint16_t{0x3c00}, x[1]).bits)
                      .bits;
                },
                any) == "it rounds twice: the reciprocal, and then the product");
  CHECK(Trial("maximum", sample).explanation([](const Operands& x) {
    return as_float(x[0]) > as_float(x[1]) ? x[0] : x[1];
  }) == "it is a > b ? a : b");
  CHECK(Trial("minimum_number", sample).explanation([](const Operands& x) {
    return as_float(x[1]) < as_float(x[0]) ? x[1] : x[0];
  }) == "it is b < a ? b : a");
  CHECK(Trial("fma", sample)
            .explanation(
                [](const Operands& x) {
                  const fp16::Attributes flushing{.flush_to_zero = true, .denormals_are_zero = true};
                  return fp16::add<fp16::binary16>(fp16::multiply<fp16::binary16>(x[0], x[1], flushing).bits,
                                                   x[2], flushing)
                      .bits;
                },
                any) ==
        "it rounds twice, the product and then the sum, reads subnormal operands as zeros and flushes both");
}

TEST_CASE("halflab validate: a kernel in floats has a rule of NaNs besides") {
  CHECK(Trial("tanh").explanation([](const Operands& operands) {
    const float x = as_float(operands[0]);
    return std::isnan(x) ? std::uint16_t{0x7fff} : as_half(std::nextafter(std::tanh(x), 2.0f));
  }) == "its NaNs are all 0x7fff (NVIDIA's rule); it computes in floats that are wrong by at most 4 ulp, and "
        "rounds those");
}

TEST_CASE("halflab validate: a rule that some right results contradict is said not to hold everywhere") {
  const std::string but = " But not everywhere: ";
  Trial multiply("multiply", {"--count", "100000"});
  const auto with_zeros_turned = [&](const std::function<bool(int)>& is_turned) {
    int zeros = 0;
    return multiply.text([&](const Operands& x) {
      const std::uint16_t product = fp16::multiply<fp16::binary16>(x[0], x[1]).bits;
      return static_cast<std::uint16_t>((product & 0x7fff) == 0 && is_turned(zeros++) ? product ^ 0x8000
                                                                                      : product);
    });
  };
  const auto all = with_zeros_turned([](int) { return true; });
  CHECK(all.find("What explains all of them: its zeros have the wrong sign. Only signs of zeros are wrong: "
                 "--ulp 1 allows that.\n") != std::string::npos);
  const auto most = with_zeros_turned([](int i) { return i % 4 != 0; });
  CHECK(most.find("What explains all of them: its zeros have the wrong sign." + but) != std::string::npos);
  CHECK(most.find(" right results would be other ones then, the first at index ") != std::string::npos);
  for (const std::string& few : {with_zeros_turned([](int i) { return i == 5; }),
                                 with_zeros_turned([](int i) { return i % 4 == 0; })}) {
    INFO(few);
    CHECK(few.find("No known deviation explains all of them.") != std::string::npos);
  }
  CHECK(Trial("exp")
            .text([](const Operands& x) {
              return is_nan(x[0]) && x[0] % 4 != 1 ? std::uint16_t{0x7fff} : fp16::math::exp(x[0], {}).bits;
            })
            .find("its NaNs are all 0x7fff (NVIDIA's rule)." + but) != std::string::npos);
}

TEST_CASE("halflab validate: what more right results refute than wrong ones show is not named") {
  Trial sqrt("sqrt");
  const std::string text =
      sqrt.text([](const Operands& x) {  // some ties of others, as if they were truncated
        const std::uint16_t right = fp16::sqrt<fp16::binary16>(x[0]).bits;
        const std::uint16_t cut =
            fp16::sqrt<fp16::binary16>(x[0], {.rounding = fp16::Rounding::toward_zero}).bits;
        return x[0] % 64 == 0 ? cut : right;
      });
  INFO(text);
  CHECK(text.find("No known deviation explains all of them") != std::string::npos);
  CHECK(text.find("truncates") == std::string::npos);
}

TEST_CASE("halflab validate: few results within the reach of a formula in floats do not prove it") {
  Trial gelu("gelu");
  const std::string few = "What can explain them, though so few prove nothing: ";
  const std::string text = gelu.text(
      [](const Operands& x) {
        return x[0] == 0xfc00 ? std::uint16_t{0x7e00} : fp16::math::gelu(x[0], {}).bits;
      },
      {"--nan", "any"});
  INFO(text);
  CHECK(text.find(few + "it computes x/2 (1 + erf(x / sqrt(2))) in floats.") != std::string::npos);
}

TEST_CASE("halflab validate: every function's deviations are no more than their sets hold") {
  using namespace halflab::validate;
  for (const Function& function : functions()) {
    for (const fp16::Format& format : {fp16::binary16, fp16::bfloat16, fp16::binary32})
      CHECK(deviations_of(function, format, format, {}).size() <= most_deviations);
  }
}

TEST_CASE("halflab validate: knows gelu's approximations from gelu") {
  Trial gelu("gelu");
  const std::vector<std::string> any{"--nan", "any"};
  const auto by_tanh = [](const Operands& operands) {
    const float x = as_float(operands[0]);
    if (!std::isfinite(x)) return x < 0 ? std::uint16_t{0x8000} : operands[0];
    return as_half(0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))));
  };
  CHECK(gelu.explanation(by_tanh, any) == "it is gelu's approximation by tanh, in floats");
  const auto by_sigmoid = [](const Operands& operands) {
    const float x = as_float(operands[0]);
    if (!std::isfinite(x)) return x < 0 ? std::uint16_t{0x8000} : operands[0];
    return as_half(x / (1 + std::exp(-1.702f * x)));
  };
  CHECK(gelu.explanation(by_sigmoid, any) == "it is gelu's approximation x sigmoid(1.702 x), in floats");
  const auto by_erf = [](const Operands& operands) {
    const float x = as_float(operands[0]);
    return as_half(0.5f * x * (1 + std::erf(0.70710678f * x)));  // a NaN at -infinity, as PyTorch has it
  };
  CHECK(gelu.explanation(by_erf, any) == "it computes x/2 (1 + erf(x / sqrt(2))) in floats");
  // Where erf is -1 to a float, nothing is left to be wrong.
  CHECK(gelu.explanation(
            [&](const Operands& operands) {
              return as_float(operands[0]) == -1000 ? as_half(-1e-4f) : by_erf(operands);
            },
            any) == "");
}

TEST_CASE("halflab validate: knows who flushes what is tiny from who flushes subnormal codes") {
  Trial multiply("multiply", {"--count", "1000000"});
  const auto product = [](const Operands& x) { return fp16::multiply<fp16::binary16>(x[0], x[1]).bits; };
  CHECK(multiply.explanation([&](const Operands& x) {
    return is_subnormal(product(x)) ? static_cast<std::uint16_t>(product(x) & 0x8000) : product(x);
  }) == "it flushes results that are subnormal once they are rounded");
  CHECK(multiply.explanation([](const Operands& x) {
    return fp16::multiply<fp16::binary16>(x[0], x[1], {.flush_to_zero = true}).bits;
  }) == "it flushes subnormal results to zero");
  CHECK(multiply.explanation([&](const Operands& x) {  // as Arm's FZ16
    const double exact = fp16::decode<fp16::binary16>(x[0]) * fp16::decode<fp16::binary16>(x[1]);
    return std::fabs(exact) < 0x1p-14 ? static_cast<std::uint16_t>(product(x) & 0x8000) : product(x);
  }) == "it flushes results that are below the normal numbers before they are rounded");
}

TEST_CASE(
    "halflab validate: of what explains the same the plainest is named, and wrong numbers stand before "
    "NaNs") {
  CHECK(Trial("sqrt", {"--shard", "16/64"}).explanation([](const Operands& x) {  // no subnormal numbers
    return fp16::sqrt<fp16::binary16>(x[0], {.rounding = fp16::Rounding::toward_zero}).bits;
  }) == "it truncates (rounds toward zero)");
  Trial sqrt("sqrt");
  const std::string text = sqrt.text([](const Operands& x) {
    return is_nan(x[0])     ? std::uint16_t{0x7e11}
           : x[0] == 0xfbff ? std::uint16_t{0x3c00}
                            : fp16::sqrt<fp16::binary16>(x[0]).bits;
  });
  CHECK(text.find("\n64511 ") < text.find("\n31745 "));
}

TEST_CASE("halflab validate: an approximation is within so many ulp, and says how many it has") {
  Trial tanh("tanh");
  const auto off_by_two = [](const Operands& x) {
    const std::uint16_t y = fp16::math::tanh(x[0], {}).bits;
    return (y & 0x7fff) > 0x1000 && !is_nan(y) && x[0] % 3 == 0 ? static_cast<std::uint16_t>(y - 2) : y;
  };
  const Json two = tanh.validate(off_by_two, {"--ulp", "2"});
  CHECK(two.at("class").string() == "within");
  CHECK(two.at("most_ulp").unsigned_integer() == 2);
  CHECK(tanh.validate(off_by_two, {"--ulp", "1"}).at("class").string() == "different");
  CHECK(tanh.validate(off_by_two).at("beyond").unsigned_integer() > 5000);
}

TEST_CASE("halflab validate: NaN and zero rules of minimum, and expected flushes") {
  Trial minimum("minimum", {"--shard", "31800/65536"});
  CHECK(minimum.explanation([](const Operands& x) {
    return fp16::minimum_number<fp16::binary16>(x[0], x[1]).bits;
  }) == "it takes the number where one operand is a NaN");
  const auto flushing = [](const Operands& x) {
    return fp16::multiply<fp16::binary16>(x[0], x[1], {.flush_to_zero = true, .denormals_are_zero = true})
        .bits;
  };
  Trial multiply("multiply", {"--shard", "2000/65536"});
  CHECK(multiply.validate(flushing, {"--flush-subnormals"}).at("class").string() == "equal");
  CHECK(multiply.explanation(flushing).find("subnormal") != std::string::npos);
}

TEST_CASE("halflab validate: operands are read as they are, whatever is expected of results") {
  using fp16::e5m2, fp16::bfloat16, fp16::binary16, fp16::binary32;
  constexpr auto nearest = fp16::Rounding::nearest_even;
  const fp16::Attributes saturating{.saturate = true};
  const auto function = [&](const char* name, const fp16::Format& operands, const fp16::Format& result) {
    return halflab::validate::find_function(name).in(operands, result, nearest);
  };
  CHECK(fp16::is_nan<e5m2>(function("sin", e5m2, e5m2)({0x7c}, saturating)));
  CHECK(fp16::is_nan<binary32>(function("subtract", binary16, binary32)({0x7c00, 0x7c00}, saturating)));
  CHECK(function("softplus", bfloat16, bfloat16)({0x7f80}, saturating) == 0x7f7f);
  CHECK(function("rcp", bfloat16, bfloat16)({0x7f80}, saturating) == 0);
}

TEST_CASE("halflab validate: other formats, results in floats, and casts") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy";
  const auto class_of = [&](const std::vector<std::string>& words) {
    const CommandRun run = run_halflab(words);
    INFO(run.err);
    return run.out.substr(0, run.out.find(':'));
  };
  Codes codes(65536), results;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  for (const auto code : codes) results.push_back(fp16::sqrt<fp16::bfloat16>(code).bits);
  REQUIRE(run_halflab({"inputs", "sqrt", "--format", "bfloat16", "--to", x}).exit_code == 0);
  CHECK(read(x) == codes);
  for (const char* const type : {"|V2", "<u2"}) {
    write(y, results, type);
    CHECK(class_of({"validate", "sqrt", x, y, "--dtype", "bf16"}) == "equal");
  }
  CHECK(run_halflab({"validate", "sqrt", x, y}).err.find("--dtype") != std::string::npos);
  CHECK(
      run_halflab({"validate", "sqrt", y, y}).err.find("but integers: codes as wide as a format are read") !=
      std::string::npos);
  CHECK(run_halflab({"validate", "sqrt", y, y, "--dtype", "e4m3"}).exit_code == 2);
  const std::string halves = directory / "halves.npy";
  write(halves, {1, 2});
  CHECK(run_halflab({"validate", "sqrt", halves, halves, "--dtype", "bf16"})
            .err.find("of the file's own type, binary16; allowed: none") != std::string::npos);
  // Every function that is known in bfloat16 is known at every number.
  for (const char* const name : {"exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh", "erf"}) {
    INFO(name);
    CHECK(run_halflab({"validate", name, x, y, "--dtype", "bf16"}).err.find("results are wrong") !=
          std::string::npos);
  }
  std::vector<float> floats;
  for (const auto code : codes) floats.push_back(std::sqrt(as_float(code)));
  write(x, codes);
  const auto write_floats = [&](const std::string& file) {
    std::ofstream(file, std::ios::binary)
        << test::npy_file(test::npy_dictionary("<f4", "False", "(65536,)"), test::bytes_of(floats));
  };
  write_floats(y);
  CHECK(class_of({"validate", "sqrt", x, y, "--nan", "any"}) == "equal");
  for (std::size_t i = 0; i < codes.size(); ++i)
    floats[i] = std::ldexp(static_cast<float>(i * 40503 % 65536), -30);
  write_floats(x);
  results.clear();
  for (const float value : floats) results.push_back(as_half(value));
  write(y, results);
  CHECK(class_of({"validate", "cast", x, y}) == "equal");
  for (std::size_t i = 0; i < codes.size(); ++i)
    results[i] = fp16::encode<fp16::binary16>(floats[i], {.rounding = fp16::Rounding::nearest_away}).bits;
  write(y, results);
  CHECK(run_halflab({"validate", "cast", x, y}).out.find("ties away from zero") != std::string::npos);
}

TEST_CASE("halflab validate: codes as hexadecimal text") {
  const TemporaryDirectory directory;
  const std::string a = directory / "a.hex", b = directory / "b.hex", y = directory / "y.hex";
  REQUIRE(run_halflab({"inputs", "multiply", "--shard", "15000/65536", "--to", a + "," + b}).exit_code == 0);
  CHECK(test::content_of(a).starts_with("3a97\n3a97\n"));
  CHECK(test::content_of(b).starts_with("0000\n0001\n"));
  CHECK(run_halflab({"validate", "multiply", a, b, a}).out.starts_with("different:"));
  std::string one_with_address = "@0\n", all = test::content_of(a);  // as simulators write them, too
  for (std::size_t i = 0; i < all.size(); i += 5) one_with_address += "0x" + all.substr(i, 5);
  std::ofstream(y) << one_with_address;
  CHECK(run_halflab({"validate", "multiply", a, b, y, "--json"}).out ==
        run_halflab({"validate", "multiply", a, b, a, "--json"}).out);
  std::ofstream(y) << "3c00\n3c01\n";
  CHECK(run_halflab({"validate", "tanh", y, y, "--dtype", "binary32"})
            .err.find("has codes of at most 4 digits; one at least must have 8, as codes of 32 bits do") !=
        std::string::npos);
  std::ofstream(y) << "@1\n3c00\n";
  CHECK(run_halflab({"validate", "multiply", a, b, y}).err.find("has '@1' in line 1") != std::string::npos);
  std::ofstream(y) << "// results\n 3c00 // one\n3XYZ\n";
  CHECK(run_halflab({"validate", "multiply", a, b, y})
            .err.find("has '3XYZ' in line 3, which is no code of 16 bits") != std::string::npos);
}

TEST_CASE("halflab validate: --out keeps tables, figure and page, and threads change nothing") {
  const TemporaryDirectory directory;
  const std::string a = directory / "a.npy", b = directory / "b.npy", y = directory / "y.npy";
  REQUIRE(run_halflab({"inputs", "add", "--shard", "100/4000", "--to", a + "," + b}).exit_code == 0);
  Codes results;
  const Codes x = read(a), z = read(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    results.push_back(fp16::add<fp16::binary16>(x[i], z[i], {.rounding = fp16::Rounding::toward_zero}).bits);
  write(y, results);
  const std::string one = run_halflab({"validate", "add", a, b, y, "--json", "--threads", "1"}).out;
  CHECK(run_halflab({"validate", "add", a, b, y, "--json", "--threads", "4"}).out == one);
  const CommandRun run = run_halflab({"validate", "add", a, b, y, "--out", directory / "out"});
  CHECK(run.exit_code == 1);
  CHECK(run.out.find("it truncates (rounds toward zero).") != std::string::npos);
  for (const char* const name : {"manifest.json", "counterexamples.csv", "deviations.csv", "distances.csv",
                                 "parts.csv", "operands.gp", "report.html"})
    CHECK(std::filesystem::exists(directory / "out" / name));
}

TEST_CASE("halflab validate: bad input is one line and exit code 2") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy", f = directory / "f.npy",
                    none = directory / "none.npy";
  write(x, Codes(10));
  write(none, {});
  write(y, Codes(11));
  std::ofstream(f, std::ios::binary) << test::npy_file(test::npy_dictionary("<f4", "False", "(10,)"),
                                                       std::string(40, 0));
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"validate"}, "OP"},
           {{"validate", "tanh", x}, "tanh takes 2 files, of its operand and of results, not 1"},
           {{"validate", "tanh", x, y}, "they must be as many"},
           {{"validate", "tanh", none, none}, "has no element, so that nothing can be checked"},
           {{"validate", "exp2", x, f},
            "allowed: results of binary16, to which the kernel rounds them itself"},
           {{"validate", "add", x, f, x}, "operands must be of one format"},
           {{"validate", "tanh", f, x}, "is not known for operands of binary32"},
           {{"validate", "tanh", x, x, "--result-dtype", "bf16"},
            "is of the file's own type, binary16; allowed: none"},
           {{"validate", "tanh", x, x, "--rounding", "up"}, "--rounding: unknown rounding 'up'"},
           {{"validate", "tanh", x, x, "--rounding", "stochastic"}, "stochastic"},
           {{"validate", "tanh", x, x, "--nan", "none"}, "--nan: unknown rule 'none'"},
           {{"validate", "tanh", x, directory / "absent.npy"}, "cannot be read"}}) {
    test::check_refused(words, message);
  }
}
