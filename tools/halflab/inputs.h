#pragma once
/// The files that subcommands read, as options.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/tensor_files/tensor_set.h"

namespace halflab {

struct Inputs {
  std::vector<std::string> paths;
  std::string select;  ///< empty: all
  std::string dtype;   ///< empty: files say themselves what they hold
  std::string shape;   ///< of raw files
};

/// What --help says of --dtype.
constexpr const char* dtype_help =
    "what raw files hold, arrays of a type that NumPy does not know, and integers of as many bits, up to 16";

/// Binds --select, --dtype and --shape, and the words as at least so many paths.
void bind(experiments::CommandLine& command_line, Inputs& inputs, std::size_t at_least = 1);

/// How files without a header are read. Throws std::invalid_argument, naming the option: --dtype by the name given.
experiments::tensor_files::RawLayout raw_layout(const Inputs& inputs,
                                                std::string_view dtype_option = "--dtype");

/// The selected tensors of all paths. Throws std::invalid_argument or std::runtime_error, naming option or file; where
/// --dtype or --shape is given and every file says itself what it holds, too.
experiments::tensor_files::TensorSet open(const Inputs& inputs);
/// A set of the selected tensors for each path. Throws as open() does.
std::vector<experiments::tensor_files::TensorSet> open_each(const Inputs& inputs);

/// Throws std::invalid_argument, with what was passed over, where no tensor of the path is of floating-point numbers.
void require_numbers(const experiments::tensor_files::TensorSet& set, const std::string& path);

/// "Passed over, as no floating-point numbers: step, mask. Read as codes of e4m3: labels."; empty where there is neither.
std::string remark_on_integers(const experiments::tensor_files::TensorSet& set);

}  // namespace halflab
