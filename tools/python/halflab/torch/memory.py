"""What a training step of a user's own model takes, found without taking it: the model runs on tensors without values."""

import contextlib
import functools
import itertools
import logging

import torch

from .. import _halflab
from .attention import fused_attention
from .attributes import Attributes
from .hooks import unwrapped, visible_modules

AUTOCAST = {"binary16": torch.float16, "bfloat16": torch.bfloat16, "binary32": None}


class Memory(dict):
    """Bytes of a training step by role, as halflab.memory() has them; print() shows a table.

    formula   what halflab.memory() counts for the same parameters, of the roles that follow from them
    modules   bytes of activations by the name of the module that saved them first, in the order of the forward pass
    """

    def __init__(self, roles, formula, modules):
        super().__init__(roles)
        self.formula, self.modules = formula, modules

    def __str__(self):
        rows = [("role", "bytes", "by formula")]
        formula = {role: f"{size:,}" for role, size in self.formula.items()}
        rows += [(role, f"{size:,}", formula.get(role, "")) for role, size in self.items()]
        rows += [("", "", ""), ("activations of", "bytes", "")]
        rows += [(name or "the model", f"{size:,}", "") for name, size in self.modules.items()]
        first, *rest = (max(len(cell) for cell in column) for column in zip(*rows))
        return "\n".join(f"{a:{first}}  {b:>{rest[0]}}  {c:>{rest[1]}}".rstrip() for a, b, c in rows)


def memory(model, example, policy="amp", optimizer="adamw", loss=None, device=None):
    """Bytes that one training step of a model takes, a dict by role that prints as a table.

    model      a torch.nn.Module with float32 weights, in the mode that it is in: model.train() for training
    example    what it is called with: a tensor, a tuple of arguments or a dict of keywords
    policy     of halflab.policies those that autocast is: "amp", "bf16", "fp32"
    optimizer  one of halflab.optimizers, options behind colons
    loss       a function of the model's output, for what it saves; without one the output ends the step
    device     "cuda" for what a GPU would take, which need not be there; the device of the weights if not given

    Found by a forward pass on fake tensors, which takes neither memory nor time: weights, gradients (of parameters
    that need one), buffers, cast_weights (autocast's copies) and activations, which are all storages that autograd
    saves for backward, each counted once and whole, but for weights, their copies and buffers. The example counts
    where it is saved. By formula, as halflab.memory(): the optimizer's state, master weights and unscaled gradients.
    `total`, `inference` and `parameters` are as there. Left out are temporaries, what an allocator adds, and what a
    torch.autograd.Function keeps as attributes. On the CPU PyTorch's fake norms under autocast have statistics of
    16 bits, which really are float32.

    The model is not changed: what its forward() puts into attributes, and lists, dicts and sets in them, is taken out again.
    ValueError, in one line, for what is not allowed, a model that needs values to run, and a
    PyTorch before 2.4.

    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    >>> step = halflab.torch.memory(model, torch.zeros(100, 64), "bf16")
    >>> step["optimizer_state"] == 8 * step["parameters"]
    True
    >>> step["activations"] == 100 * (64 + 32) * 2         # the inputs of both layers; ReLU's output is one of them
    True
    """
    lower = _autocast_type(policy)
    _halflab.parameter_memory([], policy, optimizer)  # so that wrong options are refused now
    own = _checked(model)
    device = _device_of(own, device)
    _refuse_recurrent_layers(own, device)
    forward = _Forward(own, lower, device)
    forward.run(example, loss)
    parameters = list(own.parameters())
    trained = [p.numel() for p in parameters if p.requires_grad]
    formula = _halflab.parameter_memory(trained, policy, optimizer)
    formula["weights"] = _halflab.parameter_memory([p.numel() for p in parameters], policy, optimizer)["weights"]
    for role in ("cast_weights", "buffers", "activations"):
        del formula[role]
    roles = {
        "weights": _bytes(parameters),
        "cast_weights": forward.cast_bytes,
        "master_weights": formula["master_weights"],
        "gradients": _bytes(p for p in parameters if p.requires_grad),
        "unscaled_gradients": formula["unscaled_gradients"],
        "optimizer_state": formula["optimizer_state"],
        "buffers": _bytes(own.buffers()),
        "activations": sum(forward.saved.values()),
    }
    roles["total"] = sum(roles.values())
    roles["inference"] = roles["weights"] + roles["cast_weights"] + roles["buffers"]
    roles["parameters"] = sum(p.numel() for p in parameters)
    return Memory(roles, formula, forward.saved)


