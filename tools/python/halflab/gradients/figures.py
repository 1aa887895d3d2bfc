"""Figures of a page: SVG that is stretched to the width there is, with its labels beside it as text, so that they can be
read on any screen."""

import html
import math
import os

import numpy as np

from .findings import Forecast, nearest_log2
from .words import percent, power, s_is

MOST_TENSORS = 40
LEVELS = 6  # of shading
COLUMNS = 400  # marks along an axis, at most


def figure(title, caption, body):
    return f"<figure>\n<h3>{title}</h3>\n{body}\n<figcaption>{caption}</figcaption>\n</figure>\n"


class Plot:
    """An area between two pairs of values, drawn in units of hundredths of its width and height."""

    def __init__(self, x, y, height=170):
        self._x, self._y, self._height = x, y, height
        self._shapes, self._ticks = [], []

    def x(self, value):
        return 100 * (value - self._x[0]) / (self._x[1] - self._x[0])

    def y(self, value):
        return 100 - 100 * (value - self._y[0]) / (self._y[1] - self._y[0])

    def line(self, points, style):
        """Through (x, y), and a dot where there is one alone."""
        path = " ".join(f"{self.x(x):.2f},{self.y(y):.2f}" for x, y in points)
        self._shapes.append(f'<path class="line {style}" d="M{path}{"h0" if len(points) == 1 else ""}"/>')

    def steps(self, values, style):
        """A staircase of (x, y), each until the next, the last until the end."""
        path = f"M{self.x(values[0][0]):.2f},{self.y(values[0][1]):.2f}"
        path += "".join(f"H{self.x(x):.2f}V{self.y(y):.2f}" for x, y in values[1:])
        self._shapes.append(f'<path class="line {style}" d="{path}H100"/>')

    def marks(self, values, style):
        """Bands from top to bottom, which join where values follow one another."""
        width = max(0.5, self.x(1) - self.x(0))
        places = sorted({round(self.x(value) / width) for value in values})
        path = "".join(f"M{place * width:.2f},0h{width:.2f}v100h-{width:.2f}z" for place in places)
        self._shapes.append(f'<path class="{style}" d="{path}"/>')

    def ticks_x(self, labels):
        self._ticks += [f'<span class="tick" style="left:{self.x(at):.2f}%">{text}</span>' for at, text in labels]

    def drawn(self, y_labels, description):
        marks = [f'<span class="ytick" style="top:{self.y(at):.2f}%">{text}</span>' for at, text in y_labels]
        grid = "".join(f"M0,{self.y(at):.2f}H100" for at, _ in y_labels)
        return (
            f'<div class="plot"><div class="ylabels">{"".join(marks)}</div>'
            f'<div class="area" style="height:{self._height}px">'
            f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="{html.escape(description)}">'
            f'<path class="line grid" d="{grid}"/>{"".join(self._shapes)}</svg></div>'
            f'<div></div><div class="ticks">{"".join(self._ticks)}</div></div>'
        )


def legend(*entries):
    """(style, text) each; the style's colour stands before the text."""
    return '<p class="legend">' + " ".join(f'<span class="key {style}"></span>{text}' for style, text in entries) + "</p>"


def scales_over_steps(found):
    """The staircase of S, with the steps that were lost."""
    steps, scales = found.steps["step"], found.steps["scale"]
    log2 = np.array([math.log2(s) if s > 0 and math.isfinite(s) else np.nan for s in scales.tolist()])
    known = ~np.isnan(log2)
    if not known.any() or (np.ptp(log2[known]) == 0 and not found.lost):
        return ""
    changes = np.flatnonzero(np.concatenate([[True], np.diff(log2[known]) != 0]))
    values = list(zip(steps[known][changes].tolist(), log2[known][changes].tolist()))
    low, high = math.floor(log2[known].min()) - 1, math.ceil(log2[known].max()) + 1
    plot = Plot(_step_range(steps), (low, high))
    plot.marks(found.lost_steps, "bad")
    plot.steps(_thinned(values), "one")
    plot.ticks_x(_step_ticks(steps))
    key = legend(("one", "S"), ("bad", f"lost steps ({len(found.lost_steps)})"))
    title, labels = "The loss scale S, step by step", [(at, power(at)) for at in _whole_ticks(low, high)]
    return figure(title, key, plot.drawn(labels, title))


