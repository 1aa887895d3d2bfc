"""The step once more: in FP32, which tells what FP16 lost, and at smaller scales, whether one would have cured it."""

import contextlib
import dataclasses
import math
import random

import numpy as np
import torch

from .attributes import Attributes
from .counts import Tally, largest_magnitude, read_together, stored_values
from .guard import in_one_line
from .hooks import Hook, OutputHooks, is_in_backward, unwrapped, visible_modules

LARGEST = 65504.0  # of binary16
TRIES = 8  # smaller scales that are tried, each half or twice the one before


@dataclasses.dataclass
class TwinResult:
    """What the FP32 step was, and the largest scale that was tried and left the step finite."""

    verdict: str  # "finite", "not finite", or why there is none
    tally: dict = dataclasses.field(default_factory=dict)
    value: float = None  # of the gradient's element that was not finite
    cured_by: float = None

    @property
    def exponent(self):
        return math.frexp(self.value)[1] - 1 if self.value and math.isfinite(self.value) else None


class OtherPasses(Exception):
    """The repeat has not as many forward passes as the step, so that it is another step."""


class Twin:
    """Repeats a step with the random state, buffers and attributes that its first forward pass began with, and puts back
    those that were there. `compute_loss` makes the loss of the step again, of all its forward passes."""

    def __init__(self, model, compute_loss, guard):
        self._model, self._compute_loss, self._guard = model, compute_loss, guard
        self._is_running = False
        self.step_begins()
        # Of the module inside of DistributedDataParallel, which is called when buffers have come from rank 0.
        entrance = unwrapped(model)
        takes_hooks = not isinstance(entrance, torch.jit.ScriptModule)
        self._handle = entrance.register_forward_pre_hook(Hook(self._forward_begins)) if takes_hooks else None

    def detach(self):
        if self._handle is not None:
            self._handle.remove()

    def step_begins(self):
        self._began, self._passes = None, 0

    def _forward_begins(self, _module, _inputs):
        if not torch.is_grad_enabled() or is_in_backward():
            return
        if self._is_running:
            self._repeated += 1
            return
        self._passes += 1
        if self._passes == 1:
            with self._guard.over("the state that a step begins with"):
                self._began = _State(self._model)

    def sample(self, named_parameters):
        """The step's gradients in FP32."""
        return self._repeat(named_parameters, lambda: self._sample(named_parameters)[0])

    def run(self, named_parameters, scale, suspect):
        """`suspect` is (parameter, index) of the gradient that was not finite, or None."""
        return self._repeat(named_parameters, lambda: self._examine(named_parameters, scale, suspect))

    def _repeat(self, named_parameters, examine):
        if self._began is None:
            return TwinResult("none: the model itself was not called, or as torch.compile or torch.jit made it")
        if any(p.is_floating_point() and torch.finfo(p.dtype).bits < 32 for _, p in named_parameters):
            return TwinResult("none: the weights are of 16 bits; allowed: FP32 weights under autocast")
        now, self._is_running = _State(self._model), True
        try:
            return examine()
        except OtherPasses as error:
            return TwinResult(f"none: {error}")
        except Exception as error:  # the training goes on, whatever the user's function does when called again
            return TwinResult(f"none: {in_one_line(error)}")
        finally:
            now.put_back()
            self._is_running = False

    def _sample(self, named_parameters):
        tally = Tally()
        gradients = self._gradients(named_parameters, 1.0, as_it_was=False, tally=tally)
        counts = tally.read()
        is_finite = not any(histogram.infinite + histogram.nan for histogram in counts.values())
        return TwinResult("finite" if is_finite else "not finite", counts), gradients

    def _examine(self, named_parameters, scale, suspect):
        result, gradients = self._sample(named_parameters)
        if result.verdict == "not finite":
            return result
        if suspect is not None:
            result.value = _element(gradients, suspect)
        largest = max((histogram.max_abs for histogram in result.tally.values()), default=0.0)
        result.cured_by = self._cure(named_parameters, scale, largest)
        return result

    def _cure(self, named_parameters, scale, largest):
        """The largest scale below that leaves the step finite. From where the largest gradient of all fits FP16 it is looked
        for downwards, or upwards: gradients that are made in FP32 may be larger."""
        if largest == 0:
            return None
        candidate, tried = min(2.0 ** math.floor(math.log2(LARGEST / largest)), scale / 2), {}
        while len(tried) < TRIES and candidate not in tried and candidate <= scale / 2:
            tried[candidate] = self._is_finite_at(named_parameters, candidate)
            candidate *= 2 if tried[candidate] else 0.5
        return max((scale for scale, is_finite in tried.items() if is_finite), default=None)

    def _is_finite_at(self, named_parameters, scale):
        gradients = self._gradients(named_parameters, scale, as_it_was=True)
        return all(map(math.isfinite, read_together([largest_magnitude(gradient) for _, gradient in gradients])))

    def _gradients(self, named_parameters, scale, as_it_was, tally=None):
        """[(parameter, gradient)] of the loss times the scale, in FP32 or in the precision of the forward pass."""
        self._began.put_back()
        self._repeated = 0
        hooks = OutputHooks(
            visible_modules(self._model)[0],
            lambda name, tensor: None,
            lambda name, gradient: tally.count((name, "output"), gradient),
            self._guard,
        )
        parameters = [parameter for _, parameter in named_parameters]
        precision = self._began.autocast() if as_it_was else autocast_off()
        with torch.enable_grad(), precision, _without_other_ranks(self._model):
            if tally is not None:
                hooks.attach()
            try:
                loss = self._compute_loss()
                if self._repeated != self._passes:
                    raise OtherPasses(
                        f"the step had {self._passes} forward passes and the function of twin= makes {self._repeated}; "
                        "allowed: one that makes the loss of all of them"
                    )
                gradients = torch.autograd.grad(loss.float() * scale, parameters, allow_unused=True)
            finally:
                hooks.detach()
        found = [(p, gradient) for p, gradient in zip(parameters, gradients) if gradient is not None]
        if tally is not None:
            names = {id(p): name for name, p in named_parameters}
            for parameter, gradient in found:
                tally.count((names[id(parameter)], "gradient"), gradient)
        return found


