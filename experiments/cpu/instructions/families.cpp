#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/cpu/instructions/family.h"

namespace experiments::validate_cpu {
namespace {

/// FNV-1a.
class Hash {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) add_byte(static_cast<unsigned char>(number >> 8 * byte));
  }
  void add(int number) { add(static_cast<std::uint64_t>(number)); }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char letter : text) add_byte(static_cast<unsigned char>(letter));
  }
  void add(const NumberType& type) {
    add(static_cast<int>(type.kind));
    add(type.bits);
  }
  void add(const Mode& mode) {
    add(mode.name);
    add(static_cast<int>(mode.rounding));
    add(mode.flushes_halves | mode.reads_wide_as_zero << 1 | mode.flushes_wide << 2 | mode.default_nan << 3 |
        mode.alternative_half << 4);
  }
  void add(const Domain& domain) {
    add(domain.name);
    add(domain.meaning);
    add(domain.inputs);
    add(domain.shard_size);
  }

  /// Inputs of the first shards of the row's sample, spread over each, and what is right for them.
  void add_outcomes(const Instruction& row) {
    constexpr std::uint32_t shards = 4, inputs = 64, step = 1021;
    for (const std::uint32_t shard :
         validation::sampled_shards(*row.domain, shards * row.domain->shard_size)) {
      const std::uint64_t count = row.domain->inputs_of(shard);
      for (std::uint32_t input = 0; input < inputs; ++input) {
        const Operands operands = row.domain->at(shard, static_cast<std::uint32_t>(input * step % count));
        const Outcome outcome = row.model(operands, row.mode);
        for (const std::uint64_t part : {operands.a, operands.b, operands.c, outcome.value}) add(part);
        add(std::uint64_t{outcome.exceptions} << 1 | std::uint64_t{outcome.is_by_rule});
      }
    }
  }

  std::string text() const { return std::to_string(hash_); }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001B3; }

  std::uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace

std::span<const Family> families() {
  static constexpr Family all[] = {
      {"aarch64", "AArch64 with FEAT_FP16", "aarch64", "qemu-aarch64 -cpu max",
       "Arm Architecture Reference Manual for A-profile (DDI 0487)", aarch64_instructions, aarch64_has},
      {"riscv64", "RISC-V with Zfh", "riscv64", "qemu-riscv64 -cpu rv64,Zfh=true",
       "The RISC-V Instruction Set Manual, Volume I: Unprivileged Architecture (20240411)",
       riscv64_instructions, riscv64_has},
      {"f16c", "x86-64 with F16C", "x86_64", "qemu-x86_64 -cpu max",
       "Intel 64 and IA-32 Architectures Software Developer's Manual", f16c_instructions, f16c_has},
      {"avx512_fp16", "x86-64 with AVX512-FP16", "x86_64", "",
       "Intel 64 and IA-32 Architectures Software Developer's Manual", avx512_fp16_instructions,
       avx512_fp16_has},
  };
  return all;
}

std::vector<std::string_view> features_of(const Family& family) {
  std::vector<std::string_view> features;
  for (const Instruction& row : family.instructions()) {
    if (std::ranges::find(features, row.needs) == features.end()) features.push_back(row.needs);
  }
  std::erase(features, std::string_view());
  return features;
}

std::string identity_of(std::span<const Instruction> rows) {
  Hash hash;
  for (const Instruction& row : rows) {
    hash.add(row.name);
    hash.add(row.needs);
    hash.add(row.lanes);
    for (const NumberType& type : row.operands) hash.add(type);
    hash.add(row.result);
    hash.add(row.mode);
    hash.add(*row.domain);
    hash.add_outcomes(row);
  }
  return hash.text();
}

std::string list_identity(const Family& family) {
  return identity_of(family.instructions());
}

const Family* family_called(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

std::string emulator_called(std::string_view name) {
  return std::string(name) + ", an emulator, not silicon";
}

namespace {

/// Whether QEMU runs this program alone: it makes up /proc/self/stat, and writes no memory into it (the 23rd field; the second
/// may hold spaces).
bool is_in_qemu() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  for (int number = 3; number <= 23; ++number) fields >> field;
  return fields && field == "0";
}

}  // namespace

std::string processor_name() {
  const std::string model = processor_model();
  if (model.find(emulator_called("")) != std::string::npos || !is_in_qemu()) return model;
  return emulator_called(model.starts_with("QEMU") ? model : "QEMU as " + model);
}

std::string_view this_processor() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
  return "riscv64";
#else
  return "unknown";
#endif
}

}  // namespace experiments::validate_cpu
