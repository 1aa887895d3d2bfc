/// Mistakes that were made on purpose, on products in double rounded once, are named; and none where there is
/// none.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/explain_gemm/findings.h"
#include "experiments/explain_gemm/mistake.h"
#include "experiments/explain_gemm/search.h"
#include "fp16/codec.h"
#include "tests/experiments/explain_gemm_problems.h"
#include "tests/experiments/silent_run.h"

namespace {

using namespace experiments::explain_gemm;
using fp16::binary16;
using fp16::binary32;
using test::random_values;
using Value = std::function<double(std::size_t row, std::size_t column)>;

constexpr std::size_t rows = 24, depth = 96, columns = 40;

std::uint32_t rounded(const fp16::Format& format, double value) {
  return code_of(format, static_cast<float>(value));
}

struct Case {
  Problem problem;

  explicit Case(const fp16::Format& format, std::size_t m = rows, std::size_t k = depth,
                std::size_t n = columns)
      : problem{.rows = m,
                .depth = k,
                .columns = n,
                .a = random_values(m * k, 1),
                .b = random_values(k * n, 2),
                .d = {format, m, n, std::vector<std::uint32_t>(m * n)}} {
    write([this](std::size_t i, std::size_t j) { return product(i, j); });
  }

  double term(std::size_t row, std::size_t column, std::size_t k) const {
    return double{problem.a[row * problem.depth + k]} * double{problem.b[k * problem.columns + column]};
  }

  /// The sum over k from `first` until before `last`.
  double product(std::size_t row, std::size_t column, std::size_t first, std::size_t last) const {
    double sum = 0;
    for (std::size_t k = first; k < last; ++k) sum += term(row, column, k);
    return sum;
  }
  double product(std::size_t row, std::size_t column) const { return product(row, column, 0, problem.depth); }

  /// The sum of products with what becomes of A.
  double product_of(const std::function<double(float)>& changed, std::size_t row, std::size_t column) const {
    double sum = 0;
    for (std::size_t k = 0; k < problem.depth; ++k)
      sum += changed(problem.a[row * problem.depth + k]) * double{problem.b[k * problem.columns + column]};
    return sum;
  }

  void write(const Value& value, std::size_t from_row = 0) {
    for (std::size_t i = from_row; i < problem.rows; ++i) {
      for (std::size_t j = 0; j < problem.columns; ++j)
        problem.d.codes[i * problem.columns + j] = rounded(problem.d.format, value(i, j));
    }
  }

  /// D's codes of the exact outputs.
  void write_codes(const std::function<std::uint32_t(double)>& code) {
    for (std::size_t i = 0; i < problem.outputs(); ++i)
      problem.d.codes[i] = code(exact_output(problem, i).value);
  }

  std::optional<Mistake> mistake() const {
    test::SilentRun silent(1);
    const SearchOptions options{.most_slices = 2};
    const Explanation found = explain(problem, options, silent.run);
    return mistake_of(problem, classify(problem, found, options.most_slices, silent.run));
  }

  std::string name() const {
    const std::optional<Mistake> found = mistake();
    return found ? found->name : "none";
  }

  /// The mistake that is named where this is the second triple, after one without a mistake.
  std::string name_in_second() const {
    Case both(problem.d.format, problem.rows, problem.depth, problem.columns);
    both.problem.a = random_values(problem.a.size(), 3);
    both.problem.b = random_values(problem.b.size(), 4);
    both.write([&](std::size_t i, std::size_t j) { return both.product(i, j); });
    both.problem = test::gemm::stacked(both.problem, problem);
    return both.name();
  }
};

}  // namespace

TEST_CASE("explain_gemm: a product without a mistake has none, nor one with a few odd outputs") {
  for (const fp16::Format& format : {binary16, binary32}) {
    Case right(format);
    CHECK(right.name() == "none");
    for (std::size_t i = 0; i < 20; ++i)
      right.problem.d.codes[37 * i] = rounded(format, 1000 + 13.7 * static_cast<double>(i * i));
    CHECK(right.name() == "none");
    right.problem.d.codes[5] = rounded(format, -777);
    CHECK(right.name() == "none");
  }
}

