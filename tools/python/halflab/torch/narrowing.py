"""Casts of tensors to the formats of halflab, bit for bit as halflab.round_to and round_to_blocks make them."""

import hashlib

import numpy as np
import torch

from .. import _halflab
from .counts import as_array

#: The types of tensors that are cast, and their formats.
FORMATS = {
    torch.float64: _halflab.formats["binary64"],
    torch.float32: _halflab.formats["binary32"],
    torch.float16: _halflab.formats["binary16"],
    torch.bfloat16: _halflab.formats["bfloat16"],
}


class Cast:
    """A cast of tensors on the host to one of halflab.formats or halflab.block_formats, whose blocks lie along an axis.

    Scalar formats of up to 8 bits saturate, as recipes of training with them do, unless `saturate` says otherwise.

    >>> Cast("e4m3")(torch.tensor([0.3, 500.0]), axis=0, key="")
    tensor([  0.3125, 448.0000])
    """

    def __init__(self, format, rounding="nearest_even", seed=None, saturate=None, scale_rule=None):
        self._blocks = format if isinstance(format, str) and format in _halflab.block_formats else None
        self._format = None if self._blocks else _scalar_format(format)
        self._seed = seed if rounding == "stochastic" else None
        if rounding == "stochastic" and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
            raise ValueError(f"seed = {_halflab.shown(seed)} is not allowed with rounding 'stochastic'; allowed: an integer")
        if self._blocks:
            allowed = ("nearest_even", "stochastic")
            _refuse_unless(rounding in allowed, "rounding", rounding, self._blocks, ", ".join(allowed))
            _refuse_unless(saturate is None, "saturate", saturate, self._blocks, "None: scales follow the values")
            self._options = {"scale_rule": scale_rule}
        else:
            _refuse_unless(scale_rule is None, "scale_rule", scale_rule, self._format.name, "None, or a block format")
            self._options = {"rounding": rounding, "saturate": self._format.width <= 8 if saturate is None else saturate}
        self._round(np.zeros(1), "")  # so that wrong options are refused now

    def __call__(self, tensor, axis, key):
        """The cast values, in result_type(tensor.dtype). Stochastic rounding of other keys draws other bits."""
        if self._keeps(tensor.dtype):
            return tensor
        values = as_array(tensor.detach())
        if self._blocks:
            values = values.swapaxes(axis, -1)
        rounded = torch.from_numpy(self._round(values, key))
        if self._blocks:
            rounded = rounded.transpose(axis, -1)
        return torch.empty_like(tensor, dtype=self.result_type(tensor.dtype)).copy_(rounded)

    def __deepcopy__(self, _memo):
        return self  # it does not change

    def result_type(self, dtype):
        """The dtype itself where it holds every number that the cast gives, else float32, to which NVFP4's numbers are
        rounded: their scale for the whole tensor is any number of float32."""
        holds = not self._blocks and (self._keeps(dtype) or FORMATS[dtype].contains(self._format))
        return dtype if holds or dtype == torch.float64 else torch.float32

    def _keeps(self, dtype):
        """Whether every number of a dtype is one of the format."""
        return not self._blocks and self._format.contains(FORMATS[dtype])

    def _round(self, values, key):
        options = dict(self._options)
        if self._seed is not None:
            options["seed"] = seed_of(self._seed, key)
        if self._blocks:
            return _halflab.round_to_blocks(values, self._blocks, **options)
        return _halflab.round_to(values, self._format, **options)


def seed_of(seed, key):
    """The seed of one use, 64 bits: others for other seeds and other keys."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest(), "little")


def _scalar_format(format):
    try:
        format = _halflab.format_named(format)
    except ValueError as error:
        raise ValueError(f"{error}, {', '.join(_halflab.block_formats)}") from None
    if not format.has_arithmetic:
        raise ValueError(f"format '{format.name}' is not allowed: it has neither zero nor signs; allowed: the others")
    return format


def _refuse_unless(is_allowed, name, value, format, allowed):
    if not is_allowed:
        raise ValueError(f"{name} = {_halflab.shown(value)} is not allowed with {format}; allowed: {allowed}")
