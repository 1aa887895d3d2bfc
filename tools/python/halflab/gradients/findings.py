"""What a gradient record says, as numbers: which steps were lost, and what FP16 makes of the gradients."""

import collections
import dataclasses
import functools
import math
import re

import numpy as np

from .._halflab import Counts, ExponentHistogram, formats, round_to
from .files import GRADIENTS, fp32_parameters

IN_FP32 = " in FP32"  # ends the kinds of a step that was repeated
NOTICEABLE = 0.001  # of the non-zero values: less is no loss
RARE = 0.01  # of the steps
INPUT = "the model's input"  # in the place of a module
INPUT_OF = "the input of "  # before a module that was given what no other had returned
PARTLY = "partly applied"  # by one optimizer of several
WEIGHTY = 0.01  # of all values: tensors of fewer may hold noise, as a bias before a batch normalisation does
LARGEST_LOG2_SCALE = 127  # a GradScaler keeps S in FP32
BINARY16, BINARY32 = formats["binary16"], formats["binary32"]


class Forecast:
    """What a cast to a format makes of values at every power-of-two scale, from the counts of their exponents. All that
    is asked of binary16 follows from them; of another format see halflab.report_gradients."""

    format = BINARY16

    def __init__(self, histogram, limit=None, parts=None):
        """`limit`: log2 of the largest scale that is known to be finite from elsewhere. `parts`: by their log2, histograms of
        the values over 2^log2, where one histogram has not all their octaves."""
        self.histogram, self.parts, self._limit = histogram, parts or {0: histogram}, limit

    def zones(self, log2_scale):
        """As ExponentHistogram.zones."""
        zones = [part.zones() for part in self._scaled(log2_scale)]
        return {zone: sum(each[zone] for each in zones) for zone in zones[0]}

    def flushed(self, log2_scale):
        """Of every format: at most half its smallest number becomes zero, so that it is a matter of scale between them."""
        scaled = self._scaled(log2_scale + BINARY16.emin_subnormal - self.format.emin_subnormal)
        return sum(part.flushed_at_scale(0) for part in scaled)

    def _scaled(self, log2_scale):
        return [part.shifted(_within(log2 + log2_scale)) for log2, part in self.parts.items()]

    @property
    def octaves(self):
        """(e, how many values lie in 2^e <= |x| < 2^(e+1)), where there are any."""
        return sorted(
            (exponent + log2, count)
            for log2, part in self.parts.items()
            for exponent, count in zip(part.exponents.tolist(), part.counts.tolist())
            if count
        )

    @property
    def headroom(self):
        """log2 of the largest scale without overflow, or None."""
        rooms = [headroom_of(self.format, part.max_abs) - log2 for log2, part in self.parts.items() if part.max_abs]
        return min(rooms + [limit for limit in [self._limit] if limit is not None]) if rooms else None

    @property
    def recommended(self):
        """An octave less, or as far as FP32 goes where that keeps as much; or None."""
        if self.headroom is None:
            return None
        is_capped = self.headroom > LARGEST_LOG2_SCALE and self._keeps(LARGEST_LOG2_SCALE)
        return LARGEST_LOG2_SCALE if is_capped else self.headroom - 1

    def _keeps(self, log2_scale):
        """Whether a scale keeps as much as the largest without overflow does, to NOTICEABLE."""
        return self.share("flushed", log2_scale) <= self.share("flushed", self.headroom) + NOTICEABLE

    def share(self, zone, log2_scale):
        """Of the non-zero finite values."""
        nonzero = self.histogram.nonzero_finite
        count = self.flushed if zone == "flushed" else lambda log2: self.zones(log2)[zone]
        return count(log2_scale) / nonzero if nonzero else 0.0

    def lowest_keeping(self):
        """log2 of the smallest scale that keeps as much; or None."""
        if self.headroom is None:
            return None
        all_zero = self.headroom - (self.format.emax - self.format.emin_subnormal + 2)  # at all smaller scales, too
        lost, kept = all_zero - 1, self.headroom
        while kept - lost > 1:
            middle = (lost + kept) // 2
            lost, kept = (lost, middle) if self._keeps(middle) else (middle, kept)
        return kept


