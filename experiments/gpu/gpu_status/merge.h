#pragma once
/// One record of at most eight files from the runs of several programs on one GPU, and back again.
///
/// The folder of the runs: `gpu.json`, the manifest's "gpu"; `runs`, a line "NAME EXIT_CODE SECONDS" for each
/// program, or "NAME not_run 0" for one that cannot run here; NAME.log, what it printed, or why it did not run; and
/// the folder NAME with what it wrote, if it did.
///
/// The record: `manifest.json` with the GPU, `summary.json` with every program's keys as "NAME.key",
/// `verdict.txt`, the tables that matter most, the shards to go on from, and `runs.json` with the text files of
/// every NAME as they were, and what it printed as its log.txt.

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/frame/help_text.h"

namespace experiments::gpu_status {

/// For --help: the record's summary.
Outputs merged_outputs();

/// Writes the record into `out`, in the place of one that is there. Of a program that failed or was ended there
/// is the end of what it printed, and its shards. Files that would make runs.json too large are left out, and
/// named in the manifest. Throws std::runtime_error, naming the file.
void merge(const std::filesystem::path& folder, const std::filesystem::path& out);

/// Writes the folders NAME into the record's own and returns the gnuplot scripts in them, as "NAME/FIGURE.gp".
/// Throws std::runtime_error, naming the record, where it is none.
std::vector<std::string> unpack(const std::filesystem::path& record);

}  // namespace experiments::gpu_status
