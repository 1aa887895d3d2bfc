/// validate_cpu with instructions of other processors, which QEMU executes.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "experiments/cpu/instructions/family.h"
#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using experiments::validate_cpu::Family;
using programs::Outcome;
using programs::run;
using programs::run_command;
using programs::summary_of;
using test::contains;
using test::TemporaryDirectory;

const std::string limit = "timeout 600 ";

/// Whether there are the family's emulator and program; says which is missing.
bool can_be_emulated(const Family& family) {
  const std::string emulator(family.emulator.substr(0, family.emulator.find(' ')));
  const std::string program = "validate_cpu_" + std::string(family.processor);
  if (run_command("command -v " + emulator).exit_code != 0) {
    MESSAGE("skipped: needs " << emulator);
    return false;
  }
  if (!fs::exists(fs::path(HALFLAB_BINARY_DIRECTORY) / program)) {
    MESSAGE("skipped: needs " << program << ", for which a cross compiler was not found");
    return false;
  }
  return true;
}

void check_emulated(std::string_view name) {
  const Family& family = *experiments::validate_cpu::family_called(name);
  if (!can_be_emulated(family)) return;
  const TemporaryDirectory directory;
  const Outcome outcome = run("validate_cpu --quick --emulator always --families " + std::string(name) +
                                  " --out " + (directory / "out").string(),
                              limit);
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.output, "every result is the expected one, bit for bit"));
  CHECK(contains(outcome.output, "an emulator, not silicon"));
  const auto summary = summary_of(directory / "out");
  CHECK(summary.at("rows_run") == family.instructions().size());
  CHECK(summary.at("rows_emulated") == summary.at("rows_run"));
}

}  // namespace

TEST_CASE("validate_cpu: every row of AArch64 is right in QEMU, on its first shard") {
  check_emulated("aarch64");
}

TEST_CASE("validate_cpu: every row of RISC-V is right in QEMU, on its first shard") {
  check_emulated("riscv64");
}

TEST_CASE("validate_cpu: a processor without half arithmetic runs the conversions that it has") {
  const Family& family = *experiments::validate_cpu::family_called("aarch64");
  if (!can_be_emulated(family)) return;
  const Outcome outcome = run("validate_cpu_aarch64 --samples 65536 --rows fcvt --threads 1",
                              limit + "qemu-aarch64 -cpu cortex-a72 ");
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.output, "on QEMU as Cortex-A72, an emulator, not silicon: every result"));
  CHECK(contains(outcome.output, "needs FEAT_FP16"));
}

TEST_CASE("validate_cpu: RISC-V with Zfhmin alone runs conversions and moves, and without it nothing") {
  const Family& family = *experiments::validate_cpu::family_called("riscv64");
  if (!can_be_emulated(family)) return;
  const std::string rows = "validate_cpu_riscv64 --samples 65536 --threads 1 --rows ";
  const Outcome some = run(rows + "conversion", limit + "qemu-riscv64 -cpu rv64,Zfhmin=true ");
  INFO(some.output);
  CHECK(some.exit_code == 0);
  CHECK(
      some.output.starts_with("12 rows on QEMU, an emulator, not silicon: every result and every exception"));
  CHECK(contains(some.output, "40 rows not run: needs Zfh\n"));
  const Outcome none = run(rows + "fcvt.h.s", limit + "qemu-riscv64 -cpu rv64 ");
  INFO(none.output);
  CHECK(none.exit_code == 0);
  CHECK(contains(none.output, "Nothing of this runs on QEMU"));
  CHECK(contains(none.output, "needs Zfhmin\n"));
}

// QEMU 7.2 raises no denormal-operand exception for VCVTPS2PH, and lets DAZ flush the halves of VCVTPH2PS.
TEST_CASE("validate_cpu: what QEMU 7.2 does otherwise than x86 silicon is found") {
  const Family& family = *experiments::validate_cpu::family_called("f16c");
  if (!can_be_emulated(family)) return;
  if (!contains(run_command("qemu-x86_64 --version").output, "version 7.2")) {
    MESSAGE("skipped: needs QEMU 7.2");
    return;
  }
  const TemporaryDirectory directory;
  const Outcome outcome = run(
      "validate_cpu --quick --emulator always --families f16c --out " + (directory / "out").string(), limit);
  INFO(outcome.output);
  CHECK(outcome.exit_code == 1);
  const std::string table = test::content_of(directory / "out" / "counterexamples.csv");
  CHECK(contains(table, "\"vcvtph2ps ymm, DAZ\",\"f16c on QEMU 7.2"));
  CHECK(contains(table, ",value,0x0001,,,0x00000000,0x33800000,"));
  CHECK(contains(table,
                 ",exceptions,0x00010000,,,0x0000 inexact underflow,"
                 "0x0000 inexact underflow subnormal-operand,"));
}
