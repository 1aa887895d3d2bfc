#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/matrix.h"
#include "experiments/explain_gemm/problem.h"
#include "tests/experiments/frame/tensor_files/stored.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace {

using namespace experiments::explain_gemm;
using test::TemporaryDirectory;
using Codes = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("explain_gemm: matrices are read in both orders, types and from several in a file") {
  const TemporaryDirectory directory;
  const std::string six_halves("\x00\x3c\x00\x40\x00\x42\x00\x44\x00\x45\x00\xc6", 12);  // 1 2 3 4 5 -6
  const auto array = [](const char* type, const char* order, const char* shape, const std::string& data) {
    return test::npy_file(test::npy_dictionary(type, order, shape), data);
  };
  const auto read = [&](const std::string& bytes) {
    std::ofstream(directory / "m.npy", std::ios::binary) << bytes;
    return read_matrix(directory / "m.npy");
  };
  const Matrix rows = read(array("<f2", "False", "(2, 3)", six_halves));
  CHECK(rows.format == fp16::binary16);
  CHECK(rows.rows == 2);
  CHECK(rows.columns == 3);
  CHECK(rows.codes == Codes{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0xc600});
  CHECK(read(array("<f2", "True", "(2, 3)", six_halves)).codes ==
        Codes{0x3c00, 0x4200, 0x4500, 0x4000, 0x4400, 0xc600});
  const Matrix wide =
      read(array("<f4", "False", "(2, 1)", std::string("\x00\x00\x80\x3f\x01\x02\x03\x84", 8)));
  CHECK(wide.format == fp16::binary32);
  CHECK(wide.codes == Codes{0x3f800000, 0x84030201});
  CHECK_THROWS_WITH(read(array("<f8", "False", "(2, 1)", std::string(16, 0))),
                    doctest::Contains("holds binary64; allowed: binary16"));
  CHECK_THROWS_WITH(read(array("<f2", "False", "(6,)", six_halves)),
                    doctest::Contains("has the shape (6,); allowed: two dimensions"));
  CHECK_THROWS_WITH(read(array("<f2", "False", "(0, 3)", "")), doctest::Contains("a dimension of 0"));

  std::ofstream(directory / "m.npz", std::ios::binary)
      << test::zip_file({{"a.npy", array("<f2", "False", "(1, 1)", "xy")},
                         {"b.npy", array("<f2", "False", "(2, 3)", six_halves), true}});
  CHECK(read_matrix((directory / "m.npz").string() + ":b").codes == rows.codes);
  CHECK_THROWS_WITH(read_matrix(directory / "m.npz"), doctest::Contains("m.npz:NAME', as in"));
}

TEST_CASE("explain_gemm: what is written is NumPy's header, byte for byte, and reads back") {
  const TemporaryDirectory directory;
  const Matrix matrix{.rows = 2, .columns = 3, .codes = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0xc600}};
  write_matrix(directory / "m.npy", matrix);
  CHECK(test::content_of(directory / "m.npy") ==
        "\x93NUMPY\x01" + std::string(1, '\0') + "\x76" + std::string(1, '\0') +
            "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n" +
            std::string("\x00\x3c\x00\x40\x00\x42\x00\x44\x00\x45\x00\xc6", 12));
  CHECK(read_matrix(directory / "m.npy").codes == matrix.codes);
}