TEST_CASE("explain_gemm: finite outputs where an element of A is infinite are told from every mistake") {
  for (const float beta : {0.0f, 1.0f}) {
    Case wrong(binary16);
    wrong.problem.beta = beta;
    if (beta != 0) wrong.problem.c.assign(wrong.problem.outputs(), 1);
    wrong.write([&](std::size_t i, std::size_t j) { return wrong.product(i, j) + beta; });
    wrong.problem.a[3 * depth + 5] = test::half_of(0x7c00);
    CHECK(wrong.name() == "none");
  }
}

TEST_CASE("explain_gemm: an order of FP16 sums that is not in the list is no mistake") {
  Case reversed(binary16);
  reversed.write([&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = depth; k-- > 0;)
      sum = fp16::half_bits_to_float(
          fp16::float_to_half_bits(static_cast<float>(sum + reversed.term(i, j, k))));
    return sum;
  });
  CHECK(reversed.name() == "none");
}

TEST_CASE(
    "explain_gemm: stochastic rounding is no mistake of a formula that changes nothing on the operands") {
  const auto stochastic = [](Case& wrong) {
    std::uint32_t draw = 1;
    wrong.write_codes([&](double exact) {
      draw = draw * 1664525 + 1013904223;
      const fp16::Attributes attributes{.rounding = fp16::Rounding::stochastic,
                                        .random_bits = std::uint64_t{draw} << 32};
      return wrong.problem.d.format == binary16
                 ? std::uint32_t{fp16::encode<binary16>(exact, attributes).bits}
                 : std::uint32_t{fp16::encode<fp16::bfloat16>(exact, attributes).bits};
    });
  };
  Case padded(binary16, 32, 64, 32);
  for (std::size_t i = 0; i < padded.problem.rows; ++i) {
    for (std::size_t k = 60; k < 64; ++k) padded.problem.a[i * 64 + k] = 0;
  }
  for (std::size_t k = 60; k < 64; ++k) {
    for (std::size_t j = 0; j < padded.problem.columns; ++j) padded.problem.b[k * 32 + j] = 0;
  }
  stochastic(padded);
  CHECK(padded.name() == "none");

  Case gram(binary16, 32, 64, 32);  // D = A A^T
  for (std::size_t k = 0; k < 64; ++k) {
    for (std::size_t j = 0; j < 32; ++j) gram.problem.b[k * 32 + j] = gram.problem.a[j * 64 + k];
  }
  stochastic(gram);
  CHECK(gram.name() == "none");

  Case floats(fp16::bfloat16, 32, 64, 32);
  floats.problem.operands = binary32;
  for (auto* const values : {&floats.problem.a, &floats.problem.b}) {
    for (std::size_t i = 0; i < values->size(); ++i)
      (*values)[i] = 1 + 0x1p-23f * static_cast<float>(i * 2654435761 % 8388593);
  }
  stochastic(floats);
  CHECK(floats.name() == "none");
}

TEST_CASE("explain_gemm: numbers that are all stored on one side of the exact ones are told, ties are not") {
  Case wrong(binary16);
  const auto rounded_by = [&](fp16::Rounding rounding) {
    wrong.write_codes([&](double exact) {
      return std::uint32_t{fp16::encode<binary16>(exact, {.rounding = rounding}).bits};
    });
    return wrong.name();
  };
  const auto stepped = [&](std::int32_t positive, std::int32_t negative) {
    wrong.write_codes([&](double exact) {
      const std::uint32_t nearest = fp16::encode<binary16>(exact).bits;
      return nearest + static_cast<std::uint32_t>(exact < 0 ? negative : positive);
    });
    return wrong.name();
  };
  CHECK(rounded_by(fp16::Rounding::toward_zero) == "truncated");
  CHECK(rounded_by(fp16::Rounding::toward_positive) == "rounded_up");
  CHECK(rounded_by(fp16::Rounding::toward_negative) == "rounded_down");
  CHECK(stepped(1, 1) == "next_away");
  CHECK(stepped(-1, -1) == "next_toward_zero");
  CHECK(stepped(1, -1) == "next_up");
  CHECK(stepped(-1, 1) == "next_down");
  CHECK(stepped(0, 0) == "none");
  wrong.write_codes([](double exact) {
    const bool is_up = exact > 0;
    return std::uint32_t{fp16::encode<binary16>(exact, {.rounding = is_up ? fp16::Rounding::toward_positive
                                                                          : fp16::Rounding::toward_negative})
                             .bits};
  });
  CHECK(wrong.name() == "rounded_away");
  CHECK(wrong.mistake()->what.find("D is rounded away from 0") != std::string::npos);

  // Whole numbers whose sums are odd in half of all places: ties, which alone leave the nearest even one.
  for (auto* const values : {&wrong.problem.a, &wrong.problem.b}) {
    for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] = static_cast<float>(1 + i * 7 % 13);
  }
  CHECK(rounded_by(fp16::Rounding::nearest_away) == "none");
}

