#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/figure.h"
#include "experiments/frame/record.h"
#include "experiments/frame/text_table.h"
#include "experiments/report/html.h"
#include "experiments/report/page.h"
#include "experiments/report/site.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
namespace report = experiments::report;
using experiments::Json;

namespace {

/// An SVG as gnuplot writes it, and with what would run in a page.
constexpr const char* sample_svg = R"svg(<?xml version="1.0" encoding="utf-8"  standalone="no"?>
<!DOCTYPE svg>
<svg
 width="8" height="4"
 viewBox="0 0 8 4" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<title>Gnuplot's "50 %"</title>
<g id="gnuplot_canvas"><use xlink:href='#gpPt1' color='red'/><text>μ &amp; #</text></g>
<script>alert(1)</script><image href="x" onerror="alert(2)"/>
</svg>
)svg";

void write_run(const fs::path& directory, const std::string& verdict) {
  experiments::RunRecord record(directory);
  record.table("squares", {"x", "square"}).row({1, 1});
  std::ofstream(record.staging() / "sketch.svg") << sample_svg;
  record.figure({.name = "sketch", .title = "A <sketch>", .caption = "Caption with 2^-24."});
  record.figure({.name = "undrawn", .title = "Undrawn", .caption = "None."});
  record.summary("loss", 0.5);
  record.verdict(verdict);
  record.verdict(experiments::TextTable{
      .columns = {"scaler", "loss"}, .rows = {{"<none>", "0.5"}}, .notes = {"swallowed: by 2^-11"}}
                     .text());
  record.commit(Json::object({{"experiment", "probe"},
                              {"question", "Is it so?"},
                              {"options", Json::object({{"steps", 3}, {"scale", nullptr}})}}));
}

/// What follows each `opening`, up to the first of the characters in `closing`.
std::vector<std::string> all_after(std::string_view text, std::string_view opening,
                                   std::string_view closing) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(opening); at != std::string_view::npos; at = text.find(opening, at)) {
    at += opening.size();
    found.emplace_back(text.substr(at, text.find_first_of(closing, at) - at));
  }
  return found;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return decoded;
}

}  // namespace

TEST_CASE("an SVG is an image of the same bytes, in which a page runs nothing") {
  const std::string image = report::image_of(sample_svg, "A \"label\"");
  CHECK(image.starts_with("<img src=\"data:image/svg+xml,"));
  CHECK(image.ends_with("\" alt=\"A &quot;label&quot;\">"));
  const std::string embedded = all_after(image, "svg+xml,", "\"").front();
  CHECK(embedded.find_first_of("<>\"'&#\n") == std::string::npos);
  const std::string whole = sample_svg;
  CHECK(percent_decoded(embedded) + "\n" == whole.substr(whole.find("<svg")));
  for (const char* no_svg : {"not a picture", "<svg>", "</svg><svg>"})
    CHECK_THROWS_AS(report::image_of(no_svg, "x"), std::runtime_error);
}

TEST_CASE("a page holds of each run verdict and figures, then details") {
  const test::TemporaryDirectory directory;
  write_run(directory / "a", "FP16 loses 1 & 2 below 2^-25,\nnot more.");
  write_run(directory / "b", "Second.");
  const std::vector<report::RunDirectory> runs{report::read_run(directory / "a"),
                                               report::read_run(directory / "b" / "")};
  CHECK(report::headline(runs[0]) == "FP16 loses 1 & 2 below 2^-25, not more.");

  const std::string page = report::report_page("A <title>", runs);
  std::size_t position = 0;
  for (const char* part : {"<title>A &lt;title&gt;</title>",
                           "<h2>Is it so?</h2>",
                           "<div class=\"name\">a (probe)</div>",
                           "FP16 loses 1 &amp; 2 below 2<sup>-25</sup>,",
                           "<div class=\"wide\" tabindex=\"0\"><table>",
                           "<td><span class=\"label\">&lt;none&gt;</span></td><td class=\"number\">0.5</td>",
                           "<p class=\"note\">swallowed: by 2<sup>-11</sup></p>",
                           "<figure>\n<div class=\"wide\" tabindex=\"0\"><img src=\"data:",
                           "alt=\"A &lt;sketch&gt;\"",
                           "<b>Figure 1.</b> Caption with 2<sup>-24</sup>.",
                           "gnuplot undrawn.gp",
                           "<b>Figure 2.</b>",
                           "</section>",
                           "<h2>Is it so?</h2>",
                           "<div class=\"name\">b (probe)</div>",
                           "Second.",
                           "<b>Figure 4.</b>",
                           "<summary>a (probe)</summary>",
                           "loss",
                           "steps",
                           "git_revision",
                           "<summary>b (probe)</summary>"}) {
    const std::size_t found = page.find(part, position);
    REQUIRE_MESSAGE(found != std::string::npos, part);
    position = found;
  }
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("://") == std::string::npos);
}

