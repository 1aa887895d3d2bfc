#pragma once
/// Orders of the calls of a training step with loss scaling: right ones, and each way of getting them wrong.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace experiments::scale_policy_order {

/// What a training loop calls. All act on one set of gradients, which is zero as a step begins.
enum class Action {
  backward,        ///< adds the gradients of a loss times the S of its scaler
  unscale,         ///< looks for infinities and NaNs, then divides by S; as GradScaler.unscale_
  divide,          ///< divides by S and looks for nothing
  find_infinity,   ///< looks for infinities, but not for NaNs
  clip_norm,       ///< of all gradients as they are
  clip_value,      ///< of every gradient as it is
  step,            ///< unscale, if that was not yet done, and the optimizer, if nothing was found
  optimizer_step,  ///< the optimizer, whatever was found
  update,          ///< of S, by what was found since the last one
  zero_gradients,  ///< forgets them
  stash,           ///< puts them aside and begins anew
  add_stash        ///< adds what was put aside
};

std::string_view name_of(Action action);

struct Call {
  Action action;
  std::size_t which = 0;  ///< of the losses or the scalers

  constexpr Call(Action the_action, std::size_t the_which = 0) : action(the_action), which(the_which) {}
};

/// What the prediction for a step may know.
struct StepFacts {
  std::vector<double> scales;  ///< S of every backward pass in the recipe's step
  double divisor;              ///< the last S that they were divided by
  std::size_t micro_batches;
  double norm;      ///< of the right recipe's gradients, before it clipped them
  double max_norm;  ///< that they are clipped to
  double cosine;    ///< of the two updates, as measured
  std::uint64_t applied;
  std::uint64_t skipped;  ///< steps before this one, by the right recipe
  std::uint64_t warmup_steps;
  std::uint64_t total_steps;
  bool normalises;  ///< the optimizer divides by the size of recent gradients
  double beta1;     ///< of Adam and its kin; 0 of an optimizer without moments
  double beta2;     ///< likewise
};

/// The factor of the right update that the recipe's is expected to have, without weight decay, which shares no
/// factor of the gradients.
using Prediction = double (*)(const StepFacts& facts);

struct Recipe {
  std::string_view name;
  /// What it is compared with; the reference of a kind, which is right itself, has its own name here.
  std::string_view right;
  bool is_right = false;
  std::string_view formula = {};   ///< of the prediction, for an optimizer without normalisation
  Prediction predicted = nullptr;  ///< null: none
  std::vector<Call> each_micro_batch;
  std::vector<Call> at_boundary;  ///< after the last micro-batch
  bool on_average = false;        ///< the prediction is of the mean over steps, or for small steps
  bool accumulates = false;       ///< several micro-batches a step
  bool two_losses = false;        ///< of a model that has them
  std::size_t scalers = 1;        ///< the second begins lower than the first
  bool divides_loss = true;       ///< by the number of micro-batches
  bool starts_too_high = false;   ///< S begins where gradients overflow, and the rate is warmed up and decays
  bool schedule_counts_skipped = false;
  bool optimizer_counts_skipped = false;

  bool is_reference() const { return name == right; }
};

/// All recipes, each reference before what is compared with it.
std::span<const Recipe> recipes();

/// It must be there.
const Recipe& find_recipe(std::string_view name);

/// The right recipe of two losses, of which only one is differentiated.
const Recipe& one_loss_alone(std::size_t loss);

/// What torch.amp.GradScaler says to such a loop, of which each scaler's calls are replayed over two steps:
/// the error that it raises, "silent", or "own loop" where it takes a loop without it.
///
/// Source: pytorch/pytorch torch/amp/grad_scaler.py.
std::string pytorch_answer(const Recipe& recipe);

/// The factor of the gradients of the second loss over that of the first, which should be 1; NaN without a
/// prediction. S1 and S2 are the scales of their backward passes:
///   two_scalers_summed              (S1 g1 + S2 g2) / S1 = g1 + (S2 / S1) g2
///   two_scalers_unscaled_in_place   (g1 + S2 g2) / S2 = g1 / S2 + g2
///   update_after_each_loss          (S1 g1 + S2 g2) / S, where S2 is S1 unless the update between moved it
double predicted_loss_ratio(const Recipe& recipe, std::span<const double> scales);

}  // namespace experiments::scale_policy_order
