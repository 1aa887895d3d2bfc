#pragma once
/// Texts for a terminal. Names come from users and from files, and what they hold is shown, never obeyed.

#include <cstdint>
#include <string>
#include <string_view>

namespace experiments {

/// Control characters, and bytes that are no UTF-8, as "\x1b"; ends of lines stay.
std::string printable(std::string_view text);

/// A text as one printable line, its lines parted by blanks. Beyond 2,000 bytes its middle is left out: what is wrong
/// stands at the beginning, what is allowed at the end.
std::string one_line(std::string_view text);

/// "1 step", "3 steps"; "1 batch", "3 batches".
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace experiments