def headroom_of(format, largest):
    """log2 of the largest scale at which the cast to a format does not overflow."""
    headroom, counts = math.frexp(format.max)[1] - math.frexp(largest)[1], Counts()
    round_to(math.ldexp(largest, headroom), format, counts=counts)
    return headroom - counts.overflowed


def _within(log2):
    """The octaves by which ExponentHistogram shifts: beyond them every value is lost in the same way."""
    return min(max(log2, -276), 276)


@dataclasses.dataclass
class Row:
    """A tensor; its counts are of FP32 where steps were repeated, else of the run itself.

    is_truth    whether values that FP16 lost are counted
    stored_as   the format of less range than FP32's that rounded them before they were counted; or None
    """

    name: str
    kind: str
    forecast: Forecast
    is_truth: bool = True
    stored_as: object = None

    @property
    def label(self):
        name = self.name or "the model"
        return f"{name} (output)" if self.kind == "output" else name

    @property
    def is_zero(self):
        histogram = self.forecast.histogram
        return histogram.total > 0 and histogram.total == histogram.zero

    @property
    def is_untold(self):
        """Whether its zeros, beside which there is no number, may be all that its format left."""
        return self.stored_as is not None and 0 < self.forecast.histogram.zero and not self.forecast.histogram.nonzero_finite

    def has_untold_zeros(self, log2_scale):
        """Whether its format may have made zeros beside its subnormal numbers, of values with this scale."""
        histogram = self.forecast.histogram
        if self.stored_as is None or histogram.lowest_exponent is None or histogram.zero < NOTICEABLE * histogram.total:
            return False
        return histogram.lowest_exponent + log2_scale < self.stored_as.emin

    def is_below_normal(self, log2_scale):
        """Whether something is left, and none of it is a normal number of the format."""
        zones = self.forecast.zones(log2_scale)
        return self.forecast.histogram.nonzero_finite > 0 and zones["normal"] + zones["overflowed"] == 0


@dataclasses.dataclass
class Tensors:
    """Tensors, all of them together, and the scales that are asked about.

    is_truth    whether values that FP16 lost are counted; else the run lost them before it counted
    log2_used   None where the values come from no run
    exact       whether S was a power of two
    what        says of the S used which steps had it
    left_out    rows of those that do not count, since they are made in FP32
    """

    rows: list
    total: Forecast
    log2_used: int = None
    is_truth: bool = True
    exact: bool = True
    what: str = ""
    left_out: list = ()

    def wholly_lost(self, log2_scale):
        return [row for row in self.rows if row.forecast.share("flushed", log2_scale) == 1]

    def mostly_lost(self, log2_scale):
        return [row for row in self.rows if 0.5 < row.forecast.share("flushed", log2_scale) < 1]

    @property
    def zero(self):
        return [row for row in self.rows if row.is_zero]

    @property
    def untold(self):
        return [row for row in self.rows if row.is_untold]

    @property
    def below_normal(self):
        return [row for row in self.rows if row.is_below_normal(self.log2_used)]

    @property
    def verdict(self):
        """At the S used FP16 "loses" whole tensors, "flushes" noticeably many values, or "keeps" them; None where that
        cannot be told."""
        if self.total.histogram.nonzero_finite == 0:
            return None
        return self._verdict_of_truth() if self.is_truth else self._verdict_of_what_is_left()

    def _verdict_of_truth(self):
        scale = self.log2_used or 0
        dying, flushed = self.wholly_lost(scale) + self.mostly_lost(scale), self.total.share("flushed", scale)
        if self._is_weighty(dying) if self.rows else flushed > 0.5:
            return "loses"
        return "flushes" if flushed >= NOTICEABLE else "keeps"

    def _verdict_of_what_is_left(self):
        """Zeros beside subnormal numbers may have been made by FP16; beside a gap they were there before."""
        if self._is_weighty(self.below_normal):
            return "loses"
        histogram = self.total.histogram
        has_zeros = histogram.zero >= NOTICEABLE * histogram.total
        reaches_zero = has_zeros and self.total.share("subnormal", self.log2_used) >= NOTICEABLE
        return None if self._is_weighty(self.zero) or not self.rows or reaches_zero else "keeps"

    def gains(self, log2_scale):
        """Whether a larger S keeps noticeably more. What a run in FP16 flushed is not known; what is subnormal there is."""
        used, zones = self.log2_used or 0, ("flushed",) if self.is_truth else ("flushed", "subnormal")
        if self.verdict == "keeps" or log2_scale <= used:
            return False
        lost, still = (sum(self.total.share(zone, log2) for zone in zones) for log2 in (used, log2_scale))
        return lost - still >= NOTICEABLE

    def keeps_digits(self, log2_scale):
        """Whether noticeably fewer values are subnormal at this scale than at the one used."""
        used, still = (self.total.share("subnormal", log2) for log2 in (self.log2_used or 0, log2_scale))
        return used - still >= NOTICEABLE

    def _is_weighty(self, rows):
        values = sum(row.forecast.histogram.total for row in self.rows)
        return sum(row.forecast.histogram.total for row in rows) > WEIGHTY * values

    def by_loss(self):
        """The rows that lose most first: nothing but zeros, then by what is flushed and subnormal, small ones first."""
        scale = self.log2_used or 0

        def rank(row):
            forecast = row.forecast
            shares = (-forecast.share(zone, scale) for zone in ("flushed", "subnormal"))
            return not row.is_zero, *shares, forecast.histogram.max_abs

        return sorted(self.rows, key=rank)


