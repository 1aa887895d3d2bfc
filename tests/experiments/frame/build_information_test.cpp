#include "experiments/frame/build_information.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace {

std::string version_of(std::string_view library) {
  for (const auto& [name, version] : experiments::build_information().dependencies) {
    if (name == library) return std::string(version);
  }
  return "not listed";
}

std::string dotted(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

TEST_CASE("the dependencies' versions are those of the headers compiled against") {
  CHECK(version_of("CLI11") == CLI11_VERSION);
  CHECK(version_of("fmt") == dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  CHECK(version_of("nlohmann_json") ==
        dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH));
  CHECK(version_of("zlib") == ZLIB_VERSION);
}

TEST_CASE("the compiler is the one that compiled this") {
#if defined(__clang__)
  CHECK(experiments::build_information().compiler ==
        fmt::format("Clang {}", dotted(__clang_major__, __clang_minor__, __clang_patchlevel__)));
#else
  CHECK(experiments::build_information().compiler ==
        fmt::format("GNU {}", dotted(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)));
#endif
  CHECK(experiments::build_information().compiler_flags.find("-ffp-contract=off") != std::string_view::npos);
}

TEST_CASE("the revision is a full hash or says that there is none") {
  const std::string_view revision = experiments::build_information().git_revision;
  const bool is_hash = revision.size() == 40 && std::ranges::all_of(revision, [](char c) {
                         return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f');
                       });
  CHECK((is_hash || (revision == "unknown" && !experiments::build_information().git_dirty)));
}
