"""report_gradients: the page of tensors that belong to no run of training."""

import dataclasses
import math
import os
from pathlib import Path

import numpy as np

from .. import _halflab
from .._arrays import numbers
from .._halflab import ExponentHistogram
from ..tensors import read_tensors
from . import page
from .findings import BINARY16, NOTICEABLE, Forecast, Row, Tensors


class CastForecast(Forecast):
    """The forecast of a format other than binary16, by casting the values themselves."""

    def __init__(self, histogram, format, arrays, scaled_by_log2):
        super().__init__(histogram)
        self.format, self._arrays, self._scaled_by_log2 = format, arrays, scaled_by_log2
        self._zones = {}

    def zones(self, log2_scale):
        if log2_scale not in self._zones:
            self._zones[log2_scale] = self._cast(log2_scale)
        return self._zones[log2_scale]

    def _cast(self, log2_scale):
        counts = _halflab.Counts()
        flushed = overflowed = 0  # by the product with S, beyond the range of binary64
        for values in self._arrays:
            values = np.asarray(numbers(values), dtype=np.float64)
            finite = values[np.isfinite(values) & (values != 0)]
            with np.errstate(over="ignore", under="ignore"):
                scaled = np.ldexp(finite, log2_scale - self._scaled_by_log2)
            flushed += np.count_nonzero(scaled == 0)
            overflowed += np.count_nonzero(np.isinf(scaled))
            _halflab.round_to(scaled[np.isfinite(scaled)], self.format, counts=counts)
        histogram = self.histogram
        lost = {
            "flushed": counts.flushed + flushed,
            "subnormal": counts.subnormal,
            "overflowed": counts.overflowed + overflowed,
        }
        normal = histogram.nonzero_finite - sum(lost.values())
        return {"zero": histogram.zero, **lost, "normal": normal, "infinite": histogram.infinite, "nan": histogram.nan}

    @property
    def headroom(self):
        largest = self.histogram.max_abs
        return math.floor(math.log2(self.format.max / largest)) if largest else None


@dataclasses.dataclass
class GradientReport:
    """What report_gradients found.

    path     the page
    tensors  ExponentHistograms by name, with S divided out
    """

    path: Path
    tensors: dict
    _recommended: int = dataclasses.field(repr=False)

    def recommended_scale(self):
        """The loss scale an octave below the largest at which nothing overflows; None where all is zero."""
        return None if self._recommended is None else 2.0**self._recommended


def report_gradients(tensors, out, format="binary16", scaled_by=1):
    """Writes one page of HTML that says what a format makes of gradients, and which loss scale would keep them.

    tensors    a dict of arrays, any shape, or paths of files and folders that read_tensors takes
    out        the file of the page
    format     what gradients would be cast to: binary16 if not given
    scaled_by  S that the values still carry, a power of two; magnitudes are those with S divided out

    NaNs and infinities are counted and named. A ValueError of one line says what is not allowed. Returns a GradientReport.

    >>> report = halflab.report_gradients({"layer0": gradient, "layer1": "gradients/layer1.npy"}, out="page.html")
    >>> report.recommended_scale(), report.tensors["layer0"].zones(15)
    """
    log2 = _log2_of(scaled_by)
    format = _halflab.format_named(format)
    if not format.has_arithmetic:
        raise ValueError(f"report_gradients: format = {format.name} is not allowed; allowed: formats with arithmetic")
    arrays = _arrays(tensors)
    forecasts = {name: _forecast_of(name, values, format, log2) for name, values in arrays.items()}
    total = _forecast(list(arrays.values()), format, log2)
    rows = [Row(name, "gradient", forecast) for name, forecast in forecasts.items()]
    were_fp16 = [row for row, values in zip(rows, arrays.values()) if _was_fp16(values, row.forecast.histogram, log2)]
    found = Tensors(rows, total, log2 if log2 else None, what="which the values carry", were_fp16=were_fp16)
    path = page.write(page.arrays_page(found), out)
    return GradientReport(path, {name: forecast.histogram for name, forecast in forecasts.items()}, total.recommended)


def _was_fp16(values, histogram, scaled_by_log2):
    """Whether an array is of FP16 and has what FP16 leaves where it loses values."""
    is_fp16 = str(getattr(values, "dtype", "")).removeprefix("torch.") == "float16"
    return is_fp16 and histogram.zero >= NOTICEABLE * histogram.total and histogram.zones(scaled_by_log2)["subnormal"] > 0


def _log2_of(scaled_by):
    try:
        fraction, exponent = math.frexp(scaled_by)
    except (TypeError, OverflowError):
        fraction, exponent = 0, 0
    if fraction != 0.5 or not -100 <= exponent <= 100:
        raise ValueError(f"report_gradients: scaled_by = {_halflab.shown(scaled_by)} is not allowed; allowed: powers of two, as 65536")
    return exponent - 1


def _arrays(tensors):
    if not isinstance(tensors, dict) or not tensors:
        raise ValueError(
            f"report_gradients: tensors = {_halflab.shown(tensors)} is not allowed; allowed: a dict of arrays and paths, as "
            "{'layer0': gradient, 'layer1': 'layer1.npy'}"
        )
    arrays = {}
    for name, values in tensors.items():
        if not isinstance(values, (str, os.PathLike)):
            arrays[str(name)] = values
            continue
        read = read_tensors(values)
        arrays.update({str(name) if len(read) == 1 else f"{name}.{own}": array for own, array in read.items()})
    return arrays


def _forecast_of(name, values, format, scaled_by_log2):
    try:
        return _forecast([values], format, scaled_by_log2)
    except ValueError as error:
        raise ValueError(f"report_gradients: tensors[{_halflab.shown(name)}]: {error}") from None


def _forecast(arrays, format, scaled_by_log2):
    histogram = ExponentHistogram()
    for values in arrays:
        histogram.add(values)
    histogram = histogram.shifted(-scaled_by_log2)
    return Forecast(histogram) if format == BINARY16 else CastForecast(histogram, format, arrays, scaled_by_log2)
