#pragma once

#include <string>

#include "experiments/frame/command_line.h"
#include "experiments/frame/record.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/ranks.h"
#include "sim/trainer/data_parallel.h"
#include "sim/trainer/revealed_order.h"

namespace experiments {

/// How a training is spread over ranks, as its user says it. One rank exchanges nothing.
struct DataParallelOptions {
  int ranks = 1;
  std::string allreduce = "ring:precision=fp32";
  std::string found_inf = "after";
  bool sync_batch_norm = false;
  std::string order_file;  ///< that `--allreduce mpi` has its order from without --mpi
  bool mpi = false;
  std::string mpi_library;
  int compare_every = 10;
  int allowed_silence = 0;  ///< in seconds; 0: any
  bool with_other_ranks = false;
  Ranks* processes = nullptr;  ///< that compute the ranks; null: this one alone
  sim::RevealedOrders revealed = {};

  /// Each of the processes, if there are any, computes one rank: so many are the default of --ranks. To be called before bind().
  void compute_on(Ranks* started);

  /// Adds --ranks, --allreduce, --found-inf and --sync-batch-norm.
  void bind(CommandLine& command_line);

  /// Adds --mpi and what belongs to it.
  void bind_mpi(CommandLine& command_line);

  /// Throws std::invalid_argument, one line that names the option, also for one that would have no effect. It must not
  /// outlive the options.
  sim::DataParallel choice() const;

  bool keeps_files() const { return !processes || processes->is_first(); }
  sim::Exchange* exchange() const { return processes ? &processes->exchange() : nullptr; }
  /// How many processes of this host have a rank each, and share what it has.
  std::size_t on_this_host() const { return processes ? processes->on_this_host() : 1; }

  /// What --allreduce-order names. Throws as choice() does.
  void read_order();
  /// Throws where the order that was read is not that of so many numbers.
  void require_order_of(std::size_t weights) const;
  /// Before the first step: where there are several processes, all have this run before them. Then finds the order of the
  /// library's sums of so many numbers, where they are asked for.
  void meet(const RunIdentity& run, std::size_t weights);
  /// What the identity of a run with this choice, or what became of it, says of the ranks; nothing for one.
  void add_to(RunIdentity& identity, const sim::DataParallel& parallel) const;
  /// Settings of the manifest.
  void describe(RunRecord& record) const;
};

/// "4 ranks, all-reduced by ring in fp16, divided before" and what is not the usual; empty for one rank.
std::string in_words(const sim::DataParallel& parallel);

}  // namespace experiments
