/// A module of an MPI library that does something wrong on purpose: HALFLAB_PLANTED says what, and at which of rank 1's
/// exchanges, as "inf 40", "two 24", "sum"; "drift 24" is "two 24" of which nobody hears by gradients. The library's own module
/// is in it by another name.

#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "experiments/training/mpi/module.h"

namespace experiments {

extern "C" const MpiModule* halflab_sound_mpi_module();

namespace {

MpiModule planted;
AddHalves sound_add;
int exchanges = 0;

struct Plan {
  std::string what;
  int at = 0;
};
Plan plan() {
  Plan plan;
  const char* const text = std::getenv("HALFLAB_PLANTED");
  std::istringstream(text == nullptr ? "" : text) >> plan.what >> plan.at;
  return plan;
}

void add_and_cut(const std::uint16_t* term, std::uint16_t* sum, std::size_t count) {
  sound_add(term, sum, count);
  for (std::size_t i = 0; i < count; ++i) sum[i] &= 0xfffe;
}

int start(AddHalves add) {
  sound_add = add;
  return halflab_sound_mpi_module()->start(plan().what == "sum" ? add_and_cut : add);
}

/// What has come is altered on the last hop of an all-reduce, so that no other rank gets it.
int send_receive(const void* out, std::size_t out_bytes, int to, void* in, std::size_t in_bytes, int from) {
  const MpiModule& sound = *halflab_sound_mpi_module();
  if (sound.rank() != 1 || ++exchanges != plan().at)
    return sound.send_receive(out, out_bytes, to, in, in_bytes, from);
  const std::string what = plan().what;
  if (what == "kill") ::raise(SIGKILL);
  if (what == "stop") ::raise(SIGSTOP);
  if (what == "hang") ::pause();
  if (what == "fail") return 15;
  if (const int code = sound.send_receive(out, out_bytes, to, in, in_bytes, from)) return code;
  const std::uint16_t number = what == "inf" ? 0x7c00 : 0x4000;
  std::memcpy(in, &number, sizeof number);
  return 0;
}

/// A drift is hidden from the comparison of gradients, the only one of pairs: every rank shows the first one's.
int gather(const double* own, std::size_t count, double* all) {
  const MpiModule& sound = *halflab_sound_mpi_module();
  const int code = sound.gather(own, count, all);
  constexpr std::size_t pair = 2;
  if (plan().what == "drift" && count == pair) {
    for (int rank = 1; rank < sound.ranks(); ++rank)
      std::memcpy(all + pair * static_cast<std::size_t>(rank), all, pair * sizeof *all);
  }
  return code;
}

}  // namespace

const MpiModule* halflab_mpi_module() {
  planted = *halflab_sound_mpi_module();
  planted.start = start;
  planted.send_receive = send_receive;
  planted.gather = gather;
  return &planted;
}

}  // namespace experiments