TEST_CASE(
    "explain_gemm: numbers on one side of the exact ones are told of long sums, whose errors hide it one by "
    "one") {
  Case wrong(binary16, 32, 1024, 32);
  const auto rounded_by = [&](fp16::Rounding rounding) {
    wrong.write_codes([&](double exact) {
      const auto sum = static_cast<float>(exact * (1 + 0x1p-22));  // what FP32 may make of it
      return std::uint32_t{fp16::encode<binary16>(sum, {.rounding = rounding}).bits};
    });
    return wrong.name();
  };
  CHECK(rounded_by(fp16::Rounding::toward_zero) == "truncated");
  REQUIRE(wrong.mistake());
  CHECK(wrong.mistake()->what.find(" outputs lie nearer to 0 than their exact values") != std::string::npos);
  CHECK(rounded_by(fp16::Rounding::toward_positive) == "rounded_up");
  CHECK(rounded_by(fp16::Rounding::toward_negative) == "rounded_down");
  CHECK(rounded_by(fp16::Rounding::nearest_even) == "none");

  // Sums that lie just above whole numbers, which nearest ones are below.
  for (std::size_t i = 0; i < wrong.problem.a.size(); ++i)
    wrong.problem.a[i] = i % 1024 == 0 ? 0x1p-9f : static_cast<float>(i % 5);
  for (std::size_t i = 0; i < wrong.problem.b.size(); ++i)
    wrong.problem.b[i] = i / 32 == 0 ? 0x1p-9f : static_cast<float>(i % 2);
  CHECK(rounded_by(fp16::Rounding::nearest_even) == "none");
}

TEST_CASE("explain_gemm: a transposed operand is wrong however far FP16 sums of that depth may be off") {
  constexpr std::size_t deep = 2000;
  Case wrong(binary16, 12, deep, 12);
  const Problem& p = wrong.problem;
  wrong.write([&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < deep; ++k) sum += double{p.a[i * deep + k]} * double{p.b[j * deep + k]};
    return sum;
  });
  test::SilentRun silent(1);
  const SearchOptions options{.most_slices = 2};
  Explanation found = explain(p, options, silent.run);
  Classification classes = classify(p, found, options.most_slices, silent.run);
  CHECK(classes.name() == "undecided");
  CHECK(classes.is_far_off());
  const std::optional<Mistake> mistake = mistake_of(p, classes);
  REQUIRE(mistake);
  CHECK(mistake->name == "b_by_columns");
  CHECK(bug_line({p, found, classes}).empty());
  write_verdict(silent.record, {p, found, classes});
  CHECK(silent.record.verdict().find(" in the root mean square where fp16_fma_chain would be by ") !=
        std::string::npos);
  CHECK(silent.record.verdict().find("or they are wrong, which is likely.") != std::string::npos);
  CHECK(next_step({p, found, classes}).starts_with("Next: most of D is wrong, so look first"));
  CHECK(bug_line({p, found, classes, mistake}) == mistake->what);
}

