"""Hooks that show the outputs of modules and their gradients, for one step at a time."""

import dataclasses
import functools
import sys
import weakref
from collections.abc import Mapping

import torch
from torch.utils import checkpoint

from ..gradients.findings import INPUT

is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


class Hook:
    """A hook of one module, which changes nothing. There is nothing to see for it in a copy of the module, in one that was
    saved, and where torch.compile traces it: a graph is the same with and without."""

    def __init__(self, see):
        self._see = see

    def __call__(self, *arguments):
        if not is_compiling():
            self._see(*arguments)

    def __reduce__(self):
        return NoHook, ()


class NoHook:
    """What is left of a Hook in a copy."""

    def __call__(self, *_arguments):
        pass


class OutputHooks:
    """Shows each output of each module, and its gradient when the backward pass makes it.

    They are tensor hooks set from forward hooks: full backward hooks raise where a module works in place. A tensor that
    several modules return is that of the innermost. Nothing is changed, and nothing is kept.

    on_output(name, tensor)     in the forward pass, outputs that need no gradient too
    on_gradient(name, tensor)   in the backward pass
    on_input(name, tensor)      in the forward pass, what a module is given and none has returned; before the entrance, a module
                                or none, with the name INPUT
    guard                       a Guard, which keeps errors of these three from the training
    """

    def __init__(self, modules, on_output, on_gradient, guard, entrance=None, on_input=None):
        self._modules, self._on_output, self._on_gradient = modules, on_output, on_gradient
        self._entrance, self._on_input = entrance, on_input
        self._guard, self._handles, self._seen = guard, [], {}

    def attach(self):
        if self._entrance is not None:
            self._handles.append(_before_forward(self._entrance, self._show_inputs))
        for name, module in self._modules:
            self._handles.append(module.register_forward_hook(Hook(functools.partial(self._show_outputs, name))))

    def detach(self):
        for handle in self._handles:
            handle.remove()
        self._handles, self._seen = [], {}

    def _show_inputs(self, inputs):
        with self._guard.over(INPUT):
            for tensor in tensors_in(inputs):
                if _has_gradients(tensor) and self._is_new(tensor):
                    self._on_input(INPUT, tensor)

    def _show_outputs(self, name, _module, inputs, outputs):
        if self._guard.is_blind(name):
            return
        with self._guard.over(name):
            self._show_given(name, inputs, outputs)
            for tensor in tensors_in(outputs):
                if _has_gradients(tensor) and self._is_new(tensor):
                    self._show(name, tensor)

    def _show_given(self, name, inputs, outputs):
        if self._on_input is None or is_in_backward():
            return
        returned = set(map(id, tensors_in(outputs)))
        for tensor in tensors_in(inputs):
            is_changed = id(tensor) in returned and _version_of(tensor) > 0  # by a module that works in place
            if _has_gradients(tensor) and not is_changed and not self._is_known(tensor):
                self._on_input(name, tensor)

    def _show(self, name, tensor):
        if not is_in_backward():  # else activation checkpointing repeats a forward pass
            self._on_output(name, tensor)
        if tensor.requires_grad:
            self._handles.append(hook_of_gradient(tensor, functools.partial(self._show_gradient, name)))

    def _show_gradient(self, name, gradient):
        with self._guard.over(name):
            self._on_gradient(name, gradient)

    def _is_new(self, tensor):
        """Whether no module inside of this one has returned the tensor, as it is now."""
        if self._is_known(tensor):
            return False
        self._seen[id(tensor), _version_of(tensor)] = weakref.ref(tensor)
        return True

    def _is_known(self, tensor):
        known = self._seen.get((id(tensor), _version_of(tensor)))
        return known is not None and known() is tensor


def _version_of(tensor):
    """How often it was changed in place."""
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has none
        return 0


def _has_gradients(tensor):
    return tensor.is_floating_point() or tensor.is_complex()


def _before_forward(module, see):
    """see(what the module is given), before each of its forward passes. The hook's handle."""
    try:
        return module.register_forward_pre_hook(Hook(lambda _, places, names: see([places, names])), with_kwargs=True)
    except TypeError:  # before PyTorch 2.0
        return module.register_forward_pre_hook(Hook(lambda _, places: see(places)))


def hook_of_gradient(tensor, see):
    """see(gradient of the tensor as it is now, whatever works in it in place later). The hook's handle."""
    if _HOOKS_STAY_WITH_VALUES or tensor.grad_fn is None:
        return tensor.register_hook(see)
    place = tensor.output_nr

    def see_output(_input_gradients, output_gradients):
        if output_gradients[place] is not None:
            see(output_gradients[place])

    return tensor.grad_fn.register_hook(see_output)


# A tensor's hook sees the gradient of the value that the tensor had when the hook was set; before PyTorch 2.0, the last value's.
_HOOKS_STAY_WITH_VALUES = hasattr(getattr(torch.autograd.graph, "Node", None), "register_prehook")


def tensors_in(outputs):
    """The tensors of what a module returns: a tensor, or tuples, lists, mappings and dataclasses of them."""
    if isinstance(outputs, torch.Tensor):
        yield outputs
        return
    if isinstance(outputs, Mapping):
        parts = outputs.values()
    elif isinstance(outputs, (tuple, list)):
        parts = outputs
    elif dataclasses.is_dataclass(outputs) and not isinstance(outputs, type):
        parts = [getattr(outputs, field.name) for field in dataclasses.fields(outputs)]
    else:
        return
    for part in parts:
        yield from tensors_in(part)


def is_in_backward():
    """Whether a backward pass is under way in this thread; where PyTorch is too old to say, whether activation checkpointing
    repeats a forward pass."""
    current = getattr(torch._C, "_current_graph_task_id", None)
    if current is not None:
        return current() != -1
    frame = sys._getframe()
    while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) not in _REPEATS:
        frame = frame.f_back
    return frame is not None


_REPEATS = [(checkpoint.__file__, name) for name in ("backward", "unpack")]


def visible_modules(model):
    """(name, module) of every module whose outputs hooks see, and the names of compiled ones, whose insides they do not.

    Names are without what DistributedDataParallel, DataParallel and torch.compile put before them.
    """
    visible, opaque = [], []

    def visit(name, module):
        if getattr(module, "_compiled_call_impl", None) is not None:
            opaque.append(name or "the model")  # module.compile(): what it calls is compiled, hooks too
            return
        if isinstance(module, torch.jit.ScriptModule):
            opaque.append(name or "the model")  # takes no hooks
            return
        visible.append((name, module))
        if hasattr(module, "_orig_mod"):
            opaque.append(name or "the model")
            return
        for child_name, child in module.named_children():
            visit(f"{name}.{child_name}" if name else child_name, child)

    visit("", unwrapped(model))
    return visible, opaque


def unwrapped(model):
    """The user's own module inside of wrappers for several GPUs."""
    wrappers = [torch.nn.DataParallel]
    if torch.distributed.is_available():
        wrappers.append(torch.nn.parallel.DistributedDataParallel)
    while isinstance(model, tuple(wrappers)):
        model = model.module
    return model
