"""Reading the tensors of files."""

import os
import re
from pathlib import Path

from . import _halflab

PICKLES = (".pt", ".pth")


def read_tensors(*paths, select=None, dtype=None, shape=None, codes=False):
    """The tensors of files and folders by their names, as numpy arrays.

    .npy, .npz, .safetensors (or its index.json) and folders of these are read as the command `halflab` reads them; .pt and
    .pth by PyTorch, as weights alone. Formats that numpy has not (bfloat16, FP8, FP6, FP4) are decoded to float32, exactly;
    float16, float32, float64, integers and booleans are what they are, but for dtype; complex numbers are passed over.

    select  only tensors in whose names this is found, as it stands; where it stands in none, as a regular expression
    dtype   the format of files without a header, of arrays whose type numpy does not know, and of integers of as many bits,
            up to 16, which are then its codes
    shape   of files without a header; a vector where none is given
    codes   True: pairs of a Format and codes, as decode() takes them, of floating-point tensors alone

    A ValueError of one line says what a file lacks; one needs PyTorch to read .pt.

    >>> gradients = halflab.read_tensors("gradients", "other.safetensors", select="weight")
    >>> format, bits = halflab.read_tensors("codes.bin", dtype="e4m3", codes=True)["codes"]
    >>> halflab.decode(bits, format)
    """
    paths = [os.fspath(path) for path in paths]
    if not paths:
        raise ValueError("read_tensors: paths are missing; allowed: files and folders, as read_tensors('gradients')")
    wanted = _selection(select)
    if any(path.endswith(PICKLES) for path in paths):
        if len(paths) > 1:
            raise ValueError("read_tensors: a .pt file is read alone; allowed: one call for each")
        return _read_pickle(paths[0], wanted, codes)
    if isinstance(shape, int):
        shape = (shape,)
    return _halflab.read_tensors(paths, dtype, shape, wanted, bool(codes))


def _selection(select):
    """A function of names that gives those wanted."""
    if select is None:
        return list

    def wanted(names):
        try:
            found = [name for name in names if select in name] or list(filter(re.compile(select).search, names))
        except (re.error, TypeError) as error:
            shown = _halflab.shown(select)
            raise ValueError(f"read_tensors: select = {shown} is in no name, and no regular expression ({error})") from None
        if not found:
            such_as = f", such as '{names[0]}'" if names else ""
            raise ValueError(f"read_tensors: select = {_halflab.shown(select)} is found in none of the {len(names)} names of tensors{such_as}")
        return found

    return wanted


def _read_pickle(path, wanted, codes):
    try:
        import torch
    except ImportError:
        raise ValueError(
            f"read_tensors: '{path}' needs PyTorch, which this Python has not; allowed without: .safetensors, .npz, .npy"
        ) from None
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ValueError(f"file '{path}' cannot be read ({error.strerror})") from None
    except Exception as error:  # damaged, or more than weights: of many types and lines
        reason = re.sub("\x1b\\[[0-9;]*m", "", (str(error).strip().splitlines() or [type(error).__name__])[0])
        raise ValueError(f"file '{path}' holds no weights that PyTorch would load ({reason})") from None
    tensors = {}
    _collect(held, Path(path).stem if torch.is_tensor(held) else "", tensors, torch)
    if codes:
        tensors = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    arrays = {}
    for name in wanted(list(tensors)):
        tensor = tensors[name].detach().to_dense() if tensors[name].is_sparse else tensors[name].detach()
        try:
            arrays[name] = _codes_of(tensor) if codes else _values_of(tensor)
        except (RuntimeError, TypeError, ValueError):  # quantized, or two elements in each
            raise ValueError(
                f"tensor '{name}' in file '{path}' is of {tensor.dtype}, which is no array; allowed: floating-point and integers"
            ) from None
    return arrays


def _collect(held, name, tensors, torch):
    """Tensors of nested dicts and lists, by the keys that lead to them with dots between."""
    if torch.is_tensor(held):
        if not held.is_complex():
            tensors[name] = held
        return
    if isinstance(held, dict):
        parts = held.items()
    elif isinstance(held, (list, tuple)):
        parts = enumerate(held)
    else:
        return
    for key, part in parts:
        _collect(part, f"{name}.{key}" if name else str(key), tensors, torch)


def _values_of(tensor):
    from .torch.arrays import codes_of

    array, format = codes_of(tensor)
    return array if format is None else tensor.float().numpy()


def _codes_of(tensor):
    from .torch.arrays import codes_of

    array, format = codes_of(tensor)
    if format is None:
        array, format = array.view(f"u{array.itemsize}"), _halflab.format_named(array.dtype.name)
    return format, array
