#pragma once
/// Tensor-core instructions against each other: those of one depth and accumulator are tried with the same dot
/// products, and on one device have to give the same bits, whatever model they follow.

#include "experiments/frame/experiment.h"
#include "experiments/gpu/validate_gpu/shard_file.h"

namespace experiments::validate_gpu {

/// Each finished shard of an instruction with that of the first one in the list, by their digests. Not those
/// families that judge an instruction by itself, whose results depend on the shape of its tiles.
ShardComparison compare_instructions(const ShardFile& shards);

/// Summary and verdict of that; a difference fails the run.
void write_agreement(Run& run, const ShardFile& shards);

}  // namespace experiments::validate_gpu
