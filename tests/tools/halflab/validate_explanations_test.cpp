#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/half_functions.h"
#include "fp16/math.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tests/tools/halflab/trial.h"
#include "tools/halflab/validate/deviations.h"
#include "tools/halflab/validate/functions.h"

using namespace test;
using experiments::Json;

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

TEST_CASE(
    "halflab validate: explanations that the results do not tell apart are all counted, and one is named") {
  const TemporaryDirectory directory;
  const std::string x = directory / "x.npy", y = directory / "y.npy";
  std::ofstream(x, std::ios::binary) << test::npy_file(test::npy_dictionary("<f4", "False", "(2,)"),
                                                       test::bytes_of(std::vector<float>{1e5f, -2e6f}));
  write(y, {0x7bff, 0xfbff});
  const auto summary = [&](const std::string& operation, const std::vector<std::string>& files) {
    std::vector<std::string> words{"validate", operation, "--json"};
    words.insert(words.end(), files.begin(), files.end());
    return run_halflab(words).json().at("summary");
  };
  CHECK(summary("cast", {x, y}).at("rivals").unsigned_integer() > 0);
  CHECK(run_halflab({"validate", "cast", x, y})
            .out.find(" So does this, which these results do not tell from it: ") != std::string::npos);
  // On all operands truncation is something else than a negative infinity's direction.
  Trial tanh("tanh");
  CHECK(tanh.validate([](const Operands& operands) {
              return fp16::math::tanh(operands[0], {.rounding = fp16::Rounding::toward_zero}).bits;
            })
            .at("rivals")
            .unsigned_integer() == 0);
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
