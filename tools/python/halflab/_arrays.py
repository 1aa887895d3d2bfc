"""Arrays of numpy, PyTorch, CuPy and ml_dtypes, as numpy has them: codes where numpy has no such type. And their files."""

import json
import os
import sys

import numpy as np

from . import _halflab

_SAFETENSORS = {
    "binary64": "F64",
    "binary32": "F32",
    "binary16": "F16",
    "bfloat16": "BF16",
    "e5m2": "F8_E5M2",
    "e4m3": "F8_E4M3",
    "e5m2_fnuz": "F8_E5M2FNUZ",
    "e4m3_fnuz": "F8_E4M3FNUZ",
}


def array_and_format(values):
    """(array, None) of what numpy knows, or (codes, Format); no copy of what lies on the host."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        from .torch.arrays import codes_of

        return codes_of(values)
    if type(values).__module__.split(".")[0] == "cupy":
        values = values.get()
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        return values, None
    if values.dtype.kind in "fiub" and values.dtype.type.__module__ == "numpy":
        return values, None
    try:
        format = _halflab.format_named(values.dtype.name)
    except ValueError:
        return values, None
    return values.view(f"u{values.dtype.itemsize}"), format


def format_of(name):
    """The row of that name: what unpickles a Format."""
    return _halflab.format_named(name)


class Formats(dict):
    """Rows by their names; by another name of a format its row is found, too."""

    def __missing__(self, name):
        try:
            return _halflab.format_named(name)
        except ValueError as error:
            raise KeyError(str(error)) from None


def numbers(values):
    """What numpy takes for numbers: of types that it lacks their values."""
    array, format = array_and_format(values)
    return array if format is None else _halflab.decode(array, format)


def in_memory_order(values):
    """array_and_format() with the axes in the order of memory: dense arrays are in C order then, without a copy on the host."""
    array, format = array_and_format(values)
    if isinstance(array, np.ndarray) and array.ndim > 1:
        array = array.transpose(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
    return array, format


def write_safetensors(path, arrays):
    """A .safetensors file of (array, None) or (codes, Format) by name."""
    header, begin, held = {}, 0, []
    for name, (array, format) in arrays.items():
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        format = format or _halflab.format_named(array.dtype.name)
        if format.name not in _SAFETENSORS:
            raise ValueError(f"{name}: {format.name} is not allowed; allowed: {', '.join(_SAFETENSORS)}")
        header[name] = {
            "dtype": _SAFETENSORS[format.name],
            "shape": list(array.shape),
            "data_offsets": [begin, begin + array.nbytes],
        }
        begin += array.nbytes
        held.append(array)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.fspath(path), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in held:
            array.tofile(file)
