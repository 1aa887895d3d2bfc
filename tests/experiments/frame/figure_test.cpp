#include "experiments/frame/figure.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/frame/stopwatch.h"
#include "experiments/training/laboratory.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;

namespace {

using test::content_of;

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
  FigureDirectory() {
    fs::create_directory(path_);
    std::ofstream(path_ / "squares.csv") << "x,square\n0,0\n1,1\n2,4\n4,16\n";
  }
  const fs::path& path() const { return path_; }

 private:
  test::TemporaryDirectory parent_;
  fs::path path_ = parent_ / "halflab figure'$(touch x);\"";
};

/// A variable of the environment that has another value while this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

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

TEST_CASE("gnuplot has nothing to complain about in any locale of the user's") {
  if (gnuplot_is_missing()) return;
  for (const char* locale : {"C", "POSIX", "C.UTF-8"}) {
    const FigureDirectory directory;
    const Variable changed("LC_ALL", locale);
    CHECK(experiments::draw(figure, directory.path()).problem == "");
  }
}

TEST_CASE("a logarithmic axis has labelled tics, and none of the values lies beyond the outermost by much") {
  const auto axis = [](const std::vector<double>& values) { return experiments::log_axis(values); };
  CHECK(axis({0.0001, 100}) ==
        "set logscale y\nset yrange [0.0001:100]\nset ytics ('0.0001' 0.0001, '0.001' 0.001, '0.01' 0.01, "
        "'0.1' 0.1, '1' 1, '10' 10, '100' 100)\n");
  CHECK(axis({0, 0.00036, 0.00037, std::numeric_limits<double>::infinity()}) ==
        "set logscale y\nset yrange [0.000288:0.000463]\nset ytics ('0.0003' 0.0003, '0.00035' 0.00035, "
        "'0.0004' 0.0004, '0.00045' 0.00045)\n");
  CHECK(axis({3e-14, 5e-4}) ==
        "set logscale y\nset yrange [1e-14:0.01]\nset ytics ('10^{-14}' 1e-14, '10^{-12}' 1e-12, '10^{-10}' "
        "1e-10, '10^{-8}' 1e-08, '10^{-6}' 1e-06, '0.0001' 0.0001, '0.01' 0.01)\n");
  CHECK(axis({2e7, 3e7}).find("'2.5·10^{7}' 2.5e+07") != std::string::npos);
  CHECK(axis({}) == axis({0.3}));
}

TEST_CASE("text width: the widest text counts, letter by letter, and characters beyond ASCII once") {
  const auto width = [](const std::vector<std::string>& texts) {
    return experiments::text_width(texts, 100);
  };
  CHECK(width({}) == 0);
  CHECK(width({"i", "mm", "W"}) == 195);  // 2 * 0.974 em
  CHECK(width({"√"}) == width({"→"}));
  CHECK(experiments::text_width(std::vector<std::string>{"mm"}, 200) == 390);
}

TEST_CASE("a figure grows with the longest title of its key") {
  const std::vector<std::string> shorter{"fp32", "amp"}, longer{"fp32", std::string(60, 'w')};
  const experiments::KeyColumn narrow(shorter), wide(longer);
  CHECK(wide.figure_width() - narrow.figure_width() > 200);
  CHECK(wide.script().find("rmargin") != std::string::npos);
}

TEST_CASE("heat maps leave out what all of many long names begin and end with") {
  experiments::HeatMapAxes axes{
      .tensors = {}, .lowest = 0, .highest = 1, .x_label = "", .color_label = "", .x_marks = ""};
  for (const char* const part : {"7.self_attn.q", "17.mlp.up"})
    axes.tensors.push_back(std::string("base_model.model.decoder.layers.") + part + ".base_layer.weight");
  const std::string script = experiments::heat_maps({}, axes);
  CHECK(script.find("'…7.self_attn.q…' 1, '…17.mlp.up…' 2") != std::string::npos);
}

