"""Halflab's list of what autocast does with each operation, held to PyTorch's own dispatch for CUDA. No GPU is needed: fake
tensors have a device and a type, and no values."""

import contextlib
import unittest

from case import Case, halflab, needs, nn, torch

F = nn.functional

ROW, IMAGE = (4, 6), (2, 3, 8, 8)

# The functions of PyTorch that an operation is, and the shapes of their floating-point arguments. softmax_cross_entropy is
# log_softmax, which has a row of its own, and nll_loss. `cast` has none: its options say what it does.
CALLS = {
    "matmul": [(torch.matmul, ROW, (6, 5)), (torch.mm, ROW, (6, 5))],
    "bias": [(torch.add, ROW, (6,))],
    "linear": [(F.linear, ROW, (5, 6), (5,))],
    "conv2d": [(F.conv2d, IMAGE, (5, 3, 3, 3), (5,))],
    "attention_scores": [(torch.bmm, (2, 4, 6), (2, 6, 4))],
    "attention_context": [
        (torch.bmm, (2, 4, 4), (2, 4, 6)),
        (lambda *x: F.scaled_dot_product_attention(*x), *[(2, 4, 6)] * 3),
    ],
    "lstm": [(lambda x, h, c, *weights: torch.lstm_cell(x, (h, c), *weights)[0], ROW, (4, 5), (4, 5), (20, 6), (20, 5))],
    "embedding": [(lambda table: F.embedding(torch.zeros(3, dtype=torch.int64), table), ROW)],
    "relu": [(F.relu, ROW)],
    "gelu": [(F.gelu, ROW)],
    "tanh": [(torch.tanh, ROW)],
    "sigmoid": [(torch.sigmoid, ROW)],
    "exp": [(torch.exp, ROW)],
    "log": [(torch.log, ROW)],
    "pow": [(lambda x: torch.pow(x, 1.5), ROW)],
    "add": [(torch.add, ROW, ROW)],
    "mul": [(torch.mul, ROW, ROW)],
    "scale": [(lambda x: x * 3.0, ROW)],
    "dropout": [(lambda x: F.dropout(x, 0.5), ROW)],
    "softmax": [(lambda x: F.softmax(x, 1), ROW)],
    "log_softmax": [(lambda x: F.log_softmax(x, 1), ROW)],
    "layer_norm": [(lambda x, *parameters: F.layer_norm(x, (6,), *parameters), ROW, (6,), (6,))],
    "batch_norm": [(lambda x, *parameters: F.batch_norm(x, None, None, *parameters, training=True), IMAGE, (3,), (3,))],
    "max_pool2d": [(lambda x: F.max_pool2d(x, 2), IMAGE)],
    "average_pool2d": [(lambda x: F.avg_pool2d(x, 2), IMAGE)],
    "global_average_pool": [(lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE), (lambda x: x.mean((2, 3)), IMAGE)],
    "channels_last": [(lambda x: x.permute(0, 2, 3, 1).reshape(-1, 3), IMAGE)],
    "sum": [(torch.sum, ROW)],
    "mean": [(torch.mean, ROW)],
    "variance": [(torch.var, ROW)],
    "softmax_cross_entropy": [(lambda x: F.nll_loss(x, torch.zeros(4, dtype=torch.int64)), ROW)],
    "mean_squared_error": [(F.mse_loss, ROW, ROW)],
    "mean_absolute_error": [(F.l1_loss, ROW, ROW)],
    "smooth_l1": [(F.smooth_l1_loss, ROW, ROW)],
    "binary_cross_entropy": [(F.binary_cross_entropy, ROW, ROW)],
    "binary_cross_entropy_with_logits": [(F.binary_cross_entropy_with_logits, ROW, ROW)],
}


def computed_with(call, *arguments):
    """(type that the operation reads, type of its result) under autocast."""
    from torch.utils._python_dispatch import TorchDispatchMode

    read = []

    class Inputs(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            if function.namespace == "aten" and function.overloadpacket is not torch.ops.aten._to_copy:
                read.extend(a.dtype for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point())
            return function(*arguments, **(options or {}))

    with Inputs():
        result = call(*arguments)
    return read[0], result.dtype


@contextlib.contextmanager
def autocast(dtype):
    """torch.autocast("cuda", dtype), which refuses where there is no GPU."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.device("cuda"):
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", dtype)
        try:
            yield
        finally:
            torch.set_autocast_enabled("cuda", False)
            torch.clear_autocast_cache()


def class_of(call, shapes, low):
    """The class that PyTorch shows, in the words of op_precision."""
    of_type = lambda *dtypes: [torch.full(shape, 0.5, dtype=dtype) for shape, dtype in zip(shapes, dtypes)]
    try:
        from_low = computed_with(call, *of_type(*[low] * len(shapes)))
    except RuntimeError as error:
        if "unsafe to autocast" in str(error):
            return "banned"
        raise
    from_full = computed_with(call, *of_type(*[torch.float32] * len(shapes)))
    if (from_low, from_full) == ((low, low), (low, low)):
        return "FP16"
    if from_full != (torch.float32, torch.float32):
        return f"FP32 to {from_full}"
    return {
        (torch.float32, torch.float32): "FP32",
        (low, torch.float32): "FP32 output",
        (low, low): "input",
    }.get(from_low, f"16 bits to {from_low}")


def listed_classes():
    """Halflab's list: the class of each operation."""
    record = halflab.run_experiment("op_precision", quick=True, models="mlp", threads=1)
    return {row["operation"]: row["torch_autocast"] for row in record.tables["lists"] if row["operation"] != "cast"}


def expected_class(listed, operation, low):
    """Softmax reads FP16 as it is, but turns bfloat16 into FP32 first: its own affair, not autocast's."""
    casts_itself = low == torch.bfloat16 and listed[operation] == "FP32 output" and operation != "sum"
    return "FP32" if casts_itself else listed[operation]


@needs(2, 4)
class Autocast(Case):
    def test_every_operation_has_the_class_that_pytorch_shows(self):
        listed = listed_classes()
        self.assertEqual(set(CALLS), set(listed))
        for low in (torch.float16, torch.bfloat16):
            for operation, calls in CALLS.items():
                for call, *shapes in calls:
                    with self.subTest(operation=operation, low=low), autocast(low):
                        self.assertEqual(class_of(call, shapes, low), expected_class(listed, operation, low))

    def test_inputs_of_two_types(self):
        """What is on no list is promoted, but batch norm has the type of its images, whatever its parameters are."""
        listed, low = listed_classes(), torch.float16
        for operation, calls in CALLS.items():
            for call, first, *others in calls:
                if not others or listed[operation] == "banned":
                    continue
                keeps_first = listed[operation] == "FP16" or operation == "batch_norm"
                with self.subTest(operation), autocast(low):
                    others = [torch.empty(shape) for shape in others]
                    result = call(torch.empty(first, dtype=low), *others)
                    self.assertEqual(result.dtype, low if keeps_first else torch.float32)


if __name__ == "__main__":
    unittest.main()
