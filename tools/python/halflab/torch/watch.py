"""watch: what a training run's gradients are, and why a step was lost."""

import contextlib
import dataclasses
import math
import os
import re
import shutil
import tempfile
import weakref

import torch

from .. import _halflab
from .._halflab import ExponentHistogram
from ..gradients.files import Writer, fp32_parameters
from ..gradients.findings import INPUT, PARTLY
from ..gradients.record import read_gradients
from .counts import Tally, largest_above_zero, largest_magnitude, read_together
from .errors import WatchError
from .hooks import OutputHooks, parameter_names, visible_modules
from .ledger import BackwardOrder, first_infinite, first_not_finite, first_suspect, largest_finite
from .taps import OptimizerTap, ScalerTap
from .twin import Twin, is_training

KINDS = {"activations": "activation", "weights": "weight", "updates": "update"}
LONGEST_WAIT = 256  # steps whose S and found_inf wait on the device to be written

_watched = {}  # id of a model, optimizer or scaler: the watch that it is in


@dataclasses.dataclass
class _Step:
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


class watch:
    """Watches the training inside of a `with`: which gradients FP16 loses, at which scale, and why steps are skipped.

    model      the module that is trained
    optimizer  whose step() ends a step; not needed where a scaler is given
    scaler     a torch.amp.GradScaler, whose update() then ends a step
    every      steps from one sample to the next; hooks are on at samples alone, and after a step that was skipped or let S grow
    out        the folder of the record, new or empty, or that of an earlier one; without one it is kept until the watch is gone
    select     a regular expression: names of modules and parameters to count; all without one
    also       of "activations", "weights", "updates": what is counted besides gradients
    twin       a function that makes the loss of the batch again; sampled and skipped steps are then repeated in FP32, with
               the random state and the buffers put back, to say what FP16 lost, and whether a smaller S cures a skip

    The training is not changed. Names and counts go to the record, values never do. Afterwards, and at any time:
    tensors, skips, steps, recommended_scale(), report(out), replay(scalers), as of halflab.GradientRecord.

    >>> with halflab.torch.watch(model, optimizer=optimizer, scaler=scaler, every=50) as watched:
    ...     train()
    >>> watched.report("out.html")
    >>> watched.recommended_scale()
    """

    def __init__(
        self, model, optimizer=None, scaler=None, every=50, out=None, select=None, also=(), twin=None
    ):
        _check(model, optimizer, scaler, every, also, twin)
        self._model, self._optimizer, self._scaler = model, optimizer, scaler
        self._every, self._also, self._compute_loss = every, {KINDS[name] for name in also}, twin
        self._select = _pattern(select)
        if out is None:
            out = tempfile.mkdtemp(prefix="halflab-watch-")
            weakref.finalize(self, shutil.rmtree, out, ignore_errors=True)
        self.folder = _own_folder(out)
        self._state = "new"

    # The with.

    def __enter__(self):
        if self._state != "new":
            raise WatchError(f"this watch is {self._state}; allowed: a new halflab.torch.watch for each with")
        for thing in (self._model, self._optimizer, self._scaler):
            if thing is not None and id(thing) in _watched:
                raise WatchError(f"this {type(thing).__name__} is watched already; allowed: one watch at a time")
        modules, opaque = visible_modules(self._model)
        self._entrance = modules[0][1] if modules and modules[0][0] == "" else None
        self._modules = [(name, module) for name, module in modules if self._is_selected(name)]
        self._names, self._ties = parameter_names(self._model)
        if not self._modules and not any(map(self._is_selected, self._names.values())):
            names = [name for name, _ in modules if name] + list(self._names.values())
            raise WatchError(
                f"watch: select = {_halflab.shown(self._select.pattern)} is found in none of {len(names)} names"
                + (f", such as {_halflab.shown(names[0])}" if names else "")
            )
        self._notes = [f"{name} is compiled: outputs inside of it are not seen, its parameters are" for name in opaque]
        self._notes += [f"{name} is also {', '.join(others)}" for name, others in self._ties.items()]
        self._notes += [_note_of_complex(name) for name, p in self._named_parameters() if p.is_complex()]
        self._types, self._gradient_types = {}, {}  # of outputs by module, of gradients by parameter
        self._writer = self._new_writer()
        self._begin()
        return self

    def __exit__(self, kind, error, trace):
        ended = "finished" if kind is None else f"{kind.__name__}: {error}".splitlines()[0][:200]
        try:
            if self._step.norms:  # a step without its update()
                self._write_step()
        finally:
            self._end(ended)
        if kind is None and isinstance(self._tap, ScalerTap) and self._tap.steps_past and not self._tap.updates:
            raise WatchError(
                f"the scaler's update() was never called, and {self._tap.steps_past} optimizer steps went past it; "
                "allowed: scaler.step(optimizer) and scaler.update(), or a watch without scaler="
            )
        return False

    def _begin(self):
        self._pending, self._number, self._look_closer, self._is_muted = [], 0, False, False
        self._sorted = {}  # id of an optimizer: what its parameters were, and these in backward order
        parameters = [parameter for parameter in self._model.parameters()]
        self._order = BackwardOrder(parameters)
        self._hooks = OutputHooks(self._modules, self._on_output, self._on_gradient, self._entrance, self._on_input)
        self._twin = Twin(self._model, self._compute_loss) if self._compute_loss is not None else None
        if self._scaler is not None and self._scaler.is_enabled():
            self._tap = ScalerTap(self._scaler, self)
            self._clean_steps = self._scaler._get_growth_tracker()
            if self._optimizer is not None:
                self._tap.follow(self._optimizer)
        else:
            self._tap = OptimizerTap(self._optimizer, self)
        for thing in (self._model, self._optimizer, self._scaler):
            if thing is not None:
                _watched[id(thing)] = self
        self._state = "open"
        self._begin_step()

    def _end(self, ended):
        for part in (self._tap, self._hooks, self._twin):
            if part is not None:
                part.detach()
        self._order.stop()
        for thing in (self._model, self._optimizer, self._scaler):
            _watched.pop(id(thing), None)
        self._state = "closed"
        try:
            self._flush()
        finally:
            self._writer.close(ended)

    def _new_writer(self):
        try:
            return Writer(self.folder, self._description())
        except (OSError, ValueError) as error:
            raise WatchError(f"watch: out: {error}") from None

    def _description(self):
        parts = [f"PyTorch {torch.__version__}", type(self._model).__name__]
        parts += [type(thing).__name__ for thing in (self._optimizer, self._scaler) if thing is not None]
        return {
            "source": ", ".join(parts),
            "scaler": _spec_of(self._scaler),
            "exponents_every": self._every,
            "notes": self._notes,
            "output_types": self._types,
            "gradient_types": self._gradient_types,
            "parameter_types": {name: _type_of(parameter) for name, parameter in self._named_parameters()},
        }

    # What the record says.

    @property
    def record(self):
        """The halflab.GradientRecord so far."""
        if self._state == "new":
            raise WatchError("this watch has not begun; allowed: its answers inside of its with, and after it")
        if self._state == "open":
            self._flush()
        if self._state == "open" or not hasattr(self, "_read"):
            self._read = read_gradients(self.folder)
        return self._read

    tensors = property(lambda self: self.record.tensors, doc="As of halflab.GradientRecord.")
    skips = property(lambda self: self.record.skips, doc="As of halflab.GradientRecord.")
    steps = property(lambda self: self.record.steps, doc="As of halflab.GradientRecord.")

    def recommended_scale(self):
        """As of halflab.GradientRecord."""
        return self.record.recommended_scale()

    def report(self, out):
        """As of halflab.GradientRecord."""
        return self.record.report(out)

    def replay(self, scalers, out=None):
        """As of halflab.GradientRecord."""
        return self.record.replay(scalers, out)

    # What happens in a step.

    def _begin_step(self):
        is_sampled = self._number % self._every == 0
        self._step = _Step(self._number, is_sampled, Tally() if is_sampled or self._look_closer else None)
        if self._step.tally is not None:
            self._hooks.attach()
            if not self._order.is_known:
                self._order.learn()

    def _on_input(self, tensor):
        if not self._is_muted and is_training(self._model):
            self._step.outputs.append((INPUT, largest_above_zero(tensor)))

    def _on_output(self, name, tensor):
        if self._is_muted or not is_training(self._model):
            return
        if "activation" in self._also:
            self._step.tally.count((name, "activation"), tensor)
        self._step.outputs.append((name, largest_magnitude(tensor)))
        if self._types.get(name) != "float16":  # of several outputs the narrowest
            self._types[name] = _type_of(tensor)
        if tensor.is_complex():
            self._note(_note_of_complex(_in_words(name)))

    def _on_gradient(self, name, gradient):
        if not self._is_muted and self._step.tally is not None:
            self._step.tally.count((name, "output"), gradient)

    def loss_scaled(self):
        if self._twin is not None:
            self._twin.loss_scaled()

    def gradients_ready(self, optimizer, scale, has_stepped=False):
        step = self._step
        step.scale = scale
        if step.tally is not None and not step.weights and not has_stepped:
            step.weights = self._weights_now()
        for name, parameter in self._sorted_parameters_of(optimizer):
            if parameter.grad is None:
                continue
            step.norms.append((name, largest_magnitude(parameter.grad)))
            if step.tally is not None and self._is_selected(name):
                step.tally.count((name, "gradient"), parameter.grad)
                if "weight" in self._also:
                    step.tally.count((name, "weight"), parameter)
        if step.is_sampled and self._twin is not None and step.twin is None:
            if has_stepped:
                self._note("an optimizer with a closure: its steps are not repeated in FP32")
            else:
                with self._muted():
                    step.twin = self._twin.sample(self._sorted_parameters_of(optimizer))
        if step.tally is not None and "update" in self._also:
            self._before = [(name, p, p.detach().clone()) for name, p in self._parameters_of(optimizer)]

    def stepped(self, optimizer, found, was_applied):
        step = self._step
        step.found += found
        step.decides_itself |= was_applied is None
        step.was_applied |= was_applied is True
        if step.tally is not None and "update" in self._also:
            for name, parameter, before in self._before:
                if self._is_selected(name):
                    step.tally.count((name, "update"), parameter.detach() - before)
            self._before = []
        if was_applied is False:
            with self._muted():
                self._examine(step, optimizer)

    def step_ended(self):
        self._write_step()
        self._number += 1
        if self._twin is not None:
            self._twin.loss_scaled()
        self._begin_step()

    def _write_step(self):
        self._hooks.detach()
        self._order.stop()
        self._pending.append(self._step)
        self._look_closer = bool(self._step.skips) or self._has_just_grown()
        if self._step.tally is not None or self._step.skips or len(self._pending) >= LONGEST_WAIT:
            self._flush()

    def _has_just_grown(self):
        """Whether S is larger now than it ever was proved to be: after as many clean steps as the scaler waits for."""
        if isinstance(self._tap, OptimizerTap) or self._step.decides_itself:
            return False
        self._clean_steps = 0 if self._step.skips else self._clean_steps + 1
        if self._clean_steps != self._scaler.get_growth_interval():
            return False
        self._clean_steps = 0
        return True

    # The ledger.

    def _examine(self, step, optimizer):
        """Looks into a step that was skipped. Its gradients have been unscaled."""
        parameters = self._sorted_parameters_of(optimizer)
        suspect = first_suspect(parameters)
        scale = float(step.scale)
        step.largest = largest_finite(parameters)
        skip = {"step": step.number, "scale": scale, "outcome": "skipped", "largest_finite": step.largest}
        if suspect is not None:
            index = " ".join(map(str, suspect.index))
            skip.update(parameter=suspect.name, index=index, value=suspect.value)
        skip.update(_first_modules(step), weight_before=first_infinite(self._weights_now()))
        if self._twin is not None:
            place = None if suspect is None else (suspect.parameter, suspect.index)
            twin = step.twin = self._twin.run(parameters, scale, place)
            skip.update(
                twin=twin.verdict, twin_value=twin.value, twin_exponent=twin.exponent, cured_by=twin.cured_by
            )
        step.skips.append(skip)

    @contextlib.contextmanager
    def _muted(self):
        self._is_muted = True
        try:
            yield
        finally:
            self._is_muted = False

    # The record.

    def _flush(self):
        pending, self._pending = self._pending, []
        numbers = read_together([torch.as_tensor(step.scale) for step in pending])
        found = iter(read_together([flag for step in pending for flag in step.found]))
        norms = iter(read_together([norm for step in pending for _, norm in step.norms]))
        for step, scale in zip(pending, numbers):
            own_found = [next(found) for _ in step.found]
            own_norms = [(name, float(next(norms))) for name, _ in step.norms]
            self._write(step, float(scale), own_found, own_norms)
        self._writer.flush()

    def _write(self, step, scale, found, norms):
        first_bad = next((name for name, norm in norms if not math.isfinite(norm)), None)
        found_inf = any(found) or (not found and first_bad is not None)
        cells = {"step": step.number, "scale": scale, "found_inf": int(found_inf), "max_abs": step.largest}
        if first_bad is None:
            cells["max_abs"] = max((norm for _, norm in norms), default=0.0) / scale if scale else math.nan
        if step.tally is not None:
            self._write_counts(step, scale, cells)
        if step.twin is not None:
            self._write_twin(step, cells)
        self._writer.step(**cells)
        if found_inf and not step.skips:
            outcome = "skipped" if step.decides_itself else "applied"
            skip = {"step": step.number, "scale": scale, "outcome": outcome, "parameter": first_bad}
            step.skips.append({**skip, **_first_modules(step), "weight_before": first_infinite(step.weights)})
        for skip in step.skips:
            is_partly = skip["outcome"] == "skipped" and step.was_applied
            self._writer.skip(**{**skip, "outcome": PARTLY if is_partly else skip["outcome"]})

    def _write_counts(self, step, scale, cells):
        self._look_at_types(step)
        in_fp32 = self._fp32_parameters()
        shift = -_nearest_log2(scale)
        run, weights = ExponentHistogram(), ExponentHistogram()
        for (name, kind), histogram in step.tally.read().items():
            if kind in ("output", "gradient"):
                histogram = histogram.shifted(shift)
                if kind == "output" or name not in in_fp32:
                    run += histogram
                if kind == "gradient":
                    weights += histogram
            self._writer.tensor(step.number, name, kind, histogram)
        cells.update(max_abs_all=run.max_abs, max_abs=weights.max_abs if self._select is None else cells["max_abs"])
        if math.frexp(scale)[0] == 0.5:
            self._writer.exponents(step.number, "run", run)

    def _write_twin(self, step, cells):
        if not step.twin.tally:
            self._note(f"the repeat in FP32: {step.twin.verdict}")
            return
        in_fp32 = self._fp32_parameters()
        twin, weights = ExponentHistogram(), ExponentHistogram()
        for (name, kind), histogram in step.twin.tally.items():
            if kind == "gradient":
                weights += histogram
            if self._is_selected(name):
                self._writer.tensor(step.number, name, f"{kind} in FP32", histogram)
                if kind == "output" or name not in in_fp32:
                    twin += histogram
        cells.update(twin_max_abs=weights.max_abs, twin_max_abs_all=twin.max_abs)
        self._writer.exponents(step.number, "twin", twin)

    def _look_at_types(self, step):
        """A parameter's gradient is made in the type of its module's output; of tied ones in FP32 where all are."""
        if not step.outputs and step.norms and self._modules:
            self._note("no module was seen to run, as where torch.compile made the model: parameters alone are counted")
        for name in self._names.values():
            owners = [own.rpartition(".")[0] for own in (name, *self._ties.get(name, ()))]
            types = [self._types[owner] for owner in owners if owner in self._types]
            if len(types) == len(owners):
                self._gradient_types[name] = next((each for each in types if each != "float32"), "float32")

    def _fp32_parameters(self):
        return fp32_parameters({"output_types": self._types, "gradient_types": self._gradient_types})

    def _weights_now(self):
        return [(name, largest_magnitude(parameter)) for name, parameter in self._named_parameters()]

    def _named_parameters(self):
        return [(self._names[id(p)], p) for p in self._model.parameters() if id(p) in self._names]

    def _note(self, note):
        if note not in self._notes:
            self._notes.append(note)

    def _is_selected(self, name):
        return self._select is None or self._select.search(name) is not None

    def _sorted_parameters_of(self, optimizer):
        """In backward order; sorted again only where the optimizer has other parameters, or the order was learnt."""
        key = (self._order.is_known, *(id(p) for options in optimizer.param_groups for p in options["params"]))
        known = self._sorted.get(id(optimizer))
        if known is None or known[0] != key:
            known = self._sorted[id(optimizer)] = key, self._order.sorted(self._parameters_of(optimizer))
        return known[1]

    def _parameters_of(self, optimizer):
        return [
            (self._names.get(id(parameter), f"param_groups.{group}.{place}"), parameter)
            for group, options in enumerate(optimizer.param_groups)
            for place, parameter in enumerate(options["params"])
        ]


