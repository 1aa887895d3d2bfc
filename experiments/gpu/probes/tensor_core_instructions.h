#pragma once
/// The tensor-core instructions as a list for the preprocessor: plain C++ reads it for names and shapes, device
/// code for kernels. row(name, rows, columns, depth, threads, targets); each row has a binary32 and a binary16
/// accumulator. A new instruction is a row, device structs <name>_binary32 and <name>_binary16 as in mma_m16n8.cuh,
/// and a .cu file that defines <name>_kernels() (tensor_core.cuh).

// clang-format off
#define FP16_TENSOR_CORE_INSTRUCTIONS(row) \
  row(mma_m16n8k8,             16,  8,  8,  32, "sm_75 and newer") \
  row(mma_m16n8k16,            16,  8, 16,  32, "sm_80 and newer") \
  row(wmma_m16n16k16,          16, 16, 16,  32, "sm_75 and newer") \
  row(wgmma_m64n8k16,          64,  8, 16, 128, "sm_90a alone") \
  row(wgmma_m64n8k16_ra,       64,  8, 16, 128, "sm_90a alone")
// clang-format on
