#pragma once
/// An order of summation as a file: {"terms": 3, "nodes": [[0, 1], [2, 3]]}, the numbering of fp16/summation_tree.h.

#include <filesystem>

#include "fp16/summation_tree.h"

namespace experiments::explain_gemm {

/// Throws std::runtime_error, naming the file and the node, where that is no tree: a child that does not come before its
/// node, that has two parents or none, a node of fewer than two children.
fp16::SummationTree read_tree(const std::filesystem::path& file);

/// Writes under a temporary name, then renames. Throws std::runtime_error, naming the file.
void write_tree(const std::filesystem::path& file, const fp16::SummationTree& tree);

}  // namespace experiments::explain_gemm
