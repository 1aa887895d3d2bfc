"""watch: what a training run's gradients are, and why a step was lost."""

import contextlib
import os
import shutil
import tempfile
import warnings
import weakref

import torch

from .. import _halflab
from ..gradients.findings import INPUT, INPUT_OF
from .answers import Answers
from .arguments import KINDS, check, own_folder, pattern_of, rank_in_run, spec_of
from .counts import Tally, largest_above_zero, largest_magnitude
from .errors import WatchError
from .guard import Guard
from .hooks import OutputHooks, visible_modules
from .ledger import BackwardOrder, skip_of
from .parameters import Parameters
from .recorder import Recorder
from .step import Step, in_words
from .taps import OptimizerTap, ScalerTap
from .twin import Twin, is_training
from .widths import Widths

LONGEST_WAIT = 256  # steps whose S and found_inf wait on the device to be written

def _remove(folder, owner):
    """Not in a process that was forked from the owner."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


_watched = {}  # id of a model, optimizer or scaler: the watch that it is in


class watch(Answers):
    """Watches the training inside of a `with`: which gradients FP16 loses, at which scale, and why steps are skipped.

    model      the module that is trained
    optimizer  whose step() ends a step; not needed where a scaler is given
    scaler     a torch.amp.GradScaler, whose update() then ends a step
    every      steps from one sample to the next; hooks are on at samples alone, and after a step that was skipped or let S grow
    out        the folder of the record, new or empty, or that of an earlier one; without one it is kept until the watch is gone
    select     a regular expression: names of modules and parameters to count; all without one
    also       of "activations", "weights", "updates": what is counted besides gradients
    twin       a function that makes the loss of the step again, of all its micro-batches; sampled and skipped steps are then
               repeated in FP32, with the random state, the buffers and the attributes of modules put back, to say what FP16
               lost, and whether a smaller S cures a skip

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
        check(model, optimizer, scaler, every, also, twin)
        self._model, self._optimizer, self._scaler = model, optimizer, scaler
        self._every, self._also, self._compute_loss = every, {KINDS[name] for name in also}, twin
        self._select, self._owner = pattern_of(select), os.getpid()
        if out is None:
            out = tempfile.mkdtemp(prefix="halflab-watch-")
            weakref.finalize(self, _remove, out, self._owner)
        self.folder = own_folder(out)
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
        self._parameters = Parameters(self._model, self._select)
        is_selected = self._parameters.is_selected
        self._modules = [(name, module) for name, module in modules if is_selected(name)]
        if not self._modules and not any(map(is_selected, self._parameters.names)):
            names = [name for name, _ in modules if name] + self._parameters.names
            raise WatchError(
                f"watch: select = {_halflab.shown(self._select.pattern)} is found in none of {len(names)} names"
                + (f", such as {_halflab.shown(names[0])}" if names else "")
            )
        notes = [f"{name} is compiled: outputs inside of it are not seen, its parameters are" for name in opaque]
        notes += [f"{name} is also {', '.join(others)}" for name, others in self._parameters.ties.items()]
        notes += self._parameters.notes_of_others(self._optimizer) if self._scaler is None else []
        self._widths = Widths(self._parameters.named())
        self._recorder = Recorder(self.folder, self._description(), self._parameters, self._widths, notes)
        try:
            self._begin()
        except BaseException as error:
            self._end(error)
            raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            if self._step.norms:  # a step without its update()
                self._write_step()
        finally:
            self._end(error)
        if kind is None and isinstance(self._tap, ScalerTap) and self._tap.steps_past and not self._tap.updates:
            raise WatchError(
                f"the scaler's update() was never called, and {self._tap.steps_past} optimizer steps went past it; "
                "allowed: scaler.step(optimizer) and scaler.update(), or a watch without scaler="
            )
        return False

    def _begin(self):
        self._tap = self._hooks = self._twin = None
        self._ended_early = None  # why, where the record could not be written
        self._pending, self._number, self._look_closer, self._is_muted = [], 0, False, False
        self._sorted = {}  # id of an optimizer: what its parameters were, and these in backward order
        parameters = [parameter for parameter in self._model.parameters()]
        self._order = BackwardOrder(parameters)
        guard = self._guard = Guard(self._recorder.note)
        self._hooks = OutputHooks(
            self._modules, self._on_output, self._on_gradient, guard, self._entrance, self._on_input
        )
        if self._compute_loss is not None:
            self._twin = Twin(self._model, self._compute_loss, guard)
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

    def _end(self, error):
        ended = "finished" if error is None else f"{type(error).__name__}: {error}".splitlines()[0][:200]
        for part in (self._tap, self._hooks, self._twin):
            if part is not None:
                part.detach()
        self._widths.detach()
        self._order.stop()
        for thing in (self._model, self._optimizer, self._scaler):
            _watched.pop(id(thing), None)
        self._state = "closed"
        if os.getpid() != self._owner:
            return
        try:
            self._flush()
        finally:
            with self._ending_early():
                self._recorder.close(self._ended_early or ended)

    def _description(self):
        parts = [f"PyTorch {torch.__version__}", type(self._model).__name__]
        parts += [type(thing).__name__ for thing in (self._optimizer, self._scaler) if thing is not None]
        source = {"source": ", ".join(parts), "scaler": spec_of(self._scaler), "exponents_every": self._every}
        return {**source, **rank_in_run()}

    # What happens in a step.

    def _begin_step(self):
        is_recorded = self._ended_early is None
        is_sampled = is_recorded and self._number % self._every == 0
        self._before = {}  # id of an optimizer: (name, parameter, what it was before the step)
        self._step = Step(self._number, is_sampled, Tally() if is_sampled or is_recorded and self._look_closer else None)
        if self._step.tally is not None:
            self._hooks.attach()
            self._widths.attach()
            if not self._order.is_known:
                self._order.learn()

    def _on_input(self, name, tensor):
        if not self._is_muted and is_training(self._model):
            what = name if name == INPUT else INPUT_OF + in_words(name)
            self._step.outputs.append((what, largest_above_zero(tensor)))

    def _on_output(self, name, tensor):
        if self._is_muted or not is_training(self._model):
            return
        if "activation" in self._also:
            self._step.tally.count((name, "activation"), tensor)
        self._step.outputs.append((name, largest_magnitude(tensor)))
        self._recorder.see_output(name, tensor)

    def _on_gradient(self, name, gradient):
        if not self._is_muted and self._step.tally is not None:
            self._step.tally.count((name, "output"), gradient)

    def gradients_ready(self, optimizer, scale, has_stepped=False):
        if self._ended_early is not None:
            return
        step = self._step
        step.scale = scale
        if step.tally is not None and not step.weights and not has_stepped:
            with self._guard.over("the weights"):
                step.weights = self._parameters.largest()
        for name, parameter in self._sorted_parameters_of(optimizer):
            if parameter.grad is not None and not self._guard.is_blind(name):
                try:
                    self._see_parameter(step, name, parameter)
                except Exception as error:  # at every step, for which a `with` is slow
                    self._guard.see_error(name, error)
        if step.is_sampled and self._twin is not None and step.twin is None:
            if has_stepped:
                self._recorder.note("an optimizer with a closure: its steps are not repeated in FP32")
            else:
                with self._muted(), self._guard.over("the repeat in FP32"):
                    step.twin = self._twin.sample(self._trained_parameters(optimizer))

    def _see_parameter(self, step, name, parameter):
        step.norms.append((name, largest_magnitude(parameter.grad)))
        if step.tally is not None and self._parameters.is_selected(name):
            step.tally.count((name, "gradient"), parameter.grad)
            if "weight" in self._also:
                step.tally.count((name, "weight"), parameter)

    def steps_now(self, optimizer):
        if self._step.tally is not None and "update" in self._also:
            selected = [(n, p) for n, p in self._parameters.of(optimizer) if self._parameters.is_selected(n)]
            self._before[id(optimizer)] = [(name, p, p.detach().clone()) for name, p in selected]

    def stepped(self, optimizer, found, was_applied):
        if self._ended_early is not None:
            return
        step = self._step
        step.found += found
        step.decides_itself |= was_applied is None
        step.was_applied |= was_applied is True
        with self._guard.over("an update"):
            for name, parameter, before in self._before.pop(id(optimizer), ()):
                step.tally.count((name, "update"), parameter.detach() - before)
        if was_applied is False:
            with self._muted():
                self._examine(step, optimizer)

    def step_ended(self):
        with self._guard.over("the record of a step"):
            self._write_step()
        self._number += 1
        if self._twin is not None:
            self._twin.step_begins()
        self._begin_step()

    def _write_step(self):
        step = self._step
        self._hooks.detach()
        self._widths.detach()
        self._order.stop()
        self._pending.append(step)
        self._look_closer = bool(step.skips) or self._has_just_grown()
        if step.tally is not None and not step.outputs and step.norms and self._modules:
            self._recorder.note(
                "no module was seen to run, as where torch.compile made the model: parameters alone are counted"
            )
        if step.tally is not None or step.skips or len(self._pending) >= LONGEST_WAIT:
            self._flush()

    def _flush(self):
        pending, self._pending = self._pending, []
        if self._ended_early is None and os.getpid() == self._owner:  # the record is not a forked process's
            with self._ending_early():
                self._recorder.write(pending)

    @contextlib.contextmanager
    def _ending_early(self):
        """Where the record cannot be written, the training goes on, and it alone."""
        try:
            yield
        except OSError as error:
            if self._ended_early is not None:
                return
            self._ended_early = f"stopped at step {self._number}: {error.strerror}"
            if self._twin is not None:
                self._twin.detach()
            self._twin = None
            where = f"watch: the record {self.folder} cannot be written ({error.strerror})"
            warnings.warn(f"{where}; it ends at step {self._number}, the training goes on", RuntimeWarning)

    def _has_just_grown(self):
        """Whether S is larger now than it ever was proved to be: after as many clean steps as the scaler waits for."""
        if isinstance(self._tap, OptimizerTap) or self._step.decides_itself:
            return False
        self._clean_steps = 0 if self._step.skips else self._clean_steps + 1
        if self._clean_steps != self._scaler.get_growth_interval():
            return False
        self._clean_steps = 0
        return True

    def _examine(self, step, optimizer):
        """Looks into a step that was skipped."""

        def repeat(scale, suspect):
            return self._twin.run(self._trained_parameters(optimizer), scale, suspect)

        with self._guard.over("a skipped step"):
            own = [(n, p) for n, p in self._sorted_parameters_of(optimizer) if not self._guard.is_blind(n)]
            row = skip_of(step, own, self._parameters.largest(), None if self._twin is None else repeat)
            step.skips.append(row)
            return
        step.skips.append({"step": step.number, "scale": float(step.scale), "outcome": "skipped"})

    @contextlib.contextmanager
    def _muted(self):
        self._is_muted = True
        try:
            yield
        finally:
            self._is_muted = False

    def _trained_parameters(self, optimizer):
        return self._order.sorted(self._parameters.trained(optimizer))

    def _sorted_parameters_of(self, optimizer):
        """In backward order; sorted again only where the optimizer has other parameters, or the order was learnt."""
        key = (self._order.is_known, *(id(p) for options in optimizer.param_groups for p in options["params"]))
        known = self._sorted.get(id(optimizer))
        if known is None or known[0] != key:
            known = self._sorted[id(optimizer)] = key, self._order.sorted(self._parameters.of(optimizer))
        return known[1]