@dataclasses.dataclass
class Findings:
    """Of a whole record.

    lost    the entries of the ledger, or what the table of steps tells of those without one
    others  tensors that no loss scale touches: activations, weights, updates
    source  of the counts of all gradients: "twin" where sampled steps were repeated in FP32, else "run"
    """

    record: object
    lost: list
    tensors: Tensors
    others: Tensors
    log2_recommended: int
    source: str

    @property
    def steps(self):
        return self.record.steps

    @property
    def has_scaler(self):
        return self.record.manifest.get("scaler") not in ("", "none", None)

    @property
    def is_of_torch(self):
        return str(self.record.manifest.get("source", "")).startswith("PyTorch")

    @property
    def scaler_class(self):
        """PyTorch's, by the name that the version of the run had for it."""
        version = re.match(r"PyTorch (\d+)\.(\d+)", str(self.record.manifest.get("source", "")))
        is_old = version is not None and tuple(map(int, version.groups())) < (2, 3)
        return "torch.cuda.amp.GradScaler" if is_old else "torch.amp.GradScaler"

    @property
    def has_fp16_weights(self):
        return "float16" in self.record.manifest.get("parameter_types", {}).values()

    @property
    def is_forecast(self):
        """Whether the run is known not to be one in FP16."""
        return _is_forecast(self.record)

    @property
    def trained_in(self):
        """The narrowest type of a forecast's run, in words."""
        return "bfloat16" if "bfloat16" in self.record.manifest["output_types"].values() else "FP32"

    @property
    def lost_steps(self):
        """Each once, though several ranks may have lost it."""
        return sorted({skip["step"] for skip in self.lost})

    @property
    def applied(self):
        """Steps that went into the weights although they were not finite."""
        return [skip for skip in self.lost if skip["outcome"] == "applied"]

    @property
    def partly_applied(self):
        """Whether at every lost step one optimizer went on where another did not."""
        return bool(self.lost) and all(skip["outcome"] == PARTLY for skip in self.lost)

    @property
    def blamed(self):
        """The entries that say why: of applied steps the first alone, since it spoils the weights of all later ones."""
        if not self.applied:
            return self.lost
        first = min(skip["step"] for skip in self.applied)
        return [skip for skip in self.lost if skip["step"] <= first]

    def spoilt_weights(self):
        """The first entry of a step that began with weights that were not finite; or None."""
        return next((skip for skip in self.blamed if skip.get("weight_before") is not None), None)

    def with_bad_input(self):
        """The entries of steps at which the model was given what was not finite."""
        return [skip for skip in self.blamed if skip.get("forward_output") == INPUT]

    def overflowed_forward(self):
        """The module, or INPUT, that was not finite first in the forward pass, of the steps that were lost most often; or
        None."""
        found = most_often(self.blamed, "forward_output")
        return found[0] if found else None

    def overflowed_module(self):
        """As overflowed_forward(), of modules alone."""
        found = most_often([skip for skip in self.blamed if skip.get("forward_output") != INPUT], "forward_output")
        return found[0] if found else None

    def had_hooks(self, skip):
        """Whether modules were looked at in that step."""
        return any(step == skip["step"] and not kind.endswith(IN_FP32) for step, _, kind in self.record.samples)

    def recovery(self):
        """(step, S) of the first finite step after the first that was lost, or None."""
        first = self.lost[0]["step"]
        after = self.steps[(self.steps["step"] > first) & (self.steps["found_inf"] == 0)]
        return (int(after["step"][0]), float(after["scale"][0])) if len(after) else None

    @functools.cached_property
    def nan_without_overflow(self):
        """Entries that no overflow explains."""
        strange = set(map(id, nan_without_overflow(self.record)))
        return [skip for skip in self.blamed if id(skip) in strange]

    @property
    def is_rare(self):
        """Whether so few steps are lost that the training does not notice, and the last ones are finite."""
        return len(self.lost_steps) <= RARE * len(self.steps) and self.steps["found_inf"][-1] == 0

    def lost_after_growth(self):
        """Share of the steps that a search lost after its first finite step: S had grown."""
        finite = self.steps["step"][self.steps["found_inf"] == 0]
        return sum(step > finite[0] for step in self.lost_steps) / len(self.steps) if len(finite) else 0.0

    @property
    def is_search(self):
        """Whether every lost step is one of a scaler that looks for S: at the very beginning, or from where S grew until it
        was small enough again."""
        if not self.has_scaler or not self.lost or self.recovery() is None or self.nan_without_overflow:
            return False
        is_searching, last_scale = True, 0.0
        for scale, is_bad in zip(self.steps["scale"].tolist(), self.steps["found_inf"].tolist()):
            is_searching |= scale > last_scale
            if is_bad and not is_searching or not is_bad and scale < 1:
                return False
            is_searching &= bool(is_bad)
            last_scale = scale
        return True


