"""Training with linear and convolution layers that see narrow numbers, as recipes of FP8 and FP4 training do."""

import functools
import re
import warnings

import torch
from torch.nn import functional

from .. import _halflab
from .attributes import PutBack
from .hooks import Hook, unwrapped, visible_modules
from .narrowing import FORMATS, Cast
from .twin import autocast_dtype

CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


class emulate:
    """Lets linear and convolution layers multiply numbers of a narrow format, forward and backward, until remove().

    format           of inputs and weights: one of halflab.formats or of halflab.block_formats, as "e4m3", "nvfp4"
    gradient_format  of the gradient of the output; `format` if not given
    rounding         one of halflab.roundings; block formats allow "nearest_even" and "stochastic"
    gradient_rounding  of the gradient of the output; `rounding` if not given
    seed             of "stochastic": the same seed and the same calls give the same numbers
    saturate         False lets scalar formats of up to 8 bits overflow, True lets wider ones saturate
    scale_rule       of block formats, as of halflab.round_to_blocks
    select           a regular expression: only layers in whose names it is found

    Each of a layer's three products (output, gradient of input, gradient of weight) multiplies operands that were cast for
    it, with blocks along what it sums over: features or channels (of a group); of the weight's gradient the batch. The
    casts are halflab's, bit for bit; a float32 model rounds NVFP4's numbers, whose scale for the whole tensor is any
    number of float32, once more to float32. The products are PyTorch's: their sums are in FP32 or as PyTorch's kernels
    have them, and their results are not rounded. Biases and their gradients are as without. Weights, optimizer and all
    else stay what they are.

    Under autocast operands are cast as autocast does, and then to the format; results are of autocast's type. Where that
    type does not hold all numbers of the format, as with blocks, the product is formed in FP32 and then rounded to it.
    Under activation checkpointing a repeated forward pass draws other random bits than the first.

    Layers are nn.Linear and nn.Conv1d, 2d, 3d and subclasses that leave forward() to them; `names` lists those emulated.
    nn.MultiheadAttention multiplies without its layers and is not emulated, nor are other modules and functions. The fast
    path of nn.TransformerEncoder in evaluation is not taken, since it calls no layers. remove() warns of layers that were
    never called. A copy of the model, and one that was saved whole, is not emulated.

    ValueError, in one line, for what is not allowed: unknown formats and roundings, a model without such a layer, one that
    is compiled or emulated already and, when a layer is called, tensors that are not on the CPU; and a backward pass with
    create_graph=True, since the products have no second derivative.

    >>> model = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with halflab.torch.emulate(model, "nvfp4", gradient_rounding="stochastic", seed=1) as emulated:
    ...     model(torch.randn(4, 32)).sum().backward()
    >>> emulated.names
    ('0', '2')
    """

    def __init__(
        self,
        model,
        format,
        gradient_format=None,
        *,
        rounding="nearest_even",
        gradient_rounding=None,
        seed=None,
        saturate=None,
        scale_rule=None,
        select=None,
    ):
        gradient_format = format if gradient_format is None else gradient_format
        gradient_rounding = rounding if gradient_rounding is None else gradient_rounding
        if seed is not None and "stochastic" not in (rounding, gradient_rounding):
            raise ValueError("seed: allowed only with rounding='stochastic'")
        values = Cast(format, rounding, seed, saturate, scale_rule)
        gradients = Cast(gradient_format, gradient_rounding, seed, saturate, scale_rule)
        self._layers = [_Layer(name, module, values, gradients) for name, module in _selected(model, select)]
        self.names = tuple(layer.name for layer in self._layers)
        for layer in self._layers:
            layer.module.forward = layer
        self._was_called = False
        self._handle = model.register_forward_pre_hook(Hook(self._note_call))
        self._fast = _fast_paths(model, {layer.module for layer in self._layers})
        for module, name, _ in self._fast:
            setattr(module, name, False)

    def _note_call(self, *_):
        self._was_called = True

    def remove(self):
        """Gives the layers their own products again."""
        never = [layer.name for layer in self._layers if not layer.calls]
        if never and (self._was_called or len(never) < len(self._layers)):
            warnings.warn(f"emulate: never called, so not emulated: {_halflab.shown(never)}", stacklevel=2)
        self._give_back()

    def _give_back(self):
        for layer in self._layers:
            layer.module.__dict__.pop("forward", None)
        for module, name, value in self._fast:
            setattr(module, name, value)
        self._handle.remove()
        self._layers, self._fast = [], []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.remove()
        else:
            self._give_back()


