"""Kernels held to what is right: matrix products explained, array functions validated on all operands."""

import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import _halflab
from ._arrays import array_and_format, write_safetensors
from ._columns import structured
from .experiments import ExperimentError, run_command
from .tensors import read_tensors

_OPERANDS_AT_A_TIME = 1 << 24
_COUNTEREXAMPLES = 8  # as the command lists


def explain_gemm(a, b, d, c=None, **options):
    """Which accumulator, order and epilogue gave every bit of D = alpha A B + beta C: the Record of `halflab explain`.

    a, b, d, c  arrays of m x k, k x n, m x n and m x n of float16, bfloat16 or float32, of numpy, ml_dtypes, PyTorch or
                CuPy, or lists of them: several products of one kernel and shape
    options     of the command, as alpha=, beta=, tree= (a file), most_slices=, seed=, threads=

    The answer stands in `verdict` and `summary`, and all hypotheses in the table "hypotheses". A real bug is an answer
    too. ValueError for arrays of other kinds, ExperimentError for what the command refuses, both in one line.

    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 32, 32)).astype(np.float16)
    >>> d = halflab.matmul(a, b, "fp16_fma").astype(np.float16)
    >>> halflab.explain_gemm(a, b, d).summary["best.accumulator"]
    'fp16_fma_chain'
    """
    with tempfile.TemporaryDirectory() as folder:
        file, arrays = Path(folder) / "gemm.safetensors", {}
        for name, given in (("a", a), ("b", b), ("d", d), ("c", c)):
            if given is not None:
                several = given if isinstance(given, (list, tuple)) else [given]
                arrays |= {f"{name}{i}": _matrix(name, each) for i, each in enumerate(several)}
        write_safetensors(file, arrays)
        files = {
            letter: [f"{file}:{name}" for name in names]
            for letter, names in itertools.groupby(arrays, key=lambda name: name[0])
        }
        return _in_folder(folder, lambda: run_command("explain", out=Path(folder) / "explain", **files, **options))


def _matrix(name, given):
    array, format = array_and_format(given)
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(f"explain_gemm: {name}: a masked array is not allowed; allowed: its .filled(value)")
    kind = format.name if format else getattr(array, "dtype", np.dtype(object)).name
    if not isinstance(array, np.ndarray) or array.ndim != 2 or kind not in ("float16", "bfloat16", "float32"):
        of = f" of {given.dtype}" if isinstance(array, np.ndarray) else ""
        allowed = "arrays of two dimensions, of float16, bfloat16 or float32"
        raise ValueError(f"explain_gemm: {name} = {_halflab.shown(given)}{of} is not allowed; allowed: {allowed}")
    return array, format


def _in_folder(folder, run):
    """run(), whose errors leave out the folder's name."""
    try:
        return run()
    except ExperimentError as error:
        raise ExperimentError(str(error).replace(f"{folder}/", "")) from None


@dataclass
class Validation:
    """What halflab.validate found.

    verdict          "equal", "within" (`ulp` or `nan` allows what differs) or "different"
    results          that were checked, of so many as there are (`is_complete`: all operands, or those that were drawn)
    differing        that have not the bits of the exact value, rounded once
    beyond           of these, not allowed
    most_ulp         the largest distance of numbers
    one_nan          that are NaN where the exact value is none, or the other way round
    explanation      the known deviations that explain all that differs, or ""
    contradicted     right results that these would not give
    distances        the table of ulp: from_ulp, to_ulp, results
    counterexamples  the first results that differ: what is wrong, then NaNs of other bits, then what is allowed
    parts            results that differ, and by how much, by where the operands lie
    deviations       how many results each known deviation explains
    figure           SVG over the operands

    Of several shards `deviations` and `figure` are those of the one with the most wrong results, and `explanation` holds
    in all that differ.
    """

    verdict: str
    operation: str
    results: int
    is_complete: bool
    differing: int
    beyond: int
    most_ulp: int
    one_nan: int
    explanation: str
    contradicted: int
    distances: np.ndarray = field(repr=False)
    counterexamples: np.ndarray = field(repr=False)
    deviations: np.ndarray = field(repr=False)
    parts: np.ndarray = field(repr=False)
    figure: str = field(repr=False)

    def __str__(self):
        found = f"{self.verdict}: {self.differing} of {self.results} results of {self.operation} differ"
        distance = f", by up to {self.most_ulp} ulp" if self.most_ulp else ""
        nans = f"; {self.one_nan} times one side alone is a NaN" if self.one_nan else ""
        but = f", but {self.contradicted} right results speak against it" if self.contradicted else ""
        return found + distance + nans + (f"; {self.explanation}{but}" if self.explanation else "")

    def _repr_svg_(self):
        return self.figure


