#pragma once
/// Files that appear under their name only once they are whole.

#include <filesystem>
#include <fstream>
#include <string_view>

namespace experiments {

/// A file to be written, which takes its name, and the place of one that has it, in publish(). Of one that is not published
/// nothing is left: where the file system has files without a name, not even by kill -9; elsewhere that leaves NAME.partial-PROCESS.
/// A device or pipe keeps its name and is written to at once, as is what /dev/stdout leads to.
class WholeFile {
 public:
  explicit WholeFile(std::filesystem::path file);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  std::ostream& stream() { return stream_; }

  /// Throws std::runtime_error, naming the file and the reason, where it could not be written.
  void publish();

 private:
  std::filesystem::path file_, temporary_;
  int nameless_ = -1;  ///< descriptor of a file without a name; none where there are no such files
  std::ofstream stream_;
};

/// Throws as WholeFile::publish does.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace experiments
