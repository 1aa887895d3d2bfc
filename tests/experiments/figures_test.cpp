/// What the figures of all experiments look like: nothing is cut off, and SVG and PNG are one picture.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "tests/experiments/programs.h"
#include "tests/shard.h"
#include "tests/temporary_directory.h"

namespace {

namespace fs = std::filesystem;

/// Runs that draw every figure there is without a GPU, heat maps too.
const std::vector<std::string> runs{
    "accumulation",
    "allreduce_precision",
    "explain_gemm",
    "formats",
    "gradient_histogram",
    "gradient_histogram --model cnn --steps 5",
    "gradient_histogram --figure paper3 --steps 5 --batch 4",
    "gradient_histogram --figure paper2b --model lstm:width=16 --steps 5",
    "master_weights",
    "memory_anatomy",
    "op_precision --models mlp,cnn,autoencoder",
    "opt_levels",
    "scale_policy_order",
    "scaler_comparison",
    "scaler_comparison --regimes all --seeds 1",
    "training --sweep --policy fp32,amp,O3 --seeds 2 --model mlp:hidden1=32:hidden2=32 --steps 20",
    "underflow_sweep",
    "underflow_sweep --model cnn --steps 5 --max-scale-log2 4",
};

/// A picture's darkness, 0 for white, row by row.
struct Picture {
  std::size_t width;
  std::size_t height;
  std::vector<unsigned char> ink;

  unsigned char at(std::size_t x, std::size_t y) const { return ink[y * width + x]; }
};

Picture picture_of(const fs::path& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE_MESSAGE(png_image_begin_read_from_file(&image, file.c_str()), file.string());
  image.format = PNG_FORMAT_GRAY;
  Picture picture{.width = image.width, .height = image.height, .ink = {}};
  picture.ink.resize(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  REQUIRE(png_image_finish_read(&image, &white, picture.ink.data(), 0, nullptr));
  for (unsigned char& pixel : picture.ink) pixel = static_cast<unsigned char>(255 - pixel);
  return picture;
}

/// Fainter than the lines of the grid.
constexpr unsigned char visible = 16;

struct Box {
  long left, right, top, bottom;
};

Box box_of(const Picture& picture) {
  Box box{static_cast<long>(picture.width), -1, static_cast<long>(picture.height), -1};
  for (std::size_t y = 0; y < picture.height; ++y) {
    for (std::size_t x = 0; x < picture.width; ++x) {
      if (picture.at(x, y) < visible) continue;
      const long column = static_cast<long>(x), row = static_cast<long>(y);
      box = {std::min(box.left, column), std::max(box.right, column), std::min(box.top, row),
             std::max(box.bottom, row)};
    }
  }
  return box;
}

double mean_ink(const Picture& picture) {
  return std::accumulate(picture.ink.begin(), picture.ink.end(), 0.0) /
         static_cast<double>(picture.ink.size());
}

void check_that_nothing_is_cut(const Picture& picture) {
  const Box box = box_of(picture);
  CHECK(box.left > 0);
  CHECK(box.top > 0);
  CHECK(box.right < static_cast<long>(picture.width) - 1);
  CHECK(box.bottom < static_cast<long>(picture.height) - 1);
}

/// Both have two pixels for one of the figure. Their renderers place texts by metrics of their own, which may differ by
/// a line of text, 20 pixels of the figure, and antialias on their own. Texts 4/3 as large would have 16/9 of the ink:
/// already where only a quarter of a figure's ink is text, that is a fifth more.
void check_that_they_agree(const Picture& png, const Picture& svg) {
  REQUIRE(png.width == svg.width);
  REQUIRE(png.height == svg.height);
  constexpr long line = 2 * 20;
  const Box a = box_of(png), b = box_of(svg);
  CHECK(std::abs(a.left - b.left) <= line);
  CHECK(std::abs(a.right - b.right) <= line);
  CHECK(std::abs(a.top - b.top) <= line);
  CHECK(std::abs(a.bottom - b.bottom) <= line);
  CHECK(mean_ink(png) == doctest::Approx(mean_ink(svg)).epsilon(0.1));
}

bool is_missing(const std::string& program) {
  return programs::run_command("command -v " + program).exit_code != 0;
}

}  // namespace

TEST_CASE("figures: SVG and PNG have the same ink, and none of it on an edge") {
  for (const char* program : {"gnuplot", "rsvg-convert"}) {
    if (is_missing(program)) {
      MESSAGE("skipped: ", program, " is not installed");
      return;
    }
  }
  for (std::size_t i = 0; const std::string& run : runs) {
    if (!test::is_in_shard(i++)) continue;
    const test::TemporaryDirectory directory;
    const programs::Outcome outcome = programs::run(run + " --quick --out " + (directory / "run").string());
    INFO(run, "\n", outcome.output);
    REQUIRE(outcome.exit_code == 0);
    std::size_t figures = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory / "run")) {
      if (entry.path().extension() != ".gp") continue;
      const fs::path svg = fs::path(entry.path()).replace_extension(".svg"), drawn = directory / "svg.png";
      INFO(svg.filename().string());
      const programs::Outcome drawing = programs::run_command(
          fmt::format("rsvg-convert --zoom 2 '{}' --output '{}'", svg.string(), drawn.string()));
      INFO(drawing.output);
      REQUIRE(drawing.exit_code == 0);
      const Picture from_svg = picture_of(drawn),
                    from_png = picture_of(fs::path(entry.path()).replace_extension(".png"));
      check_that_nothing_is_cut(from_svg);
      check_that_nothing_is_cut(from_png);
      check_that_they_agree(from_png, from_svg);
      ++figures;
    }
    CHECK(figures > 0);
  }
}
