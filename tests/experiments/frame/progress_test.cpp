#include "experiments/frame/progress.h"

#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using experiments::Progress;
using experiments::progress_line;

TEST_CASE("the line shows share and remaining time") {
  CHECK(progress_line("training", 0.5, 30) == "[###############...............]  50 %  ETA 0:30  training");
  CHECK(progress_line("training", 0.25, 1200) ==
        "[#######.......................]  25 %  ETA 1:00:00  training");
  CHECK(progress_line("training", 0, 3) == "[..............................]   0 %  ETA -:--  training");
  CHECK(progress_line("training", 1.5, 3) == "[##############################] 100 %  ETA 0:00  training");
}

TEST_CASE("the line is narrower than its terminal") {
  CHECK(progress_line("training", 0.5, 30, 40) == "[#####......]  50 %  ETA 0:30  training");
  CHECK(progress_line("training", 0.5, 30, 20) == "[]  50 %  ETA 0:30 ");
  CHECK(progress_line("training", 0.5, 30, 1) == "");
  for (std::size_t columns = 1; columns < 100; ++columns)
    CHECK(progress_line("training", 0.5, 30, columns).size() < columns);
}

TEST_CASE("nothing is drawn in the first two seconds, a bar afterwards, and it vanishes") {
  std::ostringstream terminal;
  {
    Progress progress("training", 2, &terminal);
    progress.tick();
    CHECK(terminal.str() == "");
    std::this_thread::sleep_for(2050ms);
    progress.tick();
    CHECK(terminal.str().find("100 %") != std::string::npos);
  }
  CHECK(terminal.str().ends_with("\r\033[K"));
}

TEST_CASE("without a terminal nothing is drawn") {
  Progress progress("training", 1, nullptr);
  progress.tick(5);
}