TEST_CASE("explain_gemm: operands read and results stored by columns are told") {
  for (const bool is_square : {false, true}) {
    Case wrong = is_square ? Case(binary16, 32, 32, 32) : Case(binary16);
    const Problem& p = wrong.problem;
    const auto sum = [&](const std::function<double(std::size_t)>& term) {
      double total = 0;
      for (std::size_t k = 0; k < p.depth; ++k) total += term(k);
      return total;
    };
    const auto a = [&](std::size_t i, std::size_t k) { return double{p.a[i * p.depth + k]}; };
    const auto b = [&](std::size_t k, std::size_t j) { return double{p.b[k * p.columns + j]}; };
    const auto turned_a = [&](std::size_t i, std::size_t k) { return double{p.a[k * p.rows + i]}; };
    const auto turned_b = [&](std::size_t k, std::size_t j) { return double{p.b[j * p.depth + k]}; };
    wrong.write([&](auto i, auto j) { return sum([&](auto k) { return turned_a(i, k) * b(k, j); }); });
    CHECK(wrong.name() == "a_by_columns");
    CHECK(wrong.name_in_second() == "a_by_columns");
    wrong.write([&](auto i, auto j) { return sum([&](auto k) { return a(i, k) * turned_b(k, j); }); });
    CHECK(wrong.name() == "b_by_columns");
    CHECK(wrong.name_in_second() == "b_by_columns");
    wrong.write([&](auto i, auto j) { return sum([&](auto k) { return turned_a(i, k) * turned_b(k, j); }); });
    CHECK(wrong.name() == "both_by_columns");
    CHECK(wrong.name_in_second() == "both_by_columns");
    wrong.write([&](auto i, auto j) {
      const std::size_t place = i * p.columns + j;
      return wrong.product(place % p.rows, place / p.rows);
    });
    CHECK(wrong.name() == "d_by_columns");
    CHECK(wrong.name_in_second() == "d_by_columns");
    if (!is_square) continue;
    wrong.write([&](auto i, auto j) { return sum([&](auto k) { return b(i, k) * a(k, j); }); });
    CHECK(wrong.name() == "operands_swapped");
    CHECK(wrong.name_in_second() == "operands_swapped");
  }
}

TEST_CASE("explain_gemm: products that are missing or come twice are named by their k") {
  const struct {
    std::size_t first, last;
    bool is_repeated;
    std::string_view name, text;
  } rows_of_table[] = {{80, 96, false, "products_missing", "the 16 products from k = 80 to 95"},
                       {91, 96, false, "products_missing", "the 5 products from k = 91 to 95"},
                       {0, 7, false, "products_missing", "the 7 products from k = 0 to 6"},
                       {32, 64, false, "products_missing", "the 32 products from k = 32 to 63"},
                       {17, 40, false, "products_missing", "the 23 products from k = 17 to 39"},
                       {50, 51, false, "products_missing", "the product of k = 50"},
                       {33, 38, true, "products_repeated", "the 5 products from k = 33 to 37"},
                       {48, 64, true, "products_repeated", "the 16 products from k = 48 to 63"},
                       {64, 96, true, "products_repeated", "the 32 products from k = 64 to 95"}};
  for (const auto& row : rows_of_table) {
    for (const std::size_t from_row : {std::size_t{0}, std::size_t{20}}) {
      Case wrong(from_row == 0 ? binary32 : binary16);
      wrong.write(
          [&](std::size_t i, std::size_t j) {
            const double part = wrong.product(i, j, row.first, row.last);
            return wrong.product(i, j) + (row.is_repeated ? part : -part);
          },
          from_row);
      const std::optional<Mistake> mistake = wrong.mistake();
      INFO(row.text, " ", from_row);
      REQUIRE(mistake);
      CHECK(mistake->name == row.name);
      CHECK(mistake->what.find(row.text) != std::string::npos);
    }
  }
}

TEST_CASE("explain_gemm: no stretch of k is named where so few and wide outputs would fit one by chance") {
  Case wrong(binary16, 8, 1500, 12);
  wrong.write(
      [&](std::size_t i, std::size_t j) { return wrong.product(i, j) * (1 + 0.5 * static_cast<double>(i)); },
      7);
  wrong.problem.d.codes[7 * 12] ^= 0x8000;
  CHECK(!wrong.name().starts_with("products_"));
}