def _check(model, optimizer, scaler, every, also, twin):
    def refuse(what, allowed):
        raise WatchError(f"watch: {what} is not allowed; allowed: {allowed}")

    if not isinstance(model, torch.nn.Module):
        refuse(f"model = a {type(model).__name__}", "a torch.nn.Module")
    if optimizer is not None and not isinstance(getattr(optimizer, "param_groups", None), list):
        refuse(f"optimizer = a {type(optimizer).__name__}", "a torch.optim.Optimizer")
    if scaler is not None and not hasattr(scaler, "is_enabled"):
        refuse(f"scaler = a {type(scaler).__name__}", "a torch.amp.GradScaler")
    if optimizer is None and (scaler is None or not scaler.is_enabled()):
        raise WatchError(
            "watch: nothing says when a step ends; needed: optimizer=, whose step() ends one, or scaler=, one that is enabled"
        )
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        refuse(f"every = {_halflab.shown(every)}", "whole numbers from 1")
    for name in (also,) if isinstance(also, str) else also:
        if name not in KINDS or isinstance(also, str):
            refuse(f"also = {_halflab.shown(also)}", f"a list of {', '.join(KINDS)}")
    if twin is not None and not callable(twin):
        refuse(f"twin = {_halflab.shown(twin)}", "a function that makes the loss of the batch again")
    if optimizer is not None and not _are_of_one(model, optimizer):
        refuse("an optimizer without any parameter of the model", "the one that trains it")