def validate(
    f, operation, format="binary16", arrays="numpy", shards=None, progress=None, count=None, seed=None, **options
):
    """Holds an array function, such as a GPU kernel behind torch or cupy, to the exact results, rounded once.

    f          is called with an array for each operand and returns as many results, of the format; of arithmetic ("add",
               "fma", "sqrt", ...) on formats of up to 16 bits in float32, too, and of "cast" in any floating-point type
    operation  "tanh", "add", "fma", ...: those of `halflab validate`
    format     of the operands: of 8, 16, 32 or 64 bits; also a dtype of numpy or PyTorch
    arrays     that f gets: "numpy" (ml_dtypes for what numpy has not), "torch" on the CPU, "cupy"
    shards     one operand of up to 32 bits and two of up to 16 take all values, in so many calls of f; by default
               of 2^24 operands at most: 256 calls for all 2^32 pairs. (i, n): the i-th of n alone, from 1 on
    progress   a function of (shards done, shards)
    count, seed  draw so many boundary-weighted operands in place of all; 2^20 where all would be more than 2^32
    options    of the command: ulp=1, nan="any" (on a GPU), rounding=, flush_subnormals=True, saturate=True

    Returns a Validation. ValueError and ExperimentError, in one line, for what is not allowed.

    >>> import numpy as np
    >>> kernel = lambda x: np.tanh(x.astype(np.float32)).astype(np.float16)
    >>> print(halflab.validate(kernel, "tanh", nan="any"))
    equal: 0 of 65536 results of tanh differ
    """
    to_arrays = _maker(arrays)
    drawn = {"format": _halflab.format_named(format).name, "count": count, "seed": seed}
    first, last, total = _shards(operation, drawn, shards)
    parts = []
    for shard in range(first, last + 1):
        parts.append(_validate_shard(f, operation, to_arrays, {**drawn, "shard": f"{shard}/{total}"}, options))
        if progress is not None:
            progress(len(parts), last + 1 - first)
    return _merged(operation, parts, is_complete=last + 1 - first == total)


def _maker(arrays):
    """The function that makes f's arrays of codes and a Format."""
    if arrays == "numpy":
        return _numpy_of
    if arrays == "torch":
        from .torch.arrays import tensor_of

        return tensor_of
    if arrays == "cupy":
        import cupy

        return lambda codes, format: cupy.asarray(_numpy_of(codes, format))
    raise ValueError(f"validate: arrays = {_halflab.shown(arrays)} is not allowed; allowed: 'numpy', 'torch', 'cupy'")


def _numpy_of(codes, format):
    known = next((dtype for dtype in ("float16", "float32", "float64") if _halflab.format_named(dtype) == format), None)
    if known:
        return codes.view(known)
    try:
        import ml_dtypes
    except ImportError:
        raise ValueError(
            f"validate: numpy has no {format.name}; allowed with it: arrays='torch', or ml_dtypes in this Python"
        ) from None
    names = {"e4m3": "float8_e4m3fn", "bfloat16": "bfloat16"}
    return codes.view(getattr(ml_dtypes, names.get(format.name, f"float8_{format.name.replace('_', '')}")))


