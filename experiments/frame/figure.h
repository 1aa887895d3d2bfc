#pragma once
/// Figures by gnuplot, in one style.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/text_width.h"

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
  double label_height = 0.88;  ///< as a fraction of the plot's height; 1: above the plot, with the whole line
  Side side = Side::right;     ///< of the line, where the label stands
  std::optional<double> label_x;  ///< beside which x it stands, where not beside the line itself
};
std::string marks(const std::vector<Mark>& marks);

/// Begins panel `index` (from the top, from 0) of `count` stacked ones, after "set multiplot": its place,
/// room for its key, and no zones or marks left from the one before.
std::string panel(int index, int count);

/// A figure's keys in a column of their own at the right, for titles that have no room above the plot; as wide
/// as the longest of them needs. All panels have the same edges.
class KeyColumn {
 public:
  explicit KeyColumn(std::span<const std::string> titles);

  int figure_width() const { return figure_width_; }
  /// Margins and the key's place beside the plot, or after panel() beside the panel.
  std::string script() const;

 private:
  int figure_width_;
};

/// The colours of more curves could not be told apart.
constexpr std::size_t most_curves = 7;

/// The rows of "<table>.csv" that fulfil `where` (a gnuplot condition) as a curve; x and y are gnuplot
/// expressions.
struct Curve {
  std::string table;
  std::string where = "1";
  std::string x;
  std::string y;
  std::string style;
  std::string title;  ///< without one the key leaves it out
};
std::string plot(const std::vector<Curve>& curves);

/// A logarithmic y axis that shows all finite positive values, with labelled tics however
/// close they lie; some axis when there is none, so that a figure without points is still a figure.
std::string log_axis(std::span<const double> values);

/// Octaves from one tic of an axis to the next, a multiple of 4, so that it has at most one more than `most_tics`.
int octaves_between_tics(double octaves, int most_tics);

/// A share of each tensor at each x as a colour, in logarithmic steps from 0.001 % to 100 %; cells of an
/// exact zero stay white.
struct HeatMap {
  std::string table;    ///< with a column `tensor`
  std::string title;    ///< above the map; may be empty
  std::string x;        ///< a gnuplot expression; the cell reaches half a unit to either side
  std::string percent;  ///< likewise
};

/// The axes that maps side by side have in common.
struct HeatMapAxes {
  std::vector<std::string> tensors;  ///< from the top; long names lose their middle
  double lowest;
  double highest;
  std::string x_label;
  std::string color_label;
  std::string x_marks;  ///< drawn into every map, such as marks() makes
};

/// Width of a heat map's figure, in pixels.
int heat_map_width(const HeatMapAxes& axes, std::size_t maps);
int heat_map_height(const HeatMapAxes& axes);

/// A whole multiplot: the maps side by side, tensors by name at the left, the scale of colours at the right.
std::string heat_maps(const std::vector<HeatMap>& maps, const HeatMapAxes& axes);

/// The condition that a text column of the table holds `text`.
std::string column_is(std::string_view column, std::string_view text);

/// The whole of `<name>.gp`: `gnuplot <name>.gp` in the run directory draws `<name>.svg` and `<name>.png`.
std::string gnuplot_script(const Figure& figure);

struct Drawing {
  std::string problem;  ///< empty when all went well
  bool gnuplot_missing = false;
};

/// Writes `<name>.gp` into the directory, which holds the CSV files, and lets gnuplot draw it there. A
/// drawing that fails, or takes longer than the limit, is no exception: hours of results must not be lost for it.
/// An interrupt (interrupt.h) ends gnuplot too. Throws std::runtime_error when the script cannot be written.
Drawing draw(const Figure& figure, const std::filesystem::path& directory, double time_limit_s = 60);

}  // namespace experiments
