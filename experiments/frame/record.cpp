#include "experiments/frame/record.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <type_traits>

#include "experiments/frame/build_information.h"
#include "experiments/frame/files.h"
#include "experiments/frame/growing_file.h"
#include "experiments/frame/machine_information.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

std::string refusal_of(const fs::path& directory, std::string_view why) {
  return fmt::format("output directory '{}' cannot be used ({}); must be a directory that can be written",
                     directory.string(), why);
}

/// `path` and those of its ancestors that do not exist, outermost first.
std::vector<fs::path> missing_directories(fs::path path) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (; !path.empty() && !fs::exists(path, error) && !error; path = path.parent_path()) {
    missing.insert(missing.begin(), path);
    if (path == path.parent_path()) break;
  }
  return missing;
}

void remove_if_empty(const std::vector<fs::path>& outermost_first) {
  for (auto directory = outermost_first.rbegin(); directory != outermost_first.rend(); ++directory) {
    ::rmdir(directory->c_str());
  }
}

constexpr const char* manifest_name = "manifest.json";

}  // namespace

Json manifest_in(const fs::path& directory) {
  return Json::from_text(contents_of(directory / manifest_name).value_or(""));
}

namespace {

/// CRC-32 of a file that may be missing, then of no bytes.
std::string checksum_of(const fs::path& file) {
  return fmt::format("{:08x}", mark_of(file, std::numeric_limits<std::uint64_t>::max()).checksum);
}

/// Whether the directory has a manifest of something else than a run; one of a run may be damaged, or empty.
bool has_foreign_manifest(const fs::path& directory) {
  const std::string text = contents_of(directory / manifest_name).value_or("");
  const auto has = [&](const char* key) { return text.find(key) != std::string::npos; };
  return !text.empty() && !has("\"experiment\"") && !has("\"git_revision\"");
}

/// The files in the directory that are still as the run wrote them whose manifest lies there.
std::vector<std::string> untouched_files(const fs::path& directory) {
  std::vector<std::string> files;
  const Json checksums = manifest_in(directory).value("checksums");
  if (!checksums.is_object()) return files;
  for (const auto& [name, checksum] : checksums.members()) {
    const fs::path file = name;
    // A damaged manifest must not lead to files outside its directory.
    const bool is_inside = file.is_relative() && !file.empty() && *file.lexically_normal().begin() != "..";
    if (is_inside && fs::is_regular_file(directory / file) && checksum == Json(checksum_of(directory / file)))
      files.push_back(name);
  }
  return files;
}

/// Removes the file, and its folders within the directory as far as nothing else is in them.
void remove_with_empty_folders(const fs::path& directory, const fs::path& file) {
  fs::remove(directory / file);
  for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (::rmdir((directory / folder).c_str()) != 0) return;
  }
}

/// Throws std::runtime_error where a folder lies in the place of the file, or a file in that of a folder it needs.
void require_place(const fs::path& directory, const fs::path& file) {
  if (fs::is_directory(directory / file)) throw_not_written(directory / file, EISDIR);
  for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (fs::exists(directory / folder) && !fs::is_directory(directory / folder))
      throw_not_written(directory / folder, ENOTDIR);
  }
}

/// Renames the files into place, the manifest last; where that fails, none is left without a manifest.
void publish(const fs::path& staging, const fs::path& directory, const std::vector<std::string>& files) {
  std::vector<std::string> published;
  try {
    for (const std::string& file : files) {
      fs::create_directories((directory / file).parent_path());
      fs::rename(staging / file, directory / file);
      published.push_back(file);
    }
    fs::rename(staging / manifest_name, directory / manifest_name);
  } catch (...) {
    for (const std::string& file : published) {
      std::error_code ignored;
      fs::remove(directory / file, ignored);
    }
    throw;
  }
}

/// The files below a directory but for the manifest, sorted.
std::vector<std::string> files_in(const fs::path& directory) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    const std::string file = entry.path().lexically_relative(directory).string();
    if (!entry.is_directory() && file != manifest_name) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json listing(Json manifest, const fs::path& directory, const std::vector<std::string>& files) {
  manifest["files"] = Json(files);
  for (const std::string& file : files) manifest["checksums"][file] = checksum_of(directory / file);
  return manifest;
}

std::string quoted_where_needed(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text)
    quoted += character == '"' ? std::string("\"\"") : std::string(1, character);
  return quoted + '"';
}

Json library_versions(std::span<const Dependency> dependencies) {
  Json versions = Json::object();
  for (const Dependency& dependency : dependencies) versions[dependency.name] = dependency.version;
  return versions;
}

}  // namespace