def findings_of(record):
    """What a GradientRecord says."""
    total = total_forecast(record)
    in_fp32 = fp32_parameters(record.manifest)
    counted, left_out, others = [], [], []
    for row in _rows(record):
        is_left_out = row.kind == "gradient" and row.name in in_fp32
        (left_out if is_left_out else counted if row.kind in GRADIENTS else others).append(row)
    is_truth = record.source == "twin" or _is_forecast(record)
    log2_used, what = _log2_used(record.steps)
    tensors = Tensors(counted, total, log2_used, is_truth, record.exact, what, left_out=left_out)
    others = Tensors(others, None, log2_used=0, is_truth=all(row.is_truth for row in others))
    return Findings(record, _lost(record), tensors, others, total.recommended, record.source)


def total_forecast(record):
    """Of all gradients that were counted; within the scales at which no step, counted or not, is known to overflow."""
    steps = record.steps[record.steps["found_inf"] == 0]
    magnitudes = np.concatenate([steps["max_abs"], steps["max_abs_all"]])
    magnitudes = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    limits = [headroom_of(BINARY16, magnitudes.max())] if len(magnitudes) else []
    strange = nan_without_overflow(record)
    for skip in record.skips:
        if skip.get("cured_by"):
            limits.append(math.floor(math.log2(skip["cured_by"])))
        elif skip["outcome"] == "skipped" and skip["scale"] > 0 and not (_is_beyond_cure(skip) or skip in strange):
            limits.append(math.ceil(math.log2(skip["scale"])) - 1)
    return Forecast(record.gradients(), min(limits, default=None))


