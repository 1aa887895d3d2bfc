#include "experiments/report/run_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "experiments/frame/text_table.h"

namespace experiments::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_file = "manifest.json";

[[noreturn]] void throw_about(const fs::path& directory, std::string_view file, std::string_view what) {
  throw std::runtime_error(fmt::format("run directory '{}': {} {}", directory.string(), file, what));
}

std::string read_text(const fs::path& directory, const std::string& file) {
  const std::optional<std::string> text = contents_of(directory / file);
  if (!text) {
    throw_about(directory, file, "cannot be read; must be a directory that an experiment wrote and finished");
  }
  return *text;
}

Json read_object(const fs::path& directory, const std::string& file) {
  Json object = Json::from_text(read_text(directory, file));
  if (!object.is_object())
    throw_about(directory, file, "is not a JSON object; must be as an experiment wrote it");
  return object;
}

std::string shown(const Json& value) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.string();
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const auto& [key, part] : value.members()) parts.push_back(fmt::format("{} {}", key, shown(part)));
  } else if (value.is_array()) {
    for (const Json& part : value.elements()) parts.push_back(shown(part));
  } else {
    return value.to_text();
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

RunDirectory::Facts facts(const Json& object, const std::set<std::string>& without = {}) {
  RunDirectory::Facts facts;
  for (const auto& [key, value] : object.members()) {
    if (!without.contains(key)) facts.emplace_back(key, shown(value));
  }
  return facts;
}

/// Throws JsonError where the manifest is not what an experiment writes.
RunDirectory run_of(const Json& manifest, const fs::path& directory) {
  const std::string last_name = fs::weakly_canonical(directory).filename().string();
  RunDirectory run{
      .path = directory,
      .directory = last_name,
      .name = manifest.value("experiment", last_name).string(),
      .question = manifest.value("question", "").string(),
      .verdict = read_text(directory, "verdict.txt"),
      .figures = {},
      .options = facts(manifest.value("options", Json::object())),
      .circumstances = facts(manifest, {"experiment", "question", "options", "seed", "threads", "figures",
                                        "files", "checksums"}),
      .summary = facts(read_object(directory, "summary.json")),
      .files = {std::string{manifest_file}},
  };
  const Json figures = manifest.value("figures", Json::Array());
  for (const Json& figure : figures.elements()) {
    const std::string name = figure.at("name").string();
    const bool drawn = fs::exists(directory / (name + ".svg"));
    run.figures.push_back({.title = figure.at("title").string(),
                           .caption = figure.at("caption").string(),
                           .svg = drawn ? read_text(directory, name + ".svg") : "",
                           .script = name + ".gp"});
  }
  const Json files = manifest.value("files", Json::Array());
  for (const Json& file : files.elements()) run.files.push_back(file.string());
  return run;
}

}  // namespace

RunDirectory read_run(const fs::path& directory) {
  const Json manifest = read_object(directory, manifest_file);
  try {
    return run_of(manifest, directory);
  } catch (const JsonError&) {
    throw_about(directory, manifest_file,
                "lacks an entry or has one of another kind; must be as an experiment wrote it");
  }
}

std::vector<std::string_view> paragraphs_of(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    std::string_view paragraph = text.substr(0, end);
    while (paragraph.ends_with('\n')) paragraph.remove_suffix(1);
    if (!paragraph.empty()) paragraphs.push_back(paragraph);
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return paragraphs;
}

std::string headline(const RunDirectory& run) {
  const std::vector<std::string_view> paragraphs = paragraphs_of(run.verdict);
  TextTable table;
  const auto sentences = std::ranges::find_if(
      paragraphs, [&table](std::string_view paragraph) { return !parse_text_table(paragraph, table); });
  std::string line{sentences == paragraphs.end() ? "" : *sentences};
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace experiments::report
