#include "experiments/pages/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/record.h"
#include "experiments/frame/toml_file.h"
#include "experiments/pages/toml_rows.h"

namespace experiments::pages {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char *list_file = "records.toml", *summary_file = "summary.json",
                     *verdict_file = "verdict.txt", *manifest_file = "manifest.json";

ordered_json read_object(const fs::path& file) {
  ordered_json object = ordered_json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw std::runtime_error(file.string() + ": is no JSON object; must be as an experiment wrote it");
  return object;
}

/// Every absolute path by its last name.
void forget_places(ordered_json& value) {
  if (value.is_structured()) {
    for (ordered_json& part : value) forget_places(part);
  } else if (value.is_string() && value.get<std::string>().starts_with('/')) {
    const fs::path path = fs::path(value.get<std::string>()).lexically_normal();
    value = (path.has_filename() ? path : path.parent_path()).filename().string();
  }
}

/// An option's value as a command line has it.
std::string as_word(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const ordered_json& part : value) words.push_back(as_word(part));
  return fmt::format("{}", fmt::join(words, ","));
}

struct Call {
  std::string program;
  std::map<std::string, std::string> options;  ///< of flags "true"
};

Call call_of(const std::string& command) {
  std::istringstream words(command);
  Call call;
  words >> call.program;
  std::string option;
  for (std::string word; words >> word;) {
    if (word.starts_with("--")) {
      option = word.substr(2);
      call.options[option] = "true";
    } else {
      call.options[option] = word;
    }
  }
  return call;
}

bool are_same(const std::string& wanted, const ordered_json& given) {
  if (!given.is_number()) return wanted == as_word(given);
  return ordered_json::parse(wanted, nullptr, /*allow_exceptions=*/false) == given;
}

/// Throws std::invalid_argument unless the manifest is that of a run of the command.
void require_run_of(const std::string& command, const ordered_json& manifest, const std::string& name) {
  const auto refuse = [&](std::string_view what, const std::string& found, const std::string& wanted) {
    throw std::invalid_argument(fmt::format("run '{}': {} is '{}'; the record's command, '{}', has '{}'",
                                            name, what, found, command, wanted));
  };
  const Call call = call_of(command);
  const std::string program = manifest.value("experiment", "");
  if (program != call.program) refuse("the program", program, call.program);
  const ordered_json options = manifest.value("options", ordered_json::object());
  for (const auto& [option, wanted] : call.options) {
    const ordered_json given = options.value(option, ordered_json());
    if (!are_same(wanted, given)) refuse("--" + option, as_word(given), wanted);
  }
  if (!call.options.contains("quick") && options.value("quick", false)) refuse("--quick", "true", "false");
}

/// What is left of a manifest where only those files of its run are.
void keep_only(ordered_json& manifest, const std::vector<std::string>& files) {
  const auto is_kept = [&](const std::string& file) { return std::ranges::find(files, file) != files.end(); };
  manifest["files"] = files;
  const ordered_json checksums = manifest.value("checksums", ordered_json::object());
  manifest["checksums"] = ordered_json::object();
  for (const auto& [file, checksum] : checksums.items()) {
    if (is_kept(file)) manifest["checksums"][file] = checksum;
  }
  const ordered_json figures = manifest.value("figures", ordered_json::array());
  manifest["figures"] = ordered_json::array();
  for (const ordered_json& figure : figures) {
    if (is_kept(figure.value("name", "") + ".svg")) manifest["figures"].push_back(figure);
  }
}

}  // namespace

Records::Records(fs::path folder) : folder_(std::move(folder)) {
  const toml::table list = read_toml_file((folder_ / list_file).string());
  for (const auto& [name, node] : list) {
    const Row row(node, fmt::format("{}: {}", (folder_ / list_file).string(), std::string(name.str())),
                  {"command", "pictures"});
    const std::string key(name.str());
    entries_[key] = {.command = row.text("command"), .pictures = row.texts("pictures")};
    const fs::path summary = folder_ / key / summary_file;
    if (fs::exists(summary)) summaries_[key] = read_object(summary);
  }
}

const RecordEntry& Records::entry(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end())
    throw std::invalid_argument(fmt::format("there is no record '{}'; {} lists those there are", name,
                                            (folder_ / list_file).string()));
  return found->second;
}

const ordered_json& Records::value(std::string_view name, std::string_view key) const {
  const RecordEntry& listed = entry(name);
  const auto summary = summaries_.find(name);
  if (summary == summaries_.end())
    throw NotKept(fmt::format("Not measured yet: no run of `{}` was kept.", listed.command));
  const auto found = summary->second.find(key);
  if (found == summary->second.end())
    throw std::invalid_argument(fmt::format("record '{}' has no key '{}' in its summary", name, key));
  return *found;
}

void keep(const fs::path& run, const Records& records) {
  const std::string name = fs::weakly_canonical(run).filename().string();
  const RecordEntry& entry = records.entry(name);
  ordered_json manifest = read_object(run / manifest_file);
  forget_places(manifest);
  require_run_of(entry.command, manifest, name);
  std::vector<std::string> files{summary_file, verdict_file};
  for (const std::string& picture : entry.pictures) files.push_back(picture + ".svg");
  keep_only(manifest, files);
  const fs::path folder = records.folder() / name;
  fs::create_directories(folder);
  fs::remove(folder / manifest_file);  // the last to come, so that a folder with it is whole
  for (const std::string& file : files) write_file(folder / file, read_file(run / file));
  write_file(folder / manifest_file, manifest.dump(2) + "\n");
}

}  // namespace experiments::pages
