#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>

#include "experiments/frame/columns.h"
#include "experiments/frame/parallel.h"
#include "experiments/frame/shard.h"
#include "experiments/frame/tensor_files/npy.h"
#include "experiments/frame/tensor_files/safetensors.h"
#include "experiments/frame/whole_file.h"
#include "fp16/names.h"
#include "tools/halflab/command.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/shell_word.h"
#include "tools/halflab/validate/code_file.h"
#include "tools/halflab/validate/operands.h"
#include "tools/halflab/validate/validate.h"

namespace halflab::validate {
namespace {

namespace files = experiments::tensor_files;

constexpr std::uint64_t most_at_once = std::uint64_t{1} << 28;

struct Options {
  std::vector<std::string> words;
  std::string to;
  std::string format = "binary16";
  std::string shard = "1/1";
  std::optional<std::int64_t> count;
  std::uint64_t seed = 1;
};

/// Operands from `first` on.
struct Written {
  std::string operation, format;
  std::uint64_t first, count, all;
  bool is_complete;
  std::vector<std::string> paths;
};

const experiments::SummaryOf<Written> summary{
    {{"operation", "the operands are of", [](const Written& written) { return written.operation; }},
     {"format", "of the operands", [](const Written& written) { return written.format; }},
     {"operands", "that were written, of each file", [](const Written& written) { return written.count; }},
     {"first", "index of the first one", [](const Written& written) { return written.first; }},
     {"all", "that the shards have together", [](const Written& written) { return written.all; }},
     {"complete", "yes: these are all that there are; no: they are boundary-weighted",
      [](const Written& written) { return written.is_complete ? "yes" : "no"; }}}};

void bind(experiments::CommandLine& command_line, Options& options) {
  command_line.add_words("OP", options.words,
                         fmt::format("the operation: {}", fmt::join(names::names_of(functions()), ", ")), 1);
  command_line.add(
      "--to", options.to,
      "a .npy file for each operand (.hex: codes in hexadecimal, one a line, for $readmemh), separated "
      "by commas, or one .safetensors file for all",
      "FILES");
  command_line.add("--format", options.format, fmt::format("of the operands: {}", scalar_format_names()),
                   "FORMAT");
  command_line.add("--shard", options.shard, "the i-th of n parts of all operands, i from 1 on", "i/n");
  command_line.add(
      "--count", options.count,
      "so many that are boundary-weighted, in place of all (default 1048576 where all would be more "
      "than 2^32: three operands, two of more than 16 bits)",
      {.minimum = 1});
  command_line.add_seed(options.seed);
}

std::vector<std::string> paths_of(const std::string& to, int arity) {
  if (to.empty())
    throw std::invalid_argument("--to: is needed: a file for each operand, such as a.npy,b.npy");
  std::vector<std::string> paths;
  for (const auto part : std::views::split(to, ',')) paths.emplace_back(part.begin(), part.end());
  const bool is_one = paths.size() == 1 && paths[0].ends_with(".safetensors");
  if (!is_one && paths.size() != static_cast<std::size_t>(arity))
    throw std::invalid_argument(fmt::format(
        "--to: names {} files; allowed: {} .npy files with commas between them, or one .safetensors",
        paths.size(), arity));
  for (const std::string& path : paths) {
    if (!is_one && !path.ends_with(".npy") && !is_hex(path))
      throw std::invalid_argument(fmt::format("--to: '{}' is no .npy, .hex or .safetensors file", path));
    if (std::ranges::count(paths, path) > 1)
      throw std::invalid_argument(
          fmt::format("--to: '{}' is given twice; allowed: a file for each operand", path));
  }
  return paths;
}

using Bytes = std::vector<std::byte>;

/// The codes of each operand, as they lie in a file.
std::vector<Bytes> fill(const OperandList& list, int arity, std::uint64_t first, std::uint64_t count,
                        std::size_t width, experiments::Run& run) {
  constexpr std::uint64_t at_a_time = 1 << 18;
  std::vector<Bytes> bytes(static_cast<std::size_t>(arity), Bytes(count * width));
  const std::uint64_t parts = (count + at_a_time - 1) / at_a_time;
  experiments::Progress progress = run.progress("write", parts);
  experiments::parallel_for_each(parts, run.threads(), [&](std::size_t part) {
    const std::uint64_t begin = part * at_a_time, end = std::min(count, begin + at_a_time);
    for (std::uint64_t i = begin; i < end; ++i) {
      const Operands codes = list[first + i];
      for (std::size_t k = 0; k < bytes.size(); ++k)
        std::memcpy(bytes[k].data() + i * width, &codes[k], width);
    }
    progress.tick();
  });
  return bytes;
}

void write(const std::vector<std::string>& paths, const std::vector<Bytes>& bytes,
           const files::ElementType& type, std::uint64_t count) {
  if (paths[0].ends_with(".safetensors")) {
    std::vector<files::TensorToWrite> tensors;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      tensors.push_back({.name = std::string(1, static_cast<char>('a' + i)),
                         .type = &type,
                         .shape = {count},
                         .data = bytes[i]});
    return files::write_safetensors(paths[0], tensors);
  }
  // What NumPy has no name for it keeps as void, as ml_dtypes' arrays are saved.
  const std::string void_type = fmt::format("V{}", type.bits / 8);
  files::ElementType named = type;
  if (named.npy.empty()) named.npy = void_type;
  // All of them or none: none takes its name before all are written.
  std::vector<std::unique_ptr<experiments::WholeFile>> whole;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    experiments::WholeFile& file = *whole.emplace_back(std::make_unique<experiments::WholeFile>(paths[i]));
    if (is_hex(paths[i])) {
      file.stream() << hex_lines(bytes[i], static_cast<std::size_t>(type.bits / 8));
    } else {
      file.stream() << files::npy_header(named, {count});
      file.stream().write(reinterpret_cast<const char*>(bytes[i].data()),
                          static_cast<std::streamsize>(bytes[i].size()));
    }
    if (!file.stream().flush()) file.publish();  // throws, with the reason
  }
  for (const auto& file : whole) file->publish();
}

/// Whether `halflab validate` knows a result for operands of the format, and files hold them in whole bytes.
bool has_results(const Function& function, const fp16::NamedFormat& operands) {
  const files::ElementType* const type = files::type_of_format(operands.name);
  return type != nullptr && type->bits >= 8 &&
         std::ranges::any_of(fp16::formats, [&](const fp16::NamedFormat& result) {
           return function.in(operands.format, result.format, fp16::Rounding::nearest_even) != nullptr;
         });
}

void require_results(const Function& function, const fp16::NamedFormat& operands) {
  if (has_results(function, operands)) return;
  std::vector<std::string_view> allowed;
  for (const fp16::NamedFormat& each : fp16::formats) {
    if (has_results(function, each)) allowed.push_back(each.name);
  }
  throw std::invalid_argument(
      fmt::format("--format: no results of {} are known for operands of {} in a file; allowed: {}",
                  function.name, operands.name, fmt::join(allowed, ", ")));
}

Written write_operands(const Options& options, experiments::Run& run) {
  if (options.words.size() != 1) throw std::invalid_argument("OP: one operation is asked for");
  const Function& function = find_function(options.words[0]);
  const std::vector<std::string> paths = paths_of(options.to, function.arity);
  const fp16::NamedFormat* const format =
      experiments::from_option("--format", [&] { return &scalar_format(options.format); });
  require_results(function, *format);
  const files::ElementType* const type = files::type_of_format(format->name);
  const OperandList list(function, format->format, options.count, options.seed);
  const experiments::Shard shard = experiments::parse_shard(options.shard);
  const auto border = [&](std::uint64_t part) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(list.size()) * part / shard.count);
  };
  const std::uint64_t first = border(shard.index - 1), count = border(shard.index) - first;
  if (count > most_at_once)
    throw std::invalid_argument(fmt::format(
        "--shard: {} has {} operands; allowed: at most 2^28, such as --shard {}/{}{}", options.shard, count,
        shard.index, shard.count * ((count + most_at_once - 1) / most_at_once),
        list.is_complete() ? ", or the boundary-weighted ones of --count 1048576" : ""));
  const std::vector<Bytes> bytes =
      fill(list, function.arity, first, count, static_cast<std::size_t>(type->bits / 8), run);
  write(paths, bytes, *type, count);
  return {.operation = std::string(function.name),
          .format = std::string(format->name),
          .first = first,
          .count = count,
          .all = list.size(),
          .is_complete = list.is_complete(),
          .paths = paths};
}