def _autocast_type(policy):
    """The type that autocast casts to under a policy; None for no autocast."""
    rows = {
        name: row
        for name, row in _halflab.policies.items()
        if row["casts"] in ("none", "torch_autocast")
        and row["model"] == "binary32"
        and row["operand_weights"] == "as stored"
    }
    if not isinstance(policy, str) or policy not in rows:
        raise ValueError(f"memory: policy = {_halflab.shown(policy)} is not allowed; allowed, being autocast or none: {', '.join(rows)}")
    return AUTOCAST[rows[policy]["lower_precision"]]


def _checked(model):
    """The module inside of wrappers."""
    if not hasattr(torch, "set_autocast_dtype"):
        raise ValueError(f"memory: PyTorch {torch.__version__} is not allowed; allowed: 2.4 or newer")
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"memory: a {type(model).__name__} is not allowed; allowed: a torch.nn.Module")
    opaque = visible_modules(model)[1]
    if opaque:
        raise ValueError(f"memory: {opaque[0]} is compiled; allowed: the model before torch.compile and torch.jit")
    own = unwrapped(model)
    for name, parameter in own.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise ValueError(f"memory: parameter '{name}' has no shape yet; allowed: a model that has run once")
        if parameter.dtype != torch.float32:
            raise ValueError(f"memory: parameter '{name}' is of {parameter.dtype}; allowed: torch.float32")
    return own


def _device_of(model, wanted):
    """The device of the fake tensors. On one that PyTorch was not built for, autograd would end the process."""
    if wanted is None:
        wanted = next((tensor.device for tensor in itertools.chain(model.parameters(), model.buffers())), "cpu")
    allowed = ["cpu"] + ["cuda"] * torch.backends.cuda.is_built()
    kind = str(wanted).partition(":")[0]
    if kind not in allowed:
        raise ValueError(f"memory: device = {str(wanted)!r} is not allowed; allowed by this PyTorch: {', '.join(allowed)}")
    return torch.device(kind)


def _refuse_recurrent_layers(model, device):
    """cuDNN, and oneDNN of an LSTM, keep a buffer whose size they alone know; PyTorch's fakes of it call the driver, or are
    empty."""
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.RNNBase):
            continue
        if device.type == "cuda":
            library, allowed = "cuDNN", "device='cpu'"
        elif isinstance(module, torch.nn.LSTM) and not module.proj_size and _has_onednn():
            library, allowed = "oneDNN", "the call, and the training, in torch.backends.mkldnn.flags(enabled=False)"
        else:
            continue
        what = f"module '{name}' is a nn.{type(module).__name__}, of which {library} alone knows what it keeps"
        raise ValueError(f"memory: {what}; allowed: {allowed}")


def _has_onednn():
    return torch.backends.mkldnn.is_available() and torch._C._get_mkldnn_enabled()