def _selected(model, select):
    """(name, module) of the layers to emulate."""
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"emulate: a {type(model).__name__} is not allowed; allowed: a torch.nn.Module")
    modules, opaque = visible_modules(model)
    if opaque:
        raise ValueError(f"emulate: {opaque[0]} is compiled; allowed: the model before torch.compile and torch.jit")
    layers = [(name, module) for name, module in modules if _products_of(module) is not None]
    unique = list({id(module): (name, module) for name, module in reversed(layers)}.values())[::-1]
    if not unique:
        found = type(unwrapped(model)).__name__
        raise ValueError(f"emulate: the {found} has none of its layers; allowed: nn.Linear, nn.Conv1d, 2d, 3d")
    try:
        wanted = [layer for layer in unique if select is None or re.search(select, layer[0])]
    except (re.error, TypeError) as error:
        raise ValueError(f"emulate: select = {_halflab.shown(select)} is no regular expression ({error})") from None
    if not wanted:
        such_as = f"the {len(unique)} names of layers, such as '{unique[0][0]}'"
        raise ValueError(f"emulate: select = {_halflab.shown(select)} is found in none of {such_as}")
    taken = next((name for name, module in wanted if _forward_of(module) is not type(module).forward), None)
    if taken is not None:
        raise ValueError(f"emulate: layer '{taken}' has a forward() of its own; allowed: one emulation at a time")
    return wanted


def _forward_of(module):
    """Its function of the instance, else of the class; a method of the class may be kept in the instance, as in a copy."""
    own = module.__dict__.get("forward", type(module).forward)
    return getattr(own, "__func__", own)


def _method_of_the_class(module):
    return type(module).forward.__get__(module)


def _fast_paths(model, layers):
    """(module, attribute, value) of those without which nn.TransformerEncoder and its layers call the layers inside of them,
    in every PyTorch."""
    names = ("activation_relu_or_gelu", "use_nested_tensor")
    fast = [(module, name, vars(module)[name]) for module in model.modules() for name in names if vars(module).get(name)]
    return [(module, name, value) for module, name, value in fast if layers & set(module.modules())]


def _products_of(module):
    """The class that forms a layer's products; None for modules that are no such layer."""
    own = type(module)
    if isinstance(module, torch.nn.Linear) and own.forward is torch.nn.Linear.forward:
        # Attention's output layer is never called.
        return None if own is torch.nn.modules.linear.NonDynamicallyQuantizableLinear else _Linear
    for kind in CONVOLUTIONS:
        if isinstance(module, kind) and own.forward is kind.forward and own._conv_forward is kind._conv_forward:
            return _Convolution
    return None


class _Layer(PutBack):
    """One layer, its casts, and how often it was called."""

    def __init__(self, name, module, values, gradients):
        self.name, self.module = name, module
        self._values, self._gradients, self.calls = values, gradients, 0

    def __reduce__(self):
        return _method_of_the_class, (self.module,)

    def __call__(self, input):
        tensors = [input, self.module.weight, self.module.bias]
        lower = autocast_dtype("cpu")
        if lower is not None:
            tensors = [t if t is None or t.dtype == torch.float64 else t.to(lower) for t in tensors]
        self._require_allowed(tensors[:2])
        with torch.autocast("cpu", enabled=False):
            products = _products_of(self.module)(self, f"{self.name} {self.calls}")
            self.calls += 1
            return products.apply(*tensors)

    def value(self, tensor, axis, key):
        return self._values(tensor, axis, key)

    def gradient(self, tensor, axis, key):
        return self._gradients(tensor, axis, key)

    def _require_allowed(self, tensors):
        x, weight = tensors
        got = next((tensor.device for tensor in tensors if tensor.device.type != "cpu"), None)
        if got is not None:
            self.refuse(f"got a tensor on {got}; allowed: the CPU, where halflab casts")
        got = next((tensor.dtype for tensor in tensors if tensor.dtype not in FORMATS), None)
        if got is not None:
            self.refuse(f"got {got}; allowed: {', '.join(map(str, FORMATS))}")
        if x.dtype != weight.dtype:
            self.refuse(f"got an input of {x.dtype} and has weights of {weight.dtype}; allowed: one type")

    def refuse(self, what):
        raise ValueError(f"emulate: layer '{self.name}' {what}")


