/// The table of what was held to the software half on which processor.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "experiments/cpu/cpu_status/status.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using experiments::cpu_status::status_table;
using experiments::cpu_status::with_table;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;

void write_record(const fs::path& folder, const std::string& experiment, const std::string& rows) {
  fs::create_directories(folder);
  std::ofstream(folder / "manifest.json") << nlohmann::json{{"experiment", experiment},
                                                            {"date", "2030-01-02T03:04:05Z"},
                                                            {"git_revision", "0123456789abcdef"},
                                                            {"git_dirty", false}};
  std::ofstream(folder / "verdicts.csv")
      << "operation,subject,domain,inputs_possible,inputs,mismatches,other_nans,not_correctly_rounded\n"
      << rows;
}

}  // namespace

TEST_CASE("cpu_status: the table of docs/validate.md is what the committed records prove") {
  const fs::path root = HALFLAB_SOURCE_DIRECTORY;
  const std::string page = content_of(root / "docs" / "validate.md");
  INFO("build/bin/cpu_status --page docs/validate.md writes it");
  CHECK((with_table(page, status_table(root / "experiments" / "records")) == page));
}

TEST_CASE("cpu_status: each processor has its line, each group without a record says so") {
  const TemporaryDirectory records;
  write_record(records / "another", "formats", "");
  CHECK(contains(status_table(records.path()),
                 "| x86-64 with F16C | floating-point conversion | 52 | not yet run |"));
  write_record(records / "a", "validate_cpu",
               "\"vcvtph2ps ymm\",f16c on One CPU,all 2^16 codes,65536,65536,0,0,0\n"
               "\"vcvtps2ph ymm, 0\",f16c on One CPU,all 2^32 binary32 codes,4294967296,4194304,0,0,0\n"
               "\"vcvtph2ps ymm\",f16c on Another,all 2^16 codes,65536,65536,3,0,0\n"
               "\"vcvtph2ps xmm\",f16c on Another,all of 9 chosen codes,9,9,0,0,0\n");
  const std::string table = status_table(records.path());
  INFO(table);
  CHECK(contains(table,
                 "| 2 of 52 run, 1 on every input; no mismatch | 2^22.0 | One CPU, 2030-01-02, 01234567 |"));
  CHECK(contains(table, "| 2 of 52 run, 1 on every input; **3 mismatches in 1** | 65545 | Another, "));
  CHECK(contains(table, "| AArch64 with FEAT_FP16 | arithmetic | 90 | not yet run |"));
  write_record(records / "b", "validate_cpu",
               "\"vcvtph2ps ymm\",f16c on One CPU,all 2^16 codes,65536,65536\n");
  CHECK_THROWS_WITH_AS(status_table(records.path()), doctest::Contains("row 1"), std::runtime_error);
}
