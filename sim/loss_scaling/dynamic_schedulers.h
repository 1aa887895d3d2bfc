#pragma once
/// Frameworks' dynamic loss scalers as rows over one state machine. Each has the defaults of its original;
/// option names are PyTorch's throughout, whatever the original calls them.

#include <limits>

#include "sim/loss_scaling/dynamic_scaler.h"

namespace sim::dynamic_schedulers {

/// pytorch/pytorch torch/amp/grad_scaler.py and ATen/native/cuda/AmpKernels.cu, 2.1 and later. There is no
/// floor: if no step is ever clean, S halves through 1 and the subnormals down to 0, and 1/S is infinite from
/// 2^-128 on.
inline constexpr DynamicScheduler pytorch{
    .name = "dynamic",
    .description = "PyTorch GradScaler: S halves at a bad step, doubles after 2000 clean ones; no floor",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval"},
    .rule = {.growth_stays_finite = true, .arithmetic = ScaleArithmetic::binary32_by_binary64}};

/// NVIDIA/apex apex/amp/scaler.py and handle.py, which cb65b8e removed (2025-05-08). One scaler for each of
/// num_losses losses; S moves at each backward pass, and growth_interval counts backward passes, unless
/// delay_unscale. The factor 2 is fixed.
inline constexpr DynamicScheduler apex_amp{
    .name = "apex_amp",
    .description = "Apex amp: counts backward passes, one scaler a loss; ceiling 2^24",
    .options = {"init_scale", "growth_interval", "min_scale", "max_scale", "num_losses", "delay_unscale"},
    .rule = {.max_scale = 0x1p24, .updates_per_backward = true, .arithmetic = ScaleArithmetic::binary64}};

/// NVIDIA/apex apex/fp16_utils/loss_scaler.py, which cb65b8e removed (2025-05-08). Its check sums each
/// gradient and looks at the sum, so that a finite gradient whose sum overflows counts as bad; here the
/// elements decide.
inline constexpr DynamicScheduler apex_fp16_optimizer{
    .name = "apex_fp16_optimizer",
    .description = "Apex FP16_Optimizer (fp16_utils): starts at 2^32; floor 1, no ceiling",
    .options = {"init_scale", "growth_factor", "growth_interval"},
    .rule = {.init_scale = 0x1p32,
             .growth_interval = 1000,
             .min_scale = 1,
             .growth_test = GrowthTest::every_multiple,
             .back_off = BackOff::by_division,
             .arithmetic = ScaleArithmetic::binary64}};

/// NVIDIA/apex csrc/update_scale_hysteresis.cu. The kernel takes all numbers as arguments: these defaults are
/// GradScaler's, with the hysteresis of Megatron.
inline constexpr DynamicScheduler apex_hysteresis{
    .name = "apex_hysteresis",
    .description = "Apex hysteresis kernel: GradScaler that forgives a bad step between clean ones",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "hysteresis"},
    .rule = {.hysteresis = 2,
             .consecutive_hysteresis = true,
             .growth_stays_finite = true,
             .arithmetic = ScaleArithmetic::binary32_by_binary64}};

/// NVIDIA/Megatron-LM megatron/core/optimizer/grad_scaler.py. Only growth clears the count of bad steps, so
/// that it is not of consecutive ones, whatever the original's comment says.
inline constexpr DynamicScheduler megatron{
    .name = "megatron",
    .description = "Megatron-LM: forgives one bad step between two growths; starts at 2^32, floor 1",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "min_scale",
                "hysteresis"},
    .rule = {.init_scale = 0x1p32, .growth_interval = 1000, .min_scale = 1, .hysteresis = 2}};

/// hpcaitech/ColossalAI colossalai/amp/naive_amp/grad_scaler/dynamic_grad_scaler.py. The original saves S
/// alone and counts anew after a resume: state_lacks_counters.
inline constexpr DynamicScheduler colossalai{
    .name = "colossalai",
    .description = "ColossalAI: Megatron's rule from 2^16, with a floor and a ceiling if asked for",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "min_scale", "max_scale",
                "hysteresis", "state_lacks_counters"},
    .rule = {.growth_interval = 1000, .hysteresis = 2}};

/// microsoft/DeepSpeed deepspeed/runtime/fp16/loss_scaler.py with the defaults of its JSON configuration. Its
/// count of clean steps starts one step late, and its optimizers divide the gradients by the S that the
/// update has left: with unscale_by_updated_scale = 1 a step at which S grows has half its gradient.
/// FP16_Optimizer (fused_optimizer.py) is hysteresis = 1, raise_error_at_min_scale = 0, init_scale = 2^32.
inline constexpr DynamicScheduler deepspeed{
    .name = "deepspeed",
    .description = "DeepSpeed: hysteresis, S grows a step late, a bad step at the floor ends the run",
    .options = {"init_scale", "growth_factor", "growth_interval", "min_scale", "hysteresis",
                "consecutive_hysteresis", "raise_error_at_min_scale", "unscale_by_updated_scale"},
    .rule = {.growth_interval = 1000,
             .min_scale = 1,
             .hysteresis = 2,
             .raise_error_at_min_scale = true,
             .unscale_by_updated_scale = true,
             .growth_test = GrowthTest::every_multiple,
             .back_off = BackOff::by_division,
             .late_after_backoff = true,
             .arithmetic = ScaleArithmetic::binary64}};

