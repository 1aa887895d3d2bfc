/// The pages that are written from records: figures in text, blocks, records that are kept, claims,
/// evidence and links; then the pages of this checkout.

#include "experiments/pages/pages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/record.h"
#include "experiments/pages/blocks.h"
#include "experiments/pages/claims.h"
#include "experiments/pages/evidence.h"
#include "experiments/pages/figures_in_text.h"
#include "experiments/pages/links.h"
#include "experiments/pages/records.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
namespace pages = experiments::pages;
using experiments::Json;
using nlohmann::json;
using pages::filled;
using pages::holds;
using pages::Records;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;

const fs::path checkout = HALFLAB_SOURCE_DIRECTORY;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

/// A folder of records with one of them, `a`, and one that was not kept, `b`.
struct MadeUpRecords {
  MadeUpRecords() {
    write(directory / "records.toml",
          "[a]\ncommand = \"probe --lr 0.1\"\npictures = [\"sketch\"]\n[b]\ncommand = \"probe\"\n");
    write(directory / "a" / "summary.json", json{{"loss", 0.046705},        {"loss_lower", 0.045005},
                                                 {"loss_upper", 0.048405},  {"excess", 0.42},
                                                 {"excess_lower", 0.38},    {"excess_upper", 0.46},
                                                 {"tight", 0.066332},       {"tight_half_width", 4.1e-7},
                                                 {"share", 0.72183},        {"uncertain", 0.86},
                                                 {"uncertain_lower", 0.71}, {"uncertain_upper", 1.008},
                                                 {"count", 14949},          {"eighteen", 18.0},
                                                 {"exponent", -31.3412},    {"rate", 13.71e9},
                                                 {"bytes", 1340000000.0},   {"factor", 65536.0},
                                                 {"nothing", "nan"},        {"word", "stalls"}}
                                                .dump());
    write(directory / "a" / "manifest.json", "{}");
  }
  TemporaryDirectory directory;
  Records records() const { return Records(directory.path()); }
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// The tests of this build, as ctest lists them.
std::vector<pages::KnownTest> known_tests() {
  const std::string command =
      std::string("'") + HALFLAB_CTEST + "' --test-dir '" + HALFLAB_BUILD_DIRECTORY + "' --show-only=json-v1";
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char part[4096];
  for (std::size_t size; (size = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, size);
  REQUIRE(::pclose(pipe) == 0);
  std::vector<pages::KnownTest> tests;
  const json listed = json::parse(text);  // outlives the loop over a part of it
  for (const json& each : listed.at("tests")) {
    pages::KnownTest& test = tests.emplace_back(pages::KnownTest{.name = each.at("name")});
    for (const json& property : each.value("properties", json::array())) {
      if (property.at("name") == "LABELS") test.labels = property.at("value").get<std::vector<std::string>>();
    }
  }
  return tests;
}

}  // namespace

TEST_CASE(
    "pages: figures have three digits, fewer where they are exact, and powers of ten where they are small") {
  const std::pair<double, const char*> figures[] = {{0.046705, "0.0467"},
                                                    {72.183, "72.2"},
                                                    {99.96, "100"},
                                                    {0.99951, "1.00"},
                                                    {16745, "16700"},
                                                    {18, "18"},
                                                    {0.5, "0.5"},
                                                    {4.27e-7, "4.27 x 10^-7"},
                                                    {-0.1, "-0.1"},
                                                    {0.00042749, "0.000427"},
                                                    {0, "0"},
                                                    {1e-5, "1.00 x 10^-5"}};
  for (const auto& [figure, text] : figures) CHECK(pages::three_digits(figure) == text);
  CHECK(pages::three_digits(std::nan("")) == "NaN");
  CHECK(pages::three_digits(-HUGE_VAL) == "-infinity");
}

TEST_CASE("pages: placeholders are filled as their formats say") {
  const MadeUpRecords made_up;
  const Records records = made_up.records();
  const std::pair<const char*, const char*> texts[] = {
      {"no placeholder", "no placeholder"},
      {"{a:loss}, {a:word}", "0.0467, stalls"},
      {"{a:loss|±}", "0.0467 ± 0.0017"},
      {"{a:loss|± x100}", "4.67 ± 0.17"},
      {"{a:tight|±}", "0.06633 ± < 0.00001"},
      {"{a:excess|[] %}", "+42.0 [38.0, 46.0]\u00a0%"},
      {"{a:excess|% +}", "+42\u00a0%"},
      {"{a:share|%}", "72.2\u00a0%"},
      {"{a:count}", "14949"},
      {"{a:eighteen}", "18"},
      {"{a:exponent|2^}", "2^-31.3"},
      {"{a:factor|log2 2^}", "2^16"},
      {"{a:rate|si}", "13.7 G"},
      {"{a:bytes|MiB}", "1280\u00a0MiB"},
      {"{a:nothing}", "NaN"},
      {"{a:count / a:factor|%}", "22.8\u00a0%"},
      {"{a:eighteen - 20}", "-2"},
      {"{a:eighteen * 2}", "36"},
  };
  for (const auto& [text, expected] : texts) {
    INFO(text);
    CHECK(filled(text, records) == expected);
  }
}

TEST_CASE("pages: a placeholder that cannot be filled is shown with the reason") {
  const MadeUpRecords made_up;
  const Records records = made_up.records();
  const auto error = [&](const char* text) { return message_of([&] { filled(text, records); }); };
  CHECK(contains(error("{a:lost}"), "{a:lost}: record 'a' has no key 'lost'"));
  CHECK(contains(error("{c:loss}"), "there is no record 'c'"));
  CHECK(contains(error("{a:loss|furlongs}"), "unknown format 'furlongs'"));
  CHECK(contains(error("{a:share|±}"), "share_half_width"));
  CHECK(contains(error("{a:word / a:loss}"), "no number"));
  CHECK(contains(error("{a:uncertain|± x100}"), "leaves 0 to 100"));
  CHECK(contains(error("{loss}"), "neither a number nor RECORD:KEY"));
  CHECK(contains(error("{a:loss"), "closing brace"));
  CHECK_THROWS_AS(filled("{b:loss}", records), pages::NotKept);
}

TEST_CASE("pages: conditions compare what the records have") {
  const MadeUpRecords made_up;
  const Records records = made_up.records();
  for (const char* true_one :
       {"a:loss > 0.04", "a:loss_lower < a:loss_upper", "a:eighteen >= 18", "a:eighteen <= 18",
        "a:eighteen == 18", "a:word == stalls", "a:count / a:factor < 0.3", "a:loss < 1e3"}) {
    CHECK_MESSAGE(holds(true_one, records), true_one);
  }
  for (const char* false_one : {"a:loss > 0.05", "a:word == overflows", "a:nothing > 0", "a:nothing <= 0"})
    CHECK_FALSE_MESSAGE(holds(false_one, records), false_one);
  CHECK(contains(message_of([&] { holds("a:loss", records); }), "compares nothing"));
  CHECK(contains(message_of([&] { holds("a:word > 1", records); }), "no number"));
}

TEST_CASE("pages: only the text of blocks is written anew") {
  const std::string page =
      "before\n<!-- sum:begin\n1 + 1\n-->\nold\n<!-- sum:end -->\nbetween\n<!-- other:begin -->\nkept\n"
      "<!-- other:end -->\nafter\n";
  const auto maker = [](std::string_view own) { return "made of " + std::string(own); };
  CHECK(pages::with_blocks(page, {{"sum", maker}}) ==
        "before\n<!-- sum:begin\n1 + 1\n-->\nmade of 1 + 1\n<!-- sum:end -->\nbetween\n<!-- other:begin "
        "-->\nkept\n"
        "<!-- other:end -->\nafter\n");
  CHECK(pages::without_blocks(page) == "before\nbetween\nafter\n");
  CHECK(contains(message_of([&] { pages::with_blocks("<!-- sum:begin -->\n", {}); }),
                 "the block 'sum' has no line"));
  CHECK(contains(message_of([&] { pages::with_blocks("<!-- sum:begin\n", {}); }),
                 "the block 'sum' has no line"));
}

TEST_CASE("pages: paragraphs are wrapped by characters, with what their lines begin with") {
  CHECK(pages::wrapped("aa bb cc dd\nee\n\n| a table's line is longer than that |\n", 8) ==
        "aa bb cc\ndd ee\n\n| a table's line is longer than that |\n");
  CHECK(pages::wrapped("> aa bb\n> cc\n", 7) == "> aa bb\n> cc\n");
  CHECK(pages::wrapped("- aa bb\n- cc dd ee\n", 7) == "- aa bb\n- cc dd\n  ee\n");
  CHECK(pages::wrapped("± ± ±\n", 5) == "± ± ±\n");
}

TEST_CASE("pages: a run is kept without its places, whole, and only where its record's command made it") {
  const MadeUpRecords made_up;
  const auto make_run = [&](const json& options) {
    experiments::RunRecord run(made_up.directory / "runs" / "b");
    fs::create_directories(made_up.directory / "runs");
    std::ofstream(run.staging() / "sketch.svg") << "<svg/>";
    std::ofstream(run.staging() / "other.svg") << "<svg/>";
    std::ofstream(run.staging() / "counts.csv") << "step,count\n0,1\n";
    std::ofstream(run.staging() / "other.csv") << "step\n0\n";
    run.figure({.name = "sketch", .title = "Kept", .caption = ""});
    run.figure({.name = "other", .title = "Not kept", .caption = ""});
    run.summary("loss", 0.5);
    run.verdict("So it is.");
    run.commit(Json::object({{"experiment", "probe"}, {"options", Json::from_text(options.dump())}}));
  };
  write(made_up.directory / "records.toml",
        "[b]\ncommand = \"probe --lr 0.10 --data images --scalers none,static --deep\"\npictures = "
        "[\"sketch\"]\ntables = [\"counts\"]\n");
  json options{
      {"lr", 0.1},      {"data", "/home/me/images/"}, {"scalers", {"none", "static"}}, {"deep", true},
      {"quick", false}, {"out", "/home/me/b"}};
  make_run(options);
  pages::keep(made_up.directory / "runs" / "b", made_up.records());
  const fs::path kept = made_up.directory / "b";
  const json manifest = json::parse(content_of(kept / "manifest.json"));
  CHECK(manifest["options"]["data"] == "images");
  CHECK(manifest["options"]["out"] == "b");
  CHECK(!contains(manifest.dump(), "/home"));
  CHECK(manifest["figures"].size() == 1);
  CHECK(!fs::exists(kept / "verdict.txt"));
  CHECK(fs::exists(kept / "sketch.svg"));
  CHECK(!fs::exists(kept / "other.svg"));
  CHECK(content_of(kept / "counts.csv") == "step,count\n0,1\n");
  CHECK(!fs::exists(kept / "other.csv"));
  CHECK(experiments::damaged_files(kept).empty());
  CHECK(filled("{b:loss}", made_up.records()) == "0.5");

  fs::remove(made_up.directory / "runs" / "b" / "counts.csv");
  CHECK(contains(message_of([&] { pages::keep(made_up.directory / "runs" / "b", made_up.records()); }),
                 "counts.csv' cannot be read"));
  CHECK(filled("{b:loss}", made_up.records()) == "0.5");
  CHECK(experiments::damaged_files(kept).empty());

  const auto refused = [&](const char* option, const json& value) {
    json wrong = options;
    wrong[option] = value;
    make_run(wrong);
    return message_of([&] { pages::keep(made_up.directory / "runs" / "b", made_up.records()); });
  };
  CHECK(contains(refused("lr", 0.2), "--lr is '0.2'"));
  CHECK(contains(refused("scalers", {"none"}), "--scalers is 'none'"));
  CHECK(contains(refused("deep", false), "--deep is 'false'"));
  CHECK(contains(refused("quick", true), "--quick"));
  CHECK(contains(message_of([&] { pages::keep(made_up.directory / "runs", made_up.records()); }),
                 "there is no record 'runs'"));
}

TEST_CASE("pages: claims show their finding, and say what was not measured and which verdict broke") {
  const MadeUpRecords made_up;
  const fs::path file = made_up.directory / "claims.toml";
  const std::string row = "[[claim]]\nname = \"One\"\nclaim = \"c\"\nsource = \"s\"\nverdict = \"agrees\"\n";
  write(file, row + "records = [\"a\"]\nfinding = \"it is {a:share|%}\"\nholds = [\"a:share > 0.9\"]\n");
  const auto claims = pages::read_claims(file);
  const std::string text = pages::claims_text(claims, made_up.records());
  CHECK(contains(text, "| [One](#one): c | s | agrees |"));
  CHECK(contains(text, "**agrees**: it is 72.2\u00a0%"));
  CHECK(contains(text, "```\nprobe --lr 0.1\n```"));
  CHECK(pages::broken_verdicts(claims, made_up.records()) == std::vector<std::string>{"One: a:share > 0.9"});

  write(file, row + "records = [\"b\"]\nfinding = \"{b:share}\"\nholds = [\"b:share > 0.9\"]\n");
  const auto unmeasured = pages::read_claims(file);
  CHECK(contains(pages::claims_text(unmeasured, made_up.records()), "| s | not measured yet |"));
  CHECK(pages::broken_verdicts(unmeasured, made_up.records()).empty());

  const auto refused = [&](const std::string& rest) {
    write(file, row + rest);
    return message_of([&] { pages::read_claims(file); });
  };
  CHECK(contains(refused("finding = \"f\"\n"), "claim 1: must have 'records'"));
  CHECK(contains(refused("finding = \"f\"\nrecords = [\"a\"]\nverdcit = \"v\"\n"), "unknown key 'verdcit'"));
  CHECK(contains(refused("records = [\"a\"]\n"), "'finding' must be a text"));
  CHECK(contains(refused("records = 3\nfinding = \"f\"\n"), "'records' must be a list of texts"));
  CHECK(contains(refused("finding = \n"), ":6: "));
}

TEST_CASE("pages: a row of evidence is held to the tests that there are") {
  const std::vector<pages::KnownTest> tests{
      {"one:adds", {"quick"}}, {"one:adds everything", {"exhaustive"}}, {"late_NOT_BUILT-1234567", {}}};
  const auto problem = [&](std::vector<std::string> names, const std::string& when,
                           const std::string& needs = "") {
    return pages::evidence_problem(
        {.what = "sums", .over = "", .against = "", .tests = std::move(names), .when = when, .needs = needs},
        tests);
  };
  CHECK(problem({"one:adds"}, "quick") == "");
  CHECK(problem({"one:adds*"}, "quick, exhaustive") == "");
  CHECK(contains(problem({"one:subtracts"}, "quick"), "no test is named 'one:subtracts'"));
  CHECK(contains(problem({"two:adds"}, "quick"), "no test is named 'two:adds'"));
  CHECK(contains(problem({"one:adds*"}, "quick"), "its tests are exhaustive, quick, not quick"));
  CHECK(contains(problem({"one:adds"}, "quick, exhaustive"), "not quick, exhaustive"));
  CHECK(problem({"late:anything"}, "quick") == "");
  CHECK(problem({"two:adds"}, "quick", "nvcc") == "");
  CHECK(contains(problem({"one:subtracts"}, "quick", "nvcc"), "no test is named"));
}

TEST_CASE("pages: links lead to files and headings, code is no link") {
  const TemporaryDirectory directory;
  write(directory / "a.md",
        "# A `b`: c, d\n[ok](#a-b-c-d) [other](b.md#two-1) [dir](sub) "
        "`[no](nowhere)`\n```\n[no](nowhere)\n```\n"
        "[bad](nowhere) [worse](b.md#three) ![x](missing.svg) <img src=\"lost.png\"> [web](https://x.y/z)\n");
  write(directory / "b.md", "# Two\n## Two\n");
  fs::create_directory(directory / "sub");
  CHECK(pages::broken_links(directory / "a.md") ==
        std::vector<std::string>{"nowhere", "b.md#three", "missing.svg", "lost.png"});
  const auto blocks = pages::code_blocks("x\n```cpp\nint i;\n```\n```\n./lab\n```\n");
  REQUIRE(blocks.size() == 2);
  CHECK((blocks[0].language == "cpp" && blocks[0].text == "int i;\n" && blocks[0].line == 2));
  CHECK((blocks[1].language == "" && blocks[1].text == "./lab\n" && blocks[1].line == 5));
}

TEST_CASE("pages: a page is written from its records, where what it says still holds") {
  const TemporaryDirectory folder;
  write(pages::records_folder(folder.path()) / "records.toml",
        "[a]\ncommand = \"probe\"\n[b]\ncommand = \"probe --b\"\n");
  write(pages::records_folder(folder.path()) / "a" / "summary.json", R"({"loss": 0.5})");
  write(pages::records_folder(folder.path()) / "a" / "manifest.json", "{}");
  fs::create_directory(folder / "docs");
  const auto page = [](const std::string& block_template) {
    return "<!-- figures:begin\n" + block_template + "-->\n<!-- figures:end -->\n";
  };
  const auto written = [&](const std::string& block_template) {
    write(folder / "README.md", page(block_template));
    CHECK(pages::write_pages(folder.path()) == std::vector<fs::path>{folder / "README.md"});
    CHECK(pages::write_pages(folder.path()).empty());
    const std::string text = content_of(folder / "README.md");
    const std::size_t begin = text.find("-->\n") + 4;
    return text.substr(begin, text.find("<!-- figures:end") - begin);
  };
  CHECK(written("The loss is {a:loss}.\n") == "The loss is 0.5.\n");
  CHECK(written("? a:loss < 1\nIt is {a:loss}.\n") == "It is 0.5.\n");
  CHECK(written("It is {b:loss}.\n") == "*Not measured yet: no run of `probe --b` was kept.*\n");
  write(folder / "README.md", page("? a:loss > 1\nIt is large.\n"));
  CHECK(contains(message_of([&] { pages::write_pages(folder.path()); }),
                 "README.md: 'a:loss > 1' does not hold any more"));
  CHECK(content_of(folder / "README.md") == page("? a:loss > 1\nIt is large.\n"));
}

TEST_CASE("pages: README and docs have the figures of the records") {
  for (const fs::path& page : pages::pages_of(checkout)) {
    INFO(page.string(), ": ./lab docs writes it");
    CHECK((pages::rewritten(page, checkout) == content_of(page)));
  }
}

TEST_CASE("pages: every record that is listed was kept, as its run wrote it, and names no place") {
  const Records records(pages::records_folder(checkout));
  for (const auto& [name, entry] : records.entries()) {
    INFO(name);
    CHECK(records.is_kept(name));
    if (!records.is_kept(name)) continue;
    CHECK(experiments::damaged_files(records.folder() / name).empty());
    const json manifest = json::parse(content_of(records.folder() / name / "manifest.json"));
    CHECK(manifest.at("git_dirty") == false);
    CHECK(!contains(manifest.dump(), "\"/"));
    for (const std::string& picture : entry.pictures)
      CHECK(fs::exists(records.folder() / name / (picture + ".svg")));
    for (const std::string& table : entry.tables)
      CHECK(fs::exists(records.folder() / name / (table + ".csv")));
  }
  for (const fs::directory_entry& folder : fs::directory_iterator(records.folder())) {
    if (folder.is_directory()) CHECK(records.entries().contains(folder.path().filename().string()));
  }
}

TEST_CASE("pages: verdicts on claims are what the records bear out") {
  const fs::path folder = pages::records_folder(checkout);
  const auto claims = pages::read_claims(folder / "claims.toml");
  CHECK(claims.size() > 20);
  for (const std::string& broken : pages::broken_verdicts(claims, Records(folder))) FAIL_CHECK(broken);
}

TEST_CASE("pages: every verdict on a claim is a word that the page explains, and every word is used") {
  const std::string page = content_of(checkout / "docs" / "claims.md");
  std::istringstream before_the_claims(page.substr(0, page.find("<!-- claims:begin -->")));
  std::set<std::string> explained, used;
  for (std::string line; std::getline(before_the_claims, line);) {
    if (line.starts_with("| ") && !line.starts_with("| verdict |"))
      explained.insert(line.substr(2, line.find(" |") - 2));
  }
  const fs::path folder = checkout / "experiments" / "records" / "claims";
  for (const pages::Claim& claim : pages::read_claims(folder / "claims.toml")) used.insert(claim.verdict);
  CHECK(used == explained);
}

TEST_CASE("pages: rows of evidence name tests that exist, and when they run") {
  const auto tests = known_tests();
  for (const pages::EvidenceFile& file : pages::read_evidence(checkout / "tests")) {
    int unchecked = 0;
    for (const pages::EvidenceRow& row : file.rows) {
      CHECK(pages::evidence_problem(row, tests) == "");
      unchecked += !pages::is_checkable(row, tests);
    }
    if (unchecked > 0) MESSAGE(file.title, ": ", unchecked, " rows name tests that were not built here");
  }
}

TEST_CASE("pages: every link leads somewhere") {
  for (const fs::path& page : pages::pages_of(checkout)) {
    for (const std::string& link : pages::broken_links(page))
      FAIL_CHECK(page.filename().string(), ": ", link);
  }
}

TEST_CASE("pages: no measured figure was typed by hand, and the front page is short") {
  // Figures with intervals, and shares but for the level of the intervals and what the literature says.
  const std::regex measured(R"([0-9] ± [0-9]|\[-?[0-9.]+, -?[0-9.]+\]|[0-9.]+ %)");
  for (const fs::path& page : pages::pages_of(checkout)) {
    const std::string text = pages::without_blocks(content_of(page));
    std::istringstream lines(text);
    bool is_code = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("```")) is_code = !is_code;
      if (is_code) continue;
      const std::string own = std::regex_replace(line, std::regex("95 %"), "");
      CHECK_MESSAGE(!std::regex_search(own, measured), page.filename().string(), ": ", line);
    }
  }
  const std::string readme = content_of(checkout / "README.md");
  CHECK(std::ranges::count(readme, '\n') <= 160);
}

