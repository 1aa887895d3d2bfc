halflab_test(sim_statistics_test
  sim/statistics/cast_counts_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_loss_scaling_test
  sim/loss_scaling/static_scaler_test.cpp
  sim/loss_scaling/dynamic_scaler_test.cpp
  sim/loss_scaling/adaptive_scaler_test.cpp
  sim/loss_scaling/fairseq_scaler_test.cpp
  sim/loss_scaling/log_max_scaler_test.cpp
  sim/loss_scaling/upper_bin_scaler_test.cpp
  sim/loss_scaling/registry_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_layer_and_tensor_scaling_test
  sim/loss_scaling/layer_scaler_test.cpp
  sim/loss_scaling/ada_loss_test.cpp
  sim/loss_scaling/fairscale_layerwise_test.cpp
  sim/loss_scaling/delayed_scaling_test.cpp
  sim/loss_scaling/current_scaling_test.cpp
  sim/precision/unit_scaling_test.cpp
  LIBRARIES halflab::sim mpfr gmp)
halflab_test(sim_optimizers_test
  sim/tensor/integer_power_test.cpp
  sim/tape/clipping_test.cpp
  sim/optimizers/adam_test.cpp
  sim/optimizers/adamw_8bit_test.cpp
  sim/optimizers/dynamic_map_test.cpp
  sim/optimizers/moment_test.cpp
  sim/optimizers/optimizer_test.cpp
  sim/optimizers/registry_test.cpp
  sim/optimizers/sgd_test.cpp
  sim/optimizers/tensor_operations_test.cpp
  sim/schedules/registry_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_optimizers_exhaustive_test sim/optimizers/tensor_operations_exhaustive_test.cpp
  LIBRARIES halflab::sim LABEL exhaustive)

halflab_test(sim_random_test sim/tensor/random_test.cpp LIBRARIES halflab::sim)
halflab_test(sim_random_exhaustive_test sim/tensor/random_exhaustive_test.cpp
  LIBRARIES halflab::sim Threads::Threads LABEL exhaustive)
halflab_test(sim_allreduce_test
  sim/trainer/allreduce_registry_test.cpp
  sim/trainer/allreduce_test.cpp
  LIBRARIES halflab::sim oracle)
halflab_test(sim_sizing_test
  sim/sizing/cost_model_test.cpp
  sim/sizing/memory_model_test.cpp
  sim/sizing/network_description_test.cpp
  sim/sizing/tape_memory_test.cpp
  LIBRARIES halflab::sizing halflab_frame tomlplusplus::tomlplusplus)
halflab_test(sim_data_test
  sim/data/dataset_test.cpp
  sim/data/digits_test.cpp
  sim/data/generated_text_test.cpp
  sim/data/grammar_test.cpp
  sim/data/idx_test.cpp
  sim/data/registry_test.cpp
  sim/data/scene_dataset_test.cpp
  sim/data/scenes_test.cpp
  sim/data/text_dataset_test.cpp
  sim/data/text_file_test.cpp
  LIBRARIES halflab::sim ZLIB::ZLIB)

halflab_test(sim_training_tests
  sim/tape/tape_test.cpp
  sim/tensor/tensor_test.cpp
  sim/precision/arithmetic_test.cpp
  sim/precision/precision_policy_test.cpp
  sim/tape/gradients_test.cpp
  sim/trainer/observers_test.cpp
  sim/trainer/trainer_test.cpp
  sim/trainer/trainer_loss_factor_test.cpp
  sim/tape/backward_passes_test.cpp
  sim/tape/layer_scaling_test.cpp
  sim/tape/unit_scaling_test.cpp
  sim/tensor/memory_account_test.cpp
  sim/tensor/extremes_test.cpp
  sim/tensor/fingerprint_test.cpp
  sim/statistics/flight_recorder_test.cpp
  sim/statistics/site_statistics_test.cpp
  sim/statistics/twin_comparison_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_data_parallel_tests
  sim/trainer/data_parallel_test.cpp
  sim/trainer/exchange_test.cpp
  sim/trainer/scheduled_allreduce_test.cpp
  sim/trainer/shards_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_operations_test
  sim/ops/registry_test.cpp
  sim/ops/operation_options_test.cpp
  sim/ops/unit_multipliers_test.cpp
  sim/ops/gradient_test.cpp
  sim/ops/numerics_test.cpp
  sim/ops/cast_lists_test.cpp
  sim/ops/elementwise_test.cpp
  sim/ops/attention_test.cpp
  sim/ops/conv2d_test.cpp
  sim/ops/linear_maps_test.cpp
  sim/ops/loss_test.cpp
  sim/ops/lstm_test.cpp
  sim/ops/normalisation_test.cpp
  sim/ops/pooling_test.cpp
  sim/ops/reduction_test.cpp
  sim/ops/sum_error_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_models_tests
  sim/models/anchors_test.cpp
  sim/models/mlp_test.cpp
  sim/models/registry_test.cpp
  sim/models/ssd_test.cpp
  sim/models/text_models_test.cpp
  sim/models/training_test.cpp
  LIBRARIES halflab::sim Eigen3::Eigen)
halflab_test(sim_operand_narrowing_tests sim/precision/operand_narrowing_test.cpp LIBRARIES halflab::sim)
# The kernels that do on a device what the simulator does.
halflab_test(sim_cuda_gpu_tests sim/cuda/streaming_gpu_test.cpp LIBRARIES halflab::fp16_cuda halflab::sim LABEL gpu)
