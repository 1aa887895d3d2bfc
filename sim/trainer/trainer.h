#pragma once
/// The training loop of mixed precision, one step at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/loss_scaling/registry.h"
#include "sim/optimizers/optimizer.h"
#include "sim/precision/precision_policy.h"
#include "sim/schedules/schedule.h"
#include "sim/statistics/flight_recorder.h"
#include "sim/statistics/site_statistics.h"
#include "sim/statistics/twin_comparison.h"
#include "sim/tape/gradients.h"
#include "sim/tensor/memory_account.h"
#include "sim/trainer/data_parallel.h"
#include "sim/trainer/model_state.h"
#include "sim/trainer/step_observer.h"

namespace sim {

struct TrainerOptions {
  std::size_t batch = 128;             ///< examples of a micro-batch, on all ranks together
  std::size_t accumulation_steps = 1;  ///< micro-batches of a step, whose mean loss is differentiated
  std::uint64_t steps = 0;             ///< that the run is to have, for its schedule
  std::uint64_t seed = 0;
  /// Every n-th step (from the first) is measured against its twin; 0 = never.
  std::size_t twin_every = 0;
  fp16::Format twin_format = fp16::binary32;  ///< or binary64; also of the twins that a scaler asks for
  /// Every n-th step (from the first) has SiteStatistics; 0 = never.
  std::size_t statistics_every = 0;
  bool record_skips = false;  ///< looks into every step that is skipped or ends the run
  Clipping clipping = {};
  /// Clips the gradients while they are still scaled, so that the threshold is in effect divided by S: the
  /// well-known mistake, to look at its effect.
  bool clip_before_unscale = false;
  int threads = 1;  ///< of one operation; no bit depends on it
  DataParallel parallel = {};
  /// With whom the ranks of `parallel` are shared; must outlive the trainer. Null: this process computes all of them.
  Exchange* exchange = nullptr;
};

struct StepRecord {
  std::size_t step = 0;
  float loss = 0;   ///< of this step's examples, before the update; the mean_over_ranks of theirs
  float scale = 1;  ///< S used in this step's (first) backward
  /// Scales of the losses after the first, where each has a scaler of its own.
  std::vector<float> further_scales;
  Decision decision = Decision::apply;
  double learning_rate = 0;
  /// What clipping did in an applied step; without clipping the norm is not formed. Where backward passes are
  /// clipped one by one (clip_before_unscale), the largest norm and all clipped values.
  ClippingResult clipping = {};
  UpdateCounts updates = {};                    ///< of all parameters
  std::vector<UpdateCounts> parameter_updates;  ///< of each; empty where there was no update
  /// Per gradient site of Trainer::sites(), at measured steps only: of what the scaler was shown, which of
  /// summed micro-batches is the sum at weights and the first at activations; of several ranks the mean at weights
  /// and rank 0's at activations. Those of several updates add.
  std::vector<TwinComparison> twin;
  std::vector<SiteStatistics> statistics;  ///< at their own steps, of what it was shown first
  /// Backward passes of twins that a loss scaler asked for or, before the last micro-batch, may yet ask for.
  int scaler_twins = 0;
  std::optional<SkipRecord> skip;  ///< of a step without an update, where recorded
  /// The sum over ranks that was not finite, and that an update applied since nobody looked into it; where recorded.
  std::optional<SkipRecord> unseen_overflow;

  bool skipped() const { return decision != Decision::apply; }
};

/// All that a trainer's coming steps depend on besides what it was made with.
struct TrainerState {
  struct Array {
    std::string name;  ///< of a tensor with shape and format: "hidden1.weight 512x784 binary32"
    std::vector<std::uint8_t> bytes;  ///< in this machine's byte order
  };