TEST_CASE("explain_gemm: matrices and factors that do not fit together are refused") {
  const TemporaryDirectory directory;
  const auto file = [&](const char* name, std::size_t rows, std::size_t columns,
                        fp16::Format format = fp16::binary16) {
    write_matrix(directory / name, {format, rows, columns, Codes(rows * columns)});
    return (directory / name).string();
  };
  const std::string a = file("a.npy", 2, 3), b = file("b.npy", 3, 4), d = file("d.npy", 2, 4);
  const std::string wide = file("wide.npy", 2, 4, fp16::binary32);
  const Problem problem = read_problem({.a = a, .b = b, .d = d});
  CHECK(problem.rows == 2);
  CHECK(problem.depth == 3);
  CHECK(problem.columns == 4);
  CHECK(problem.beta == 0);
  CHECK(read_problem({.a = a, .b = b, .d = wide, .c = d}).beta == 1);
  CHECK(read_problem({.a = a, .b = b, .d = d, .c = wide}).c.size() == 8);
  CHECK(read_problem({.a = a, .b = b, .d = d, .c = wide, .beta = 0.0f}).c.empty());
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d, .c = b, .beta = 0.0f}),
                    doctest::Contains("--c: the matrix"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d, .c = directory / "none.npy", .beta = 0.0f}),
                    doctest::Contains("none.npy"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = ""}), doctest::Contains("--a, --b and --d"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = a, .d = d}), doctest::Contains("--b: the matrix is 2 x 3"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = a}), doctest::Contains("--d: the matrix is 2 x 3"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d, .c = b}), doctest::Contains("--c: the matrix"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d, .alpha = 0}), doctest::Contains("--alpha"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = file("turned.npy", 4, 2)}),
                    doctest::Contains("where A and B want 2 x 4; its transpose would fit"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = file("turned.npy", 4, 3), .d = d}),
                    doctest::Contains("A, 2 x 3, wants 3 rows; its transpose would fit"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d, .beta = 1.0f}), doctest::Contains("--beta"));
}

TEST_CASE("explain_gemm: lists of files are triples, as many of each and of one shape and type") {
  const TemporaryDirectory directory;
  const auto file = [&](const char* name, std::size_t rows, std::size_t columns, std::uint32_t code,
                        fp16::Format format = fp16::binary16) {
    write_matrix(directory / name, {format, rows, columns, Codes(rows * columns, code)});
    return (directory / name).string();
  };
  const std::string a = file("a1.npy", 2, 3, 0x3c00) + "," + file("a2.npy", 2, 3, 0x4000);
  const std::string b = file("b1.npy", 3, 4, 0x3c01) + "," + file("b2.npy", 3, 4, 0x4001);
  const std::string d = file("d1.npy", 2, 4, 0x1) + "," + file("d2.npy", 2, 4, 0x2);
  const Problem problem = read_problem({.a = a, .b = b, .d = d, .c = d});
  CHECK(problem.triples == 2);
  CHECK(problem.rows == 4);
  CHECK(problem.c.size() == 16);
  for (std::size_t output = 0; output < problem.outputs(); ++output) {
    const Place place = problem.place_of(output);
    CHECK(place.triple == output / 8);
    CHECK(place.row == output / 4 % 2);
    CHECK(place.column == output % 4);
    CHECK(problem.a_of(output, 2) == (place.triple == 0 ? 1 : 2));
    CHECK(problem.b_of(output, 2) == (place.triple == 0 ? 1 + 0x1p-10f : 2 + 0x1p-9f));
    CHECK(problem.d.codes[output] == place.triple + 1);
  }
  const std::string one_b = file("b1.npy", 3, 4, 0x3c01);
  CHECK_THROWS_WITH(read_problem({.a = a, .b = one_b, .d = d}),
                    "--b: the number of files is 1 where --a has 2");
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d + "," + d}),
                    "--d: the number of files is 4 where --a has 2");
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = d, .c = one_b}), doctest::Contains("--c: the number"));
  CHECK_THROWS_WITH(read_problem({.a = a + ",", .b = b, .d = d}), doctest::Contains("a file without a name"));
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = "", .by_cublas = true}),
                    "--a: the number of files is 2 where --cublas takes one");
  const std::string floats = file("d1.npy", 2, 4, 0x1) + "," + file("f.npy", 2, 4, 0x2, fp16::binary32);
  CHECK_THROWS_WITH(read_problem({.a = a, .b = b, .d = floats}),
                    doctest::Contains("f.npy' is not of the first"));
  const std::string deep_a = file("a1.npy", 2, 3, 0x3c00) + "," + file("a5.npy", 2, 5, 0x3c00);
  const std::string deep_b = one_b + "," + file("b5.npy", 5, 4, 0x3c00);
  CHECK_THROWS_WITH(read_problem({.a = deep_a, .b = deep_b, .d = d}),
                    doctest::Contains("m x k x n = 2 x 5 x 4 where the first has 2 x 3 x 4"));
}

