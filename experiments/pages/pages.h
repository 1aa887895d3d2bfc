#pragma once
/// The pages of a checkout, README.md, docs/ and some others, and what in them is written from records.

#include <filesystem>
#include <string>
#include <vector>

namespace experiments::pages {

/// README.md, the pages of docs/ by name, and where they are that of experiments/gpu/, those for contributors,
/// and the paper.
std::vector<std::filesystem::path> pages_of(const std::filesystem::path& checkout);

/// The page with every block written anew: `figures`, whose template's placeholders are filled
/// (figures_in_text.h) or, where a record was not kept yet, replaced by a sentence that says so; its lines
/// "? CONDITION" are not shown, but must hold; `claims`, from the claims.toml beside the records;
/// `evidence`, from the files beside the tests. Throws std::runtime_error, beginning with the page's name,
/// where that is not possible.
std::string rewritten(const std::filesystem::path& page, const std::filesystem::path& checkout);

/// Where the records lie in a checkout.
std::filesystem::path records_folder(const std::filesystem::path& checkout);

/// Writes every page that is not as it should be, and returns these.
std::vector<std::filesystem::path> write_pages(const std::filesystem::path& checkout);

}  // namespace experiments::pages
