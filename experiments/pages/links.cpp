#include "experiments/pages/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <sstream>

#include "experiments/frame/files.h"

namespace experiments::pages {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view fence = "```";

/// Calls `line` for each line outside of code, and `block` for each block of code.
template <class OnLine, class OnBlock>
void visit(const std::string& page, OnLine&& on_line, OnBlock&& on_block) {
  std::istringstream stream(page);
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (!line.starts_with(fence)) {
      on_line(line);
      continue;
    }
    CodeBlock block{.language = line.substr(fence.size()), .text = "", .line = number};
    for (; std::getline(stream, line) && !line.starts_with(fence); ++number) block.text += line + '\n';
    ++number;
    on_block(block);
  }
}

std::string without_code_spans(const std::string& line) {
  return std::regex_replace(line, std::regex("`[^`]*`"), "");
}

}  // namespace

std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char letter : heading) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == ' ') {
      anchor += '-';
    } else if (std::isalnum(byte) || letter == '-' || letter == '_' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

std::vector<std::string> anchors_of(const std::string& page) {
  std::vector<std::string> anchors;
  std::map<std::string, int> seen;
  visit(
      page,
      [&](const std::string& line) {
        const std::size_t hashes = line.find_first_not_of('#');
        if (hashes == 0 || hashes == std::string::npos || line[hashes] != ' ') return;
        const std::string anchor = anchor_of(line.substr(hashes + 1));
        const int times = seen[anchor]++;
        anchors.push_back(times == 0 ? anchor : fmt::format("{}-{}", anchor, times));
      },
      [](const CodeBlock&) {});
  return anchors;
}

std::vector<std::string> links_of(const std::string& page) {
  static const std::regex markdown(R"(\]\(([^)\s]+)\))"), html(R"re((?:href|src)="([^"]+)")re");
  std::vector<std::string> links;
  visit(
      page,
      [&](const std::string& line) {
        const std::string text = without_code_spans(line);
        for (const std::regex* kind : {&markdown, &html}) {
          for (std::sregex_iterator at(text.begin(), text.end(), *kind), end; at != end; ++at)
            links.push_back((*at)[1]);
        }
      },
      [](const CodeBlock&) {});
  return links;
}

std::vector<std::string> broken_links(const fs::path& page) {
  const std::string text = read_file(page);
  std::vector<std::string> broken;
  for (const std::string& link : links_of(text)) {
    if (link.find("://") != std::string::npos || link.starts_with("mailto:")) continue;
    const std::size_t hash = std::min(link.find('#'), link.size());
    const fs::path target = hash == 0 ? page : page.parent_path() / link.substr(0, hash);
    bool leads_somewhere = fs::exists(target);
    if (leads_somewhere && hash < link.size()) {
      const std::vector<std::string> anchors = anchors_of(read_file(target));
      leads_somewhere = std::ranges::find(anchors, link.substr(hash + 1)) != anchors.end();
    }
    if (!leads_somewhere) broken.push_back(link);
  }
  return broken;
}

std::vector<CodeBlock> code_blocks(const std::string& page) {
  std::vector<CodeBlock> blocks;
  visit(
      page, [](const std::string&) {}, [&](const CodeBlock& block) { blocks.push_back(block); });
  return blocks;
}

}  // namespace experiments::pages