TEST_CASE("what is no run directory is refused by its name") {
  const test::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(
      report::read_run("/nowhere"),
      "run directory '/nowhere': manifest.json cannot be read; must be a directory that an experiment "
      "wrote and finished",
      std::runtime_error);
  write_run(directory / "run", "Fine.");
  std::ofstream(directory / "run" / "summary.json") << "{ half";
  CHECK_THROWS_WITH_AS(report::read_run(directory / "run"), doctest::Contains("summary.json"),
                       std::runtime_error);
  for (const char* manifest :
       {R"({"experiment": 3})", R"({"question": []})", R"({"figures": [{"name": "x"}]})"}) {
    std::ofstream(directory / "run" / "manifest.json") << manifest;
    std::ofstream(directory / "run" / "summary.json") << "{}";
    CHECK_THROWS_WITH_AS(
        report::read_run(directory / "run"),
        doctest::Contains("run': manifest.json lacks an entry or has one of another kind; must be as an "
                          "experiment wrote it"),
        std::runtime_error);
  }
  std::ofstream(directory / "run" / "manifest.json") << "{}";
  fs::remove(directory / "run" / "verdict.txt");
  CHECK_THROWS_WITH_AS(report::read_run(directory / "run"), doctest::Contains("verdict.txt"),
                       std::runtime_error);
  fs::remove(directory / "run" / "manifest.json");
  fs::create_directory(directory / "run" / "manifest.json");
  CHECK_THROWS_WITH_AS(report::read_run(directory / "run"),
                       doctest::Contains("run': manifest.json cannot be read"), std::runtime_error);
}

TEST_CASE("the headline of a verdict that begins with a table is the sentence behind it") {
  const test::TemporaryDirectory directory;
  experiments::RunRecord record(directory / "run");
  record.verdict(experiments::TextTable{.columns = {"scaler", "loss"}, .rows = {{"none", "0.5"}}}.text());
  record.verdict("Half of it\nis lost.");
  record.commit(Json::object({{"experiment", "probe"}}));
  CHECK(report::headline(report::read_run(directory / "run")) == "Half of it is lost.");
}

TEST_CASE("a site links an index, a page for each run, its files and the notebooks") {
  const test::TemporaryDirectory directory;
  write_run(directory / "a", "FP16 loses much.");
  write_run(directory / "elsewhere" / "b#2: 50%?", "Second.");
  fs::create_directories(directory / "site" / "notebooks");
  std::ofstream(directory / "site" / "notebooks" / "01_what_is_it.html") << "<html></html>";
  const report::Site site{
      .index = directory / "site" / "index.html",
      .title = "All & sundry",
      .runs = {report::read_run(directory / "a"), report::read_run(directory / "elsewhere" / "b#2: 50%?")},
      .notebooks = {directory / "site" / "notebooks" / "01_what_is_it.html"}};
  report::write_site(site);

  for (const char* page : {"index.html", "a.html", "b#2: 50%?.html"}) {
    CAPTURE(page);
    const std::string html = test::content_of(directory / "site" / page);
    CHECK(html.find("<script") == std::string::npos);
    int followed = 0;
    for (const char* attribute : {"href=\"", "src=\""}) {
      for (const std::string& target : all_after(html, attribute, "\"")) {
        if (target.starts_with("data:")) continue;
        CHECK(target.find_first_of(":?#") == std::string::npos);
        CHECK_MESSAGE(fs::is_regular_file(directory / "site" / percent_decoded(target)), target);
        ++followed;
      }
    }
    CHECK(followed >= 4);
  }
  const std::string index = test::content_of(site.index);
  CHECK(index.find("All &amp; sundry") < index.find("href=\"a.html\""));
  CHECK(index.find("FP16 loses much.") < index.find("href=\"b%232%3A 50%25%3F.html\""));
  CHECK(index.find("01 what is it") != std::string::npos);
  const std::string page = test::content_of(directory / "site" / "b#2: 50%?.html");
  CHECK(page.find("href=\"../elsewhere/b%232%3A 50%25%3F/manifest.json\"") != std::string::npos);
  CHECK(page.find("git_revision", page.find("</details>")) !=
        std::string::npos);  // for all to see, and printed
}

TEST_CASE("a site refuses two pages of one name before it writes any") {
  const test::TemporaryDirectory directory;
  write_run(directory / "1" / "run", "First.");
  write_run(directory / "2" / "run", "Second.");
  const report::RunDirectory first = report::read_run(directory / "1" / "run");
  const report::RunDirectory second = report::read_run(directory / "2" / "run");
  CHECK_THROWS_WITH_AS(
      report::write_site(
          {.index = directory / "index.html", .title = "", .runs = {first, second}, .notebooks = {}}),
      doctest::Contains("the site has a page 'run.html' already"), std::runtime_error);
  CHECK_THROWS_AS(
      report::write_site({.index = directory / "run.html", .title = "", .runs = {first}, .notebooks = {}}),
      std::runtime_error);
  CHECK_FALSE(fs::exists(directory / "run.html"));
}
