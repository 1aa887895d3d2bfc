"""What training a published network takes, by formula: nothing is allocated or trained."""

import operator
import os
from pathlib import Path

from . import _halflab
from ._columns import structured

_directory = Path(__file__).parent / "networks"

#: Names of the networks that come with the package.
networks = tuple(sorted(file.stem for file in _directory.glob("*.toml")))


def _file_of(network):
    name = os.fsdecode(network) if isinstance(network, (str, bytes, os.PathLike)) else ""
    if name.endswith(".toml") and name.isprintable():
        return name
    if not name or not _halflab.is_name(name):
        allowed = ", ".join(networks)
        raise ValueError(f"network = {_halflab.shown(network)} is not allowed; allowed: {allowed}, a FILE.toml")
    if name not in networks:
        raise ValueError(_halflab.unknown_network_message(name, networks) + ", a FILE.toml")
    return str(_directory / f"{name}.toml")


def _checked(symbols):
    checked = {}
    for name, value in symbols.items():
        if not _halflab.is_name(name):
            raise ValueError(f"symbol {_halflab.shown(name)} is not allowed; allowed: names")
        try:
            checked[name] = operator.index(value)
        except TypeError:
            checked[name] = -1
        if isinstance(value, bool) or not 0 <= checked[name] < 2**64:
            raise ValueError(f"symbol {name} = {_halflab.shown(value)} is not allowed; allowed: whole numbers")
    return checked


def memory(network, policy="amp", optimizer="adamw", recomputation="none", **symbols):
    """Bytes that one training step of a network takes, a dict by role.

    `network` is one of halflab.networks or a FILE.toml; `symbols` are its sizes, such as batch=8 or sequence=128, with
    defaults in its file. `policy` is one of halflab.policies and `optimizer` one of halflab.optimizers, both with options
    behind colons; `recomputation` is "none", "selective" or "full".

    Roles: weights, cast_weights (copies that autocast keeps for the step), master_weights, gradients, unscaled_gradients,
    optimizer_state, buffers and activations (what backward needs). Besides them `total`, `inference` (weights and casts) and
    `parameters`, which is a count. Temporaries, what an allocator adds and the device's own memory are left out.

    >>> step = halflab.memory("bert_large", batch=4)
    >>> step["optimizer_state"] / step["parameters"]
    8.0
    """
    return _halflab.memory(_file_of(network), _checked(symbols), policy, optimizer, recomputation)


def activations(network, policy="amp", recomputation="none", **symbols):
    """Bytes that each operator of a network keeps for backward, a structured array in the order of the forward pass.

    Fields: name; values (of operands, counted for the first operator that needs them), saved (statistics, indices), masks.
    What is recomputed at a time is in memory()["activations"] alone. Arguments as of memory().

    >>> print(halflab.activations("mlp", batch=16)["name"])
    ['mlp.hidden1' 'mlp.relu1' 'mlp.hidden2' 'mlp.relu2' 'mlp.output'
     'mlp.loss']
    """
    return structured(_halflab.activations(_file_of(network), _checked(symbols), policy, recomputation))


def kernels(network, policy="amp", **symbols):
    """The kernels of a training step without its update, a structured array; none is fused with another.

    Fields: operator, kernel, phase ("forward", "backward"), operator_class, flop, bytes (read and written). Arguments as of
    memory().

    >>> kernels = halflab.kernels("mlp", "fp32", batch=16)
    >>> print(kernels["kernel"][0], kernels["phase"][0])
    product forward
    """
    return structured(_halflab.kernels(_file_of(network), _checked(symbols), policy))