  std::uint64_t steps_done = 0;
  std::uint64_t steps_applied = 0;
  std::vector<Array> arrays;  ///< weights, buffers and the optimizer's state
  std::vector<names::NamedValues> loss_scalers;
  names::NamedValues layer_scaler;
  names::NamedValues tensor_scaler;
};

/// A run of several ranks (TrainerOptions::parallel) is that of DistributedDataParallel: every rank computes an equal
/// part of each micro-batch, from the loss of its part, and adds up its own gradients over the micro-batches of a step;
/// before the scaler looks at them, those of the parameters become their mean over all ranks, still scaled. Weights,
/// scaler and optimizer are then the same on every rank. A delayed scale of a tensor follows the largest magnitude on all
/// ranks. One rank exchanges nothing. The memory account is that of the first own rank.
class Trainer {
 public:
  /// What is referred to must outlive the trainer. A loss scaler for each of several losses is made as often
  /// as the model has losses, which are then differentiated one after the other. Throws std::invalid_argument
  /// when their number is another than the model's, for a scaler of casts under a policy that has none to
  /// scale, for a batch that the ranks cannot share equally, and for several ranks under a layer scaler whose
  /// factors follow each rank's own gradients.
  Trainer(const Model& model, const Dataset& dataset, const PrecisionPolicy& policy, AnyScaler scaler,
          std::unique_ptr<Optimizer> optimizer, std::unique_ptr<Schedule> schedule,
          const TrainerOptions& options);

  /// Shows every coming step to `observer` too, which must outlive the trainer.
  void observe(StepObserver& observer) { observers_.push_back(&observer); }
  void observe(std::unique_ptr<StepObserver> observer);

  /// Differentiates and records `loss_factor` times the loss, and each of several losses as many times: a
  /// batch that counts for many, or NaN for one that no loss scale saves. After a step whose decision was
  /// `abort` there is none. Throws RanksDiffer where ranks that others compute come out of the exchange with other gradients.
  StepRecord step(float loss_factor = 1);

  /// The first micro-batch of the next step().
  Batch next_batch() { return batches_.batch(steps_done_ * options_.accumulation_steps); }

  std::uint64_t steps_done() const { return steps_done_; }

  /// Between two steps.
  TrainerState save();

  /// Goes on exactly as the trainer would that gave `saved`. Throws std::invalid_argument when that was made
  /// with another model, policy, optimizer or scaler, as far as they have other state; this one is then of no
  /// use.
  void restore(const TrainerState& saved);

  /// Weights in the policy's format: under a policy with master weights, these are the masters.
  const ModelState& state() const { return state_; }
  /// The loss scale of the coming step, that of the first loss where each has its own.
  double scale() const { return scale(0); }
  /// Options in force of the scaler, whatever its kind.
  names::NamedValues scaler_options() const;
  /// Why the run ended, if its scaler ended it.
  std::string abort_reason() const;
  const Optimizer& optimizer() const { return *optimizer_; }
  /// What the tensors of this run take, now and at most: weights, copies, optimizer state and all of a step,
  /// but not its instruments (twins, records of skipped steps).
  const MemoryAccount& memory() const { return *memory_; }
  /// The gradient sites of the model; empty before the first step.
  const std::vector<GradientSite>& sites() const { return sites_; }

 private:
  /// Rounds weights as the policy says, into storage of this run.
  void take_state(ModelState initial);
  std::vector<const Tensor*> model_weights() const;
  void round_copies();
  /// Gradients since the last update of a loss scaler.
  struct Pending {
    float scale;                             ///< S
    bool ends_step = false;                  ///< no backward pass comes after those in it
    ScaledGradients scaled = {};             ///< of the first own rank, and at last the mean over all
    std::vector<SiteGradients> others = {};  ///< those of the other own ranks
    fp16::ExponentHistogram exponents = {};  ///< of `scaled`, where the scaler needs them
    GradientSummary summary = {};            ///< of `scaled`
    std::optional<SiteGradients> twin;       ///< of all micro-batches
    std::vector<SiteGradients> other_twins = {};
    bool twin_finite = true;
    std::optional<bool> found_before_exchange = {};  ///< not finite on any rank, where it was looked for
    bool scaler_wants_twin = false;  ///< else it was run for observers alone, which must not change the run
  };
  /// What a rank makes of a micro-batch.
  struct RankPass {
    Batch batch;
    std::optional<RecordedStep> recorded;
  };
  /// One of the losses of a micro-batch, of one rank.
  struct LossTerm {
    const Tape& tape;
    Variable loss;
    LossScaler& scaler;
    const Batch& batch;
  };
  using LossTerms = std::vector<LossTerm>;  ///< of each own rank

