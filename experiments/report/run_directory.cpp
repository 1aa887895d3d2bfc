#include "experiments/report/run_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/files.h"
#include "experiments/frame/text_table.h"

namespace experiments::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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

ordered_json read_object(const fs::path& directory, const std::string& file) {
  ordered_json object = ordered_json::parse(read_text(directory, file), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw_about(directory, file, "is not a JSON object; must be as an experiment wrote it");
  return object;
}

std::string shown(const ordered_json& value) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, part] : value.items()) {
    parts.push_back(value.is_object() ? fmt::format("{} {}", key, shown(part)) : shown(part));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

RunDirectory::Facts facts(const ordered_json& object, const std::set<std::string>& without = {}) {
  RunDirectory::Facts facts;
  for (const auto& [key, value] : object.items()) {
    if (!without.contains(key)) facts.emplace_back(key, shown(value));
  }
  return facts;
}

/// Throws ordered_json::exception where the manifest is not what an experiment writes.
RunDirectory run_of(const ordered_json& manifest, const fs::path& directory) {
  const std::string last_name = fs::weakly_canonical(directory).filename().string();
  RunDirectory run{
      .path = directory,
      .directory = last_name,
      .name = manifest.value("experiment", last_name),
      .question = manifest.value("question", ""),
      .verdict = read_text(directory, "verdict.txt"),
      .figures = {},
      .options = facts(manifest.value("options", ordered_json::object())),
      .circumstances = facts(manifest, {"experiment", "question", "options", "seed", "threads", "figures",
                                        "files", "checksums"}),
      .summary = facts(read_object(directory, "summary.json")),
      .files = {std::string{manifest_file}},
  };
  for (const ordered_json& figure : manifest.value("figures", ordered_json::array())) {
    const std::string name = figure.at("name").get<std::string>();
    const bool drawn = fs::exists(directory / (name + ".svg"));
    run.figures.push_back({.title = figure.at("title").get<std::string>(),
                           .caption = figure.at("caption").get<std::string>(),
                           .svg = drawn ? read_text(directory, name + ".svg") : "",
                           .script = name + ".gp"});
  }
  const auto files = manifest.value("files", std::vector<std::string>{});
  run.files.insert(run.files.end(), files.begin(), files.end());
  return run;
}

}  // namespace

RunDirectory read_run(const fs::path& directory) {
  const ordered_json manifest = read_object(directory, manifest_file);
  try {
    return run_of(manifest, directory);
  } catch (const ordered_json::exception&) {
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
