#include "experiments/frame/child_process.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cerrno>

namespace {

using experiments::Child;
using experiments::ChildResult;
using experiments::how_it_ended;
using experiments::run_child;

Child shell(const char* script) {
  return {.words = {"sh", "-c", script}, .directory = "/", .time_limit_s = 60};
}

}  // namespace

TEST_CASE("child process: its errors, its exit code, where it works and what it is given are told") {
  const ChildResult result = run_child(shell("pwd; pwd >&2; exit 3"));
  CHECK(result.spawn_error == 0);
  CHECK(result.err == "/\n");
  CHECK(how_it_ended(result) == "ended with exit code 3");
  CHECK(how_it_ended(run_child(shell("kill -9 $$"))) == "was ended by signal 9");
  Child words = shell("printf '%s,' \"$@\" >&2");
  words.words.insert(words.words.end(), {"sh", "a b", "$HOME", "'"});
  CHECK(run_child(words).err == "a b,$HOME,',");
}

TEST_CASE("child process: variables stand in the place of the environment's own, and the others stay") {
  ::setenv("HALFLAB_A", "outer", 1);
  ::setenv("HALFLAB_AB", "other", 1);
  Child child = shell("echo $HALFLAB_A $HALFLAB_AB $HALFLAB_C >&2");
  CHECK(run_child(child).err == "outer other\n");
  child.variables = {"HALFLAB_A=inner", "HALFLAB_C=new"};
  CHECK(run_child(child).err == "inner other new\n");
  ::unsetenv("HALFLAB_A");
  ::unsetenv("HALFLAB_AB");
}

TEST_CASE("child process: what is no program is not started, and what takes too long is ended") {
  CHECK(run_child({.words = {"/no/such/program"}, .directory = "/", .time_limit_s = 1}).spawn_error ==
        ENOENT);
  Child child = shell("sleep 600");
  child.time_limit_s = 0.1;
  CHECK(run_child(child).timed_out);
}