def is_training(model):
    """Whether a forward pass now is one of training; with neither gradients nor train() it is one of evaluation."""
    return torch.is_grad_enabled() or model.training


def _element(gradients, suspect):
    parameter, index = suspect
    for own, gradient in gradients:
        if own is parameter and gradient.layout is torch.strided:
            return float(stored_values(gradient)[index])
    return None


class _State:
    """Random state of PyTorch, Python and numpy, buffers, weights that forward passes change, attributes of the modules, and
    autocast, as they are now."""

    def __init__(self, model):
        self._python, self._numpy = random.getstate(), np.random.get_state()
        self._cpu = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
        self._attributes = Attributes(unwrapped(model))
        tensors = [*unwrapped(model).buffers(), *_renormalised_weights(model)]
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._autocast = {device: autocast_dtype(device) for device in ("cpu", "cuda")}

    def put_back(self):
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        torch.set_rng_state(self._cpu)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)
        self._attributes.put_back()
        for tensor, values in self._tensors:
            tensor.data.copy_(values)  # .data: a graph that is kept does not count it as a change

    @contextlib.contextmanager
    def autocast(self):
        with contextlib.ExitStack() as stack:
            for device, dtype in self._autocast.items():
                if dtype is not None:
                    stack.enter_context(torch.autocast(device, dtype=dtype))
            yield


def _renormalised_weights(model):
    """Those of embeddings with max_norm, which a forward pass divides in place."""
    return [module.weight for module in model.modules() if getattr(module, "max_norm", None) is not None]


def autocast_dtype(device):
    """The type that autocast of a device casts to now; None where it is off."""
    try:
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    except (AttributeError, TypeError):  # before PyTorch 2.4
        on = torch.is_autocast_enabled() if device == "cuda" else torch.is_autocast_cpu_enabled()
        return getattr(torch, "get_autocast_gpu_dtype" if device == "cuda" else "get_autocast_cpu_dtype")() if on else None


@contextlib.contextmanager
def autocast_off():
    """No autocast, not even where what is called enters it; in no thread, since DataParallel and the backward pass of a
    GPU, which repeats what activation checkpointing left out, have threads of their own."""
    enter = torch.autocast.__enter__

    def enter_disabled(self):
        enabled, self._enabled = self._enabled, False
        try:
            return enter(self)
        finally:
            self._enabled = enabled

    torch.autocast.__enter__ = enter_disabled
    try:
        with contextlib.ExitStack() as stack:
            for device in ("cpu", "cuda"):
                if autocast_dtype(device) is not None:
                    stack.enter_context(torch.autocast(device))
            yield
    finally:
        torch.autocast.__enter__ = enter


@contextlib.contextmanager
def _without_other_ranks(model):
    """Neither gradients nor buffers are sent; and the next forward pass sends what it would have sent."""
    with contextlib.ExitStack() as stack:
        if hasattr(model, "no_sync"):
            stack.enter_context(model.no_sync())
        sends_buffers = getattr(model, "require_forward_param_sync", None)
        if sends_buffers is None:
            yield
            return
        model.require_forward_param_sync = False
        try:
            yield
        finally:
            model.require_forward_param_sync = sends_buffers
