#include "sim/data/idx.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/data/registry.h"
#include "tests/data_directory.h"
#include "tests/temporary_directory.h"

namespace sim {
namespace {

using test::TemporaryDirectory;

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

void write_plain(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

void write_gzip(const fs::path& path, const Bytes& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == std::ssize(bytes));
  REQUIRE(gzclose(file) == Z_OK);
}

Bytes idx_bytes(std::initializer_list<std::uint32_t> dimensions, const Bytes& values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
  for (std::uint32_t dimension : dimensions) {
    for (int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(dimension >> shift));
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

Bytes counting(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
  return bytes;
}

struct FileNames {
  std::string training_images = "train-images-idx3-ubyte";
  std::string training_labels = "train-labels-idx1-ubyte";
  std::string test_images = "t10k-images-idx3-ubyte";
  std::string test_labels = "t10k-labels-idx1-ubyte";
};

/// Three training and two test images of 2 x 3 pixels, labels 4 0 7 and 1 2.
void write_data_set(const fs::path& directory, void (*write)(const fs::path&, const Bytes&),
                    const FileNames& names = {}) {
  write(directory / names.training_images, idx_bytes({3, 2, 3}, counting(18)));
  write(directory / names.training_labels, idx_bytes({3}, {4, 0, 7}));
  write(directory / names.test_images, idx_bytes({2, 2, 3}, counting(12)));
  write(directory / names.test_labels, idx_bytes({2}, {1, 2}));
}

void check_data_set(const ImageDataset& dataset) {
  CHECK(dataset.image_shape() == ImageShape{.channels = 1, .height = 2, .width = 3});
  CHECK(dataset.classes() == 8);
  CHECK(dataset.training_size() == 3);
  const Batch test = dataset.test_batch(0, 2);
  CHECK(test.labels == std::vector<std::int32_t>{1, 2});
  for (std::size_t i = 0; i < 12; ++i) CHECK(test.inputs[i] == static_cast<float>(i * 37 % 256) / 255.0f);
}

/// The one-line error of reading `directory`, with the directory's own path replaced by DIR.
std::string error_of(const fs::path& directory) {
  try {
    read_idx_directory(directory);
  } catch (const std::runtime_error& error) {
    std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    for (auto at = text.find(directory.string()); at != std::string::npos;
         at = text.find(directory.string())) {
      text.replace(at, directory.string().size(), "DIR");
    }
    return text;
  }
  return "no error";
}

TEST_CASE("files are read plain, compressed and under dotted names") {
  SUBCASE("plain") {
    const TemporaryDirectory directory;
    write_data_set(directory.path(), write_plain);
    check_data_set(read_idx_directory(directory.path()));
    check_data_set(require_images(*load_dataset(directory.path().string()), "any"));
    CHECK(read_idx_directory(directory.path()).name() == directory.path().string());
  }
  SUBCASE("compressed") {
    const TemporaryDirectory directory;
    write_data_set(directory.path(), write_gzip,
                   {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                    "t10k-labels-idx1-ubyte.gz"});
    check_data_set(read_idx_directory(directory.path()));
  }
  SUBCASE("dotted names, compressed or not") {
    const TemporaryDirectory directory;
    write_data_set(directory.path(), write_gzip,
                   {"train-images.idx3-ubyte", "train-labels.idx1-ubyte.gz", "t10k-images.idx3-ubyte.gz",
                    "t10k-labels.idx1-ubyte"});
    check_data_set(read_idx_directory(directory.path()));
  }
}

TEST_CASE("values beyond the first megabyte are read too") {
  const TemporaryDirectory directory;
  const Bytes values = counting(3 * 700 * 900);
  write_gzip(directory / "large", idx_bytes({3, 700, 900}, values));
  const IdxFile file = read_idx(directory / "large", 3);
  CHECK(file.dimensions == std::vector<std::uint32_t>{3, 700, 900});
  CHECK(file.values == values);
}

TEST_CASE("a single class counts as two") {
  const TemporaryDirectory directory;
  write_data_set(directory.path(), write_plain);
  write_plain(directory / "train-labels-idx1-ubyte", idx_bytes({3}, {0, 0, 0}));
  write_plain(directory / "t10k-labels-idx1-ubyte", idx_bytes({2}, {0, 0}));
  CHECK(read_idx_directory(directory.path()).classes() == 2);
}

TEST_CASE("missing directories and files") {
  CHECK_THROWS_WITH_AS(read_idx_directory("no/such/place"),
                       "no/such/place: no such directory; one with four IDX files is needed",
                       std::runtime_error);
  for (const char* missing :
       {"train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"}) {
    const TemporaryDirectory directory;
    write_data_set(directory.path(), write_plain);
    fs::remove(directory / (std::string(missing) + "-ubyte"));
    std::string dotted = std::string(missing) + "-ubyte";
    dotted[dotted.rfind("-idx")] = '.';
    CHECK(error_of(directory.path()) == "DIR: no file " + std::string(missing) + "-ubyte found; " + missing +
                                            "-ubyte or " + dotted + " is needed, plain or .gz");
  }
  const TemporaryDirectory directory;
  write_data_set(directory.path(), write_plain);
  fs::remove(directory / "t10k-labels-idx1-ubyte");
  fs::create_directory(directory / "t10k-labels-idx1-ubyte");
  CHECK(error_of(directory.path()) ==
        "file 'DIR/t10k-labels-idx1-ubyte' cannot be read (it is a directory, a regular file is needed)");
}

TEST_CASE("bad files are refused with one line: file, found, allowed") {
  struct BadFile {
    const char* name;
    Bytes bytes;
    const char* error;
  };
  const char* const images = "train-images-idx3-ubyte";
  const char* const labels = "t10k-labels-idx1-ubyte";
  for (const BadFile& bad : std::initializer_list<BadFile>{
           {images, {}, "truncated in the header: 0 bytes of the magic number found, 4 needed"},
           {images, {'P', '5', 8, 3}, "bad magic number: first bytes 50 35, an IDX file starts with 00 00"},
           {images, {0, 0, 13, 3}, "element type 0d found, only 08 (unsigned byte) is allowed"},
           {images, idx_bytes({3}, {1, 2, 3}), "1 dimensions found, 3 needed"},
           {labels, idx_bytes({2, 2, 3}, counting(12)), "3 dimensions found, 1 needed"},
           {images,
            {0, 0, 8, 3, 0, 0, 0, 3, 0, 0},
            "truncated in the header: 2 bytes of the dimensions found, 4 needed"},
           {images, idx_bytes({3, 2, 3}, counting(17)), "truncated: 17 data bytes found, its header says 18"},
           {labels, idx_bytes({2}, {}), "truncated: 0 data bytes found, its header says 2"},
           {images, idx_bytes({3, 2, 3}, counting(19)),
            "trailing bytes after the 18 data bytes its header says"},
           {images, idx_bytes({0, 2, 3}, {}), "count 0 found, allowed are 1 .. 1000000000"},
           {labels, idx_bytes({0}, {}), "count 0 found, allowed are 1 .. 1000000000"},
           {images, idx_bytes({3, 0, 3}, {}), "image side 0 found, allowed are 1 .. 4096"},
           {images, idx_bytes({3, 2, 0xffffffff}, counting(18)),
            "image side 4294967295 found, allowed are 1 .. 4096"},
           {images, idx_bytes({0xffffffff, 2, 3}, counting(18)),
            "count 4294967295 found, allowed are 1 .. 1000000000"},
           {images, idx_bytes({1000000000, 4096, 4096}, counting(18)),
            "truncated: 18 data bytes found, its header says 16777216000000000"},
           {labels, idx_bytes({3}, {1, 2, 3}),
            "3 labels found, 2 needed for the images of DIR/t10k-images-idx3-ubyte"},
       }) {
    const TemporaryDirectory directory;
    write_data_set(directory.path(), write_plain);
    write_plain(directory / bad.name, bad.bytes);
    CHECK(error_of(directory.path()) == std::string("DIR/") + bad.name + ": " + bad.error);
  }
}

TEST_CASE("there are as many classes as the largest label says, up to 256") {
  const TemporaryDirectory directory;
  write_data_set(directory.path(), write_plain);
  for (const std::uint8_t largest : {std::uint8_t{26}, std::uint8_t{255}}) {
    write_plain(directory / "t10k-labels-idx1-ubyte", idx_bytes({2}, {1, largest}));
    CHECK(read_idx_directory(directory.path()).classes() == largest + 1);
  }
}

TEST_CASE("training and test images of different sizes are refused") {
  const TemporaryDirectory directory;
  write_data_set(directory.path(), write_plain);
  write_plain(directory / "t10k-images-idx3-ubyte", idx_bytes({2, 3, 2}, counting(12)));
  CHECK(error_of(directory.path()) ==
        "DIR: training images are 2x3, test images 3x2; they must be of one size");
}

/// The one-line error of a data set whose file of that name has these bytes.
std::string error_with(const TemporaryDirectory& directory, const std::string& name, const Bytes& bytes) {
  write_plain(directory / name, bytes);
  return error_of(directory.path());
}

TEST_CASE("compressed files cut short anywhere, damaged or followed by anything are refused") {
  // Read a chunk at a time, larger files end elsewhere in the decompressor than those that fit into its buffers.
  constexpr std::uint32_t side = 600;
  const struct {
    std::string name;
    Bytes contents;
  } files[] = {{"train-images-idx3-ubyte", idx_bytes({3, 2, 3}, counting(18))},
               {"train-images-idx3-ubyte", idx_bytes({3, side, side}, counting(3 * side * side))},
               {"train-labels-idx1-ubyte", idx_bytes({3}, {4, 0, 7})}};
  for (const auto& [name, contents] : files) {
    CAPTURE(name);
    const std::string where = "DIR/" + name + ": ";
    const TemporaryDirectory directory;
    write_data_set(directory.path(), write_plain);
    write_gzip(directory / name, contents);
    std::ifstream stream(directory / name, std::ios::binary);
    const Bytes whole{std::istreambuf_iterator<char>(stream), {}};
    constexpr std::size_t gzip_header_size = 10, trailer_size = 8;
    const auto first = [&whole](std::size_t size) {
      return Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    };
    const std::size_t step = std::max<std::size_t>(1, whole.size() / 50);
    for (std::size_t size = gzip_header_size + 1; size < whole.size();
         size += size + 2 * trailer_size < whole.size() ? step : 1) {
      CAPTURE(size);
      CHECK(error_with(directory, name, first(size)) ==
            where + "truncated: the compressed data end early, a whole gzip file is needed");
    }
    for (std::size_t size = 0; size <= gzip_header_size; ++size) {
      CAPTURE(size);
      CHECK(error_with(directory, name, first(size)).starts_with(where));
    }
    for (std::size_t byte = whole.size() - trailer_size; byte < whole.size(); ++byte) {
      CAPTURE(byte);
      Bytes damaged = whole;
      damaged[byte] ^= 1;
      CHECK(error_with(directory, name, damaged) ==
            where + "damaged: the compressed data do not fit their checksum or are not gzip's");
    }
    Bytes flipped_and_cut = first(whole.size() - trailer_size);
    flipped_and_cut[flipped_and_cut.size() - 3] ^= 4;
    CHECK(error_with(directory, name, flipped_and_cut).starts_with(where));
    for (const Bytes& more : {Bytes{0}, Bytes{'j', 'u', 'n', 'k'}}) {
      Bytes longer = whole;
      longer.insert(longer.end(), more.begin(), more.end());
      CHECK(error_with(directory, name, longer) ==
            where + "trailing bytes after the gzip data; nothing may follow them");
    }
    Bytes half_another = whole;
    half_another.insert(half_another.end(), whole.begin(), whole.end() - 4);
    CHECK(error_with(directory, name, half_another).starts_with(where));
  }
}

TEST_CASE("several gzip members, one after the other, are one file") {
  const TemporaryDirectory directory;
  write_data_set(directory.path(), write_plain);
  const fs::path name = directory / "train-images-idx3-ubyte";
  const Bytes contents = idx_bytes({3, 2, 3}, counting(18));
  Bytes members;
  for (const auto& [from, to] : {std::pair(0, 5), std::pair(5, 20), std::pair(20, 34)}) {
    write_gzip(name, Bytes(contents.begin() + from, contents.begin() + to));
    std::ifstream stream(name, std::ios::binary);
    members.insert(members.end(), std::istreambuf_iterator<char>(stream), {});
  }
  write_plain(name, members);
  check_data_set(read_idx_directory(directory.path()));
}

TEST_CASE("a FIFO in the place of a file is refused at once") {
  const TemporaryDirectory directory;
  write_data_set(directory.path(), write_plain);
  fs::remove(directory / "train-images-idx3-ubyte");
  REQUIRE(::mkfifo((directory / "train-images-idx3-ubyte").c_str(), 0600) == 0);
  CHECK(error_of(directory.path()) ==
        "file 'DIR/train-images-idx3-ubyte' cannot be read (it is a FIFO, a regular file is needed)");
}

TEST_CASE("MNIST's own files, when HALFLAB_DATA_DIR has them") {
  const auto data = test::data_folder("mnist-10k");
  if (!data) return;
  const ImageDataset mnist = read_idx_directory(*data);
  CHECK(mnist.image_shape() == ImageShape{.channels = 1, .height = 28, .width = 28});
  CHECK(mnist.classes() == 10);
  CHECK(mnist.training_size() == 8000);
  CHECK(mnist.test_size() == 2000);
  double sum = 0;
  const Batch batch = BatchSampler(mnist, 0, 8000).batch(0);
  for (float value : batch.inputs) sum += value;
  CHECK(sum / static_cast<double>(batch.inputs.size()) == doctest::Approx(0.1325).epsilon(0.02));
}

}  // namespace
}  // namespace sim