/// The files of operands as `halflab validate` takes them.
std::string operand_files(const Written& written, int arity) {
  if (!written.paths[0].ends_with(".safetensors"))
    return fmt::format("{}", fmt::join(written.paths | std::views::transform(shell_word), " "));
  std::vector<std::string> names;
  for (int i = 0; i < arity; ++i)
    names.push_back(shell_word(
        arity == 1 ? written.paths[0] : fmt::format("{}:{}", written.paths[0], static_cast<char>('a' + i))));
  return fmt::format("{}", fmt::join(names, " "));
}

/// A file for the results that holds no operand.
std::string result_file(const Written& written) {
  std::string name = is_hex(written.paths[0]) ? "y.hex" : "y.npy";
  const auto is_taken = [&](const std::string& path) {
    return std::filesystem::path(path).filename() == name;
  };
  while (std::ranges::any_of(written.paths, is_taken)) name = "kernel_" + name;
  return name;
}

/// The options that name formats where files do not.
std::string format_options(const Written& written) {
  const bool is_half = written.format == "binary16", as_text = is_hex(written.paths[0]);
  const bool is_named = as_text ? is_half : !files::type_of_format(written.format)->npy.empty();
  return (is_named ? "" : " --dtype " + written.format) +
         (as_text && written.operation == "cast"
              ? fmt::format(" --result-dtype {}", is_half ? "bfloat16" : "binary16")
              : "");
}

