#include "experiments/frame/code_identity.h"

#include <doctest/doctest.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_directory.h"

namespace {

std::string identity_of(const experiments::BuildInformation& build,
                        const std::vector<std::filesystem::path>& files) {
  return experiments::code_identity(build, files);
}

}  // namespace

TEST_CASE("the code is of a revision, and of one program where the source is no revision") {
  const test::TemporaryDirectory directory;
  const std::string one = directory / "one", copy = directory / "copy", other = directory / "other";
  std::ofstream(one) << "program";
  std::ofstream(copy) << "program";
  std::ofstream(other) << "prograM";
  experiments::BuildInformation build = experiments::build_information();
  build.git_revision = "0123456789abcdef";
  build.git_dirty = false;
  CHECK(identity_of(build, {other}) == "0123456789abcdef");
  for (const auto& [revision, is_dirty] :
       {std::pair("0123456789abcdef", true), std::pair("unknown", false)}) {
    build.git_revision = revision;
    build.git_dirty = is_dirty;
    const std::string identity = identity_of(build, {one});
    CHECK(identity.starts_with(revision + std::string("+")));
    CHECK(identity.size() == build.git_revision.size() + 9);
    CHECK(identity == identity_of(build, {copy}));
    CHECK(identity != identity_of(build, {other}));
    CHECK(identity_of(build, {one, other}) != identity_of(build, {one, copy}));
    CHECK_THROWS_WITH_AS(identity_of(build, {one, directory / "none"}), doctest::Contains("cannot be read"),
                         std::runtime_error);
  }
  const experiments::BuildInformation& running = experiments::build_information();
  CHECK(experiments::code_identity().starts_with(running.git_revision));
  const bool is_revision = !running.git_dirty && running.git_revision != "unknown";
  CHECK((experiments::code_identity() == running.git_revision) == is_revision);
}
