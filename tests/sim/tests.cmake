halflab_test(sim_build_information_test sim/build_information_test.cpp
  LIBRARIES halflab::sim CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB)

halflab_test(sim_registry_test sim/registry_test.cpp sim/options_test.cpp LIBRARIES halflab::sim)
halflab_test(sim_statistics_test
  sim/statistics/exponent_histogram_test.cpp
  sim/statistics/cast_counts_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_loss_scaling_test
  sim/loss_scaling/static_scaler_test.cpp
  sim/loss_scaling/dynamic_scaler_test.cpp
  sim/loss_scaling/adaptive_scaler_test.cpp
  sim/loss_scaling/registry_test.cpp
  LIBRARIES halflab::sim)
halflab_test(sim_optimizers_test
  sim/optimizers/optimizer_test.cpp
  sim/optimizers/registry_test.cpp
  LIBRARIES halflab::sim)

halflab_test(sim_random_test sim/random_test.cpp LIBRARIES halflab::sim)
halflab_test(sim_random_exhaustive_test sim/random_exhaustive_test.cpp
  LIBRARIES halflab::sim Threads::Threads LABEL exhaustive)
halflab_test(sim_data_test
  sim/data/dataset_test.cpp
  sim/data/digits_test.cpp
  sim/data/idx_test.cpp
  sim/data/registry_test.cpp
  LIBRARIES halflab::sim ZLIB::ZLIB)

halflab_test(sim_training_tests
  sim/tensor_test.cpp
  sim/trainer_test.cpp
  sim/statistics/twin_comparison_test.cpp
  sim/ops/gradient_test.cpp
  sim/ops/numerics_test.cpp
  LIBRARIES halflab::sim)

halflab_test(sim_record_test sim/record_test.cpp LIBRARIES halflab::sim)
