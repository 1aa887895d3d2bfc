halflab_test(bench_model_products_test bench/model_products_test.cpp bench/model_products.cpp
  LIBRARIES halflab_experiments)
include(bench/instructions/instructions.cmake)
