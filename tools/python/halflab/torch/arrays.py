"""Tensors as numpy's arrays of values or codes, and back."""

import numpy as np
import torch

from .. import _halflab

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def codes_of(tensor):
    """(array, None) of a tensor of a type that numpy has, else (codes, Format); on the host without a copy."""
    kind = _unlike_an_array(tensor)
    if kind is not None:
        raise ValueError(f"a tensor of {kind} is not allowed; allowed: dense real ones")
    values = tensor.detach().resolve_neg()
    if values.device.type != "cpu":
        values = values.cpu()
    if not values.is_floating_point() or values.dtype in (torch.float16, torch.float32, torch.float64):
        return values.numpy(), None
    size = values.element_size()
    return values.view(_INTEGERS[size]).numpy().view(f"u{size}"), _halflab.format_named(_name(values.dtype))


def _unlike_an_array(tensor):
    """The type or layout of which there is no array; or None."""
    if tensor.is_complex() or tensor.is_quantized:
        return tensor.dtype
    if tensor.layout is not torch.strided:
        return tensor.layout
    return "nested tensors" if tensor.is_nested else "no values (meta)" if tensor.is_meta else None


def tensor_of(codes, format):
    """The tensor of codes of a format, on the host; ValueError where PyTorch has no such type."""
    dtypes = [each for each in vars(torch).values() if isinstance(each, torch.dtype) and each.is_floating_point]
    dtype = next((each for each in dtypes if _is_name_of(_name(each), format)), None)
    if dtype is None:
        raise ValueError(f"format {format.name} is not allowed with arrays='torch'; allowed: PyTorch's types")
    return torch.from_numpy(codes.view(np.dtype(f"i{codes.dtype.itemsize}"))).view(dtype)


def _is_name_of(name, format):
    try:
        return _halflab.format_named(name) == format
    except ValueError:  # of PyTorch alone
        return False


def _name(dtype):
    return str(dtype).replace("torch.", "")