TEST_CASE("pages: lines of prose have at most 128 characters") {
  for (const fs::path& page : pages::pages_of(checkout)) {
    std::istringstream lines(pages::without_blocks(content_of(page)));
    for (std::string line; std::getline(lines, line);) {
      const auto length = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      const bool may_be_longer = line.starts_with('|') || line.starts_with("![") || line.starts_with("<img");
      CHECK_MESSAGE((may_be_longer || length <= 128), page.filename().string(), ": ", line);
    }
  }
}

TEST_CASE("pages: notebooks fold what gives answers away, and lead nowhere outside their folder") {
  const std::regex check("(^|\n)assert "), outside(R"(\]\(\.\./|build/bin/(?!halflab))");
  int notebooks = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(checkout / "notebooks")) {
    if (file.path().extension() != ".ipynb") continue;
    ++notebooks;
    const json notebook = json::parse(content_of(file.path()));
    for (const json& cell : notebook.at("cells")) {
      std::string source;
      for (const std::string line : cell.at("source")) source += line;
      INFO(file.path().filename().string(), ": ", source);
      CHECK(!std::regex_search(source, outside));
      if (cell.at("cell_type") == "code" && std::regex_search(source, check))
        CHECK(cell.at("metadata").value("/jupyter/source_hidden"_json_pointer, false));
    }
  }
  CHECK(notebooks == 9);
}
