#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/gpu/validate_gpu/findings.h"
#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/tensor_cores.h"
#include "experiments/validation/double_oracle.h"
#include "experiments/validation/shards.h"
#include "tests/file_contents.h"
#include "tests/oracle/exact_half.h"
#include "tests/temporary_directory.h"

namespace {

using namespace experiments::validate_gpu;
using test::TemporaryDirectory;

const Row& row_called(std::string_view id) {
  const auto found = std::ranges::find(rows(), id, &Row::id);
  REQUIRE(found != rows().end());
  return *found;
}

/// The row with another function in the place of its own.
Row with_function(const std::string& id, Function function) {
  Row row = row_called(id);
  row.function = function;
  return row;
}

std::uint64_t mismatches_of(const Row& row, std::uint64_t samples) {
  std::uint64_t found = 0;
  for (const std::uint32_t shard : sampled_shards(row.domain(), samples))
    found += run_shard(row, shard).mismatches;
  return found;
}

double number(std::uint64_t code) {
  return double_oracle::decode(static_cast<std::uint16_t>(code));
}

/// The sum in one lane.
std::uint64_t lane(std::uint64_t a, std::uint64_t b) {
  return double_oracle::encode(number(a & 0xFFFF) + number(b & 0xFFFF));
}

constexpr std::uint64_t quick_samples = 1 << 20;

}  // namespace

