# What the second module of the page is made of, which trains networks and counts gradients: the simulator without what reads
# files, draws scenes, needs threads or describes published networks; what computes its arrays; and the readers of tensors.
file(GLOB training_sources CONFIGURE_DEPENDS RELATIVE ${root} ${root}/sim/*/*.cpp)
list(FILTER training_sources EXCLUDE REGEX "^sim/sizing/|^sim/data/(registry|idx|gzip_file|input_file|text_file|scenes)\\.cpp$")
list(FILTER training_sources EXCLUDE REGEX "^sim/models/(registry|ssd)\\.cpp$|^sim/tensor/available_memory\\.cpp$")
list(FILTER training_sources EXCLUDE REGEX "^sim/trainer/lock_step\\.cpp$")
list(APPEND training_sources
  fp16/names.cpp
  fp16/vector/block_arrays.cpp
  fp16/vector/borders.cpp
  fp16/vector/bulk.cpp
  fp16/vector/bulk_portable.cpp
  fp16/vector/code_histogram.cpp
  fp16/vector/coding.cpp
  fp16/vector/exact_sums.cpp
  fp16/vector/exponent_histogram.cpp
  fp16/vector/float_bins.cpp
  fp16/vector/gemm.cpp
  fp16/vector/gemm_portable.cpp
  fp16/vector/math.cpp
  fp16/vector/math_kernels.cpp
  fp16/vector/math_pairs.cpp
  fp16/vector/outcomes.cpp
  fp16/vector/packed.cpp
  fp16/vector/philox.cpp
  fp16/vector/scaled_rounding.cpp
  fp16/vector/vector_path.cpp
  experiments/frame/json.cpp
  experiments/frame/printable.cpp
  experiments/frame/tensor_files/element_reader.cpp
  experiments/frame/tensor_files/element_type.cpp
  experiments/frame/tensor_files/npy.cpp
  experiments/frame/tensor_files/safetensors.cpp
  experiments/frame/tensor_files/stored_tensor.cpp
  tools/halflab/elements.cpp
  tools/halflab/formats.cpp
  tools/page/engine/answer.cpp
  tools/page/engine/gradients.cpp
  tools/page/engine/training.cpp)