TEST_CASE("heat maps of many tensors are drawn, with every tensor named once") {
  if (gnuplot_is_missing()) return;
  const FigureDirectory directory;
  experiments::HeatMapAxes axes{.tensors = {},
                                .lowest = -0.5,
                                .highest = 2.5,
                                .x_label = "scale",
                                .color_label = "share, %",
                                .x_marks = experiments::marks({{.x = 1, .label = "one", .label_height = 1}})};
  std::ofstream table(directory.path() / "shares.csv");
  table << "tensor,scale,share\n";
  for (int tensor = 0; tensor < 40; ++tensor) {
    axes.tensors.push_back("block" + std::to_string(tensor) + ".weight");
    for (int scale = 0; scale < 3; ++scale)
      table << axes.tensors.back() << ',' << scale << ',' << tensor * scale << '\n';
  }
  table.close();
  const experiments::HeatMap map{
      .table = "shares", .title = "all", .x = "column('scale')", .percent = "column('share')"};
  CHECK(experiments::draw({.name = "maps",
                           .title = "Maps",
                           .caption = "",
                           .script = experiments::heat_maps({map, map}, axes),
                           .width = experiments::heat_map_width(axes, 2),
                           .height = experiments::heat_map_height(axes)},
                          directory.path())
            .problem == "");
  const std::string svg = content_of(directory.path() / "maps.svg");
  for (const std::string& tensor : axes.tensors) {
    const std::size_t first = svg.find(">" + tensor + "<");
    REQUIRE_MESSAGE(first != std::string::npos, tensor);
    CHECK(svg.find(">" + tensor + "<", first + 1) == std::string::npos);
  }
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

constexpr const char* cut_line = "gnuplot could not write all of a figure; 'squares.gp' is left as a script";

/// While it lives, files of this process and its children end at so many bytes, and this process goes on.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : outer_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &outer_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = outer_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &outer_);
    std::signal(SIGXFSZ, outer_handler_);
  }

 private:
  rlimit outer_{};
  void (*outer_handler_)(int);
};

TEST_CASE("a figure that a limit or a full disk cuts is removed, and told in one line") {
  if (gnuplot_is_missing()) return;
  const FigureDirectory directory;
  const auto nothing_is_left = [&] {
    return !fs::exists(fs::symlink_status(directory.path() / "squares.svg")) &&
           !fs::exists(fs::symlink_status(directory.path() / "squares.png"));
  };
  {
    const FileSizeLimit limit(6000);  // the script is shorter, and both pictures are longer
    CHECK(experiments::draw(figure, directory.path()).problem ==
          fmt::format("gnuplot: was ended by signal {}", SIGXFSZ));
  }
  CHECK(nothing_is_left());
  for (const char* picture : {"squares.svg", "squares.png"}) {
    fs::create_symlink("/dev/full", directory.path() / picture);
    CHECK_MESSAGE(experiments::draw(figure, directory.path()).problem == cut_line, picture);
    CHECK(nothing_is_left());
  }
}

/// The drawing of the figure by a gnuplot that is this shell script.
experiments::Drawing drawn_by(const std::string& script, double time_limit_s = 60) {
  const FigureDirectory directory;
  const test::TemporaryDirectory programs;
  std::ofstream(programs / "gnuplot") << "#!/bin/sh\n" << script << '\n';
  fs::permissions(programs / "gnuplot", fs::perms::owner_all);
  const Variable path("PATH", programs.path());
  const experiments::Drawing drawing = experiments::draw(figure, directory.path(), time_limit_s);
  CHECK(fs::exists(directory.path() / "squares.gp"));
  if (!drawing.problem.empty()) CHECK_FALSE(fs::exists(directory.path() / "squares.svg"));
  return drawing;
}

TEST_CASE("a gnuplot that says nothing is told by its exit code or signal") {
  CHECK(drawn_by("exit 3").problem == "gnuplot: ended with exit code 3");
  CHECK(drawn_by("kill -9 $$").problem == "gnuplot: was ended by signal 9");
  CHECK(drawn_by("echo '\"squares.gp\" line 1: why' >&2; exit 1").problem ==
        "gnuplot: \"squares.gp\" line 1: why");
}

TEST_CASE("a child that ends silently with 127 is a gnuplot that was not found, as POSIX has it") {
  CHECK(drawn_by("exit 127").gnuplot_missing);
  CHECK(drawn_by("nonexistent").problem == "gnuplot: ended with exit code 127");
}

TEST_CASE("a gnuplot that hangs is ended, and the figure left as a script") {
  for (const char* hanging : {"echo > squares.svg; while :; do :; done", "exec 2>&-; while :; do :; done"}) {
    CHECK(drawn_by(hanging, 0.2).problem ==
          "gnuplot took longer than 0.2 s and was ended; 'squares.gp' is left as a script");
  }
  // What it leaves running behind itself is not waited for.
  const experiments::Stopwatch stopwatch;
  CHECK(drawn_by("/bin/sleep 20 & exit 0").problem == cut_line);
  CHECK(stopwatch.seconds() < 10);
}

TEST_CASE("without gnuplot script and tables are written, and one line warns once") {
  const Variable no_path("PATH", "/nonexistent");
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
