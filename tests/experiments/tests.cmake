halflab_test(experiments_frame_test
  experiments/frame/crc32_test.cpp
  experiments/frame/claims_test.cpp
  experiments/frame/files_test.cpp
  experiments/frame/growing_file_test.cpp
  experiments/frame/json_test.cpp
  experiments/frame/record_test.cpp
  experiments/frame/tensor_files/tensor_files_test.cpp
  experiments/frame/toml_file_test.cpp
  LIBRARIES halflab_frame tomlplusplus::tomlplusplus)
halflab_test(experiments_build_information_test experiments/frame/build_information_test.cpp
  LIBRARIES halflab_frame CLI11::CLI11 ZLIB::ZLIB)
halflab_test(experiments_common_test
  experiments/training/all_reduce_cost_test.cpp
  experiments/training/checkpoint_test.cpp
  experiments/frame/child_process_test.cpp
  experiments/frame/columns_test.cpp
  experiments/frame/command_line_test.cpp
  experiments/training/comparison_test.cpp
  experiments/frame/confidence_test.cpp
  experiments/training/counted_gradients_test.cpp
  experiments/frame/curve_table_test.cpp
  experiments/frame/experiment_test.cpp
  experiments/frame/figure_test.cpp
  experiments/training/gradient_record_test.cpp
  experiments/training/tensor_dump_test.cpp
  experiments/training/gradient_sites_test.cpp
  experiments/training/instruments_test.cpp
  experiments/training/memory_need_test.cpp
  experiments/training/mpi/launcher_test.cpp
  experiments/training/mpi/supervisor_test.cpp
  experiments/training/ranks_test.cpp
  experiments/frame/parallel_test.cpp
  experiments/frame/printable_test.cpp
  experiments/frame/progress_test.cpp
  experiments/frame/text_table_test.cpp
  experiments/frame/whole_file_test.cpp
  experiments/training/training_setup_test.cpp
  LIBRARIES halflab_experiments nlohmann_json::nlohmann_json)

halflab_test(experiments_parts_test
  experiments/accumulation_test.cpp
  experiments/allreduce_precision_test.cpp
  experiments/gradient_histogram_test.cpp
  experiments/master_weights_test.cpp
  experiments/memory_anatomy_test.cpp
  experiments/op_precision_test.cpp
  experiments/opt_levels_test.cpp
  experiments/report_test.cpp
  experiments/scale_policy_order_test.cpp
  experiments/scaler_comparison_test.cpp
  experiments/underflow_sweep_test.cpp
  experiments/gpu/validate_gpu_device_test.cpp
  experiments/gpu/validate_gpu_failures_test.cpp
  experiments/gpu/validate_gpu_functions_test.cpp
  experiments/gpu/validate_gpu_test.cpp
  LIBRARIES accumulation_parts allreduce_precision_parts gradient_histogram_parts master_weights_parts
    memory_anatomy_parts op_precision_parts opt_levels_parts report_parts scale_policy_order_parts
    scaler_comparison_parts underflow_sweep_parts validate_gpu_parts oracle)

add_test(NAME memory_anatomy:pytorch COMMAND sh -c
  "command -v \"\${HALFLAB_TORCH_PYTHON:=python3}\" >/dev/null || exit 3; exec \"$HALFLAB_TORCH_PYTHON\" '${CMAKE_CURRENT_LIST_DIR}/pytorch_saved_bytes_test.py' '$<TARGET_FILE:memory_anatomy>'")
set_tests_properties(memory_anatomy:pytorch PROPERTIES LABELS "quick;torch" SKIP_RETURN_CODE 3
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)

halflab_test(explain_gemm_test
  experiments/explain_gemm_classification_test.cpp
  experiments/explain_gemm_evidence_test.cpp
  experiments/explain_gemm_mistake_test.cpp
  experiments/explain_gemm_operands_test.cpp
  experiments/explain_gemm_problem_test.cpp
  experiments/explain_gemm_reference.cpp
  experiments/explain_gemm_test.cpp
  LIBRARIES explain_gemm_parts oracle)

# README.md and docs/: what is written in them, and the commands and code that they show.
halflab_test(pages_test experiments/pages_test.cpp LIBRARIES pages_parts nlohmann_json::nlohmann_json)
target_compile_definitions(pages_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}"
  HALFLAB_BUILD_DIRECTORY="${PROJECT_BINARY_DIR}" HALFLAB_CTEST="${CMAKE_CTEST_COMMAND}")
halflab_test(page_commands_test experiments/page_commands_test.cpp LIBRARIES pages_parts halflab::fp16_bulk nlohmann_json::nlohmann_json)
target_compile_definitions(page_commands_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}"
  HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" HALFLAB_COMPILER="${CMAKE_CXX_COMPILER}"
  HALFLAB_INCLUDE_DIRECTORY="${PROJECT_BINARY_DIR}/include")
if(HALFLAB_PYTHON)
  target_compile_definitions(page_commands_test PRIVATE HALFLAB_PYTHON="${Python_EXECUTABLE}"
    HALFLAB_PYTHON_DIRECTORY="${PROJECT_BINARY_DIR}/python")
  add_dependencies(page_commands_test python_package)
endif()
add_dependencies(page_commands_test experiments)
if(HALFLAB_HAS_CUDA)
  target_compile_definitions(page_commands_test PRIVATE HALFLAB_EMULATED_KERNEL="$<TARGET_FILE:multiply_add_emulated>")
  add_dependencies(page_commands_test multiply_add_emulated)
endif()

# Runs the binaries themselves.
halflab_test(experiments_programs_test
  experiments/gpu/lab_gpu_test.cpp
  experiments/lab_slurm_test.cpp
  experiments/program_answers_test.cpp
  experiments/program_limits_test.cpp
  experiments/programs_test.cpp
  experiments/training_resume_test.cpp
  experiments/training_shards_test.cpp
  experiments/training_test.cpp
  experiments/gpu/validate_gpu_program_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json)
get_property(experiments GLOBAL PROPERTY HALFLAB_EXPERIMENTS)
string(REPLACE ";" "," experiments "${experiments}")
target_compile_definitions(experiments_programs_test PRIVATE HALFLAB_EXPERIMENTS="${experiments}"
  HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}"
  HALFLAB_FAKE_CUBLAS="$<TARGET_FILE:fake_cublas>")
add_dependencies(experiments_programs_test experiments fake_cublas)

# Sweeps under Slurm, where its packages are; a cluster of its own for each case, which is for root.
halflab_test(training_slurm_test experiments/training_slurm_test.cpp LIBRARIES pages_parts nlohmann_json::nlohmann_json LABEL slurm)
target_compile_definitions(training_slurm_test PRIVATE HALFLAB_SOURCE_DIRECTORY="${PROJECT_SOURCE_DIR}"
  HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(training_slurm_test training)

# What their figures look like.
halflab_test(experiments_figures_test experiments/figures_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json fmt::fmt PNG::PNG)
target_compile_definitions(experiments_figures_test PRIVATE
  HALFLAB_BINARY_DIRECTORY="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(experiments_figures_test experiments)
