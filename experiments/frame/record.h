#pragma once
/// A run directory: tables, figures, summary, verdict and the manifest that says how they came about.
///
/// Everything is staged in `<directory>/.partial` and appears only in commit(): the old manifest is removed,
/// each file is renamed into place, files that only the old manifest listed are removed unless somebody has changed
/// them since, and the new manifest comes last. So a directory with a manifest is complete, and a run that ends early (an exception, Ctrl-C, a
/// kill) leaves the directory as it was. What a killed run staged is cleared away by the next run into the
/// same directory.

#include <concepts>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/frame/json.h"
#include "experiments/frame/stopwatch.h"

namespace experiments {

/// A number or a text, as a table's cell or the summary holds it.
class Value {
 public:
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) Value(Integer number)
      : Value(
            Content(std::conditional_t<std::signed_integral<Integer>, std::int64_t, std::uint64_t>{number})) {
  }
  Value(float number);
  Value(double number);
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  /// Shortest decimal that reads back to the same number; nan, inf and -inf by these names; a text as it is.
  std::string text() const;
  /// A JSON number, or a string; a number that is not finite becomes the string that text() gives.
  Json json() const;

 private:
  using Content = std::variant<std::int64_t, std::uint64_t, float, double, std::string>;
  Value(Content content);

  Content content_;
};

/// A CSV file with a header row (RFC 4180 quoting where a text needs it, lines ended by LF), an array of JSON objects, or
/// both. Not thread safe.
class Table {
 public:
  struct Target {
    std::optional<std::filesystem::path> file;  ///< of the CSV
    bool keeps_json = false;
    bool goes_on = false;  ///< the file is there, with its header; rows are added
  };

  /// `columns` carry their units, as in "time_ms". Throws std::runtime_error when the file cannot be created.
  Table(std::string name, Target target, const std::vector<std::string>& columns);

  const std::string& name() const { return name_; }
  /// The rows so far, where they are kept.
  const Json::Array& json() const { return rows_; }

  /// One cell per column; any other number throws std::logic_error.
  void row(const std::vector<Value>& cells);

  /// Throws std::runtime_error, naming the file, when anything so far could not be written.
  void flush();

 private:
  void write(const std::vector<std::string>& cells);

  std::string name_;
  Target target_;
  std::ofstream stream_;
  std::vector<std::string> columns_;
  Json::Array rows_;
};

/// A figure's entry in the manifest: `<name>.gp`, `.svg` and `.png` are its files.
struct FigureNote {
  std::string name;
  std::string title;
  std::string caption;
};

/// A GPU that a run took place on.
struct GpuInformation {
  std::string name;
  std::string driver;          ///< its version
  std::string uuid;            ///< as nvidia-smi writes it
  int compute_capability = 0;  ///< 10 * major + minor
};

/// The manifest's "gpu".
Json as_json(const GpuInformation& gpu);

/// A directory that another run is writing into.
struct DirectoryInUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class RunRecord {
 public:
  /// Creates the directory (and its parents) and the staging folder in it, and locks it against a second run.
  /// Throws std::runtime_error, naming the directory and the reason, when one of these is not possible, or where a
  /// manifest.json of something else lies in it: DirectoryInUse where another run has locked it.
  explicit RunRecord(std::filesystem::path directory);
  /// A record of what a run found that leaves no directory; nothing may be staged.
  RunRecord();
  /// Without a commit before: removes what was staged, and the directories that the constructor created.
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  /// Whether the run leaves a directory.
  bool is_kept() const { return !directory_.empty(); }
  const std::filesystem::path& directory() const { return directory_; }

  /// Where files that shall appear in the directory, or in folders of it, are to be written until commit().
  const std::filesystem::path& staging() const { return staging_; }

  /// Keeps the tables that are started from now on for json().
  void keep_as_json() { keeps_json_ = true; }
  /// {"verdict", "summary": {key: value}, "tables": {name: [{column: value}]}}.
  Json json() const;

  /// Starts `<name>.csv`. The reference stays valid until commit().
  Table& table(std::string_view name, const std::vector<std::string>& columns);

  /// Adds a key to summary.json, which keeps the order of the calls. A key given twice throws
  /// std::logic_error.
  void summary(std::string key, const Value& value);

  /// Adds a value to "settings" in manifest.json: what the run was made with beyond its options, such as the
  /// defaults of a scaler.
  void setting(std::string key, const Value& value);

  /// What "gpu" in manifest.json says; null without.
  void gpu(GpuInformation information);

  /// Adds a paragraph or a table to verdict.txt; an empty line stands between two of them.
  void verdict(std::string_view paragraph);
  const std::string& verdict() const { return verdict_; }

  void figure(FigureNote note);

  /// Makes everything written so far readable by others, such as a plotting program.
  /// Throws std::runtime_error, naming the file, when something could not be written.
  void flush();

  /// Publishes the run. `settings` is the part of the manifest that belongs to the program (its name,
  /// options, seed, threads); build, machine, date, wall time, peak memory, figures, files and their checksums
  /// (CRC-32) are added here, and stand nowhere else. `add_page` writes into staging() what is made from all of
  /// that, with the manifest. Throws std::runtime_error, naming the file, when something cannot be written; nothing is
  /// published then.
  void commit(const Json& settings, const std::function<void()>& add_page = {});

 private:
  Json summary_json() const;
  /// But for the files.
  Json manifest(const Json& settings) const;

  std::filesystem::path directory_;
  std::filesystem::path staging_;
  std::vector<std::filesystem::path> created_directories_;
  int lock_ = -1;
  bool committed_ = false;
  bool keeps_json_ = false;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::pair<std::string, Value>> summary_;
  std::vector<std::pair<std::string, Value>> settings_;
  std::optional<GpuInformation> gpu_;
  std::vector<FigureNote> figures_;
  std::string verdict_;
  std::time_t date_ = std::time(nullptr);
  Stopwatch stopwatch_;
};

/// The manifest of the run that lies in a directory; null where there is none that can be read.
Json manifest_in(const std::filesystem::path& directory);

/// The files of a committed run that are missing or have other bytes than the run wrote, by the checksums in
/// its manifest; the manifest alone, where it cannot be read or tells none. Nothing where all is whole.
std::vector<std::string> damaged_files(const std::filesystem::path& directory);

}  // namespace experiments
