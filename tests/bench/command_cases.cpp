#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/frame/parallel.h"
#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/safetensors.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "fp16/bulk.h"
#include "sim/tensor/random.h"
#include "tests/bench/case.h"
#include "tests/bench/peers.h"
#include "tools/halflab/commands.h"

namespace bench {
namespace {

namespace files = experiments::tensor_files;

constexpr std::size_t size = std::size_t{1} << 26;
constexpr int threads = 2;

/// A file of gradient-like numbers, which is written when it is first asked for and removed at the end.
class File {
 public:
  explicit File(std::string format) : format_(std::move(format)) {}
  ~File() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }

  const std::string& path() {
    if (!path_.empty()) return path_;
    path_ = (std::filesystem::temp_directory_path() / ("halflab-bench-" + format_ + ".safetensors")).string();
    const sim::RandomStream stream(3, "bench of a file");
    std::vector<float> part(std::size_t{1} << 20), floats;
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = stream.normal(i) * 0x1p-12f;
    for (std::size_t i = 0; i < size; i += part.size()) floats.insert(floats.end(), part.begin(), part.end());
    std::vector<std::uint16_t> codes(format_ == "binary32" ? 0 : size);
    if (format_ == "binary16") fp16::float_to_half(floats, codes);
    if (format_ == "bfloat16") fp16::encode<fp16::bfloat16>(floats, codes);
    const files::Bytes bytes =
        codes.empty() ? std::as_bytes(std::span(floats)) : std::as_bytes(std::span(codes));
    files::write_safetensors(path_, {{"w", files::type_of_format(format_), {size}, bytes}});
    return path_;
  }

 private:
  std::string format_;
  std::string path_;
};

/// A plain read of the file's mapping, piece by piece on as many threads, pages given back.
std::uint64_t read_mapped(const std::string& path) {
  const files::NamedTensor named(path);
  const std::vector<files::Piece> pieces = files::pieces_of(named.tensor());
  std::vector<std::uint64_t> sums(pieces.size());
  experiments::parallel_for_each(pieces.size(), threads, [&](std::size_t i) {
    files::read_piece(pieces[i], [&](files::Bytes bytes, std::uint64_t) {
      sums[i] += sum_words(bytes.data(), bytes.size());
    });
  });
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

int hist(const std::string& path) {
  std::ostringstream out, err;
  const std::string thread_count = std::to_string(threads);
  const char* const words[] = {"halflab", "hist", path.c_str(), "--threads", thread_count.c_str()};
  return halflab::run(5, words, {.out = out, .err = err});
}

}  // namespace

void add_command_cases(std::vector<Case>& cases) {
  for (const char* const format : {"binary32", "binary16", "bfloat16"}) {
    const auto file = std::make_shared<File>(format);
    const std::string limit = std::string("read_mapped_") + format;
    cases.push_back(
        {limit, size, [file] { benchmark::DoNotOptimize(read_mapped(file->path())); }, {}, true, threads});
    cases.push_back({std::string("hist_") + format,
                     size,
                     [file] { require(hist(file->path()) == 0, "hist"); },
                     {limit},
                     false,
                     threads});
  }
}

}  // namespace bench
