#pragma once
/// What training asks of an MPI library: plain functions in a shared module, lib/halflab_mpi_<library>.so beside bin/ and in
/// lib/halflab/ where it is installed, of which there is one for each library. Only the module knows the library's header, and
/// is opened where --mpi asks for it.

#include <cstddef>
#include <cstdint>

namespace experiments {

/// sum[i] += term[i] in binary16.
using AddHalves = void (*)(const std::uint16_t* term, std::uint16_t* sum, std::size_t count);

/// Functions that return an int return 0, or a code of which error_text tells more. Those that exchange something are called
/// by all ranks. Ranks below 0 are nobody.
struct MpiModule {
  const char* vendor;  ///< "Open MPI"
  /// Before all others; sums of halves are made by `add`.
  int (*start)(AddHalves add);
  void (*end)();
  /// Ends all ranks; does not return.
  void (*abort)(int exit_code);
  int (*rank)();
  int (*ranks)();
  int (*send_receive)(const void* out, std::size_t out_bytes, int to, void* in, std::size_t in_bytes,
                      int from);
  /// `all` has room for `count` numbers of every rank.
  int (*gather)(const double* own, std::size_t count, double* all);
  int (*maximum)(double* value);
  int (*broadcast)(void* bytes, std::size_t count, int from);
  int (*sum_halves)(std::uint16_t* codes, std::size_t count);
  int (*sum_floats)(float* values, std::size_t count);
  void (*error_text)(int code, char* text, std::size_t size);
  /// What the library says of itself, its version among it.
  const char* (*version)();
};

/// The module's only symbol.
extern "C" const MpiModule* halflab_mpi_module();

}  // namespace experiments