def _bytes(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class _Forward:
    """A forward pass of a model on fake tensors, and what autograd saved in it.

    saved       bytes by name of module
    cast_bytes  of copies of weights in another type
    """

    def __init__(self, model, lower, device):
        self._model, self._lower, self._device = model, lower, device
        self.saved, self.cast_bytes = {}, 0
        self._storages, self._modules = {}, [""]  # tensors by address: kept, so that no other takes it

    def run(self, example, loss):
        from torch._subclasses.fake_tensor import FakeTensorMode

        mode = FakeTensorMode(allow_non_fake_inputs=True)
        with _unchanged(self._model), _quiet(), mode, self._named_modules(), _autocast(self._device.type, self._lower):
            state = self._fake_state()
            arguments, options = self._fake_example(example)
            saving = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor)
            with self._cast_watch(), saving, self._attention(), torch.enable_grad():
                try:
                    output = torch.func.functional_call(self._model, state, arguments, options)
                    self._modules = ["loss"]
                    if loss is not None:
                        loss(output)
                except Exception as error:  # of the user's model, of many types and lines
                    reason = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
                    raise ValueError(f"memory: the model could not run on a fake of the example: {reason}") from error

    def _attention(self):
        """With a GPU PyTorch asks it which kernel to take."""
        is_absent = self._device.type == "cuda" and not torch.cuda.is_available()
        return fused_attention() if is_absent else contextlib.nullcontext()

    def _fake_state(self):
        """Parameters and buffers by all their names, tied ones the same."""
        fakes, state = {}, {}
        for named in (self._model.named_parameters, self._model.named_buffers):
            for name, tensor in named(remove_duplicate=False):
                if id(tensor) not in fakes:
                    fakes[id(tensor)] = self._fake(tensor).requires_grad_(tensor.requires_grad)
                    self._ignore(fakes[id(tensor)])
                state[name] = fakes[id(tensor)]
        return state

    def _fake_example(self, example):
        if isinstance(example, dict):
            return (), {name: self._fake_all(value) for name, value in example.items()}
        return tuple(map(self._fake_all, example if isinstance(example, tuple) else (example,))), {}

    def _fake_all(self, value):
        if isinstance(value, torch.Tensor):
            return self._fake(value)
        if isinstance(value, (list, tuple)):
            parts = map(self._fake_all, value)
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return {key: self._fake_all(each) for key, each in value.items()} if isinstance(value, dict) else value

    def _fake(self, tensor):
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=self._device)

    def _ignore(self, tensor):
        self._storages[_address(tensor)] = tensor

    def _pack(self, tensor):
        if tensor.layout is torch.strided and _address(tensor) not in self._storages:
            self._ignore(tensor)
            name = self._modules[-1]
            self.saved[name] = self.saved.get(name, 0) + tensor.untyped_storage().nbytes()
        return tensor

    def _cast_watch(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        weights, forward = set(self._storages), self

        class Casts(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), options=None):
                result = function(*arguments, **(options or {}))
                if function is torch.ops.aten._to_copy.default and _address(arguments[0]) in weights:
                    forward._ignore(result)
                    forward.cast_bytes += _bytes([result])
                return result

        return Casts()

    @contextlib.contextmanager
    def _named_modules(self):
        """Keeps self._modules: the names of the modules that are running, the innermost last."""
        handles = []
        for name, module in visible_modules(self._model)[0]:
            handles.append(module.register_forward_pre_hook(functools.partial(self._enter, name)))
            handles.append(module.register_forward_hook(self._leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name, _module, _inputs):
        self._modules.append(name)

    def _leave(self, _module, _inputs, _outputs):
        self._modules.pop()


@contextlib.contextmanager
def _unchanged(model):
    """Gives the modules the attributes that they had, and the lists, dicts and sets in these what they held."""
    before = Attributes(model)
    try:
        yield
    finally:
        before.put_back()


@contextlib.contextmanager
def _quiet():
    """Without the trace that PyTorch logs of an error, which is raised as well."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    was_disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was_disabled


def _address(tensor):
    return tensor.untyped_storage()._cdata


@contextlib.contextmanager
def _autocast(device, dtype):
    """torch.autocast, which refuses where the device is not there."""
    was_enabled, was_dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, dtype is not None)
    torch.set_autocast_dtype(device, dtype or was_dtype)
    torch.clear_autocast_cache()
    try:
        yield
    finally:
        torch.clear_autocast_cache()
        torch.set_autocast_enabled(device, was_enabled)
        torch.set_autocast_dtype(device, was_dtype)