def shares_over_steps(found):
    """What FP16 makes of the gradients at each sampled step."""
    scales = dict(zip(found.steps["step"].tolist(), found.steps["scale"].tolist()))
    bad = found.record.bad_steps(found.source)
    kept = [
        (step, Forecast(histogram), nearest_log2(scales.get(step, 1.0)))
        for (step, of), histogram in sorted(found.record.exponents.items())
        if of == found.source and step not in bad and histogram.nonzero_finite
    ]
    if len(kept) < 2:
        return ""
    if found.tensors.is_truth:
        curves = [("two", "flushed at S = 1", [forecast.share("flushed", 0) for _, forecast, _ in kept])]
        if any(log2 for _, _, log2 in kept):
            own = [forecast.share("flushed", log2) for _, forecast, log2 in kept]
            curves.append(("one", "flushed at the step’s own S", own))
        title = "Gradients that FP16 makes zero, over the training"
    else:
        zeros = [forecast.histogram.zero / forecast.histogram.total for _, forecast, _ in kept]
        subnormal = [forecast.share("subnormal", log2) for _, forecast, log2 in kept]
        curves = [("two", "zero already, of all", zeros), ("one", "subnormal at the step’s S, of the others", subnormal)]
        title = "Gradients that are zero or nearly so, over the training"
    highest = max(0.01, *(max(values) for _, _, values in curves))
    plot = Plot(_step_range(found.steps["step"]), (0, highest * 1.05))
    for style, _, values in curves:
        plot.line([(step, value) for (step, _, _), value in zip(kept, values)][:: max(1, len(kept) // COLUMNS)], style)
    plot.ticks_x(_step_ticks(found.steps["step"]))
    labels = [(share, percent(share)) for share in _ticks(0, highest * 1.05)]
    return figure(title, legend(*((style, text) for style, text, _ in curves)), plot.drawn(labels, title))


def heat_map(tensors):
    """Tensors by binary exponents, over what the format makes of them at the S used."""
    rows = _drawn_rows(tensors)
    exponents = [exponent for row in rows for exponent, _ in row.forecast.octaves]
    if not exponents:
        return ""
    shift = tensors.log2_used or 0
    edges = _edges(exponents, tensors.total.format, shift)
    lowest, width = edges[0], edges[-1] - edges[0]
    ticks = "".join(
        f'<span class="tick" style="left:{100 * (at - lowest) / width:.2f}%">{power(at)}</span>'
        for at in _whole_ticks(lowest, edges[-1], most=5)
    )
    body = (
        f'<div class="plot map"><div class="names">{_names(rows)}</div>'
        f'<div class="area" style="height:{18 * len(rows)}px">'
        f'<svg viewBox="0 0 {width} {len(rows)}" preserveAspectRatio="none" role="img" aria-label="tensors by exponent">'
        f"{_zones(edges, len(rows))}{_cells(rows, edges)}</svg></div>"
        f'<div></div><div class="ticks">{ticks}</div>'
        '<div></div><div class="axis">magnitude of the values, S divided out</div></div>'
    )
    lost = f"at {s_is(power(shift))} becomes zero, or on the right overflows"
    keys = legend(("flushed", lost), ("subnormal", "subnormal"), ("normal", "normal"))
    caption = keys + "The stronger a cell, the more of the tensor’s values have this magnitude."
    if len(rows) < len(tensors.rows):
        caption += f" Drawn are the {len(rows)} of {len(tensors.rows)} tensors that lose most."
    return figure("Each tensor by magnitude", caption, body)


def _drawn_rows(tensors):
    """Those that lose most, in their order."""
    chosen = {id(row) for row in tensors.by_loss()[:MOST_TENSORS]}
    return [row for row in tensors.rows if id(row) in chosen]


def _edges(exponents, format, log2_scale):
    """Exponents at which the map begins, zero ends, subnormal and normal numbers end, and the map ends."""
    zero, subnormal, normal = (e - log2_scale for e in (format.emin_subnormal - 1, format.emin, format.emax + 1))
    lowest, highest = min(zero - 3, *exponents), max(normal + 1, *exponents) + 1
    return [max(lowest, zero - 40), zero, subnormal, normal, highest]


ZONES = ("flushed", "subnormal", "normal", "flushed")  # between the edges


def _zones(edges, lines):
    return "".join(
        f'<rect class="zone {name}" x="{left - edges[0]}" y="0" width="{right - left}" height="{lines}"/>'
        for name, left, right in zip(ZONES, edges, edges[1:])
    )


def _names(rows):
    shared = _shared_beginning([row.label for row in rows])
    return "".join(
        f'<div title="{html.escape(row.label)}">{html.escape(_short(row.label[shared:], "…" if shared else ""))}</div>'
        for row in rows
    )


def _cells(rows, edges):
    """Paths, one for each zone and level of shading: a cell is a deeper shade of its zone."""
    paths = {}
    for line, row in enumerate(rows):
        for exponent, count in row.forecast.octaves:
            exponent = max(exponent, edges[0])
            share = count / row.forecast.histogram.total
            level = min(LEVELS - 1, max(0, LEVELS + math.floor(math.log2(share) * 0.6)))
            zone = ZONES[sum(exponent >= edge for edge in edges[1:-1])]
            paths.setdefault((zone, level), []).append(f"M{exponent - edges[0]},{line}h1v1h-1z")
    return "".join(f'<path class="cell {zone} l{level}" d="{"".join(path)}"/>' for (zone, level), path in paths.items())


def _shared_beginning(labels):
    """How many characters all begin with, up to a dot; 0 of few."""
    shared = os.path.commonprefix(labels)
    length = shared.rfind(".") + 1
    return length if length > 4 and len(labels) > 1 else 0


def _short(name, before, most=34):
    if len(name) > most:
        name = f"{name[: most // 3]}…{name[len(name) - most + most // 3 + 1 :]}"
    return before + name


def _thinned(values):
    return values if len(values) <= 4 * COLUMNS else values[:: math.ceil(len(values) / (4 * COLUMNS))]


def _step_range(steps):
    return int(steps[0]), int(steps[-1]) + 1


def _step_ticks(steps):
    first, last = _step_range(steps)
    return [(at, str(at)) for at in _whole_ticks(first, last)]


def _ticks(low, high, most=4, smallest=-9):
    """Multiples of 1, 2 or 5 times a power of ten, from 10^smallest on."""
    spacings = (unit * 10.0**digits for digits in range(smallest, 12) for unit in (1, 2, 5))
    spacing = next(spacing for spacing in spacings if (high - low) / spacing <= most)
    return [spacing * place for place in range(math.ceil(low / spacing), math.floor(high / spacing) + 1)]


def _whole_ticks(low, high, most=4):
    return [round(tick) for tick in _ticks(low, high, most, smallest=0)]