def _is_beyond_cure(skip):
    """Whether more than the gradients was not finite, or whether FP32 was not."""
    return skip["twin"] == "not finite" or any(skip[column] is not None for column in ("forward_output", "weight_before"))


def nan_without_overflow(record):
    """The entries of the ledger whose first bad gradient was NaN although S was too small for an overflow: 16 times the
    largest magnitude of any finite step would have fitted FP16. A cast that overflows makes infinities."""
    magnitudes = record.steps["max_abs"][record.steps["found_inf"] == 0]
    largest = magnitudes[np.isfinite(magnitudes)].max(initial=0)

    def is_strange(skip):
        is_nan = skip["value"] is not None and math.isnan(skip["value"])
        return is_nan and 0 < 16 * largest * skip["scale"] < 65504 and not _is_beyond_cure(skip)

    return [skip for skip in record.skips if is_strange(skip)]


def most_often(skips, column):
    """(the entry that most rows of a ledger have in a column, how many); None where it is empty."""
    entries = collections.Counter(skip[column] for skip in skips if skip.get(column) is not None)
    return entries.most_common(1)[0] if entries else None


def nearest_log2(scale):
    """The exponent of a power of two; of another scale the nearest one, and 0 of what is no scale."""
    return round(math.log2(scale)) if scale > 0 and math.isfinite(scale) else 0


def is_power_of_two(scale):
    return scale > 0 and math.isfinite(scale) and math.frexp(scale)[0] == 0.5


def _log2_used(steps):
    """(that which most steps had, of those that were finite where there are any, and what it is, in words)."""
    finite = steps["scale"][steps["found_inf"] == 0]
    scales = collections.Counter((finite if len(finite) else steps["scale"]).tolist())
    if not scales:
        return 0, "which most steps had"
    (scale, times), among = scales.most_common(1)[0], sum(scales.values())
    what = "which most steps had" if 2 * times > among else f"which {times} of {among} steps had"
    return nearest_log2(scale), what


def _is_forecast(record):
    """By the types of the modules' outputs; where none was seen, by what the values of the gradients show."""
    outputs, gradients = (record.manifest.get(key, {}).values() for key in ("output_types", "gradient_types"))
    return "float16" not in outputs if outputs else set(gradients) == {"float32"}


def _rows(record):
    """In the order of the backward pass; at finite steps where there are any."""
    run, fp32 = {}, {}
    for (step, name, kind), histogram in record.samples.items():
        own = fp32 if kind.endswith(IN_FP32) else run
        own.setdefault((name, kind.removesuffix(IN_FP32)), []).append((step, histogram))
    rows = []
    for key in {**run, **fp32}:
        source = "twin" if key in fp32 else "run"
        counts = total_of((fp32 if key in fp32 else run)[key], record.bad_steps(source))
        rows.append(Row(*key, Forecast(counts), source == "twin" or _is_truth(record, *key)))
    return rows


def _is_truth(record, name, kind):
    """Whether a tensor of the run is known to be of another type than FP16."""
    types = record.manifest.get("parameter_types" if kind in ("weight", "update") else "output_types", {})
    return _is_forecast(record) or kind not in GRADIENTS and types.get(name, "float16") != "float16"


def total_of(steps_and_histograms, bad):
    """The sum over steps that are not bad; over all where there is no other."""
    good = [histogram for step, histogram in steps_and_histograms if step not in bad]
    total = ExponentHistogram()
    for histogram in good or [histogram for _, histogram in steps_and_histograms]:
        total += histogram
    return total


def _lost(record):
    if record.skips:
        return record.skips
    outcome = "applied" if record.manifest.get("scaler") in ("", "none") else "skipped"
    bad = record.steps[record.steps["found_inf"] != 0]
    return [
        {"step": step, "scale": scale, "outcome": outcome}
        for step, scale in zip(bad["step"].tolist(), bad["scale"].tolist())
    ]
