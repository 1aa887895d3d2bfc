#include "experiments/validation/shards.h"

#include "tests/fuzz/fuzz.h"

using experiments::validation::ShardFile;

/// What is read of the rows that the corpus has is written and read back.
HALFLAB_FUZZ(input) {
  const std::vector<ShardFile::Line> lines = {{"first row, subject", 11}, {"second, with; signs", 3}};
  fuzz::allow_refusal([&] {
    const std::filesystem::path file = fuzz::as_file(input, "shards.bin");
    const ShardFile shards = ShardFile::read(file, lines, ShardFile::Use::compare);
    shards.write(file);
    const ShardFile again = ShardFile::read(file, lines, ShardFile::Use::go_on);
    for (std::size_t row = 0; row < lines.size(); ++row)
      if (again.finished(row) != shards.finished(row)) throw "its own bytes are not read back";
    if (again.gpu() != shards.gpu()) throw "the name of the GPU is another";
  });
}
