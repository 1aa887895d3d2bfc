#include "experiments/frame/printable.h"

#include <doctest/doctest.h>

#include <string>

using experiments::one_line;
using experiments::printable;
using namespace std::string_literals;

TEST_CASE("control characters are shown and not obeyed, letters stay") {
  CHECK(printable("mlp\x1b[31m") == "mlp\\x1b[31m");
  CHECK(printable("a\r\t\0\x7f"s) == "a\\x0d\\x09\\x00\\x7f");
  CHECK(printable("one\ntwo\n") == "one\ntwo\n");
  CHECK(printable("± Größe 2⁻²⁴ 語 \U0001F600") == "± Größe 2⁻²⁴ 語 \U0001F600");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // CSI as one character
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");
}

TEST_CASE("what is no UTF-8 is shown by its bytes") {
  CHECK(printable("\x9b"
                  "31m \xff") == "\\x9b31m \\xff");
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");
  CHECK(printable("\xc3(") == "\\xc3(");
}

TEST_CASE("a line is one line, and of a long one the middle is left out") {
  CHECK(one_line("a\nb\x1b") == "a b\\x1b");
  CHECK(one_line(std::string(2000, 'x')) == std::string(2000, 'x'));
  const std::string cut = one_line("begin " + std::string(60'000, 'k') + " end");
  CHECK(cut.size() <= 2000);
  CHECK(cut.starts_with("begin kkk"));
  CHECK(cut.ends_with("kkk end"));
  CHECK(cut.find("kkk [...] kkk") != std::string::npos);
  std::string letters;
  while (letters.size() < 5000) letters += "語";
  CHECK(printable(one_line("x" + letters)) == one_line("x" + letters));  // cut between letters
}

TEST_CASE("one thing is counted in the singular") {
  CHECK(experiments::counted(1, "step") == "1 step");
  CHECK(experiments::counted(0, "step") == "0 steps");
  CHECK(experiments::counted(2, "batch") == "2 batches");
  CHECK(experiments::counted(3, "hash") == "3 hashes");
}
