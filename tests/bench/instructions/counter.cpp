/// A plugin of QEMU that counts the instructions of the program that it runs and prints them to standard error. Debian has no
/// header for plugins: what is used of QEMU's first interface stands here.

#include <cstddef>
#include <cstdint>
#include <cstdio>

extern "C" {
using qemu_plugin_id_t = std::uint64_t;
struct qemu_plugin_tb;
struct qemu_info_t;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t, qemu_plugin_tb*));
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb* block);
void qemu_plugin_register_vcpu_tb_exec_inline(qemu_plugin_tb* block, int operation, void* counter,
                                              std::uint64_t addend);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t, void*), void* data);

extern int qemu_plugin_version;
int qemu_plugin_version = 1;
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int count, char** arguments);
}

namespace {

std::uint64_t instructions = 0;

void count(qemu_plugin_id_t, qemu_plugin_tb* block) {
  constexpr int add_u64 = 0;
  qemu_plugin_register_vcpu_tb_exec_inline(block, add_u64, &instructions, qemu_plugin_tb_n_insns(block));
}

void print(qemu_plugin_id_t, void*) {
  std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(instructions));
}

}  // namespace

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t*, int, char**) {
  qemu_plugin_register_vcpu_tb_trans_cb(id, count);
  qemu_plugin_register_atexit_cb(id, print, nullptr);
  return 0;
}
