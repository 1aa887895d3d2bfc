#pragma once
/// A training that several processes compute, a rank each.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/training/checkpoint.h"
#include "sim/trainer/exchange.h"
#include "sim/trainer/revealed_order.h"
#include "sim/trainer/trainer.h"

namespace experiments {

/// What a process of a training is asked for from outside, the less first: to end, or to write a checkpoint and end.
enum class Interruption { none, end, checkpoint };

/// What the processes of one training agree on. What it says of all ranks each of them calls, in the same order. Only rank 0
/// reads and writes the files of the run.
class Ranks {
 public:
  /// What carries the messages, for the manifest.
  struct Carrier {
    std::string vendor, version;
  };
  /// Who looks after this rank from outside: what is told each step, and how long the rank may be silent.
  struct Watch {
    std::function<void(std::uint64_t step)> begins;
    std::function<void(std::uint64_t seconds)> allows;
  };
  /// The wire must outlive it. All ranks.
  Ranks(sim::Wire& wire, Carrier carrier, Watch watch = {});

  bool is_first() const { return wire_.rank() == 0; }
  std::size_t rank() const { return wire_.rank(); }
  std::size_t count() const { return wire_.ranks(); }
  /// How many ranks are processes of this host, itself among them.
  std::size_t on_this_host() const;
  const std::string& host_of(std::size_t rank) const { return hosts_[rank]; }
  const Carrier& carrier() const { return carrier_; }
  /// "node1 4, node2 4": the hosts and how many ranks each has.
  std::string hosts() const;
  sim::Exchange& exchange() { return exchange_; }
  sim::Wire& wire() { return wire_; }

  /// All ranks are ready, and the same run is before each of them; `compare_every`: steps from one comparison of weights to
  /// the next. Throws std::invalid_argument on all of them, in a line that names the rank, where one is not ready or has
  /// another run.
  void agree(const RunIdentity& run, int compare_every = 10);
  /// In the place of agree(), from a rank that has nothing to train or cannot: what it has said of that, and its exit code.
  struct Outcome {
    int exit_code;
    std::string problem;  ///< of the first rank that has one; empty for rank 0, which has told it
  };
  Outcome decline(int exit_code, const std::string& said);
  /// The seconds from one exchange to the next, after which this rank and all others are ended; 0: any.
  void allow_silence(std::uint64_t seconds) {
    if (watch_.allows) watch_.allows(seconds);
  }

  /// How far they are together: what ends the process decides by it whether the others must be ended.
  enum class Stage { apart, refused, training, differing, interrupted, trained };
  Stage stage() const { return stage_; }
  void set_trained() { stage_ = Stage::trained; }

  /// The order in which the carrier sums so many numbers. Throws sim::NoOrder on all ranks where there is none.
  sim::RevealedOrder reveal(std::size_t elements, sim::AllReducePrecision precision);

  /// What rank 0 says, on all ranks.
  bool share(bool yes) { return wire_.broadcast(yes ? "y" : "", 0) == "y"; }
  std::optional<sim::TrainerState> share(const std::optional<sim::TrainerState>& state);
  /// The largest of all.
  int share_exit_code(int exit_code) { return static_cast<int>(wire_.maximum(exit_code)); }

  /// A step of all ranks. Throws sim::RanksDiffer on all of them where one comes to another end than the others.
  sim::StepRecord step(sim::Trainer& trainer);
  /// After each step: the most that any rank is asked for, so that all end after the same step. Weights are compared where
  /// that is a checkpoint, where what the step has made `is_kept`, and every so many steps; throws sim::RanksDiffer on all
  /// ranks where one has others.
  Interruption after_step(const sim::Trainer& trainer, Interruption own, bool is_kept);
  /// The number of the step that is under way.
  std::uint64_t step_under_way() const { return step_under_way_; }

 private:
  Outcome meet(int exit_code, const std::string& said, const RunIdentity& run);
  void compare(const sim::Trainer& trainer);

  sim::Wire& wire_;
  Carrier carrier_;
  sim::OneRank exchange_;
  Watch watch_;
  std::vector<std::string> hosts_;
  std::uint64_t compare_every_ = 1;
  std::optional<std::uint64_t> last_same_;  ///< the step after which weights were last compared
  Stage stage_ = Stage::apart;
  std::uint64_t step_under_way_ = 0;
};

}  // namespace experiments
