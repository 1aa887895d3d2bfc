#include "experiments/explain_gemm/tree_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "experiments/frame/whole_file.h"

namespace experiments::explain_gemm {
namespace {

constexpr const char* allowed =
    R"(allowed: {"terms": N, "nodes": [[0, 1], ...]}, as halflab reveal --to writes it)";

fp16::SummationTree tree_of(const Json& json) {
  fp16::SummationTree tree;
  for (const auto& [key, value] : json.members()) {
    if (key == "terms") {
      tree.leaves = value.unsigned_integer();
    } else if (key == "nodes") {
      for (const Json& node : value.elements()) {
        std::vector<std::size_t>& children = tree.nodes.emplace_back();
        for (const Json& child : node.elements()) children.push_back(child.unsigned_integer());
      }
    } else {
      throw JsonError(fmt::format("the key '{}' is unknown", key));
    }
  }
  return tree;
}

/// What is wrong with a tree; nothing where it is one.
std::optional<std::string> fault_of(const fp16::SummationTree& tree) {
  if (tree.leaves == 0) return "has no terms";
  if (tree.leaves == 1 && tree.nodes.empty()) return {};
  // So that no count in the file decides how much memory is asked for: each node but leaves adds two.
  if (tree.nodes.empty() || tree.nodes.size() >= tree.leaves)
    return "has not as many nodes as a tree of its terms";
  std::size_t children = 0;
  for (const auto& node : tree.nodes) children += node.size();
  if (children != tree.leaves + tree.nodes.size() - 1)
    return "has not every term and every node but the last once";
  std::vector<bool> is_added(children);
  for (std::size_t k = 0; k < tree.nodes.size(); ++k) {
    if (tree.nodes[k].size() < 2) return fmt::format("has fewer than two children in node {}", k);
    for (const std::size_t child : tree.nodes[k]) {
      if (child >= tree.leaves + k) return fmt::format("adds {} in node {}, before it is there", child, k);
      if (is_added[child]) return fmt::format("adds {} twice", child);
      is_added[child] = true;
    }
  }
  return {};
}

}  // namespace

fp16::SummationTree read_tree(const std::filesystem::path& file) {
  const std::optional<std::string> text = contents_of(file);
  if (!text) throw std::runtime_error(fmt::format("file '{}' cannot be read; {}", file.string(), allowed));
  try {
    fp16::SummationTree tree = tree_of(Json::from_text(*text));
    if (const auto fault = fault_of(tree))
      throw std::runtime_error(fmt::format("file '{}' {}; {}", file.string(), *fault, allowed));
    return tree;
  } catch (const JsonError& error) {
    throw std::runtime_error(
        fmt::format("file '{}' holds no tree ({}); {}", file.string(), error.what(), allowed));
  }
}

void write_tree(const std::filesystem::path& file, const fp16::SummationTree& tree) {
  Json::Array nodes;
  for (const auto& children : tree.nodes) {
    Json::Array& node = nodes.emplace_back(Json::Array()).elements();
    for (const std::size_t child : children) node.emplace_back(child);
  }
  write_file(file, Json::object({{"terms", tree.leaves}, {"nodes", std::move(nodes)}}).to_text() + "\n");
}

}  // namespace experiments::explain_gemm
