"""Why a step was skipped: the first tensors of it, in the order of the backward pass, that are not finite."""

import dataclasses
import math

import torch

from .counts import read_together, stored_values


@dataclasses.dataclass
class Suspect:
    """The first parameter gradient that is not finite."""

    name: str
    parameter: torch.Tensor
    index: tuple
    value: float


class BackwardOrder:
    """The order in which gradients of parameters come, learnt from one backward pass; until then the reverse of the order
    in which the model lists them."""

    def __init__(self, parameters):
        self._parameters, self._places, self._handles = parameters, {}, []

    def learn(self):
        """Listens until stop()."""
        for parameter in self._parameters:
            if parameter.requires_grad:
                self._handles.append(parameter.register_hook(self._note(id(parameter))))

    def stop(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def is_known(self):
        return bool(self._places)

    def sorted(self, named_parameters):
        listed = {id(parameter): place for place, parameter in enumerate(self._parameters)}
        last = len(self._places)
        return sorted(
            named_parameters,
            key=lambda item: (self._places.get(id(item[1]), last), -listed.get(id(item[1]), -1)),
        )

    def _note(self, key):
        def note(_gradient):
            self._places.setdefault(key, len(self._places))

        return note


def skip_of(step, parameters, weights, repeat):
    """The ledger's row of a skipped step, whose gradients have been unscaled. `parameters` are the optimizer's, `weights`
    (name, largest magnitude) of all; repeat(scale, suspect) is the twin's, or None."""
    suspect = first_suspect(parameters)
    scale = float(step.scale)
    step.largest = largest_finite(parameters)
    skip = {"step": step.number, "scale": scale, "outcome": "skipped", "largest_finite": step.largest}
    if suspect is not None:
        index = " ".join(map(str, suspect.index))
        skip.update(parameter=suspect.name, index=index, value=suspect.value)
    skip.update(step.first_modules(), weight_before=first_infinite(weights))
    if repeat is not None:
        twin = step.twin = repeat(scale, None if suspect is None else (suspect.parameter, suspect.index))
        skip.update(twin=twin.verdict, twin_value=twin.value, twin_exponent=twin.exponent, cured_by=twin.cured_by)
    return skip


def first_suspect(named_parameters):
    """Of parameters in backward order. Waits for the device: for skipped steps alone."""
    with_gradient = [(name, p) for name, p in named_parameters if p.grad is not None and p.grad.numel()]
    flags = read_together([torch.isfinite(stored_values(p.grad)).all() for _, p in with_gradient])
    for (name, parameter), is_finite in zip(with_gradient, flags):
        if not is_finite:
            index, value = _first_nonfinite(parameter.grad)
            return Suspect(name, parameter, index, value)
    return None


def _first_nonfinite(gradient):
    """(index, value); of a sparse gradient the index in the dense one."""
    if gradient.layout is torch.sparse_coo:
        gradient = gradient.coalesce()
        row, value = _first_nonfinite(gradient.values())
        return (*gradient.indices()[:, row[0]].tolist(), *row[1:]), value
    values = stored_values(gradient)
    place = int((~torch.isfinite(values)).reshape(-1).int().argmax())
    index = []
    for length in reversed(values.shape):
        place, within = divmod(place, length)
        index.append(within)
    index = tuple(reversed(index))
    return index, float(values[index])


def largest_finite(named_parameters):
    """The largest finite magnitude among the gradients; 0 where there is none."""
    largest = []
    for _, parameter in named_parameters:
        if parameter.grad is not None and parameter.grad.numel():
            magnitudes = stored_values(parameter.grad).abs()
            largest.append(torch.where(torch.isfinite(magnitudes), magnitudes, 0).amax())
    return max((float(value) for value in read_together(largest)), default=0.0)


def first_not_finite(tally):
    """The first name of a dict of histograms with an infinity or NaN."""
    return next((name for name, histogram in tally.items() if histogram.infinite + histogram.nan), None)


def first_infinite(names_and_norms):
    """The first name whose largest magnitude is not finite."""
    names_and_norms = list(names_and_norms)
    norms = read_together([norm for _, norm in names_and_norms])
    return next((name for (name, _), norm in zip(names_and_norms, norms) if not math.isfinite(norm)), None)
