#pragma once
/// Inputs of instructions with operands of several formats.

#include "experiments/validation/domains.h"

namespace experiments::validate_cpu {

/// Every triple of zeros, NaNs, infinities and the numbers at the borders, which random triples meet too rarely.
extern const validation::Domain special_triples;

/// a and b in 16 bits and c in 32: what is multiplied and what it is added to.
extern const validation::Domain half_products;    ///< a and b in binary16
extern const validation::Domain bfloat_products;  ///< in bfloat16

/// Operands of dot products added to c: a and b have several bfloat16 side by side, the first in the lowest bits.
extern const validation::Domain bfloat_dots_of_2;
extern const validation::Domain bfloat_dots_of_4;

}  // namespace experiments::validate_cpu
