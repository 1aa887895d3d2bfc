#pragma once
/// The records that the pages quote: of each its command, and the summary of the run that was kept of it.

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/json.h"

namespace experiments::pages {

/// A run that pages quote, as `records.toml` lists it.
struct RecordEntry {
  std::string command;                ///< "scaler_comparison --seeds 8": how the run is made again
  std::vector<std::string> pictures;  ///< the names of its figures that are kept as SVG
  std::vector<std::string> tables;    ///< those of its tables that are kept as CSV
};

/// A record that was listed, but of which no run was kept yet; what() is a sentence for readers.
struct NotKept : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The folder of `records.toml` and, beside it, a folder for each record that was kept.
class Records {
 public:
  /// Throws std::runtime_error, naming the file and what is wrong with it, unless `records.toml` and every
  /// summary.json can be read.
  explicit Records(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::map<std::string, RecordEntry>& entries() const { return entries_; }

  /// The entry of that name. Throws std::invalid_argument, naming it, where there is none.
  const RecordEntry& entry(std::string_view name) const;

  bool is_kept(std::string_view name) const { return summaries_.contains(name); }

  /// A number or text of a record's summary, or peak_resident_bytes of its manifest. Throws NotKept; std::invalid_argument, naming record and key,
  /// where there is no such record or it lacks the key.
  const Json& value(std::string_view name, std::string_view key) const;

 private:
  std::filesystem::path folder_;
  std::map<std::string, RecordEntry> entries_;
  std::map<std::string, Json, std::less<>> summaries_;
};

/// Takes a finished run over into the records, under its directory's last name: summary.json, the
/// pictures and tables that its entry names, and a manifest that lists these alone and holds no absolute path, but the
/// last name of each. Throws std::invalid_argument where no record has that name, or the run was not
/// made by the record's command; std::runtime_error where a file cannot be read or written.
void keep(const std::filesystem::path& run, const Records& records);

}  // namespace experiments::pages
