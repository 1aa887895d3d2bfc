#include "experiments/training/data_parallel_options.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>

#include "experiments/frame/crc32.h"
#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "fp16/names.h"
#include "sim/trainer/allreduce_registry.h"

namespace experiments {
namespace {

/// The manifest's setting with the order of the library's sums.
constexpr std::string_view order_key = "allreduce.order";

void reject_contradictions(const DataParallelOptions& options) {
  const bool is_mpis = names::name_in(options.allreduce) == "mpi";
  if (options.mpi && !options.processes)
    throw UsageError(
        "--mpi: is in a configuration file; must be on the command line, before anything is read");
  if (options.processes && static_cast<std::size_t>(options.ranks) != options.processes->count())
    throw UsageError(
        fmt::format("--ranks: {} are given, and {} processes were started; must be as many, or left out",
                    options.ranks, options.processes->count()));
  if (options.processes && !options.order_file.empty())
    throw UsageError(
        "--allreduce-order: is given with --mpi; must be without, as the order is the library's");
  if (!options.order_file.empty() && !is_mpis)
    throw UsageError("--allreduce-order: is given without --allreduce mpi; must come with it");
  if (is_mpis && !options.processes && options.order_file.empty())
    throw UsageError(
        "--allreduce: 'mpi' is the library's own order; must come with --mpi or --allreduce-order, which "
        "training has");
}

/// What would have no effect is a mistake.
void reject_without_effect(const DataParallelOptions& options) {
  const DataParallelOptions usual;
  const bool is_alone = options.ranks == 1 && !options.processes;
  struct Given {
    std::string_view option;
    bool is_given;
  };
  for (const auto& [option, is_given] : {Given{"--allreduce", options.allreduce != usual.allreduce},
                                         Given{"--found-inf", options.found_inf != usual.found_inf},
                                         Given{"--sync-batch-norm", options.sync_batch_norm}}) {
    if (is_given && is_alone)
      throw UsageError(fmt::format(
          "{}: is given with one rank, which exchanges nothing; must come with several --ranks", option));
  }
  for (const auto& [option, is_given] :
       {Given{"--mpi-library", !options.mpi_library.empty()},
        Given{"--compare-every", options.compare_every != usual.compare_every},
        Given{"--mpi-timeout", options.allowed_silence != usual.allowed_silence}}) {
    if (is_given && !options.processes)
      throw UsageError(fmt::format("{}: is given without --mpi; must come with it", option));
  }
}

/// "19 numbers of 4 ranks".
std::string size_text(std::size_t numbers, std::size_t ranks) {
  return fmt::format("{} numbers of {} ranks", numbers, ranks);
}

}  // namespace

void DataParallelOptions::compute_on(Ranks* started) {
  processes = started;
  if (processes) ranks = static_cast<int>(processes->count());
}

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

void DataParallelOptions::bind_mpi(CommandLine& command_line) {
  command_line.add_flag(
      "--mpi", mpi,
      "each rank is a process of its own, as many as 'mpirun -np N' starts; with --allreduce "
      "mpi:precision=fp16 in the order of the library's own MPI_Allreduce");
  command_line.add("--mpi-library", mpi_library,
                   "openmpi or mpich; default: that whose launcher started the processes", "NAME");
  command_line.add("--compare-every", compare_every,
                   "with --mpi: steps after which the ranks compare their weights",
                   {.minimum = 1, .maximum = 1'000'000});
  command_line.add("--mpi-timeout", allowed_silence,
                   "with --mpi: seconds after which a rank that sends and receives nothing ends all; must be "
                   "more than a step and writing the results take; 0 = never",
                   {.minimum = 0, .maximum = 1'000'000});
  command_line.add(
      "--allreduce-order", order_file,
      "for --allreduce mpi without --mpi: the manifest.json of a run with both, whose order is replayed",
      "FILE");
  command_line.add_flag("--resume-with-other-ranks", with_other_ranks,
                        "go on from a checkpoint of another number of ranks, too, which changes the bits");
}

sim::DataParallel DataParallelOptions::choice() const {
  reject_contradictions(*this);
  if (found_inf != "after" && found_inf != "before")
    throw UsageError(fmt::format("--found-inf: '{}' is given; must be after or before", found_inf));
  sim::AllReduce how = from_option("--allreduce", [&] { return sim::make_all_reduce(allreduce); });
  reject_without_effect(*this);
  if (how.algorithm == sim::AllReduceAlgorithm::mpi) how.revealed = &revealed;
  return {.ranks = static_cast<std::size_t>(ranks),
          .all_reduce = how,
          .looks_before_exchange = found_inf == "before",
          .sync_batch_norm = sync_batch_norm};
}

void DataParallelOptions::read_order() {
  if (order_file.empty()) return;
  const Json manifest = Json::from_text(read_file(order_file));
  const Json settings = manifest.is_object() ? manifest.value("settings") : Json();
  const Json text = settings.is_object() ? settings.value(order_key) : Json();
  if (!text.is_string())
    throw UsageError(
        fmt::format("--allreduce-order: file '{}' has no order of an all-reduce; must be manifest.json of a "
                    "run with --mpi --allreduce mpi",
                    order_file));
  revealed.orders = {
      from_option("--allreduce-order", [&] { return sim::revealed_order_from(text.string()); })};
}

void DataParallelOptions::require_order_of(std::size_t weights) const {
  if (order_file.empty()) return;
  const sim::RevealedOrder& order = revealed.orders.front();
  const auto wanted = static_cast<std::size_t>(ranks);
  if (order.workers() == wanted && order.elements() == weights) return;
  throw UsageError(fmt::format(
      "--allreduce-order: file '{}' has the order of {}, and this run sums {}; must be of a run of as many",
      order_file, size_text(order.elements(), order.workers()), size_text(weights, wanted)));
}

void DataParallelOptions::meet(const RunIdentity& run, std::size_t weights) {
  if (!processes) return;
  const sim::DataParallel parallel = choice();
  const bool is_revealed =
      parallel.all_reduce.algorithm == sim::AllReduceAlgorithm::mpi && parallel.ranks > 1;
  RunIdentity of_all = run;
  of_all.emplace_back("weights compared every", fmt::format("{}", compare_every));
  of_all.emplace_back("seconds of silence", fmt::format("{}", allowed_silence));
  of_all.emplace_back("going on with other ranks", fmt::format("{}", with_other_ranks));
  processes->agree(of_all, compare_every);
  processes->allow_silence(static_cast<std::uint64_t>(allowed_silence));
  if (is_revealed) revealed.orders = {processes->reveal(weights, parallel.all_reduce.precision)};
}

void DataParallelOptions::add_to(RunIdentity& identity, const sim::DataParallel& parallel) const {
  if (parallel.ranks == 1) return;
  std::string how = sim::spec_of(parallel.all_reduce);
  for (const sim::RevealedOrder& order : revealed.orders) {
    const std::string text = order.text();
    how += fmt::format(", order {:08x}", crc32(std::as_bytes(std::span(text))));
  }
  const std::array values{how, found_inf, fmt::format("{}", sync_batch_norm)};
  identity.emplace_back(ranks_entry, fmt::format("{}", parallel.ranks));
  for (std::size_t i = 0; i < values.size(); ++i)
    identity.emplace_back(entries_of_several_ranks[i], values[i]);
}

void DataParallelOptions::describe(RunRecord& record) const {
  if (processes) {
    record.setting("mpi.vendor", processes->carrier().vendor);
    record.setting("mpi.version", processes->carrier().version);
    record.setting("mpi.ranks", processes->count());
    record.setting("mpi.hosts", processes->hosts());
    record.setting("mpi.algorithm", revealed.orders.empty()
                                        ? std::string(sim::name_of(choice().all_reduce.algorithm))
                                        : sim::known_names(revealed.orders.front()));
  }
  if (!revealed.orders.empty()) record.setting(std::string(order_key), revealed.orders.front().text());
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
