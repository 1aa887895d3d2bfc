#pragma once
/// PTX in strings, run by the interpreter without a CUDA runtime.

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/memory.h"
#include "tests/emulator/module.h"
#include "tests/emulator/warp.h"

namespace emulator::testing {

inline std::string module_of(std::string_view functions) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + std::string(functions);
}

/// r7 of "r" and 7.
inline std::string numbered(std::string_view name, int number) {
  return std::string(name).append(std::to_string(number));
}
/// [base+4i], the i-th word behind an address.
inline std::string word(std::string_view base, int i) {
  return std::string("[").append(numbered(std::string(base).append("+"), 4 * i)).append("]");
}

struct Grid {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 32;
  std::uint64_t dynamic_shared_bytes = 0;
};

/// Runs the module's kernel `k` with these parameters of 64 bits.
inline void run(std::string_view functions, const Grid& grid,
                std::initializer_list<std::uint64_t> parameters) {
  Module module(module_of(functions));
  const Program& program = module.kernel("k");
  Launch launch{.program = program,
                .blocks = {grid.blocks, 1, 1},
                .threads = {grid.threads, 1, 1},
                .dynamic_shared_bytes = grid.dynamic_shared_bytes,
                .parameters = std::vector<std::byte>(program.parameter_bytes)};
  std::memcpy(launch.parameters.data(), parameters.begin(), parameters.size() * sizeof(std::uint64_t));
  for (std::uint32_t block = 0; block < grid.blocks; ++block) Block(launch, {block, 0, 0}).run();
}

/// The code of a small integer, which binary16 holds exactly.
inline std::uint16_t half(int value) {
  if (value == 0) return 0;
  const unsigned magnitude = static_cast<unsigned>(value < 0 ? -value : value);
  const unsigned exponent = static_cast<unsigned>(std::bit_width(magnitude)) - 1;
  const unsigned fraction = exponent <= 10 ? magnitude << (10 - exponent) : magnitude >> (exponent - 10);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 | (fraction & 0x3ff));
}

/// Memory of the device with these values.
template <typename Value>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<Value>& values) : OnDevice(values.size()) {
    std::memcpy(data_, values.data(), values.size() * sizeof(Value));
  }
  explicit OnDevice(std::size_t size)
      : size_(size), data_(global_memory().allocate(size * sizeof(Value), GlobalMemory::Owner::program)) {}
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { global_memory().free(data_, GlobalMemory::Owner::program); }

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::vector<Value> values() const {
    std::vector<Value> result(size_);
    std::memcpy(result.data(), data_, size_ * sizeof(Value));
    return result;
  }

 private:
  std::size_t size_;
  std::byte* data_;
};

/// The kernel `k` of 32 threads with this body, of which each writes one value: what they wrote. The body finds its
/// lane's number in `lane` and leaves the value in `result`, registers of 32 bits; r0 ... r31, w0 ... w31 (64 bits),
/// h0 ... h31 (16 bits) and p0 ... p31 are its own. `outside` are variables and functions.
inline std::vector<std::uint32_t> run_lanes(std::string_view body, std::uint32_t threads = 32,
                                            std::string_view outside = "") {
  OnDevice<std::uint32_t> out(threads);
  std::string text(outside);
  text += R"(
    .visible .entry k(.param .u64 out) {
      .reg .b32 lane, result, r<32>;
      .reg .b64 w<32>, out_address, out_offset;
      .reg .b16 h<32>;
      .reg .pred p<32>;
      mov.u32 lane, %tid.x;
      mov.u32 result, 0;
  )";
  text += body;
  text += R"(
      ld.param.u64 out_address, [out];
      mul.wide.u32 out_offset, lane, 4;
      add.s64 out_address, out_address, out_offset;
      st.global.u32 [out_address], result;
      ret;
    }
  )";
  run(text, {.threads = threads}, {out.address()});
  return out.values();
}

struct Value {
  std::string_view type;  ///< as in .reg, pred included
  std::uint64_t code;
};

/// What one thread leaves in register d, of type `result`, after `instruction`, which finds its operands in
/// registers a, b, c and e of the types given.
inline std::uint64_t evaluate(std::string_view instruction, std::string_view result,
                              const std::vector<Value>& operands) {
  constexpr std::string_view names[] = {"a", "b", "c", "e"};
  std::vector<std::uint64_t> codes{0};
  std::string registers = ".reg ." + std::string(result) + " d;\n", loads;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name(names[i]), type(operands[i].type),
        place = testing::word("in", static_cast<int>(2 * i + 2));
    registers += ".reg ." + type + " " + name + ";\n";
    loads += type == "pred" ? "ld.global.u32 word, " + place + "; setp.ne.u32 " + name + ", word, 0;\n"
                            : "ld.global." + type + " " + name + ", " + place + ";\n";
    codes.push_back(operands[i].code);
  }
  const OnDevice<std::uint64_t> memory(codes);
  const std::string store = result == "pred" ? "selp.u32 word, 1, 0, d; st.global.u32 [in], word;"
                                             : "st.global." + std::string(result) + " [in], d;";
  run(".visible .entry k(.param .u64 parameter) { .reg .b64 in; .reg .b32 word;\n" + registers +
          "ld.param.u64 in, [parameter];\n" + loads + std::string(instruction) + ";\n" + store + " ret; }",
      {.threads = 1}, {memory.address()});
  return memory.values()[0];
}

}  // namespace emulator::testing
