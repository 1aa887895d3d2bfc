#pragma once
/// Blocks of a Markdown page that a program writes: what stands between two marks, which are comments on
/// lines of their own.
///
///   <!-- NAME:begin            or, without a template:   <!-- NAME:begin -->
///   the template
///   -->
///   what is written
///   <!-- NAME:end -->

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace experiments::pages {

/// Makes a block's text, whole lines, from its template.
using BlockMaker = std::function<std::string(std::string_view block_template)>;

/// The page with the text of every block made anew whose name has a maker; the others stay as they are.
/// Throws std::invalid_argument where a block has no end.
std::string with_blocks(const std::string& page, const std::map<std::string, BlockMaker>& makers);

/// The page without its blocks, marks and templates: what people wrote.
std::string without_blocks(const std::string& page);

/// The text's paragraphs, each wrapped to lines of at most `width` characters; lines of tables, headings
/// and empty ones stay as they are. The lines of a paragraph or list item after its first begin as the
/// first does: with "> " in quotations, with two spaces in items.
std::string wrapped(std::string_view text, std::size_t width = 128);

}  // namespace experiments::pages
