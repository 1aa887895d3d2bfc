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
from .findings import BINARY16, BINARY32, Forecast, Row, Tensors


class CastForecast(Forecast):
    """The forecast of a format other than binary16, by casting the values themselves."""

    def __init__(self, histogram, format, arrays, scaled_by_log2, parts=None):
        super().__init__(histogram, parts=parts)
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
        """The loss scale an octave below the largest at which nothing overflows; 2^127, the largest that FP32 holds, where that
        keeps as much. None where all is zero. An int where it lies beyond all floats."""
        log2 = self._recommended
        return None if log2 is None else 2.0**log2 if log2 < 1024 else 2**log2


def report_gradients(tensors, out, format="binary16", scaled_by=1):
    """Writes one page of HTML that says what a format makes of gradients, and which loss scale would keep them.

    tensors    a dict of arrays, any shape, or paths of files and folders that read_tensors takes
    out        the file of the page
    format     what gradients would be cast to: binary16 if not given
    scaled_by  S that the values still carry, a power of two; magnitudes are those with S divided out

    NaNs and infinities are counted and named, and so are tensors of whose values FP16 or FP8 may have made zeros already. A
    ValueError of one line says what is not allowed. Returns a GradientReport.

    >>> report = halflab.report_gradients({"layer0": gradient, "layer1": "gradients/layer1.npy"}, out="page.html")
    >>> report.recommended_scale(), report.tensors["layer0"].zones(15)
    """
    log2 = _log2_of(scaled_by)
    format = _halflab.format_named(format)
    if not format.has_arithmetic:
        raise ValueError(f"report_gradients: format = {format.name} is not allowed; allowed: formats with arithmetic")
    arrays = _arrays(tensors)
    forecasts = {name: _forecast_of(name, values, format, log2) for name, values in arrays.items()}
    total = _total(list(forecasts.values()), format, list(arrays.values()), log2)
    rows = [Row(name, "gradient", forecast, stored_as=_narrow_format(arrays[name])) for name, forecast in forecasts.items()]
    found = Tensors(rows, total, log2 if log2 else None, what="which the values carry")
    path = page.write(page.arrays_page(found), out)
    return GradientReport(path, {name: forecast.histogram for name, forecast in forecasts.items()}, total.recommended)


def _narrow_format(values):
    """The format of an array, if its range ends where that of FP32 does not; else None."""
    try:
        format = _halflab.format_named(values.dtype)
    except (AttributeError, ValueError):
        return None
    return format if format.emin > BINARY32.emin else None


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
        histogram = ExponentHistogram(values)
    except ValueError as error:
        raise ValueError(f"report_gradients: tensors[{_halflab.shown(name)}]: {error}") from None
    parts = {log2 - scaled_by_log2: part for log2, part in _parts(values, histogram).items()}
    return _forecast(histogram.shifted(-scaled_by_log2), format, [values], scaled_by_log2, parts)


def _parts(values, histogram):
    """By their log2, histograms of the values over 2^log2: of binary64, too, each value is in an octave of its own then."""
    first, *_, last = histogram.exponents.tolist()
    if first != histogram.lowest_exponent and last != histogram.highest_exponent:
        return {0: histogram}
    values = np.asarray(numbers(values), dtype=np.float64)
    starts = (np.frexp(values)[1] + 127) // 256 * 256  # of NaNs, infinities and zeros 0
    return {start: ExponentHistogram(np.ldexp(values[starts == start], -start)) for start in np.unique(starts).tolist()}


def _total(forecasts, format, arrays, scaled_by_log2):
    histogram, parts = ExponentHistogram(), {}
    for forecast in forecasts:
        histogram += forecast.histogram
        for log2, part in forecast.parts.items():
            parts.setdefault(log2, ExponentHistogram()).__iadd__(part)
    return _forecast(histogram, format, arrays, scaled_by_log2, parts)


def _forecast(histogram, format, arrays, scaled_by_log2, parts):
    if format == BINARY16:
        return Forecast(histogram, parts=parts)
    return CastForecast(histogram, format, arrays, scaled_by_log2, parts)