/// NVIDIA/OpenSeq2Seq open_seq2seq/optimizers/automatic_loss_scaler.py, BackoffScaler. The original always
/// starts at max_scale.
inline constexpr DynamicScheduler openseq2seq_backoff{
    .name = "openseq2seq_backoff",
    .description = "OpenSeq2Seq Backoff: starts at its ceiling 2^14; floor 1",
    .options = {"init_scale", "growth_factor", "growth_interval", "min_scale", "max_scale"},
    .rule = {.init_scale = 0x1p14,
             .min_scale = 1,
             .max_scale = 0x1p14,
             .growth_test = GrowthTest::every_multiple,
             .back_off = BackOff::by_division}};

/// tensorflow/tensorflow python/training/experimental/loss_scale.py, DynamicLossScale.
inline constexpr DynamicScheduler tensorflow{
    .name = "tensorflow",
    .description = "TensorFlow DynamicLossScale: starts at 2^15; floor 1, growth stays finite",
    .options = {"init_scale", "growth_factor", "growth_interval"},
    .rule = {.init_scale = 0x1p15,
             .min_scale = 1,
             .growth_test = GrowthTest::at_least,
             .back_off = BackOff::by_division,
             .growth_stays_finite = true}};

/// keras-team/keras keras/src/optimizers/loss_scale_optimizer.py. The factors are fixed; S may reach 0 or
/// infinity.
inline constexpr DynamicScheduler keras{
    .name = "keras",
    .description = "Keras 3 LossScaleOptimizer: starts at 2^15; neither floor nor ceiling",
    .options = {"init_scale", "growth_interval"},
    .rule = {.init_scale = 0x1p15}};

/// google-deepmind/jmp jmp/_src/loss_scale.py, DynamicLossScale. The original has no default scale; its
/// examples take 2^15. min_scale does not survive a jit there: jit_forgets_min_scale.
inline constexpr DynamicScheduler jmp{
    .name = "jmp",
    .description = "jmp DynamicLossScale: floor 1, growth stays finite",
    .options = {"init_scale", "growth_factor", "growth_interval", "min_scale", "jit_forgets_min_scale"},
    .rule = {.init_scale = 0x1p15,
             .min_scale = 1,
             .growth_test = GrowthTest::equal_or_wrap,
             .back_off = BackOff::by_division,
             .growth_stays_finite = true}};

/// google/flax flax/training/dynamic_scale.py. S grows at the clean step that follows growth_interval of
/// them; the ceiling is the largest binary32 number, which is no power of two.
inline constexpr DynamicScheduler flax{
    .name = "flax",
    .description = "flax DynamicScale: always a step late; clamped to the normal numbers of binary32",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "min_scale"},
    .rule = {.min_scale = std::numeric_limits<float>::min(),
             .max_scale = std::numeric_limits<float>::max(),
             .late_after_backoff = true,
             .late_after_growth = true}};

/// PaddlePaddle/Paddle python/paddle/amp/grad_scaler.py, GradScaler (its base AmpScaler: 2^15 and 1000).
/// hysteresis is decr_every_n_nan_or_inf.
inline constexpr DynamicScheduler paddle{
    .name = "paddle",
    .description = "Paddle GradScaler, dynamic graph: neither floor nor ceiling",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "hysteresis"},
    .rule = {.consecutive_hysteresis = true, .backoff_clears_count = true}};

/// PaddlePaddle/Paddle paddle/phi/kernels/impl/amp_kernel_impl.h with the defaults of paddle.static.amp.
inline constexpr DynamicScheduler paddle_static{
    .name = "paddle_static",
    .description = "Paddle, static graph: floor 1, growth stays finite",
    .options = {"init_scale", "growth_factor", "backoff_factor", "growth_interval", "hysteresis"},
    .rule = {.min_scale = 1,
             .consecutive_hysteresis = true,
             .backoff_clears_count = true,
             .growth_stays_finite = true}};

/// mindspore-ai/mindspore python/mindspore/amp.py, DynamicLossScaler. The original has no defaults; these are
/// its loss scale manager's.
inline constexpr DynamicScheduler mindspore{
    .name = "mindspore",
    .description = "MindSpore amp.DynamicLossScaler: floor 1, growth stays finite",
    .options = {"init_scale", "growth_factor", "growth_interval"},
    .rule = {.init_scale = 0x1p24,
             .min_scale = 1,
             .growth_test = GrowthTest::equal_or_wrap,
             .back_off = BackOff::by_division,
             .growth_stays_finite = true}};

/// mindspore-ai/mindspore python/mindspore/train/loss_scale_manager.py, DynamicLossScaleManager.
inline constexpr DynamicScheduler mindspore_manager{
    .name = "mindspore_manager",
    .description =
        "MindSpore DynamicLossScaleManager: floor 1; more than 1000 bad steps in a row end the run",
    .options = {"init_scale", "growth_factor", "growth_interval", "max_consecutive_bad"},
    .rule = {.init_scale = 0x1p24,
             .min_scale = 1,
             .max_consecutive_bad = 1000,
             .growth_test = GrowthTest::every_multiple,
             .back_off = BackOff::by_reciprocal,
             .arithmetic = ScaleArithmetic::binary64}};

}  // namespace sim::dynamic_schedulers
