"""How far a result in FP32 may be from the exact one, whatever the order of its sums.

A sum of n terms is within sqrt(n) u sum(|terms|) of the exact sum, u = 2^-24, in whatever order it is formed and but for bad
luck: rounding errors behave as independent ones (Higham and Mary, "A new approach to probabilistic rounding error analysis",
SIAM J. Sci. Comput. 41, 2019, with lambda = 1). Every other operation is within 2 u of itself. Noise lets a network run in
FP64, forward and backward, and adds an error of just this size and of random sign to the result of every operation.
"""

import math

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

UNIT_ROUNDOFF = 2.0**-24

# Operations that round each element once or twice; of what is not listed, and has no parts, nothing is rounded.
ROUNDED = set("add sub rsub mul div reciprocal exp log erf tanh sigmoid sqrt rsqrt pow var".split())


def terms_of(name, arguments, results):
    """How many terms each sum of a result has, result by result, of an operation that is linear in each of its arguments;
    none of another one."""
    if name == "mm":
        return [arguments[0].shape[1]]
    if name == "bmm":
        return [arguments[0].shape[2]]
    if name == "addmm":
        return [arguments[1].shape[1] + 1]
    if name in ("sum", "mean"):
        return [arguments[0].numel() // results[0].numel()]
    if name == "embedding_dense_backward":
        return [int(torch.bincount(arguments[1].flatten()).max())]
    if name == "convolution":
        return [arguments[1][0].numel() + 1]
    if name == "convolution_backward":
        gradient, _, weight = arguments[:3]
        pixels = gradient.numel() // gradient.shape[1]
        return [weight[:, 0].numel(), pixels, pixels]
    return None


class Noise(TorchDispatchMode):
    """Errors of the theory's size times `scale`. A small scale shows what errors do to first order, without a ReLU that
    switches from one side to the other."""

    def __init__(self, seed, scale):
        super().__init__()
        self._draw = torch.Generator().manual_seed(seed)
        self._size = scale * UNIT_ROUNDOFF

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        name = str(function.overloadpacket).split(".")[1].rstrip("_")
        if name in ROUNDED:
            result = function(*arguments, **options)
            # The terms of a variance are squares, whose sum it is.
            terms = arguments[0].numel() // result.numel() if name == "var" else 4
            return self._write(function, result, self._perturbed(result, result, terms))
        result = function(*arguments, **options)
        terms = terms_of(name, arguments, result if isinstance(result, tuple) else (result,))
        if terms is None:
            return self._in_parts(function, arguments, options, result)
        is_real = lambda value: isinstance(value, torch.Tensor) and value.is_floating_point()
        magnitudes = function(*(a.abs() if is_real(a) else a for a in arguments), **options)
        if not isinstance(result, tuple):
            return self._perturbed(result, magnitudes, *terms)
        return tuple(r if r is None else self._perturbed(r, *of_r) for r, *of_r in zip(result, magnitudes, terms))

    def _in_parts(self, function, arguments, options, result):
        if function not in decomposition_table:
            return result
        with self:
            return self._write(function, result, decomposition_table[function](*arguments, **options))

    def _perturbed(self, exact, magnitude, terms):
        if not exact.is_floating_point():
            return exact
        signs = torch.randint(0, 2, exact.shape, generator=self._draw).mul(2).sub(1)
        return exact + signs * torch.where(torch.isfinite(exact), magnitude.abs(), 0) * (self._size * math.sqrt(terms))

    @staticmethod
    def _write(function, result, noisy):
        """Into the tensor that an operation works in."""
        return result.copy_(noisy) if function._schema.is_mutable else noisy
