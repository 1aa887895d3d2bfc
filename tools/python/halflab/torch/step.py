"""What is known of one step of a watched training."""

import dataclasses
import math

from .counts import Tally
from .ledger import first_infinite, first_not_finite


@dataclasses.dataclass
class Step:
    """What is known of a step; tensors stay on their device until the record is written."""

    number: int
    is_sampled: bool
    tally: Tally = None  # with hooks; else None
    scale: object = 1.0
    found: list = dataclasses.field(default_factory=list)
    norms: list = dataclasses.field(default_factory=list)  # (name, largest magnitude of the gradient times S)
    outputs: list = dataclasses.field(default_factory=list)  # (name, largest magnitude), in forward order
    weights: list = dataclasses.field(default_factory=list)  # (name, largest magnitude) before the step, with hooks
    skips: list = dataclasses.field(default_factory=list)
    largest: float = math.nan  # of a skipped step, S divided out
    twin: object = None
    decides_itself: bool = False
    was_applied: bool = False  # by an optimizer at least

    def first_modules(self):
        """Where hooks were on: the first module whose output's gradient was not finite, and the first whose output was not."""
        if self.tally is None:
            return {}
        outputs = {name: histogram for (name, kind), histogram in self.tally.read().items() if kind == "output"}
        return {
            "module_output": in_words(first_not_finite(outputs)),
            "forward_output": in_words(first_infinite(self.outputs)),
        }


def in_words(module):
    """A module's name; that of the model itself is empty, as where there is none."""
    return "the model" if module == "" else module
