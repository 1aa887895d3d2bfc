#pragma once
/// Figures by gnuplot, in one style.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace experiments {

/// A figure that gnuplot draws from the CSV files of its run directory.
///
/// The script is what comes after the style: axes and one `plot` that reads "<table>.csv". It is run once for
/// the SVG and once for the PNG, so inline data blocks are not possible. Columns can be named by their
/// header: `using (column("step")):(column("loss"))`, or `using "step":"loss"`. Colours are the variables
/// blue, vermillion, green, purple, orange, sky, yellow (Okabe and Ito's palette, safe for the colour-blind),
/// black and grey, and linetypes 1 to 7 go through most of them. Texts are gnuplot's enhanced text: 2^{-24}.
/// The title is drawn without the script's help; only a multiplot, once it has said `unset label`, brings it
/// back by `set multiplot title title`.
struct Figure {
  std::string name;     ///< of its files, without extension
  std::string title;    ///< plain text above the plot
  std::string caption;  ///< what to see in it, in a sentence or two, for the report
  std::string script;
  int width = 800;  ///< of the SVG, in pixels; the PNG has twice as many
  int height = 450;
};

/// A text as a gnuplot string.
std::string gnuplot_string(std::string_view text);

/// A vertical band of the plot, in units of the x axis, with a label at its upper end; leave the upper end of
/// the y range automatic, and room is made for the labels.
struct Zone {
  double from;
  double to;
  std::string label;
  std::string color;  ///< one of the colour variables; drawn very light
};
std::string zones(const std::vector<Zone>& zones);

/// A dashed vertical line with a label beside it, unless told otherwise just below the labels of the zones.
struct Mark {
  enum class Side { left, right };

  double x;
  std::string label;
  double label_height = 0.88;  ///< as a fraction of the plot's height
  Side side = Side::right;     ///< of the line, where the label stands
};
std::string marks(const std::vector<Mark>& marks);

/// Begins panel `index` (from the top, from 0) of `count` stacked ones, after "set multiplot": its place,
/// room for its key, and no zones or marks left from the one before.
std::string panel(int index, int count);

/// The key in a column of its own at the right, for names that have no room above the plot, and the same left
/// edge for all panels. So many pixels a figure should then be wide.
std::string key_at_right();
constexpr int width_with_key_at_right = 1000;

/// The rows of "<table>.csv" that fulfil `where` (a gnuplot condition) as a curve; x and y are gnuplot
/// expressions.
struct Curve {
  std::string table;
  std::string where = "1";
  std::string x;
  std::string y;
  std::string style;
  std::string title = {};  ///< without one the key leaves it out
};
std::string plot(const std::vector<Curve>& curves);

/// "set yrange" for a logarithmic axis that shows all finite positive values; one decade when there is none,
/// so that a figure without points is still a figure.
std::string log_range(const std::vector<double>& values);

/// The condition that a text column of the table holds `text`.
std::string column_is(std::string_view column, std::string_view text);

/// The whole of `<name>.gp`: `gnuplot <name>.gp` in the run directory draws `<name>.svg` and `<name>.png`.
std::string gnuplot_script(const Figure& figure);

struct Drawing {
  std::string problem = {};  ///< empty when all went well
  bool gnuplot_missing = false;
};

/// Writes `<name>.gp` into the directory, which holds the CSV files, and lets gnuplot draw it there. A
/// drawing that fails is no exception: hours of results must not be lost for it. Throws std::runtime_error
/// when the script cannot be written.
Drawing draw(const Figure& figure, const std::filesystem::path& directory);

}  // namespace experiments
