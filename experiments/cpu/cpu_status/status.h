#pragma once
/// Which instructions were held to the software half on which processor, by the records of validate_cpu.

#include <filesystem>
#include <string>

namespace experiments::cpu_status {

/// A Markdown table: each group of rows of each family, by every processor, or emulator, that a record among the folders
/// in `records` has; "not yet run" where none has it. Folders with other records are passed over. Throws
/// std::runtime_error, naming the file, for a record that is damaged.
std::string status_table(const std::filesystem::path& records);

/// The text with the table between its lines "<!-- cpu-status:begin -->" and "<!-- cpu-status:end -->". Throws
/// std::invalid_argument where it does not have both.
std::string with_table(const std::string& text, const std::string& table);

}  // namespace experiments::cpu_status
