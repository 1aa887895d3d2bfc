#include "experiments/pages/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/toml_file.h"
#include "experiments/frame/whole_file.h"
#include "experiments/pages/toml_rows.h"

namespace experiments::pages {
namespace {

namespace fs = std::filesystem;

constexpr const char *list_file = "records.toml", *summary_file = "summary.json",
                     *manifest_file = "manifest.json", *from_manifest = "peak_resident_bytes";

Json read_object(const fs::path& file) {
  Json object = Json::from_text(read_file(file));
  if (!object.is_object())
    throw std::runtime_error(file.string() + ": is no JSON object; must be as an experiment wrote it");
  return object;
}

/// Every absolute path by its last name.
void forget_places(Json& value) {
  if (value.is_object()) {
    for (auto& [key, member] : value.members()) forget_places(member);
  } else if (value.is_array()) {
    for (Json& element : value.elements()) forget_places(element);
  } else if (value.is_string() && value.string().starts_with('/')) {
    const fs::path path = fs::path(value.string()).lexically_normal();
    value = (path.has_filename() ? path : path.parent_path()).filename().string();
  }
}

/// An option's value as a command line has it.
std::string as_word(const Json& value) {
  if (value.is_string()) return value.string();
  if (!value.is_array()) return value.to_text();
  std::vector<std::string> words;
  for (const Json& part : value.elements()) words.push_back(as_word(part));
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

bool are_same(const std::string& wanted, const Json& given) {
  if (!given.is_number()) return wanted == as_word(given);
  const Json number = Json::from_text(wanted);
  return number.is_number() && number.number() == given.number();
}

/// Throws std::invalid_argument unless the manifest is that of a run of the command.
void require_run_of(const std::string& command, const Json& manifest, const std::string& name) {
  const auto refuse = [&](std::string_view what, const std::string& found, const std::string& wanted) {
    throw std::invalid_argument(fmt::format("run '{}': {} is '{}'; the record's command, '{}', has '{}'",
                                            name, what, found, command, wanted));
  };
  const Call call = call_of(command);
  const std::string program = manifest.value("experiment", "").string();
  if (program != call.program) refuse("the program", program, call.program);
  const Json options = manifest.value("options");
  for (const auto& [option, wanted] : call.options) {
    const Json given = options.value(option);
    if (!are_same(wanted, given)) refuse("--" + option, as_word(given), wanted);
  }
  if (!call.options.contains("quick") && options.value("quick", false).boolean())
    refuse("--quick", "true", "false");
}

/// What is left of a manifest where only those files of its run are.
void keep_only(Json& manifest, const std::vector<std::string>& files) {
  const auto is_kept = [&](const std::string& file) { return std::ranges::find(files, file) != files.end(); };
  manifest["files"] = Json(files);
  const auto is_not_kept = [&](const auto& checksum) { return !is_kept(checksum.first); };
  if (manifest.find("checksums")) std::erase_if(manifest["checksums"].members(), is_not_kept);
  const auto is_not_drawn = [&](const Json& figure) { return !is_kept(figure.at("name").string() + ".svg"); };
  if (manifest.find("figures")) std::erase_if(manifest["figures"].elements(), is_not_drawn);
}

}  // namespace

Records::Records(fs::path folder) : folder_(std::move(folder)) {
  const toml::table list = read_toml_file((folder_ / list_file).string());
  for (const auto& [name, node] : list) {
    const Row row(node, fmt::format("{}: {}", (folder_ / list_file).string(), std::string(name.str())),
                  {"command", "pictures", "tables"});
    const std::string key(name.str());
    entries_[key] = {
        .command = row.text("command"), .pictures = row.texts("pictures"), .tables = row.texts("tables")};
    const fs::path manifest = folder_ / key / manifest_file;
    if (!fs::exists(manifest)) continue;
    summaries_[key] = read_object(folder_ / key / summary_file);
    summaries_[key][from_manifest] = read_object(manifest).value(from_manifest);
  }
}

const RecordEntry& Records::entry(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end())
    throw std::invalid_argument(fmt::format("there is no record '{}'; {} lists those there are", name,
                                            (folder_ / list_file).string()));
  return found->second;
}

const Json& Records::value(std::string_view name, std::string_view key) const {
  const RecordEntry& listed = entry(name);
  const auto summary = summaries_.find(name);
  if (summary == summaries_.end())
    throw NotKept(fmt::format("Not measured yet: no run of `{}` was kept.", listed.command));
  const Json* found = summary->second.find(key);
  if (!found)
    throw std::invalid_argument(fmt::format("record '{}' has no key '{}' in its summary", name, key));
  return *found;
}

void keep(const fs::path& run, const Records& records) {
  const std::string name = fs::weakly_canonical(run).filename().string();
  const RecordEntry& entry = records.entry(name);
  Json manifest = read_object(run / manifest_file);
  forget_places(manifest);
  require_run_of(entry.command, manifest, name);
  std::vector<std::string> files{summary_file};
  for (const std::string& picture : entry.pictures) files.push_back(picture + ".svg");
  for (const std::string& table : entry.tables) files.push_back(table + ".csv");
  keep_only(manifest, files);
  std::vector<std::string> contents;  // all of them, before the old record goes
  for (const std::string& file : files) contents.push_back(read_file(run / file));
  const fs::path folder = records.folder() / name;
  fs::create_directories(folder);
  fs::remove(folder / manifest_file);  // the last to come, so that a folder with it is whole
  for (std::size_t i = 0; i < files.size(); ++i) write_file(folder / files[i], contents[i]);
  write_file(folder / manifest_file, manifest.to_text(2) + "\n");
}

}  // namespace experiments::pages