TEST_CASE("explain_gemm: products that are missing are named though the bound of so deep a sum hides them") {
  constexpr std::size_t deep = 12000, held = 11950;
  Case wrong(binary16, 6, deep, 6);
  wrong.write([&](std::size_t i, std::size_t j) { return wrong.product(i, j, 0, held); });
  test::SilentRun silent(1);
  const SearchOptions options{.most_slices = 2};
  const Explanation found = explain(wrong.problem, options, silent.run);
  const Classification classes = classify(wrong.problem, found, options.most_slices, silent.run);
  CHECK(classes.name() == "rounding_only");
  CHECK(classes.is_doubtful());
  CHECK(
      next_step({wrong.problem, found, classes}).starts_with("Next: rounding in FP32 is seldom so far off"));
  const std::optional<Mistake> mistake = mistake_of(wrong.problem, classes);
  REQUIRE(mistake);
  CHECK(mistake->what.find("50 products from k = 11950 to 11999") != std::string::npos);

  // Some of them are beyond the bound of FP32 sums then.
  wrong.write([&](std::size_t i, std::size_t j) { return wrong.product(i, j, 0, held - 150); });
  CHECK(wrong.name() == "products_missing");

  wrong.write([&](std::size_t i, std::size_t j) { return wrong.product(i, j); });
  const Explanation right = explain(wrong.problem, options, silent.run);
  const Classification rounding = classify(wrong.problem, right, options.most_slices, silent.run);
  CHECK(!rounding.is_doubtful());
  CHECK(!mistake_of(wrong.problem, rounding));
}

TEST_CASE("explain_gemm: subnormal numbers that are flushed are named, of D and of its operands") {
  Case wrong(binary16);
  for (float& value : wrong.problem.a) value = rounded_to(binary16, value * 0x1p-12f);
  for (float& value : wrong.problem.b) value *= 0x1p-5f;
  const auto normal = [](double value) { return std::fabs(value) < 0x1p-14 ? 0 : value; };
  wrong.write([&](auto i, auto j) { return wrong.product(i, j); });
  CHECK(wrong.name() == "none");
  wrong.write([&](auto i, auto j) {
    const double product = value_of(binary16, rounded(binary16, wrong.product(i, j)));
    return normal(product);
  });
  CHECK(wrong.name() == "results_flushed");
  wrong.problem.d.codes[0] = 1;
  CHECK(wrong.name() != "results_flushed");

  for (float& value : wrong.problem.b) value *= 0x1p5f;
  wrong.write([&](auto i, auto j) { return wrong.product_of(normal, i, j); });
  REQUIRE(wrong.mistake());
  CHECK(wrong.mistake()->name == "operands_flushed");
  CHECK(wrong.mistake()->what.find("numbers read as 0") != std::string::npos);
}

TEST_CASE(
    "explain_gemm: FP16 operands that were quantized, and results that passed through bfloat16, are named") {
  Case wrong(binary16);
  const auto to_e4m3 = [](float value) {
    return double{fp16::decode<fp16::e4m3>(fp16::encode<fp16::e4m3>(value).bits)};
  };
  wrong.write([&](auto i, auto j) { return wrong.product_of(to_e4m3, i, j); });
  REQUIRE(wrong.mistake());
  CHECK(wrong.mistake()->name == "e4m3");
  CHECK(wrong.mistake()->what.find("those of A rounded to E4M3") != std::string::npos);

  wrong.write([&](auto i, auto j) {
    return double{rounded_to(fp16::bfloat16, static_cast<float>(wrong.product(i, j)))};
  });
  CHECK(wrong.name() == "d_by_bfloat16");
}

TEST_CASE("explain_gemm: epilogues that were not told of are named") {
  Case wrong(binary16);
  const auto product = [&](std::size_t i, std::size_t j) { return wrong.product(i, j); };
  wrong.write([&](auto i, auto j) { return std::max(0.0, product(i, j)); });
  CHECK(wrong.name() == "relu");
  wrong.problem.d.codes[0] = 0xbc00;
  CHECK(wrong.name() != "relu");

  wrong.write(product);
  wrong.write([](auto, auto) { return 0.0; }, 20);
  CHECK(wrong.name() == "same_value");

  wrong.write([&](auto i, auto j) { return 0.125 * product(i, j); });
  REQUIRE(wrong.mistake());
  CHECK(wrong.mistake()->name == "factors");
  CHECK(wrong.mistake()->next.starts_with("if that is meant, give --alpha 0.125"));

  wrong.write(product);
  wrong.write([&](auto i, auto j) { return 0.125 * product(i, j); }, 12);
  REQUIRE(wrong.mistake());
  CHECK(wrong.mistake()->name == "factors");
  CHECK(wrong.mistake()->next.find("--alpha") == std::string::npos);

  wrong.write([&](auto i, auto j) { return std::fabs(product(i, j)); });
  CHECK(wrong.name() == "absolute");

  wrong.write(product);
  wrong.write([&](auto i, auto j) { return product(i, j) + 50 + 10.0 * static_cast<double>(j); });
  CHECK(wrong.name() == "column_bias");
  wrong.write([&](auto i, auto j) { return product(i, j) - 50 - 10.0 * static_cast<double>(i * i); });
  CHECK(wrong.name() == "row_bias");
}

