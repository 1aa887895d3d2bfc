"""Half precision, exactly: the instruments of Halflab on numpy arrays.

    >>> import numpy as np, halflab
    >>> halflab.round_to([0.1, 70000.0, 1e-8])
    array([0.09997559,        inf, 0.        ])
    >>> halflab.add([2048.0, 4.0], [1.0, 1.0])        # binary16 has no 2049: the tie goes to the even number
    array([2048.,    5.])
    >>> print(halflab.text(halflab.encode(0.1), style="fields"))
    0 01011 1001100110
    >>> gradients = np.random.default_rng(0).normal(size=10000) * 2.0**-26
    >>> counts = halflab.Counts()
    >>> rounded = halflab.round_to(gradients, counts=counts)
    >>> counts.flushed == halflab.ExponentHistogram(gradients).zones()["flushed"]
    True

Values are whatever numpy takes (float16, float32, float64, integers; any shape, broadcast), and tensors of PyTorch and
arrays of ml_dtypes, in bfloat16 and FP8 too; results are float64, which holds every number of every format exactly. Codes
("bits") are unsigned integers. Every format has a row in halflab.formats and is an attribute too (halflab.binary16,
halflab.e4m3), also by what numpy or PyTorch call it (halflab.float16); `format=` takes it, any of its names or a dtype of
numpy or PyTorch. A masked array is refused: its mask would be lost.

Operands of an operation must be numbers of its format, as round_to() gives them and as every numpy.float16 is one of
binary16: nothing is rounded but the exact result, once.

**attributes of what rounds:

    rounding            one of halflab.roundings; 'nearest_even' if not given
    seed                of 'stochastic', which needs one: element i draws its random bits from (seed, i)
    saturate            results that would be infinite become the largest number of their sign
    flush_to_zero       results below the smallest normal number become zeros
    denormals_are_zero  subnormal operands are read as zeros
    counts              a halflab.Counts, to which what rounding did is added

Wrong names and values are a ValueError of one line that says what is allowed; a call that does not fit its function is
a TypeError of one line with an example.

Formats:     formats, Format, encode, decode, round_to, fields, text, ulp, ulp_distance, next_up, next_down, next_after,
             block_formats, round_to_blocks, Counts, roundings
Operations:  add, subtract, multiply, divide, fma, sqrt, remainder, fmod, scalb, compare, total_order, predicates
Sums:        sum, partial_sums, sum_orders, dot, dot_orders, matmul, accumulations, tensor_cores, reveal_order, flat_order
Functions:   math, the correctly rounded functions of binary16: math.exp, math.tanh, ...; math.functions
Kernels:     explain_gemm, validate, Validation
Gradients:   ExponentHistogram, Scaler, scalers, report_gradients
Files:       read_tensors
Runs:        run_experiment, run_command, ExperimentError, read_record, Record, RecordError
In PyTorch:  torch.watch, torch.emulate, torch.memory; watch's records, read without PyTorch: read_gradients, GradientRecord
Networks:    networks, memory, activations, kernels, policies, optimizers
"""

from . import _arrays, _histograms
from ._halflab import (
    Counts,
    ExponentHistogram,
    Format,
    Scaler,
    __version__,
    _format_aliases,
    accumulations,
    add,
    block_formats,
    compare,
    decode,
    divide,
    dot,
    dot_orders,
    encode,
    fields,
    fma,
    fmod,
    formats,
    math,
    matmul,
    multiply,
    next_after,
    next_down,
    next_up,
    optimizers,
    partial_sums,
    policies,
    predicates,
    remainder,
    reveal_order,
    round_to,
    round_to_blocks,
    roundings,
    scalb,
    scalers,
    sqrt,
    subtract,
    sum,
    sum_orders,
    tensor_cores,
    text,
    total_order,
    ulp,
    ulp_distance,
)
from ._networks import activations, kernels, memory, networks
from .checks import Validation, explain_gemm, validate
from .experiments import ExperimentError, run_command, run_experiment
from .gradients import GradientRecord, GradientReport, read_gradients, report_gradients
from .orders import flat_order
from .records import Record, RecordError, read_record
from .tensors import read_tensors

_submodules = ("checks", "experiments", "gradients", "orders", "records", "tensors")
__all__ = [name for name in dir() if not name.startswith("_") and name not in _submodules]

formats = _arrays.Formats(formats)
# The formats come last: a new row of the table is an attribute by itself.
globals().update(formats)
__all__ += formats

for _method in (_histograms.to_csv, _histograms.to_json, _histograms.tensorboard):
    setattr(ExponentHistogram, _method.__name__, _method)

for _class in (Counts, ExponentHistogram, Format, Scaler):
    _class.__module__ = __name__


def __getattr__(name):
    """halflab.torch imports PyTorch, and therefore comes when it is asked for. Formats come by their other names."""
    if name == "torch":
        import importlib

        return importlib.import_module(__name__ + ".torch")
    if name in _format_aliases:
        return _format_aliases[name]
    hint = f"; the function is halflab.math.{name}" if name in math.functions else ""
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}")
