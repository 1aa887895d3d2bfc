#pragma once
/// Links of Markdown pages, as GitHub resolves them.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace experiments::pages {

/// The anchor of a heading: lower case, without punctuation, spaces as hyphens.
std::string anchor_of(std::string_view heading);

/// The anchors of a page's headings, repeated ones with -1, -2 and so on.
std::vector<std::string> anchors_of(const std::string& page);

/// What the page's links and pictures lead to, as they are written, code left out.
std::vector<std::string> links_of(const std::string& page);

/// The links of the page that lead to no file or directory of the checkout, or to no heading of a page there.
/// Links to other places of the web are not followed.
std::vector<std::string> broken_links(const std::filesystem::path& page);

/// A fenced block of code.
struct CodeBlock {
  std::string language;  ///< what stands behind the opening fence
  std::string text;      ///< whole lines
  std::size_t line;      ///< of the opening fence, from 1
};

std::vector<CodeBlock> code_blocks(const std::string& page);

}  // namespace experiments::pages