TEST_CASE("explain_gemm: a mistake lies where all its outputs do, not only those beyond every bound") {
  Case halved(binary32, 32, 256, 32);
  halved.write([&](auto i, auto j) { return 0.5 * halved.product(i, j); }, 16);
  test::SilentRun silent(1);
  const SearchOptions options{.most_slices = 2};
  Explanation found = explain(halved.problem, options, silent.run);
  Classification classes = classify(halved.problem, found, options.most_slices, silent.run);
  const std::size_t wrong = classes.count(Kind::real_bug) + classes.count(Kind::undecided);
  std::optional<Mistake> mistake = mistake_of(halved.problem, classes);
  REQUIRE(mistake);
  CHECK(mistake->outputs.size() == wrong);
  write_verdict(silent.record, {halved.problem, found, classes, mistake});
  CHECK(silent.record.verdict().find("The wrong outputs lie in rows 16 to 31 and columns 0 to 31.") !=
        std::string::npos);
}

TEST_CASE("explain_gemm: a factor that lost digits is named, and none where sums lose more of them") {
  Case wrong(binary32);
  wrong.problem.alpha = 0.1f;
  const auto scaled = [&](double alpha) {
    wrong.write([&](auto i, auto j) { return alpha * wrong.product(i, j); });
    return wrong.mistake();
  };
  CHECK(!scaled(double{0.1f}));
  const std::optional<Mistake> half = scaled(0x1.998p-4);
  REQUIRE(half);
  CHECK(half->what == "all outputs are those of alpha = 0.0999755859375, which is 0.1 in FP16");
  const std::optional<Mistake> near = scaled(0.1003);
  REQUIRE(near);
  CHECK(near->what == "all outputs are those of alpha = 0.1003");

  wrong.problem.alpha = 1;
  wrong.write([&](auto i, auto j) {  // an FP16 accumulator
    double sum = 0;
    for (std::size_t k = 0; k < depth; ++k)
      sum = value_of(binary16, rounded(binary16, sum + wrong.term(i, j, k)));
    return sum;
  });
  CHECK(wrong.name() == "none");
}

TEST_CASE("explain_gemm: of constant operands no mistake is told from another") {
  Case wrong(binary32);
  std::ranges::fill(wrong.problem.a, test::half_of(0x3c00));
  std::ranges::fill(wrong.problem.b, test::half_of(0x3c00));
  wrong.write([](auto, auto) { return 95.0; });
  const std::optional<Mistake> mistake = wrong.mistake();
  REQUIRE(mistake);
  CHECK(mistake->what.starts_with("each wrong output holds 95 in place of 96"));
  CHECK(mistake->next.starts_with("explain the product of a random A and B"));
}

TEST_CASE("explain_gemm: C left out and factors mistaken are named") {
  Case wrong(binary16);
  for (std::size_t i = 0; i < wrong.problem.outputs(); ++i)
    wrong.problem.c.push_back(20 + 7 * static_cast<float>(i % 11));
  wrong.problem.alpha = 0.5f;
  wrong.problem.beta = 3;
  wrong.write([&](auto i, auto j) { return 0.5 * wrong.product(i, j); });
  CHECK(wrong.name() == "without_c");
  wrong.write([&](auto i, auto j) {
    return 2 * wrong.product(i, j) + 1.5 * wrong.problem.c_at(i * wrong.problem.columns + j);
  });
  REQUIRE(wrong.mistake());
  CHECK(wrong.mistake()->name == "factors");
  CHECK(wrong.mistake()->what.find("beta = 1.5") != std::string::npos);
}

TEST_CASE("explain_gemm: D cut off at 65504 is told from wrong sums") {
  Case large(binary16);
  for (float& value : large.problem.a) value *= 0x1p14f;
  large.write(
      [&](std::size_t i, std::size_t j) { return std::clamp(large.product(i, j), -65504.0, 65504.0); });
  CHECK(large.name() == "saturated");
}
