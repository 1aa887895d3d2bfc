#include "experiments/pages/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "experiments/frame/files.h"
#include "experiments/frame/whole_file.h"
#include "experiments/pages/blocks.h"
#include "experiments/pages/claims.h"
#include "experiments/pages/evidence.h"
#include "experiments/pages/figures_in_text.h"
#include "experiments/pages/records.h"

namespace experiments::pages {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view condition_mark = "? ";

/// The template without its conditions, each of which must hold.
std::string with_conditions_met(std::string_view block_template, const Records& records) {
  std::istringstream lines{std::string(block_template)};
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(condition_mark)) {
      text += line + '\n';
    } else if (const std::string condition = line.substr(condition_mark.size()); !holds(condition, records)) {
      throw std::invalid_argument(fmt::format(
          "'{}' does not hold any more, so the text with this condition must be another", condition));
    }
  }
  return text;
}

/// The template filled; of records that were not kept yet a sentence that says so.
std::string figures_text(std::string_view block_template, const Records& records) {
  try {
    return wrapped(filled(with_conditions_met(block_template, records), records));
  } catch (const NotKept& missing) {
    return wrapped(fmt::format("*{}*\n", missing.what()));
  }
}

}  // namespace

std::vector<fs::path> pages_of(const fs::path& checkout) {
  std::vector<fs::path> pages;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkout / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  std::ranges::sort(pages);
  pages.insert(pages.begin(), checkout / "README.md");
  for (const char* other : {"experiments/gpu/README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md",
                            "CONTRIBUTING.md", "SECURITY.md", "paper.md"}) {
    if (fs::exists(checkout / other)) pages.push_back(checkout / other);
  }
  return pages;
}

fs::path records_folder(const fs::path& checkout) {
  return checkout / "experiments" / "records" / "claims";
}

std::string rewritten(const fs::path& page, const fs::path& checkout) {
  const fs::path folder = records_folder(checkout);
  try {
    const Records records(folder);
    return with_blocks(
        read_file(page),
        {{"figures", [&](std::string_view block_template) { return figures_text(block_template, records); }},
         {"claims",
          [&](std::string_view) { return claims_text(read_claims(folder / "claims.toml"), records); }},
         {"evidence", [&](std::string_view) { return evidence_text(read_evidence(checkout / "tests")); }}});
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(fmt::format("{}: {}", page.string(), error.what()));
  }
}

std::vector<fs::path> write_pages(const fs::path& checkout) {
  std::vector<fs::path> written;
  for (const fs::path& page : pages_of(checkout)) {
    const std::string text = rewritten(page, checkout);
    if (text == read_file(page)) continue;
    write_file(page, text);
    written.push_back(page);
  }
  return written;
}

}  // namespace experiments::pages
