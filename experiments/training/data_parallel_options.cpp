#include "experiments/training/data_parallel_options.h"

#include <fmt/format.h>

#include "sim/trainer/allreduce_registry.h"

namespace experiments {

void DataParallelOptions::bind(CommandLine& command_line) {
  command_line.add("--ranks", ranks,
                   "virtual ranks, each of which computes an equal part of --batch as under "
                   "DistributedDataParallel",
                   {.minimum = 1, .maximum = 8192});
  command_line.add_choice("--allreduce", allreduce, "allreduce",
                          "how several ranks form the mean of their gradients, which still carry S: an "
                          "order with options as ring:precision=fp16:division=before");
  command_line.add(
      "--found-inf", found_inf,
      "after or before the all-reduce: where gradients that are not finite are looked for; before "
      "it by each rank in its own",
      "WHERE");
  command_line.add_flag("--sync-batch-norm", sync_batch_norm,
                        "batch norm takes the statistics of the whole batch and not of each rank's part");
}

sim::DataParallel DataParallelOptions::choice() const {
  if (found_inf != "after" && found_inf != "before")
    throw UsageError(fmt::format("--found-inf: '{}' is given; must be after or before", found_inf));
  return {.ranks = static_cast<std::size_t>(ranks),
          .all_reduce = from_option("--allreduce", [&] { return sim::make_all_reduce(allreduce); }),
          .looks_before_exchange = found_inf == "before",
          .sync_batch_norm = sync_batch_norm};
}

std::string in_words(const sim::DataParallel& parallel) {
  if (parallel.ranks == 1) return {};
  const sim::AllReduce& how = parallel.all_reduce;
  return fmt::format("{} ranks, all-reduced by {} in {}, divided {}{}{}{}", parallel.ranks,
                     sim::name_of(how.algorithm), sim::name_of(how.precision), sim::name_of(how.division),
                     how.ring_chunks == sim::RingChunks::even ? ", in even chunks" : "",
                     parallel.looks_before_exchange ? ", non-finite looked for before" : "",
                     parallel.sync_batch_norm ? ", batch norm synchronised" : "");
}

}  // namespace experiments
