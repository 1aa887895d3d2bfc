#pragma once
/// Files that only grow, and marks of how far they had come.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace experiments {

/// How far a GrowingFile had come.
struct FileMark {
  std::string name;  ///< in the directory of the checkpoint
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of these

  friend bool operator==(const FileMark&, const FileMark&) = default;
};

/// The mark of the first `bytes` of a file, or of all it has if these are fewer; of no bytes where it cannot be
/// read.
FileMark mark_of(const std::filesystem::path& file, std::uint64_t bytes);

/// What a run writes down of every step, in a file that only grows: a checkpoint holds its mark, so that no
/// checkpoint is larger than the one before. All members throw std::runtime_error, naming the file, when it
/// cannot be written; mark() and copy_to() also where others wrote into it. A file of which no mark was ever
/// taken is removed with the object.
class GrowingFile {
 public:
  /// Begins the file anew, in place of one that is there.
  explicit GrowingFile(std::filesystem::path file);
  /// Goes on from `mark`, leaving out what was added after it; the file has at least these bytes.
  GrowingFile(std::filesystem::path file, const FileMark& mark);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void append(std::string_view text);

  /// After the disk has all of it. Finds what others have added by the size.
  FileMark mark();

  /// Finds any byte that others wrote, by the checksum.
  void copy_to(const std::filesystem::path& file);

 private:
  void open(std::ios::openmode mode);
  void flush();

  std::filesystem::path file_;
  std::ofstream stream_;
  FileMark written_;
  std::optional<std::uint64_t> marked_bytes_;  ///< of the last mark
};

}  // namespace experiments
