#pragma once
/// Which rows and kernels were proven on which GPU, by the records of ./lab gpu.

#include <filesystem>
#include <string>
#include <string_view>

namespace experiments::gpu_status {

/// A Markdown table: each family of rows of validate_gpu that need a GPU, each family of kernels of
/// gpu_throughput and the other programs of ./lab gpu, by every GPU with a record among the folders in
/// `records`; "not yet run" where no record has it. A row that several records of one GPU hold counts with the
/// most inputs that one of them tried, and with the mismatches of all; a proof is of the revision named beside
/// it. Below it, where there are any, the rates of the kernels that are held against a limit.
///
/// Throws std::runtime_error as read_gpus does.
std::string status_table(const std::filesystem::path& records);

/// The text with the table between its lines "<!-- gpu-status:begin -->" and "<!-- gpu-status:end -->". Throws
/// std::invalid_argument where it does not have both.
std::string with_table(const std::string& text, std::string_view table);

}  // namespace experiments::gpu_status
