#pragma once
/// Claims: of several jobs that share a folder, on any number of hosts, which one works on what.
///
/// A claim is a folder DIRECTORY/NAME with one file in it, TOKEN.json, which names host, job and process. It is made
/// elsewhere and renamed into place, which of several jobs only one can do: no folder can be renamed onto one that is
/// not empty. Its owner renews it, by the time of the file, as long as it lives. One whose process has ended, or that was
/// not renewed for some time by the clock of the file system, is removed by whoever wants it, its file first; an owner
/// who was only held up finds that out at the next renewal.

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace experiments {

/// Who has a claim.
struct ClaimOwner {
  std::string host;
  std::string job;  ///< "Slurm job 7_2", else "process 123"

  /// "Slurm job 7_2 on node3".
  std::string text() const { return job + " on " + host; }
};

/// A claim that was this job's has been taken over.
struct ClaimLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How often claims are renewed, and when one that is not counts as given up.
struct ClaimTimes {
  std::chrono::milliseconds renewal = std::chrono::seconds(10);
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

/// The claims of one job, renewed on a thread of their own. Any thread may call any member.
class Claims {
 public:
  explicit Claims(std::filesystem::path directory, ClaimTimes times = {});
  /// Gives back what is still claimed, and removes the directory where nothing else is in it.
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  /// Whether the claim is now this job's. Takes over one that was given up. Throws std::runtime_error, naming the file,
  /// where the file system refuses.
  bool claim(const std::string& name);
  /// Throws ClaimLost where it is no longer this job's.
  void require(const std::string& name) const;
  void give_back(const std::string& name);

 private:
  class Holder;
  std::unique_ptr<Holder> holder_;
};

/// Who works on something, with a claim that was not given up; nobody where there is none. Changes nothing but the time of
/// a file of its own.
std::optional<ClaimOwner> owner_of(const std::filesystem::path& directory, const std::string& name,
                                   ClaimTimes times = {});

}  // namespace experiments