void report(experiments::Run& run, const Written& written) {
  const int arity = find_function(written.operation).arity;
  const std::string what = arity == 1 ? "operands" : arity == 2 ? "pairs of operands" : "triples of operands";
  const bool is_all = written.count == written.all;
  const std::string how_many = !written.is_complete ? fmt::format("{} boundary-weighted", written.count)
                               : is_all             ? fmt::format("all {}", written.count)
                                                    : fmt::format("{} of {}", written.count, written.all);
  summary.write(run.record(), written);
  run.record().verdict(
      fmt::format("Wrote {} {} of {} in {}.", how_many, what, written.operation, written.format));
  const std::string results = result_file(written);
  run.record().verdict(fmt::format(
      "Let the kernel compute on them, keep its results in that order as {}, and ask\n"
      "  halflab validate {} {} {}{}",
      results, written.operation, operand_files(written, arity), results, format_options(written)));
}

}  // namespace

int run_inputs(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  return run_command(
      argc, argv,
      {.program =
           {.name = "halflab inputs",
            .question = "Which operands should a kernel be tried with?",
            .example = "halflab inputs add --shard 1/16 --to a.npy,b.npy",
            .outputs = experiments::outputs_of(summary),
            .details =
                "One operand of up to 32 bits, or two of up to 16, take all values, in the order of "
                "their codes, the last operand fastest. Others, and with --count these too, are "
                "boundary-weighted, and each is a "
                "function of its index and the seed alone: zeros, subnormal numbers, powers of two, "
                "infinities, NaNs and their neighbours, numbers near each other and near the product."},
       .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
       .body = [&](experiments::Run& run) { report(run, write_operands(options, run)); }},
      streams);
}

}  // namespace halflab::validate