def _shards(operation, drawn, shards):
    """(first, last, of how many)."""
    if isinstance(shards, tuple) and len(shards) == 2 and all(isinstance(n, int) for n in shards):
        return shards[0], shards[0], shards[1]
    if isinstance(shards, int) and not isinstance(shards, bool) and shards > 0:
        return 1, shards, shards
    if shards is not None:
        raise ValueError(f"validate: shards = {_halflab.shown(shards)} is not allowed; allowed: a number from 1 on, (i, n)")
    with tempfile.TemporaryDirectory() as folder:  # its smallest shard tells how many operands there are
        probe = Path(folder) / "probe.safetensors"
        made = _in_folder(folder, lambda: run_command("inputs", operation, to=probe, shard="1/256", **drawn))
    calls = -(-made.summary["all"] // _OPERANDS_AT_A_TIME)
    return 1, calls, calls


def _validate_shard(f, operation, to_arrays, drawn, options):
    """(summary of the inputs, Record of the results, figure)"""
    with tempfile.TemporaryDirectory() as folder:
        operands, results = Path(folder) / "x.safetensors", Path(folder) / "y.safetensors"
        made = _in_folder(folder, lambda: run_command("inputs", operation, to=operands, **drawn))
        codes = read_tensors(operands, codes=True)
        given = f(*(to_arrays(bits, format) for format, bits in codes.values()))
        array, format = array_and_format(given)
        size = made.summary["operands"]
        if not isinstance(array, np.ndarray) or array.size != size or (format is None and array.dtype.kind != "f"):
            raise ValueError(f"validate: f gave {_halflab.shown(given)}; allowed: {size} floating-point results")
        write_safetensors(results, {"y": (array.reshape(-1), format)})
        files = [f"{operands}:{name}" for name in codes] + [f"{results}:y"]
        out = Path(folder) / "validate"
        record = _in_folder(folder, lambda: run_command("validate", operation, *files, out=out, **options))
        figures = sorted(out.glob("*.svg"))
        return made.summary, record, figures[0].read_text(encoding="utf-8") if figures else ""


def _merged(operation, parts, is_complete):
    summaries = [record.summary for _, record, _ in parts]
    worst = max(parts, key=lambda part: (part[1].summary["beyond"], part[1].summary["differing"]))
    differing = [summary for summary in summaries if summary["differing"]]
    explanations = {summary["explanation"] for summary in differing}
    explanation = explanations.pop() if len(explanations) == 1 else ""
    return Validation(
        verdict=max((summary["class"] for summary in summaries), key=("equal", "within", "different").index),
        operation=operation,
        results=sum(summary["results"] for summary in summaries),
        is_complete=is_complete and all(made["complete"] == "yes" for made, _, _ in parts),
        differing=sum(summary["differing"] for summary in summaries),
        beyond=sum(summary["beyond"] for summary in summaries),
        most_ulp=max(summary["most_ulp"] for summary in summaries),
        one_nan=sum(summary["one_nan"] for summary in summaries),
        explanation=explanation,
        contradicted=sum(summary["contradicted"] for summary in differing) if explanation else 0,
        distances=_summed(parts, "distances", ("from_ulp", "to_ulp")),
        counterexamples=_counterexamples(parts),
        deviations=worst[1].tables["deviations"],
        parts=_summed(parts, "parts", ("tensor", "part_a", "part_b")),
        figure=worst[2],
    )


def _summed(parts, name, keys):
    """A table of all shards: counts added up, the largest of distances, percentages of the sums."""
    tables = [record.tables[name] for _, record, _ in parts]
    fields, sums = tables[0].dtype.names, {}
    for row in itertools.chain.from_iterable(table.tolist() for table in tables):
        row = dict(zip(fields, row))
        sums.setdefault(tuple(str(row[key]) for key in keys), []).append(row)  # texts: a key may be NaN
    return structured({field: [_summed_cell(field, same, keys) for same in sums.values()] for field in fields})


def _summed_cell(field, rows, keys):
    cells = [row[field] for row in rows]
    if field in keys:
        return cells[0]
    if field == "most_ulp":
        return max(cells)
    if field == "differing_percent":
        results = sum(row["results"] for row in rows)
        return 100 * sum(row["differing"] for row in rows) / results if results else 0
    return sum(cells)


def _counterexamples(parts):
    """The first of all shards: of each kind of difference by their index in all operands."""
    rows = [
        (made["first"] + row[0], *row[1:]) for made, record, _ in parts for row in record.tables["counterexamples"].tolist()
    ]
    rows.sort(key=lambda row: ("wrong", "nan_bits", "allowed").index(row[-1]))
    fields = parts[0][1].tables["counterexamples"].dtype.names
    return structured(dict(zip(fields, map(list, zip(*rows[:_COUNTEREXAMPLES]))) if rows else dict.fromkeys(fields, [])))