def _are_of_one(model, optimizer):
    own = set(map(id, model.parameters()))
    return any(id(parameter) in own for options in optimizer.param_groups for parameter in options["params"])


def _pattern(select):
    try:
        return None if select is None else re.compile(select)
    except (re.error, TypeError) as error:
        raise WatchError(f"watch: select = {_halflab.shown(select)} is not allowed ({error}); allowed: a regular expression") from None


def _own_folder(folder):
    """A folder for each rank of a distributed run."""
    if torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        return os.path.join(str(folder), f"rank{torch.distributed.get_rank()}")
    return str(folder)


def _spec_of(scaler):
    """The GradScaler as halflab names it, with its options; empty of none."""
    if scaler is None or not scaler.is_enabled():
        return ""
    options = {
        "init_scale": scaler.get_scale(),
        "growth_factor": scaler.get_growth_factor(),
        "backoff_factor": scaler.get_backoff_factor(),
        "growth_interval": scaler.get_growth_interval(),
    }
    return "dynamic:" + ":".join(f"{name}={value:.17g}" for name, value in options.items())


def _first_modules(step):
    """Where hooks were on: the first module whose output's gradient was not finite, and the first whose output was not."""
    if step.tally is None:
        return {}
    outputs = {name: histogram for (name, kind), histogram in step.tally.read().items() if kind == "output"}
    return {
        "module_output": _in_words(first_not_finite(outputs)),
        "forward_output": _in_words(first_infinite(step.outputs)),
    }


def _type_of(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _note_of_complex(name):
    return f"{name} is complex: the real and the imaginary part of a number count as two values"


def _in_words(module):
    """A module's name; that of the model itself is empty, as where there is none."""
    return "the model" if module == "" else module


def _nearest_log2(scale):
    """The exponent of a power of two; of another scale the nearest one."""
    return round(math.log2(scale)) if scale > 0 and math.isfinite(scale) else 0
