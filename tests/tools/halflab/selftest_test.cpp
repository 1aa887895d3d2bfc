#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/build_information.h"
#include "fp16/vector_path.h"
#include "tests/experiments/silent_run.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/selftest/findings.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/halflab/selftest/groups.h"
#include "tools/halflab/selftest/hash_table.h"

namespace {

using experiments::Json;
using halflab::Fnv1a;
using test::CommandRun;
using test::contains;
using test::run_halflab;
using test::TemporaryDirectory;
using namespace halflab::selftest;

std::uint64_t hash_of(std::string_view bytes) {
  Fnv1a hash;
  hash.add(bytes);
  return hash.value();
}

std::string refusal_of(const std::string& text) {
  try {
    parse_hashes(text, "source");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// The released hashes of numbers with one that is wrong, one less and one more, as a file.
std::string planted_hashes(const TemporaryDirectory& directory) {
  HashTable table = released_hashes();
  const auto named = [&](const char* group, const char* name) {
    return std::ranges::find_if(
        table.entries, [&](const HashEntry& entry) { return entry.group == group && entry.name == name; });
  };
  const auto wrong = named("arrays", "binary16 add nearest_even");
  REQUIRE(wrong != table.entries.end());
  wrong->hash ^= std::uint64_t{1} << 63;
  const auto left_out = named("blocks", "nvfp4 floor");
  REQUIRE(left_out != table.entries.end());
  table.entries.erase(left_out);
  table.entries.push_back({"sums", "binary16 sum by_wish", 0x123});
  const std::string file = directory / "hashes.tsv";
  std::ofstream(file, std::ios::binary) << text_of(table);
  return file;
}

}  // namespace

TEST_CASE("halflab selftest: the hash is FNV-1a of 64 bits, over bytes from the lowest on") {
  CHECK(hash_of("") == 0xcbf29ce484222325);
  CHECK(hash_of("a") == 0xaf63dc4c8601ec8c);
  CHECK(hash_of("foobar") == 0x85944171f73967e8);
  Fnv1a number, codes, values;
  number.add(0x6261, 16);
  CHECK(number.value() == hash_of("ab"));
  codes.add(std::span<const std::uint32_t>(std::array{0x64636261u, 0x68676665u}));
  CHECK(codes.value() == hash_of("abcdefgh"));
  values.add(std::span<const float>(std::array{1.0f, -0.0f}));
  CHECK(values.value() == hash_of(std::string("\0\0\x80\x3f\0\0\0\x80", 8)));
  Fnv1a flags;
  flags.add(fp16::Flags{.overflow = true, .invalid = true});
  CHECK(flags.value() == hash_of("\x14"));
}

TEST_CASE("halflab selftest: a table of hashes reads back, and what is none is refused by its line") {
  const HashTable table{.version = "1.2.3", .entries = {{"a", "b c", 7}, {"a", "d", ~std::uint64_t{0}}}};
  const std::string text = text_of(table);
  CHECK(text == "halflab\t1.2.3\tfnv1a-64\na\tb c\t0000000000000007\na\td\tffffffffffffffff\n");
  CHECK(text_of(parse_hashes(text, "")) == text);
  CHECK(contains(refusal_of(""), "source, line 1: must be 'halflab', a version"));
  CHECK(contains(refusal_of("halflab\t1.2.3\tmd5\n"), "line 1"));
  const std::string head = "halflab\t1.2.3\tfnv1a-64\n";
  for (const char* row : {"a\tb\n", "a\tb\t7\n", "a\tb\t000000000000000g\n", "a\tb\t0000000000000007",
                          "a\tb\t0000000000000007\tc\n", "a\tb\t0x00000000000007\n", "\n"})
    CHECK(contains(refusal_of(head + row), "source, line 2: must be a group, a name and 16"));
  const std::string same = "a\tb\t0000000000000007\n";
  CHECK(contains(refusal_of(head + same + same), "source, line 3: must be another name"));
}

TEST_CASE("halflab selftest: every result has a name of its own, and the release has hashes of every group") {
  std::set<std::pair<std::string, std::string>> names, released;
  for (const HashEntry& entry : released_hashes().entries) released.emplace(entry.group, entry.name);
  std::set<std::string> groups_of_release;
  for (const auto& [group, name] : released) groups_of_release.insert(group);
  for (const Group& group : groups()) {
    CHECK(groups_of_release.erase(std::string(group.name)) == 1);
    for (const Row& row : group.rows()) {
      CHECK_MESSAGE(names.emplace(group.name, row.name).second, row.name);
      CHECK(!contains(row.name, "\t"));
    }
  }
  CHECK(groups_of_release.empty());
  CHECK(names.size() > 2000);
  for (const auto& [group, name] : released) {
    const auto is_of = [&](const auto& row) {
      return row.first == group && name.starts_with(row.second + " ");
    };
    CHECK_MESSAGE((names.contains({group, name}) || std::ranges::any_of(names, is_of)), name);
  }
  CHECK(released_hashes().version == experiments::build_information().version);
}

TEST_CASE("halflab selftest: the demo's programs are those of ./lab demo") {
  std::string loop = "for experiment in";
  for (const Row& row : demo_rows()) loop += " " + row.name;
  CHECK(contains(test::content_of(std::string(HALFLAB_SOURCE_DIRECTORY) + "/lab"), loop + "; do"));
}

TEST_CASE("halflab selftest: rows are compared by group and name, in groups that were run") {
  const std::vector<HashRow> rows{
      {.group = "a", .name = "same", .hash = 1, .state = State::fresh},
      {.group = "a", .name = "other", .hash = 2, .state = State::fresh},
      {.group = "a", .name = "young", .hash = 3, .state = State::fresh},
      {.group = "b", .name = "absent", .state = State::not_run, .obstacle = "why"}};
  const HashTable table{.version = "1",
                        .entries = {{"a", "same", 1},
                                    {"a", "other", 3},
                                    {"a", "old", 4},
                                    {"b", "absent", 5},
                                    {"b", "absent value", 7},
                                    {"c", "of a group that was not run", 6}}};
  const Findings found = compare(rows, table, "Halflab 1");
  const auto states = [&] {
    std::vector<State> all;
    for (const HashRow& row : found.rows) all.push_back(row.state);
    return all;
  }();
  CHECK(
      (states == std::vector{State::equal, State::different, State::fresh, State::not_run, State::missing}));
  CHECK(found.compared() == 2);
  CHECK_FALSE(found.holds());
  CHECK(found.count(State::missing, "a") == 1);
  CHECK(compare({rows[0], rows[2], rows[3]}, {.version = "1", .entries = {{"a", "same", 1}}}, "").holds());
  CHECK_FALSE(compare({rows[2]}, {.version = "1", .entries = {}}, "").holds());
}

TEST_CASE("halflab selftest: a hash that differs, one that is missing and a new one are named") {
  const TemporaryDirectory directory;
  const std::string file = planted_hashes(directory);
  const CommandRun run = run_halflab({"selftest", "--numbers", "--against", file, "--json"});
  CHECK(run.exit_code == 1);
  CHECK(run.err == "halflab selftest: check failed: different: 1, missing: 1\n");
  const Json found = run.json();
  const std::string verdict = found.at("verdict").string();
  CHECK(verdict.starts_with("This build does not have the bits of " + file + ", of Halflab "));
  CHECK(contains(verdict, " hashes differs, and 1 is missing. 1 hash is new since "));
  CHECK(contains(verdict, "\ndifferent: arrays, binary16 add nearest_even: "));
  CHECK(contains(verdict, "\nmissing: sums, binary16 sum by_wish: nothing instead of 0000000000000123\n"));
  CHECK(contains(verdict, "\"Wrong bits\""));
  const Json& summary = found.at("summary");
  CHECK(summary.at("hashes_different").integer() == 1);
  CHECK(summary.at("hashes_missing").integer() == 1);
  CHECK(summary.at("hashes_new").integer() == 1);
  CHECK(summary.at("hashes_equal").integer() + 1 == summary.at("hashes_compared").integer());
  CHECK(summary.at("vector_path").string() == fp16::name_of(fp16::active_vector_path()));
  const auto& rows = found.at("tables").at("hashes").elements();
  CHECK(rows.size() == static_cast<std::size_t>(summary.at("hashes_compared").integer()) + 2);
  const auto fresh =
      std::ranges::find_if(rows, [](const Json& row) { return row.at("state").string() == "new"; });
  REQUIRE(fresh != rows.end());
  CHECK(fresh->at("name").string() == "nvfp4 floor");
  CHECK(fresh->at("hash").string().size() == 16);
}

TEST_CASE("halflab selftest: the answer comes first, and says what was not compared or not run") {
  const HashRow equal{.group = "demo", .name = "a x", .hash = 1, .expected = 1, .state = State::equal},
      fresh{.group = "demo", .name = "a y", .hash = 2, .state = State::fresh},
      absent{.group = "demo", .name = "b", .state = State::not_run, .obstacle = "b is not installed"};
  const auto verdict_of = [](std::vector<HashRow> rows) {
    test::SilentRun silent;
    report(silent.run, {.against = "Halflab 1", .version = "1", .rows = std::move(rows)});
    return silent.record.verdict();
  };
  CHECK(verdict_of({equal}).starts_with("This build has the bits of Halflab 1: 1 of 1 hash is equal.\n"));
  CHECK(
      verdict_of({equal, fresh, fresh, absent})
          .starts_with("This build has the bits of Halflab 1: 1 of 1 hash is equal. 2 hashes are new since 1 "
                       "and not compared.\n"));
  CHECK(contains(verdict_of({equal, absent}), "\n* Not run: b is not installed.\n"));
  CHECK(verdict_of({fresh}).starts_with("Nothing was compared: Halflab 1 has none of the hashes.\n"));
}

TEST_CASE("halflab selftest: what is written is what the release has") {
  const TemporaryDirectory directory;
  const std::string file = directory / "hashes.tsv";
  const CommandRun numbers = run_halflab({"selftest", "--numbers", "--write", file});
  CHECK(numbers.exit_code == 0);
  CHECK(contains(numbers.out, " hashes are written to " + file + ".\n"));
  const HashTable written = parse_hashes(test::content_of(file), file);
  for (const HashEntry& released : released_hashes().entries) {
    if (released.group == "trainings" || released.group == "demo") continue;
    CHECK(std::ranges::any_of(written.entries, [&](const HashEntry& entry) {
      return entry.group == released.group && entry.name == released.name && entry.hash == released.hash;
    }));
  }
}

TEST_CASE("halflab selftest: a part is not written for the whole") {
  const TemporaryDirectory directory;
  const std::string file = directory / "hashes.tsv";
  // Beside the tests there is no program of the demo.
  const CommandRun refused = run_halflab({"selftest", "--write", file});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "--write: gradient_histogram is not installed with halflab; allowed: "));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("halflab selftest: bad options and files end with one sentence") {
  const TemporaryDirectory directory;
  const std::string file = directory / "hashes.tsv";
  const auto error_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), "selftest");
    const CommandRun run = run_halflab(words);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    return run.err;
  };
  CHECK(contains(error_of({"--write", file, "--against", file}), "--write: is given with --against"));
  CHECK(contains(error_of({"--against", file}), "file '" + file + "' cannot be read"));
  std::ofstream(file) << "nothing\n";
  CHECK(contains(error_of({"--against", file}), "file '" + file + "', line 1: must be "));
  CHECK(contains(error_of({"--number"}), "--number"));
  const std::string nowhere = directory / "absent" / "file";
  CHECK(contains(error_of({"--write", nowhere}), "--write: '" + nowhere + "' is in no folder that there is"));
}
