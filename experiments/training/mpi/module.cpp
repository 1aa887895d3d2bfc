#include "experiments/training/mpi/module.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>

namespace experiments {
namespace {

#ifndef HALFLAB_MPI_MOST_AT_ONCE
#define HALFLAB_MPI_MOST_AT_ONCE (std::size_t{1} << 30)  // tests have few
#endif
/// Counts are ints.
constexpr std::size_t most_at_once = HALFLAB_MPI_MOST_AT_ONCE;

AddHalves add;
MPI_Op half_sum;

void sum_of_codes(void* terms, void* sums, int* count, MPI_Datatype*) {
  add(static_cast<const std::uint16_t*>(terms), static_cast<std::uint16_t*>(sums),
      static_cast<std::size_t>(*count));
}

int start(AddHalves with) {
  add = with;
  int provided = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)) return code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  constexpr int is_commutative = 1;
  return MPI_Op_create(sum_of_codes, is_commutative, &half_sum);
}

void end() {
  MPI_Op_free(&half_sum);
  MPI_Finalize();
}

void abort_all(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/// Calls part(first, count) for all of `count`.
template <class Part>
int in_parts(std::size_t count, Part part) {
  for (std::size_t first = 0; first < count; first += most_at_once) {
    if (const int code = part(first, static_cast<int>(std::min(most_at_once, count - first)))) return code;
  }
  return 0;
}

/// Both sides cut a long message alike; where one is longer, what is left goes alone.
int send_receive(const void* out, std::size_t out_bytes, int to, void* in, std::size_t in_bytes, int from) {
  const auto part_of = [](std::size_t first, std::size_t bytes) {
    return static_cast<int>(std::min(most_at_once, bytes - std::min(first, bytes)));
  };
  const auto partner = [](std::size_t first, std::size_t bytes, int rank) {
    return rank < 0 || (first != 0 && first >= bytes) ? MPI_PROC_NULL : rank;
  };
  for (std::size_t first = 0; first == 0 || first < std::max(out_bytes, in_bytes); first += most_at_once) {
    const int code =
        MPI_Sendrecv(static_cast<const char*>(out) + std::min(first, out_bytes), part_of(first, out_bytes),
                     MPI_BYTE, partner(first, out_bytes, to), 0,
                     static_cast<char*>(in) + std::min(first, in_bytes), part_of(first, in_bytes), MPI_BYTE,
                     partner(first, in_bytes, from), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code) return code;
  }
  return 0;
}

int gather(const double* own, std::size_t count, double* all) {
  return MPI_Allgather(own, static_cast<int>(count), MPI_DOUBLE, all, static_cast<int>(count), MPI_DOUBLE,
                       MPI_COMM_WORLD);
}

int maximum(double* value) {
  return MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int broadcast(void* bytes, std::size_t count, int from) {
  return in_parts(count, [&](std::size_t first, int part) {
    return MPI_Bcast(static_cast<char*>(bytes) + first, part, MPI_BYTE, from, MPI_COMM_WORLD);
  });
}

int sum_halves(std::uint16_t* codes, std::size_t count) {
  return in_parts(count, [&](std::size_t first, int part) {
    return MPI_Allreduce(MPI_IN_PLACE, codes + first, part, MPI_UINT16_T, half_sum, MPI_COMM_WORLD);
  });
}

int sum_floats(float* values, std::size_t count) {
  return in_parts(count, [&](std::size_t first, int part) {
    return MPI_Allreduce(MPI_IN_PLACE, values + first, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
}

void error_text(int code, char* text, std::size_t size) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, whole, &length);
  std::snprintf(text, size, "%s", whole);
}

const char* version() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

const MpiModule module{HALFLAB_MPI_VENDOR, start,  end,     abort_all, rank,       ranks,
                       send_receive,       gather, maximum, broadcast, sum_halves, sum_floats,
                       error_text,         version};

}  // namespace

const MpiModule* halflab_mpi_module() {
  return &module;
}

}  // namespace experiments