Value::Value(float number) : content_(number) {}
Value::Value(double number) : content_(number) {}
Value::Value(std::string text) : content_(std::move(text)) {}
Value::Value(std::string_view text) : content_(std::string(text)) {}
Value::Value(const char* text) : content_(std::string(text)) {}
Value::Value(Content content) : content_(std::move(content)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

std::string Value::text() const {
  return std::visit(
      [](const auto& content) -> std::string {
        if constexpr (std::is_floating_point_v<std::decay_t<decltype(content)>>) {
          if (std::isnan(content)) return "nan";  // which sign a NaN has differs between processors
        }
        return fmt::format("{}", content);
      },
      content_);
}

Json as_json(const GpuInformation& gpu) {
  return Json::object({{"name", gpu.name},
                       {"driver", gpu.driver},
                       {"uuid", gpu.uuid},
                       {"compute_capability", gpu.compute_capability}});
}

Json Value::json() const {
  return std::visit(
      [this](const auto& content) -> Json {
        if constexpr (std::is_floating_point_v<std::decay_t<decltype(content)>>) {
          if (!std::isfinite(content)) return text();
        }
        return content;
      },
      content_);
}

Table::Table(std::string name, Target target, const std::vector<std::string>& columns)
    : name_(std::move(name)), target_(std::move(target)), columns_(columns) {
  if (!target_.file) return;
  errno = 0;
  stream_.open(*target_.file, std::ios::binary | (target_.goes_on ? std::ios::app : std::ios::trunc));
  if (!stream_) throw_not_written(*target_.file, errno);
  if (!target_.goes_on) write(columns);
}

void Table::row(const std::vector<Value>& cells) {
  if (cells.size() != columns_.size()) {
    throw std::logic_error(
        fmt::format("{}: a row of {} cells in a table of {} columns", name_, cells.size(), columns_.size()));
  }
  if (target_.keeps_json) {
    Json::Object members;
    for (std::size_t i = 0; i < cells.size(); ++i) members.emplace_back(columns_[i], cells[i].json());
    rows_.push_back(Json::object(std::move(members)));
  }
  if (!target_.file) return;
  std::vector<std::string> texts;
  std::ranges::transform(cells, std::back_inserter(texts), &Value::text);
  write(texts);
}

void Table::write(const std::vector<std::string>& cells) {
  errno = 0;
  for (const std::string& cell : cells)
    stream_ << (&cell == &cells.front() ? "" : ",") << quoted_where_needed(cell);
  stream_ << '\n';
  if (!stream_) throw_not_written(*target_.file, errno);
}

void Table::flush() {
  errno = 0;
  if (target_.file && !stream_.flush()) throw_not_written(*target_.file, errno);
}

namespace {

/// Whether the attempt succeeds within half a second: a program that a killed run has started, such as gnuplot, may hold its
/// lock and write into its folder for a moment longer.
bool succeeds_soon(const std::function<bool()>& attempt) {
  for (int tries = 0; tries < 10; ++tries) {
    if (attempt()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return attempt();
}

}  // namespace

RunRecord::RunRecord() = default;

RunRecord::RunRecord(fs::path directory)
    : directory_(std::move(directory)),
      staging_(directory_ / ".partial"),
      created_directories_(missing_directories(directory_)) {
  const auto clear_away = [this] {
    if (lock_ >= 0) ::close(lock_);
    remove_if_empty(created_directories_);
  };
  const auto refuse = [&](std::string_view why) {
    clear_away();
    throw std::runtime_error(refusal_of(directory_, why));
  };
  std::error_code error;
  if (has_foreign_manifest(directory_))
    refuse("the manifest.json in it is of no run of Halflab's; choose another, or move that file away");
  fs::create_directories(directory_, error);
  if (error) refuse(error.message());
  lock_ = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) refuse(std::generic_category().message(errno));
  // Only a lock held by another run counts: a file system without locks is no reason to refuse.
  const auto is_locked = [this] { return ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; };
  if (!succeeds_soon(is_locked)) {
    clear_away();
    throw DirectoryInUse(
        refusal_of(directory_, "another run is writing there; wait for it, or choose another"));
  }
  const auto is_staged = [&] {
    fs::remove_all(staging_, error);
    if (!error) fs::create_directory(staging_, error);
    return !error;
  };
  if (!succeeds_soon(is_staged)) refuse(error.message());
}

RunRecord::~RunRecord() {
  tables_.clear();
  if (!is_kept()) return;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  if (!committed_) remove_if_empty(created_directories_);
  ::close(lock_);
}

Table& RunRecord::table(std::string_view name, const std::vector<std::string>& columns) {
  Table::Target target{.file = std::nullopt, .keeps_json = keeps_json_};
  if (is_kept()) target.file = staging_ / fmt::format("{}.csv", name);
  tables_.push_back(std::make_unique<Table>(std::string(name), std::move(target), columns));
  return *tables_.back();
}

void RunRecord::setting(std::string key, const Value& value) {
  settings_.emplace_back(std::move(key), value);
}

void RunRecord::gpu(GpuInformation information) {
  gpu_ = std::move(information);
}

void RunRecord::figure(FigureNote note) {
  figures_.push_back(std::move(note));
}

void RunRecord::summary(std::string key, const Value& value) {
  const bool is_new = std::none_of(summary_.begin(), summary_.end(),
                                   [&key](const auto& entry) { return entry.first == key; });
  if (!is_new) throw std::logic_error(fmt::format("summary key '{}' is given twice", key));
  summary_.emplace_back(std::move(key), value);
}

void RunRecord::verdict(std::string_view paragraph) {
  while (paragraph.ends_with('\n')) paragraph.remove_suffix(1);
  if (!verdict_.empty()) verdict_ += '\n';
  verdict_ += fmt::format("{}\n", paragraph);
}

void RunRecord::flush() {
  for (const std::unique_ptr<Table>& table : tables_) table->flush();
}

void RunRecord::commit(const Json& settings, const std::function<void()>& add_page) {
  flush();
  write_contents(staging_ / "summary.json", summary_json().to_text(2) + "\n");
  write_contents(staging_ / "verdict.txt", verdict_);
  const Json circumstances = manifest(settings);
  const auto list_files = [&] {
    const std::vector<std::string> files = files_in(staging_);
    write_contents(staging_ / manifest_name, listing(circumstances, staging_, files).to_text(2) + "\n");
    return files;
  };
  std::vector<std::string> files = list_files();
  if (add_page) {
    add_page();
    files = list_files();
  }

  for (const std::string& file : files) require_place(directory_, file);
  const fs::path manifest_file = directory_ / manifest_name;
  const std::vector<std::string> old_files = untouched_files(directory_);
  fs::remove(manifest_file);
  for (const std::string& file : old_files) {
    if (!std::binary_search(files.begin(), files.end(), file)) remove_with_empty_folders(directory_, file);
  }
  publish(staging_, directory_, files);
  committed_ = true;
}

Json RunRecord::summary_json() const {
  Json summary = Json::object();
  for (const auto& [key, value] : summary_) summary[key] = value.json();
  return summary;
}

Json RunRecord::json() const {
  Json tables = Json::object();
  for (const std::unique_ptr<Table>& table : tables_) tables[table->name()] = table->json();
  return Json::object({{"verdict", verdict_}, {"summary", summary_json()}, {"tables", std::move(tables)}});
}

Json RunRecord::manifest(const Json& settings) const {
  const BuildInformation& build = build_information();
  const MachineInformation machine = machine_information();
  Json manifest = settings;
  for (const auto& [key, value] : settings_) manifest["settings"][key] = value.json();
  manifest.update(Json::object({{"version", build.version},
                                {"git_revision", build.git_revision},
                                {"git_dirty", build.git_dirty},
                                {"compiler", build.compiler},
                                {"compiler_flags", build.compiler_flags},
                                {"build_type", build.build_type},
                                {"libraries", library_versions(build.dependencies)},
                                {"cpu", machine.cpu_model},
                                {"instruction_sets", Json(machine.instruction_sets)},
                                {"cuda", nullptr},
                                {"driver", nullptr},
                                {"gpu", nullptr},
                                {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(date_))},
                                {"wall_time_s", stopwatch_.seconds()},
                                {"peak_resident_bytes", peak_resident_bytes()}}));
  if (gpu_) manifest["gpu"] = as_json(*gpu_);
  Json::Array figures;
  for (const FigureNote& figure : figures_) {
    figures.push_back(
        Json::object({{"name", figure.name}, {"title", figure.title}, {"caption", figure.caption}}));
  }
  manifest["figures"] = std::move(figures);
  return manifest;
}

std::vector<std::string> damaged_files(const fs::path& directory) {
  const Json checksums = manifest_in(directory).value("checksums");
  if (!checksums.is_object()) return {manifest_name};
  std::vector<std::string> damaged;
  for (const auto& [file, checksum] : checksums.members()) {
    if (!fs::is_regular_file(directory / file) || checksum != Json(checksum_of(directory / file)))
      damaged.push_back(file);
  }
  return damaged;
}

}  // namespace experiments
