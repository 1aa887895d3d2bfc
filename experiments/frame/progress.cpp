#include "experiments/frame/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "experiments/frame/interrupt.h"

namespace experiments {
namespace {

constexpr double quiet_s = 2;
constexpr double redraw_s = 0.1;

/// The width of the terminal behind stderr; 80 where it does not tell.
std::size_t columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

std::string clock_text(double seconds) {
  const auto total = static_cast<long long>(std::ceil(seconds));
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace

std::string progress_line(const std::string& label, double fraction_done, double elapsed_s,
                          std::size_t columns) {
  constexpr std::size_t widest_bar = 30, brackets = 2;
  const double fraction = std::clamp(fraction_done, 0.0, 1.0);
  const std::string remaining =
      fraction > 0 ? clock_text(elapsed_s * (1 - fraction) / fraction) : std::string("-:--");
  const std::string text =
      fmt::format(" {:3} %  ETA {}  {}", static_cast<int>(fraction * 100), remaining, label);
  const std::size_t used = text.size() + brackets, room = columns - 1;
  const std::size_t width = room > used ? std::min(room - used, widest_bar) : 0;
  const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(width));
  return fmt::format("[{:#<{}}{:.<{}}]{}", "", filled, "", width - filled, text).substr(0, room);
}

Progress::Progress(std::string label, std::size_t total, std::ostream* terminal)
    : label_(std::move(label)), total_(total), terminal_(terminal), next_drawing_s_(quiet_s) {}

Progress::~Progress() {
  if (drawn_) *terminal_ << "\r\033[K" << std::flush;
}

void Progress::tick(std::size_t steps) {
  throw_if_interrupted();
  const std::size_t done = done_ += steps;
  if (terminal_ != nullptr) draw(done);
}

void Progress::draw(std::size_t done) {
  const std::unique_lock lock(drawing_, std::try_to_lock);
  const double elapsed_s = stopwatch_.seconds();
  if (!lock || elapsed_s < next_drawing_s_) return;
  next_drawing_s_ = elapsed_s + redraw_s;
  drawn_ = true;
  const double fraction = total_ == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total_);
  *terminal_ << '\r' << progress_line(label_, fraction, elapsed_s, columns()) << "\033[K" << std::flush;
}

}  // namespace experiments
