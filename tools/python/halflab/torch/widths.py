"""Which parameters' gradients are made in a type wider than FP16, by their values."""

import functools

import torch

from .counts import read_together, stored_values


class Widths:
    """Of single backward passes, before they add up: a finite value that FP16 does not hold shows a wider type.

    wide    names of parameters with such a value
    narrow  those that had values other than zero, and none such
    """

    def __init__(self, named_parameters):
        self._open = dict(named_parameters)  # what it is still asked of
        self._handles, self._flags = [], []
        self.wide, self._seen = set(), set()

    narrow = property(lambda self: self._seen - self.wide)

    def attach(self):
        for name, parameter in self._open.items():
            if parameter.requires_grad:
                self._handles.append(parameter.register_hook(functools.partial(self._see, name)))

    def detach(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def read(self):
        """Waits for the device."""
        flags, self._flags = self._flags, []
        values = read_together([flag for _, *both in flags for flag in both])
        for (name, *_), is_wide, is_seen in zip(flags, values[::2], values[1::2]):
            self._seen |= {name} if is_seen else set()
            if is_wide:
                self.wide.add(name)
                self.settle(name)

    def settle(self, name):
        """It need not be asked of this parameter any more."""
        self._open.pop(name, None)

    def _see(self, name, gradient):
        try:
            values = stored_values(gradient)
            is_finite = torch.isfinite(values)
            is_wide = (is_finite & (values.half().to(values.dtype) != values)).any()
            self._flags.append((name, is_wide, (is_finite & (values != 0)).any()))
        except Exception:  # of a gradient that cannot be looked at, which the counts tell of: the training goes on
            self.settle(name)
