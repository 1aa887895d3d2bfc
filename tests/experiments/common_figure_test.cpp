#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/common/figure.h"

namespace fs = std::filesystem;

namespace {

const experiments::Figure figure{
    .name = "squares",
    .title = "It's a_plain {title}",
    .caption = "Squares.",
    .script = "set xrange [0:4]\n" +
              experiments::zones({{0, 2, "low", "vermillion"}, {2, 4, "high", "green"}}) +
              experiments::marks({{2, "2^{1}"}}) +
              "plot 'squares.csv' using \"x\":\"square\" with lines title 'x^2'"};

/// A directory whose name a shell would trip over.
class FigureDirectory {
 public:
  FigureDirectory()
      : path_(fs::temp_directory_path() / ("halflab figure'$(touch x);\"" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    std::ofstream(path_ / "squares.csv") << "x,square\n0,0\n1,1\n2,4\n4,16\n";
  }
  ~FigureDirectory() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// PATH without gnuplot while it lives.
class EmptyPath {
 public:
  EmptyPath() : old_(::getenv("PATH")) { ::setenv("PATH", "/nonexistent", 1); }
  ~EmptyPath() { ::setenv("PATH", old_.c_str(), 1); }

 private:
  std::string old_;
};

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  REQUIRE(stream.is_open());
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool gnuplot_is_missing() {
  const FigureDirectory directory;
  const bool missing = experiments::draw(figure, directory.path()).gnuplot_missing;
  if (missing) MESSAGE("gnuplot is not installed; drawing is not tested");
  return missing;
}

}  // namespace

TEST_CASE("gnuplot draws SVG and PNG, and the same SVG again from the script") {
  if (gnuplot_is_missing()) return;
  const FigureDirectory directory;
  CHECK(experiments::draw(figure, directory.path()).problem == "");
  const std::string svg = content_of(directory.path() / "squares.svg");
  CHECK(svg.find("It's a_plain {title}") != std::string::npos);
  CHECK(svg.find("low") != std::string::npos);
  CHECK(content_of(directory.path() / "squares.png").substr(1, 3) == "PNG");
  CHECK(experiments::draw(figure, directory.path()).problem == "");
  CHECK(content_of(directory.path() / "squares.svg") == svg);
}

TEST_CASE("a drawing that fails is told in gnuplot's words") {
  if (gnuplot_is_missing()) return;
  const FigureDirectory directory;
  experiments::Figure wrong = figure;
  wrong.script = "plot 'absent.csv' using 1:2";
  const experiments::Drawing drawing = experiments::draw(wrong, directory.path());
  CHECK_MESSAGE(drawing.problem.find("absent.csv") != std::string::npos, drawing.problem);
  CHECK_FALSE(drawing.gnuplot_missing);
  CHECK_FALSE(fs::exists(directory.path() / "squares.svg"));
}

TEST_CASE("without gnuplot script and tables are written, and one line warns once") {
  const EmptyPath empty_path;
  const FigureDirectory directory;
  const std::string out = (directory.path() / "run").string();
  const std::vector<const char*> arguments{"probe", "--out", out.c_str()};
  std::ostringstream verdict;
  std::ostringstream err;
  const int exit_code =
      experiments::run(static_cast<int>(arguments.size()), arguments.data(),
                       {.program = {.name = "probe", .question = "What?", .example = "probe"},
                        .options = [](experiments::CommandLine&) {},
                        .body =
                            [](experiments::Run& run) {
                              run.record().table("squares", {"x", "square"}).row({1, 1});
                              run.figure(figure);
                              experiments::Figure again = figure;
                              again.name = "again";
                              run.figure(again);
                            }},
                       {.out = verdict, .err = err});
  CHECK(exit_code == 0);
  CHECK(err.str() ==
        "warning: gnuplot was not found; the figures are left as .gp scripts, to be drawn by 'gnuplot "
        "NAME.gp'\n");
  CHECK(content_of(fs::path(out) / "squares.gp") == experiments::gnuplot_script(figure));
  CHECK(fs::exists(fs::path(out) / "again.gp"));
  CHECK(fs::exists(fs::path(out) / "squares.csv"));
  CHECK_FALSE(fs::exists(fs::path(out) / "squares.svg"));
}