TEST_CASE("explain_gemm: a triple of the operands of an earlier one is refused") {
  const TemporaryDirectory directory;
  const auto file = [&](const char* name, std::size_t rows, std::size_t columns, std::uint32_t code) {
    write_matrix(directory / name, {fp16::binary16, rows, columns, Codes(rows * columns, code)});
    return (directory / name).string();
  };
  const std::string a1 = file("a1.npy", 2, 3, 0x3c00), a2 = file("a2.npy", 2, 3, 0x4000);
  const std::string b1 = file("b1.npy", 3, 4, 0x3c01), b2 = file("b2.npy", 3, 4, 0x4001);
  const std::string d = file("d.npy", 2, 4, 1), copy = file("copy.npy", 2, 3, 0x4000);
  const auto read = [&](const std::string& a, const std::string& b) {
    return read_problem(
        {.a = a1 + "," + a2 + "," + a, .b = b1 + "," + b2 + "," + b, .d = d + "," + d + "," + d});
  };
  CHECK(read(a1, b2).triples == 3);
  CHECK(read(a2, b1).triples == 3);
  CHECK_THROWS_WITH(read(a1, b1), doctest::Contains("a1.npy' and its B hold the numbers of triple 1, '"));
  CHECK_THROWS_WITH(read(copy, b2), doctest::Contains("copy.npy' and its B hold the numbers of triple 2, '"));
}

TEST_CASE("explain_gemm: halves that were saved as floats are halves, sums that happen to be are not") {
  const TemporaryDirectory directory;
  const auto file = [&](const char* name, fp16::Format format, std::size_t rows, std::size_t columns,
                        Codes codes) {
    write_matrix(directory / name, {format, rows, columns, std::move(codes)});
    return (directory / name).string();
  };
  const std::string a = file("a.npy", fp16::binary16, 1, 2, {0x3c01, 0x3c00});  // 1 + 2^-10, 1
  const std::string b = file("b.npy", fp16::binary16, 2, 2, {0x3c01, 0x4000, 0x0000, 0x4200});
  const auto read = [&](std::uint32_t first, std::uint32_t second) {
    return read_problem({.a = a, .b = b, .d = file("d.npy", fp16::binary32, 1, 2, {first, second})});
  };
  // (1 + 2^-10)^2 is no half; 2 (1 + 2^-10) + 3 is none either.
  const Problem widened = read(0x3f804000, 0x40a00000);  // 1 + 2^-9, 5
  CHECK(widened.was_widened);
  CHECK(widened.d.format == fp16::binary16);
  CHECK(widened.d.codes == Codes{0x3c02, 0x4500});
  CHECK(read(0x7f800000, 0x3f802000).d.codes == Codes{0x7c00, 0x3c01});
  const Problem of_bfloat16 = read(0x3f800000, 0x40a00000);
  CHECK(of_bfloat16.was_widened);
  CHECK(of_bfloat16.d.format == fp16::bfloat16);
  CHECK(of_bfloat16.d.codes == Codes{0x3f80, 0x40a0});
  for (const Problem& stays : {read(0x3f804008, 0x40a00000),  // the exact one
                               read(0x7f800000, 0xff800000)}) {
    CHECK(!stays.was_widened);
    CHECK(stays.d.format == fp16::binary32);
  }
  const std::string ones = file("ones.npy", fp16::binary16, 1, 2, {0x3c00, 0x3c00});
  const std::string units = file("units.npy", fp16::binary16, 2, 2, {0x3c01, 0x3c00, 0, 0});
  const std::string d = file("d.npy", fp16::binary32, 1, 2, {0x3f802000, 0x3f800000});
  CHECK(!read_problem({.a = ones, .b = units, .d = d}).was_widened);
}
