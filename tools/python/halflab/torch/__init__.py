"""Halflab for training in PyTorch: why was a step skipped, and which gradients does FP16 lose?

    >>> with halflab.torch.watch(model, optimizer=optimizer, scaler=scaler, every=50, out="run.halflab") as watched:
    ...     train()                                   # the loop stays as it is
    >>> watched.report("out.html")                    # one page: what is wrong, and what to do
    >>> watched.tensors["encoder.0", "output"].zones(15)
    >>> with halflab.torch.emulate(model, "nvfp4"):     # linear and convolution layers multiply narrow numbers
    ...     train()
    >>> print(halflab.torch.memory(model, example))     # of a step, found without running one

PyTorch is imported here alone: `import halflab` does without, and `halflab.torch` needs it.
"""

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(f"halflab.torch needs PyTorch, 1.13 or newer, in this Python: {error}") from None

from .emulate import emulate
from .errors import WatchError
from .memory import memory
from .watch import watch

__all__ = ["WatchError", "emulate", "memory", "watch"]