class _Linear:
    """The products of one call of a linear layer: x is (batch, in), w (out, in), the output's gradient dy (batch, out)."""

    def __init__(self, layer, key):
        self._layer, self._key = layer, key
        self.refuse = layer.refuse

    def apply(self, x, weight, bias):
        return _Products.apply(x, weight, bias, self)

    def output(self, x, weight, bias):
        rows = self.value(x.reshape(-1, x.shape[-1]), 1, "x of y").reshape(x.shape)
        return _in_one_type(functional.linear, rows, self.value(weight, 1, "w of y"), bias)

    def input_gradient(self, dy, x, weight):
        rows = self.gradient(dy.reshape(-1, dy.shape[-1]), 1, "dy of dx")
        return _in_one_type(torch.mm, rows, self.value(weight, 0, "w of dx")).reshape(x.shape)

    def weight_gradient(self, dy, x, weight):
        dy, x = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
        return _in_one_type(torch.mm, self.gradient(dy, 0, "dy of dw").t(), self.value(x, 0, "x of dw"))

    def bias_gradient(self, dy, x, weight):
        return dy.reshape(-1, dy.shape[-1]).sum(0)

    def value(self, tensor, axis, use):
        return self._layer.value(tensor, axis, f"{self._key} {use}")

    def gradient(self, tensor, axis, use):
        return self._layer.gradient(tensor, axis, f"{self._key} {use}")


class _Convolution(_Linear):
    """The products of a convolution's call: x is (batch, in, ...), w (out, in of a group, ...), dy (batch, out, ...)."""

    def apply(self, x, weight, bias):
        module = self._layer.module
        is_batch = x.dim() == weight.dim()
        x, self._padding = _padded(module, x if is_batch else x.unsqueeze(0))
        y = super().apply(x, weight, bias)
        return y if is_batch else y.squeeze(0)

    def output(self, x, weight, bias):
        module = self._layer.module
        convolution = (functional.conv1d, functional.conv2d, functional.conv3d)[x.dim() - 3]
        options = (module.stride, self._padding, module.dilation, module.groups)
        x, weight = self._by_groups(self._layer.value, x, 1, "x of y"), self.value(weight, 1, "w of y")
        return _in_one_type(lambda x, w, b: convolution(x, w, b, *options), x, weight, bias)

    def input_gradient(self, dy, x, weight):
        dy = self._by_groups(self._layer.gradient, dy, 1, "dy of dx")
        weight = self._by_groups(self._layer.value, weight, 0, "w of dx")
        return _in_one_type(lambda dy, w: self._backward(dy, x.to(dy.dtype), w, 0), dy, weight)

    def weight_gradient(self, dy, x, weight):
        dy, x = self.gradient(dy, 0, "dy of dw"), self.value(x, 0, "x of dw")
        return _in_one_type(lambda dy, x: self._backward(dy, x, weight.to(x.dtype), 1), dy, x)

    def bias_gradient(self, dy, x, weight):
        return self._backward(dy, x, weight, 2)

    def _by_groups(self, cast, tensor, axis, use):
        """Blocks end where the channels of a group do."""
        shape, groups = list(tensor.shape), self._layer.module.groups
        by_groups = tensor.reshape(*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
        return cast(by_groups, axis + 1, f"{self._key} {use}").reshape(shape)

    def _backward(self, dy, x, weight, which):
        module = self._layer.module
        sizes = (module.stride, self._padding, module.dilation, False, [0] * (x.dim() - 2), module.groups)
        wanted = [which == each for each in range(3)]
        return torch.ops.aten.convolution_backward(dy, x, weight, [weight.shape[0]], *sizes, wanted)[which]


def _padded(module, x):
    """x and the zeros that its convolution adds on both sides of each dimension."""
    if module.padding_mode != "zeros":
        return functional.pad(x, module._reversed_padding_repeated_twice, mode=module.padding_mode), [0] * (x.dim() - 2)
    if not isinstance(module.padding, str):
        return x, module.padding
    if module.padding == "valid":
        return x, [0] * (x.dim() - 2)
    both = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size)]
    if any(zeros % 2 for zeros in both):
        x = functional.pad(x, [side for zeros in reversed(both) for side in (0, zeros % 2)])
    return x, [zeros // 2 for zeros in both]


def _in_one_type(product, *operands):
    """The product of operands in the widest of their types."""
    present = [operand for operand in operands if operand is not None]
    dtype = functools.reduce(torch.promote_types, (operand.dtype for operand in present))
    return product(*(operand if operand is None else operand.to(dtype) for operand in operands))


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, products):
        ctx.products = products
        ctx.save_for_backward(x, weight)
        return products.output(x, weight, bias).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        products, (x, weight) = ctx.products, ctx.saved_tensors
        if torch.is_grad_enabled():
            products.refuse("has no second derivative; allowed: backward passes without create_graph=True")
        forms = (products.input_gradient, products.weight_gradient, products.bias_gradient)
        with torch.autocast("cpu", enabled=False):
            gradients = [
                form(dy, x, weight).to(dy.dtype) if needed else None for form, needed in zip(forms, ctx.needs_input_grad)
            ]
        return (*gradients, None)