TEST_CASE("validate_gpu: the double oracle rounds as exact rationals do") {
  constexpr std::pair<double_oracle::Direction, ::oracle::Direction> directions[] = {
      {double_oracle::Direction::nearest_even, ::oracle::Direction::nearest_even},
      {double_oracle::Direction::toward_zero, ::oracle::Direction::toward_zero},
      {double_oracle::Direction::up, ::oracle::Direction::toward_positive},
      {double_oracle::Direction::down, ::oracle::Direction::toward_negative}};
  int wrong = 0, tried = 0;
  for (std::uint32_t shard = 0; shard < 8; ++shard) {
    for (std::uint32_t index = shard; index < 65536; index += 61) {
      const double value = std::bit_cast<double>(trials::double_point(shard, index).a);
      if (!std::isfinite(value)) continue;
      const auto exact = ::oracle::from_binary64(std::bit_cast<std::uint64_t>(value));
      for (const auto& [ours, theirs] : directions) {
        wrong += double_oracle::encode(value, ours) != exact[static_cast<std::size_t>(theirs)].bits;
        ++tried;
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(tried > 30000);
  CHECK(double_oracle::encode(65519.99) == 0x7BFF);
  CHECK(double_oracle::encode(65520) == 0x7C00);
  CHECK(double_oracle::encode(-0x1p-25) == 0x8000);
  CHECK(double_oracle::encode(0x1.8p-24) == 0x0002);
  CHECK(double_oracle::encode(1e300, double_oracle::Direction::toward_zero) == 0x7BFF);
  CHECK(double_oracle::encode(std::nan("")) == 0x7FFF);
  CHECK(double_oracle::to_integral(-2.5, double_oracle::Direction::nearest_even) == -2);
  CHECK(double_oracle::to_integral(-2.5, double_oracle::Direction::down) == -3);
}

TEST_CASE("validate_gpu: the double oracle computes what exact rationals do") {
  const auto fused = row_called("hfma, software half").reference;
  const auto quotient = row_called("hdiv, software half").reference;
  const auto root = row_called("hsqrt, software half").reference;
  int wrong = 0;
  for (std::uint32_t index = 0; index < 20000; ++index) {
    const Operands operands = trials::triple(7, index);
    const auto a = static_cast<std::uint16_t>(operands.a), b = static_cast<std::uint16_t>(operands.b),
               c = static_cast<std::uint16_t>(operands.c);
    const auto differs = [](std::uint64_t ours, std::uint16_t exact) {
      const bool nan = (exact & 0x7FFF) > 0x7C00;
      return ours != (nan ? 0x7FFF : exact);
    };
    wrong += differs(fused(operands), ::oracle::fma(a, b, c)[0].bits);
    wrong += differs(quotient(operands), ::oracle::divide(a, b)[0].bits);
    wrong += differs(root(operands), ::oracle::sqrt(a)[0].bits);
  }
  CHECK(wrong == 0);
}

TEST_CASE("validate_gpu: a domain's row says how many inputs it has, and how many operands each") {
  std::set<std::string_view> names;
  for (const Domain& domain : domains) {
    INFO(domain.name);
    CHECK(names.insert(domain.name).second);
    CHECK(domain.inputs == domain.shard_count * domain.shard_size);
    CHECK((domain.at == nullptr) == domain.name.starts_with("device_"));
    const int bits = std::countr_zero(domain.inputs);
    CHECK(domain.inputs == std::uint64_t{1} << bits);
    const bool all_codes = bits == 16 * domain.operand_count || (bits == 32 && domain.operand_count == 1);
    CHECK((!domain.is_complete || all_codes));
    if (domain.at == nullptr) continue;
    std::set<std::array<std::uint64_t, 3>> seen;
    std::array<std::uint64_t, 3> used{};
    for (const std::uint32_t shard : sampled_shards(domain, 8 * domain.shard_size)) {
      for (std::uint32_t index = 0; index < domain.shard_size; ++index) {
        const Operands trial = domain.at(shard, index);
        const std::array operands{trial.a, trial.b, trial.c};
        for (std::size_t i = 0; i < operands.size(); ++i) used[i] |= operands[i];
        if (domain.is_complete && index % 64 == 0) CHECK(seen.insert(operands).second);
      }
    }
    for (int i = 0; i < 3; ++i) CHECK((used[static_cast<std::size_t>(i)] != 0) == (i < domain.operand_count));
  }
  CHECK(domain_called("device_triples").inputs == std::uint64_t{1} << 48);
}

TEST_CASE("validate_gpu: a sample has every shard once, borders first, and grows by adding") {
  for (const Domain& domain : domains) {
    INFO(domain.name);
    const auto borders = domain.boundary_shards();
    const auto few = sampled_shards(domain, 40 * domain.shard_size);
    const auto all = sampled_shards(domain, ~std::uint64_t{0});
    CHECK(all.size() == domain.shard_count);
    CHECK(std::set<std::uint32_t>(all.begin(), all.end()).size() == all.size());
    CHECK(*std::ranges::max_element(all) == domain.shard_count - 1);
    CHECK(std::ranges::equal(few, std::vector(all.begin(), all.begin() + static_cast<long>(few.size()))));
    CHECK(std::set<std::uint32_t>(borders.begin(), borders.end()).size() == borders.size());
    const std::size_t shared = std::min(borders.size(), few.size());
    CHECK(std::equal(borders.begin(), borders.begin() + static_cast<long>(shared), few.begin()));
  }
  CHECK(sampled_shards(domain_called("pairs"), 65537).size() == 2);
  Domain short_end = domain_called("device_codes");
  short_end.shard_count = 3;
  short_end.shard_size = 30000;
  CHECK(short_end.inputs_of(0) == 30000);
  CHECK(short_end.inputs_of(2) == 5536);
}

TEST_CASE(
    "validate_gpu: the points of double and of 64-bit integers lie below, at and above the boundaries") {
  const auto double_point = [](std::uint32_t shard, std::uint32_t code) {
    return std::bit_cast<double>(trials::double_point(shard, code).a);
  };
  CHECK(double_point(1, 0x3C00) == 1.0);
  CHECK(double_point(0, 0x3C00) == std::nextafter(1.0, 0.0));
  CHECK(double_point(2, 0xBC00) == std::nextafter(-1.0, -2.0));
  CHECK(double_point(4, 0x3C00) == 1 + 0x1p-11);
  CHECK(double_point(4, 0x7BFF) == 65520.0);
  CHECK(double_point(3, 0x7BFF) == std::nextafter(65520.0, 0.0));
  CHECK(double_point(4, 0x0000) == 0x1p-25);
  CHECK(double_point(0, 0x0000) == -0x1p-1074);
  const auto integer_point = [](std::uint32_t shard, std::uint32_t code) {
    return static_cast<std::int64_t>(trials::long_word(shard, code).a);
  };
  CHECK(integer_point(3, 0x7BFF) == 65519);
  CHECK(integer_point(4, 0x7BFF) == 65520);
  CHECK(integer_point(5, 0xFBFF) == -65519);
  CHECK(integer_point(1, 0x7C00) == 0);
  CHECK(integer_point(1, 0xFC00) == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("validate_gpu: every row that runs is right on the first shards") {
  std::size_t ran = 0;
  for (const Row& row : rows()) {
    if (row.function == nullptr) continue;
    INFO(row.id());
    CHECK(mismatches_of(row, quick_samples / 8) == 0);
    ++ran;
  }
  CHECK(ran >= 92);
}

TEST_CASE("validate_gpu: wrong functions are found on the quick sample") {
  const auto is_found = [](const std::string& row, Function wrong) {
    INFO(row);
    CHECK(mismatches_of(with_function(row, wrong), quick_samples) != 0);
  };
  is_found("hfma, software half", [](const Operands& x) -> std::uint64_t {  // rounds twice
    return double_oracle::encode(number(double_oracle::encode(number(x.a) * number(x.b))) + number(x.c));
  });
  is_found("hfma, software half", [](const Operands& x) -> std::uint64_t {  // by way of binary32
    return double_oracle::encode(std::fma(static_cast<float>(number(x.a)), static_cast<float>(number(x.b)),
                                          static_cast<float>(number(x.c))));
  });
  is_found("double2half, software half", [](const Operands& x) -> std::uint64_t {  // by way of binary32
    return double_oracle::encode(static_cast<float>(std::bit_cast<double>(x.a)));
  });
  is_found("hadd, software half", [](const Operands& x) -> std::uint64_t {  // truncates
    return double_oracle::encode(number(x.a) + number(x.b), double_oracle::Direction::toward_zero);
  });
  is_found("hdiv, software half", [](const Operands& x) -> std::uint64_t {  // by the rounded reciprocal
    return double_oracle::encode(number(x.a) * (1.0F / static_cast<float>(number(x.b)) * (1 + 0x1p-23F)));
  });
  is_found("hmul, software half", [](const Operands& x) -> std::uint64_t {  // flushes subnormal results
    const std::uint16_t code = double_oracle::encode(number(x.a) * number(x.b));
    return (code & 0x7FFF) < 0x0400 ? code & 0x8000 : code;
  });
  is_found("hmax, software half", [](const Operands& x) -> std::uint64_t {  // takes -0 for +0
    if (std::isnan(number(x.a)) || std::isnan(number(x.b))) return x.a;
    return number(x.a) >= number(x.b) ? x.a : x.b;
  });
  is_found("float2half_ru, software half", [](const Operands& x) -> std::uint64_t {
    return double_oracle::encode(std::bit_cast<float>(static_cast<std::uint32_t>(x.a)));
  });
  is_found("ll2half_rn, software half", [](const Operands& x) -> std::uint64_t {  // of 32 bits only
    return double_oracle::encode(static_cast<std::int32_t>(x.a));
  });
}

TEST_CASE("validate_gpu: of a difference only the documented one is allowed") {
  constexpr Function documented = [](const Operands& x) -> std::uint64_t {
    return (x.a & 0x7FFF) > 0x7C00 ? 0x7FFF : x.a ^ 0x8000;
  };
  const Row good = with_function("hneg, cuda_fp16.h", documented);
  const ShardResult result = run_shard(good, 0);
  CHECK(result.mismatches == 0);
  CHECK(result.documented == 2045);  // 0xFFFF becomes 0x7FFF either way
  const Row flips =
      with_function("hneg, cuda_fp16.h", [](const Operands& x) -> std::uint64_t { return x.a ^ 0x8000; });
  CHECK(run_shard(flips, 0).mismatches == 2045);
  CHECK(run_shard(flips, 0).digest != result.digest);
  const std::vector<Trial> found = counterexamples(flips, 0, 3);
  REQUIRE(found.size() == 3);
  CHECK(found[0].operands.a == 0x7C01);
  CHECK(found[0].result == 0xFC01);
  CHECK(found[0].expected == 0x7FFF);
}

TEST_CASE("validate_gpu: lanes that are exchanged or ignored are found") {
  constexpr Function right = [](const Operands& x) -> std::uint64_t {
    return lane(x.a, x.b) | lane(x.a >> 16, x.b >> 16) << 16;
  };
  constexpr Function exchanged = [](const Operands& x) -> std::uint64_t {
    return lane(x.a, x.b) << 16 | lane(x.a >> 16, x.b >> 16);
  };
  constexpr Function same = [](const Operands& x) -> std::uint64_t { return lane(x.a, x.b) * 0x10001; };
  CHECK(mismatches_of(with_function("hadd, cuda_fp16.h packed", right), quick_samples) == 0);
  CHECK(mismatches_of(with_function("hadd, cuda_fp16.h packed", exchanged), quick_samples) != 0);
  CHECK(mismatches_of(with_function("hadd, cuda_fp16.h packed", same), quick_samples) != 0);
}

TEST_CASE("validate_gpu: rows have names of their own, and a function or a kernel") {
  std::set<std::string> ids;
  const bool has_header = !cuda_header_functions().empty();
  for (const Row& row : rows()) {
    INFO(row.id());
    CHECK(ids.insert(row.id()).second);
    if (row.subject == Subject::software_half) CHECK((row.function != nullptr));
    if (row.subject == Subject::cuda_header || row.subject == Subject::cuda_header_packed)
      CHECK((row.function != nullptr) == has_header);
    if (row.is_on_gpu()) CHECK((row.function == nullptr));
    if (!row.is_on_gpu()) CHECK(!row.driver);
    if (row.function != nullptr) CHECK((row.reference != nullptr));
  }
  for (const HeaderFunctions& functions : cuda_header_functions()) {
    INFO(functions.operation);
    CHECK(std::ranges::find(operations(), functions.operation, &Operation::name) != operations().end());
  }
}

TEST_CASE("validate_gpu: codes are shown with their bits and numbers") {
  CHECK(long_number(0) == "0");
  CHECK(long_number(999) == "999");
  CHECK(long_number(1000) == "1,000");
  CHECK(long_number(std::uint64_t{1} << 32) == "4,294,967,296");
  CHECK(bits_text(half_number, 0x3C00) == "0x3c00");
  CHECK(value_text(half_number, 0x0001) == "5.960464477539063e-08");
  CHECK(value_text(half_number, 0xFE01) == "nan");
  CHECK(value_text({.bits = 32}, 0xFF800000) == "-inf");
  CHECK(value_text({.kind = NumberKind::signed_integer, .bits = 16}, 0xFFFE) == "-2");
  CHECK(value_text({.kind = NumberKind::unsigned_integer, .bits = 64}, ~std::uint64_t{0}) ==
        "18446744073709551615");
  CHECK(bits_text({.kind = NumberKind::signed_integer, .bits = 64}, 1) == "0x0000000000000001");
  const Row& packed = row_called("hlt, cuda_fp16.h packed");
  const Example example = example_of(
      packed, {.operands = {.a = 0xBC003C00, .b = 0x40000000}, .result = 0x3C00, .expected = 0x3C000000});
  CHECK(example.bits ==
        std::array<std::string, 5>{"0x3c00 0xbc00", "0x0000 0x4000", "", "0x3c00 0x0000", "0x0000 0x3c00"});
  CHECK(example.values == std::array<std::string, 5>{"1 -1", "0 2", "", "1 0", "0 1"});
}

TEST_CASE("validate_gpu: a shard file comes back as it was, and another one is refused in one line") {
  const TemporaryDirectory directory;
  const std::vector<ShardFile::Line> lines{{"one", 20}, {"none", 65536}, {"two", 3}};
  ShardFile shards(lines);
  const ShardResult result{.digest = 0x123456789ABCDEF0,
                           .mismatches = 7,
                           .documented = std::uint64_t{1} << 33,
                           .other_nans = ~std::uint64_t{0},
                           .misrounded = 128};
  shards.set(0, 19, result);
  shards.set_gpu("A GPU, 80GB");
  shards.set(0, 3, {.digest = 1});
  shards.set(2, 0, {.digest = 2});
  const std::string file = directory / "shards.bin";
  shards.write(file);
  const ShardFile read = ShardFile::read(file, lines, ShardFile::Use::go_on);
  for (std::size_t row = 0; row < lines.size(); ++row) CHECK(read.finished(row) == shards.finished(row));
  CHECK(read.finished(0).at(19) == result);
  CHECK(!read.is_finished(0, 4));
  CHECK(read.gpu() == "A GPU, 80GB");
  CHECK_THROWS_WITH_AS(shards.set_gpu("B"), doctest::Contains("of GPU 'A GPU, 80GB', this one is 'B'"),
                       std::runtime_error);

  const auto refuses = [&](const std::string& bytes, const std::vector<ShardFile::Line>& wanted,
                           const std::string& must_name) {
    const std::string other = directory / "other.bin";
    std::ofstream(other, std::ios::binary) << bytes;
    try {
      ShardFile::read(other, wanted, ShardFile::Use::compare);
      FAIL("was not refused: " << must_name);
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      INFO(text);
      CHECK(text.find(must_name) != std::string::npos);
      CHECK(text.find('\n') == std::string::npos);
    }
  };
  const std::string bytes = test::content_of(file);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = bytes;
    return changed.replace(changed.find(from), from.size(), to);
  };
  refuses("", lines, "is no shard file");
  refuses("something\nelse\n\n", lines, "is no shard file");
  refuses(replaced("shards 2", "shards 1"), lines, "is no shard file");
  refuses(replaced("version ", "version 9"), lines, "of version '9");
  refuses(replaced(" one\n", " won\n"), lines, "it has 'won' where this program has 'one'");
  refuses(bytes, {{"one", 20}, {"none", 65536}}, "it has 'two' where this program has 'no more'");
  refuses(bytes, {{"one", 20}, {"none", 65535}, {"two", 3}}, "of other rows");
  for (std::size_t missing = 1; missing < 40; ++missing)
    refuses(bytes.substr(0, bytes.size() - missing), lines, "is damaged");
  refuses(bytes.substr(0, bytes.size() - 1) + std::string(20, '\x80'), lines, "is damaged");
  refuses(bytes + 'x', lines, "is damaged");
  refuses(replaced("20 2 one", "20 3 one"), lines, "is damaged");
  refuses(replaced("20 2 one", "20 1 one"), lines, "is damaged");
  std::ofstream(directory / "revision.bin", std::ios::binary) << replaced("revision ", "revision x");
  CHECK_NOTHROW(ShardFile::read(directory / "revision.bin", lines, ShardFile::Use::compare));
  CHECK_THROWS_WITH_AS(ShardFile::read(directory / "revision.bin", lines, ShardFile::Use::go_on),
                       doctest::Contains("--restart begins anew, another --out keeps it"),
                       std::runtime_error);
  CHECK_THROWS_AS(ShardFile::read(directory / "nowhere", lines, ShardFile::Use::go_on), std::runtime_error);
}

TEST_CASE("validate_gpu: shards of two machines are compared where both have them") {
  const std::vector<ShardFile::Line> lines{{"one", 20}, {"two", 20}};
  ShardFile ours(lines), theirs(lines);
  ours.set(0, 1, {.digest = 5});
  ours.set(1, 4, {.digest = 6});
  ours.set(1, 7, {.digest = 8});
  theirs.set(0, 2, {.digest = 5});
  theirs.set(1, 4, {.digest = 6});
  CHECK(compare(ours, theirs).shards_in_both == 1);
  CHECK(compare(ours, theirs).shards_differing == 0);
  theirs.set(1, 7, {.digest = 9});
  const ShardComparison comparison = compare(ours, theirs);
  CHECK(comparison.shards_in_both == 2);
  CHECK(comparison.shards_differing == 1);
  CHECK(comparison.first_difference == "two, shard 7");
}

TEST_CASE("validate_gpu: recorded tensor-core steps are held to the model") {
  const TemporaryDirectory directory;
  const VectorFile& file = vector_files().front();
  const std::string path = directory / std::string(file.name);
  const std::string header = "a0,a1,a2,a3,b0,b1,b2,b3,c_f32,d_f32,d_f16\n";
  // 1 * 1 + 1 * 1 + 0 + 0 + 1 = 3, right, then one unit too large in binary16.
  std::ofstream(path) << header << "3c00,3c00,0,0,3c00,3c00,0,0,3f800000,40400000,4200\n"
                      << "3c00,3c00,0,0,3c00,3c00,0,0,3f800000,40400000,4201\n";
  const std::vector<VectorOutcome> outcomes = check_vectors(directory.path(), file);
  REQUIRE(outcomes.size() == 2);
  CHECK(outcomes[0].steps == 2);
  CHECK(outcomes[0].mismatches == 0);
  CHECK(outcomes[1].mismatches == 1);
  CHECK(outcomes[1].counterexamples.at(0).line == 3);
  CHECK(outcomes[1].counterexamples.at(0).result == 0x4201);
  CHECK(outcomes[1].counterexamples.at(0).expected == 0x4200);
  const auto refuses = [&](const std::string& content, const std::string& must_name) {
    std::ofstream(path) << content;
    CHECK_THROWS_WITH_AS(check_vectors(directory.path(), file), doctest::Contains(must_name.c_str()),
                         std::runtime_error);
  };
  refuses("a0,b0,c_f32,d_f32,d_f16\n", "with 4 products");
  refuses(header + "3c00\n", "line 2: 1 cells; the header has 11");
  refuses(header + "3c00,3c00,0,0,3c00,3c00,0,0,3f800000,xyz,4200\n", "'xyz'");
  refuses(header + "53c00,3c00,0,0,3c00,3c00,0,0,3f800000,40400000,4200\n",
          "line 2: '53c00' is not a hexadecimal number of 16 bits");
  refuses(header + "3c00,3c00,0,0,3c00,3c00,0,0,3f800000,40400000,14200\n", "'14200'");
  CHECK(vector_findings(std::nullopt, file).front().obstacle == "needs HALFLAB_DATA_DIR");
}