  double scale(std::size_t loss) const;
  StepRecord begin_record() const;
  BackwardNeeds observers_needs() const;
  bool decides_each_backward() const;
  bool is_to_decide(const Pending& pending) const { return decides_each_backward() || pending.ends_step; }
  bool has_several_ranks() const { return exchange_->ranks() > 1; }
  bool others_compute_ranks() const { return exchange_->own() < exchange_->ranks(); }
  /// Calls compute(i) for each own rank, all in lock-step where they share statistics. What the first of them
  /// allocates is charged to `account`.
  void on_own_ranks(MemoryAccount* account, const std::function<void(std::size_t)>& compute) const;
  /// Of the own ranks, `micro_batch` in the order of the run.
  std::vector<RankPass> record_micro_batch(std::uint64_t micro_batch, float loss_factor);
  RecordedStep record_rank(std::size_t own, std::uint64_t micro_batch, const Batch& batch);
  double mean_loss(const std::vector<RankPass>& passes) const;
  LossTerms losses_of(const std::vector<RankPass>& passes, std::size_t loss) const;
  std::vector<SiteGradients> differentiate(const LossTerms& terms, MemoryAccount* account,
                                           BackwardOptions options) const;
  /// Adds the gradients of one more backward pass, and its twin where somebody needs it. Once the scaler is to decide,
  /// they are the means over all ranks.
  void add_backward(const LossTerms& terms, Pending& pending, StepRecord& record);
  void show_backward(const LossTerms& terms, const std::vector<SiteGradients>& gradients, float loss_scale,
                     StepRecord& record);
  void add_twin(const LossTerms& terms, Pending& pending) const;
  void add(const std::vector<GradientSite>& sites, SiteGradients& first, std::vector<SiteGradients>& others,
           std::vector<SiteGradients> next) const;
  void exchange_gradients(Pending& pending) const;
  void summarise_gradients(Pending& pending, const LossScaler& scaler) const;
  /// All that comes before the scaler is told of them.
  void finish_gradients(Pending& pending, const LossScaler& scaler) const;
  /// Updates the scaler, and says so to those who observe.
  void decide(const LossTerm& term, Pending& pending, StepRecord& record);
  Decision update_scaler(LossScaler& scaler, Pending& pending) const;
  /// A parameter that belongs to no layer, such as an embedding, counts for all: their factors are on it.
  void add_outcomes(const ScaledGradients& scaled);
  Decision decide_by_layers();
  void add_unscaled(std::optional<Gradients>& sum, const LossTerm& term, Pending& pending,
                    StepRecord& record) const;
  void update_weights(Gradients& gradients, StepRecord& record);

  std::unique_ptr<MemoryAccount> memory_ = std::make_unique<MemoryAccount>();
  const Model& model_;
  PrecisionPolicy policy_;
  /// One, without effect where the scaler is of another kind; or one for each loss.
  std::vector<std::unique_ptr<LossScaler>> loss_scalers_;
  std::unique_ptr<LayerScaler> layer_;    ///< null unless it is of that kind
  std::unique_ptr<TensorScaler> tensor_;  ///< null unless the policy casts with scales
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  TrainerOptions options_;
  std::unique_ptr<Exchange> virtual_ranks_;  ///< null where others compute ranks as well
  Exchange* exchange_;
  std::vector<std::unique_ptr<StepObserver>> own_observers_;  ///< those that nobody else keeps
  std::vector<StepObserver*> observers_;                      ///< all
  BatchSampler batches_;
  ModelState state_;
  std::vector<Tensor> copies_;  ///< of the weights in the model's format; empty where that is their own
  std::vector<GradientSite> sites_;
  std::size_t backward_passes_ = 0;  ///< of this step so far
  std::size_t pass_of_skip_ = 0;     ///< the one in which an own rank found what its skip record tells
  std::map<std::string, bool> layer_outcomes_;  ///< of this step so far: whether a gradient was not finite
  std::size_t steps_done_ = 0;
  std::size_t steps_applied_ = 0;
};

}  // namespace sim
