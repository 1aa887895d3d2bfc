"""The record of a watched training: steps become rows."""

import math

import torch

from .._halflab import ExponentHistogram
from ..gradients.files import Writer, fp32_parameters
from ..gradients.findings import PARTLY, is_power_of_two, nearest_log2
from .counts import read_together
from .errors import WatchError
from .ledger import first_infinite
from .step import in_words


class Recorder:
    """`description`: of the model, the scaler and the samples, as files.Writer takes it."""

    def __init__(self, folder, description, parameters, widths, notes):
        self._parameters, self._widths, self._notes = parameters, widths, notes
        self._types, self._gradient_types = {}, {}  # of outputs by module, of gradients by parameter
        self._in_fp32 = set()  # parameters whose gradients no scale touches, as far as they are known
        for name, parameter in parameters.named():
            if parameter.is_complex():
                self.note(_note_of_complex(name))
        types = {
            "notes": self._notes,
            "output_types": self._types,
            "gradient_types": self._gradient_types,
            "parameter_types": {name: _type_of(parameter) for name, parameter in parameters.named()},
        }
        try:
            self._writer = Writer(folder, {**description, **types})
        except (OSError, ValueError) as error:
            raise WatchError(f"watch: out: {error}") from None

    def note(self, note):
        if note not in self._notes:
            self._notes.append(note)

    def see_output(self, module, tensor):
        """Of several outputs the narrowest type counts."""
        if self._types.get(module) != "float16":
            self._types[module] = _type_of(tensor)
        if tensor.is_complex():
            self.note(_note_of_complex(in_words(module)))

    def write(self, steps):
        """Reads what waits on the device, all at once."""
        scales = read_together([torch.as_tensor(step.scale) for step in steps])
        found = iter(read_together([flag for step in steps for flag in step.found]))
        norms = iter(read_together([norm for step in steps for _, norm in step.norms]))
        for step, scale in zip(steps, scales):
            own_found = [next(found) for _ in step.found]
            own_norms = [(name, float(next(norms))) for name, _ in step.norms]
            self._write(step, float(scale), own_found, own_norms)
        self._writer.flush()

    def close(self, ended):
        self._writer.close(ended)

    def _write(self, step, scale, found, norms):
        first_bad = next((name for name, norm in norms if not math.isfinite(norm)), None)
        found_inf = any(found) or (not found and first_bad is not None)
        cells = {"step": step.number, "scale": scale, "found_inf": int(found_inf), "max_abs": step.largest}
        if step.tally is not None:
            self._look_at_types()
        if first_bad is None:
            largest = max((norm for name, norm in norms if name not in self._in_fp32), default=0.0)
            cells["max_abs"] = largest / scale if scale else math.nan
        if step.tally is not None:
            self._write_counts(step, scale, cells)
        if step.twin is not None:
            self._write_twin(step, cells)
        self._writer.step(**cells)
        if found_inf and not step.skips:
            outcome = "skipped" if step.decides_itself else "applied"
            skip = {"step": step.number, "scale": scale, "outcome": outcome, "parameter": first_bad}
            step.skips.append({**skip, **step.first_modules(), "weight_before": first_infinite(step.weights)})
        for skip in step.skips:
            is_partly = skip["outcome"] == "skipped" and step.was_applied
            self._writer.skip(**{**skip, "outcome": PARTLY if is_partly else skip["outcome"]})

    def _write_counts(self, step, scale, cells):
        shift = -nearest_log2(scale)
        run, weights = ExponentHistogram(), ExponentHistogram()
        for (name, kind), histogram in step.tally.read().items():
            if kind in ("output", "gradient"):
                histogram = histogram.shifted(shift)
                if kind == "output" or name not in self._in_fp32:
                    run += histogram
                    weights += histogram if kind == "gradient" else ExponentHistogram()
            self._writer.tensor(step.number, name, kind, histogram)
        cells["max_abs_all"] = run.max_abs
        if self._parameters.are_all_selected:
            cells["max_abs"] = weights.max_abs
        if is_power_of_two(scale):
            self._writer.exponents(step.number, "run", run)

    def _write_twin(self, step, cells):
        if not step.twin.tally:
            self.note(f"the repeat in FP32: {step.twin.verdict}")
            return
        twin, weights = ExponentHistogram(), ExponentHistogram()
        for (name, kind), histogram in step.twin.tally.items():
            if kind == "gradient" and name not in self._in_fp32:
                weights += histogram
            if self._parameters.is_selected(name):
                self._writer.tensor(step.number, name, f"{kind} in FP32", histogram)
                if kind == "output" or name not in self._in_fp32:
                    twin += histogram
        cells.update(twin_max_abs=weights.max_abs, twin_max_abs_all=twin.max_abs)
        self._writer.exponents(step.number, "twin", twin)

    def _look_at_types(self):
        """A parameter's gradient is made in the type of its module's output, of tied ones in FP32 where all are; in FP32 only
        where values show it, since a module may cast its result. Where no module was seen, values alone tell."""
        self._widths.read()
        for name in self._parameters.names:
            owners = [own.rpartition(".")[0] for own in (name, *self._parameters.ties.get(name, ()))]
            types = [self._types[owner] for owner in owners if owner in self._types]
            if len(types) < len(owners) and self._types:
                continue
            narrower = next((each for each in types if each != "float32"), None)
            if narrower:
                self._widths.settle(name)
            if narrower or name in self._widths.wide:
                self._gradient_types[name] = narrower or "float32"
            elif not self._types and name in self._widths.narrow:
                self._gradient_types[name] = "unknown"
        self._in_fp32 = fp32_parameters({"output_types": self._types, "gradient_types": self._gradient_types})


def _type_of(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def _note_of_complex(name):
    return f"{name} is complex: the real and the imaginary part of a number count as two values"
