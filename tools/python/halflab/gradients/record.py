"""Reading gradient records, those of halflab.torch.watch and those that --record of the experiments wrote."""

import csv
import json
import math
import operator
import tempfile
from pathlib import Path

import numpy as np

from .._columns import structured
from .. import _halflab
from .._halflab import ExponentHistogram
from ..experiments import ExperimentError, run_command
from ..records import RecordError
from . import findings, page
from .files import FORMAT, GRADIENTS, STEPS, VERSION, Writer, fp32_parameters, histogram_of, rank_of


def read_gradients(folder):
    """The gradient record in a folder, or in an experiment's, as a GradientRecord; that of several ranks is merged.

    >>> record = halflab.read_gradients("run.halflab")
    >>> record.tensors["encoder.0", "output"].zones(15)
    """
    folder = Path(folder)
    if (folder / "run" / "record").is_dir():
        folder = folder / "run" / "record"
    return GradientRecord(folder, *map(_read_part, _parts_of(folder)))


def _parts_of(folder):
    """The folders of the ranks of one run, or the folder itself."""
    ranks = {rank_of(path.parent.name): path.parent for path in folder.glob("rank*/manifest.json")}
    ranks.pop(None, None)
    if not ranks:
        return [folder]
    if (folder / "manifest.json").is_file():
        raise RecordError(f"{folder}: holds a record beside those of ranks; allowed: that of one run")
    manifests = {rank: _read_manifest(part) for rank, part in sorted(ranks.items())}
    first, *_ = manifests.values()
    manifests = {rank: manifest for rank, manifest in manifests.items() if rank < first.get("ranks", math.inf)}
    for rank, manifest in manifests.items():
        if any(manifest.get(key) != first.get(key) for key in ("run", "ranks")):
            raise RecordError(f"{folder}: {ranks[rank].name} is of another run than {ranks[min(ranks)].name}; allowed: one run")
    return [ranks[rank] for rank in manifests]


class GradientRecord:
    """What a training run's gradients were: counts and magnitudes, never values.

    manifest  where it comes from, and what could not be seen ("notes")
    steps     a structured array: step, scale (S), found_inf, and the largest magnitudes, S divided out
    skips     the ledger: a dict for every step that was skipped, or applied although it was not finite
    tensors   (name, kind): ExponentHistogram with S divided out, over all sampled steps; kinds are "output" (the
              gradient of a module's output), "gradient" (of a parameter), on request "activation", "weight", "update";
              with a twin also "output in FP32" and "gradient in FP32"
    exponents (step, "run" or "twin"): ExponentHistogram of all gradients of a sampled step, S divided out, and of the
              same step in FP32; without parameters whose gradients are made in FP32 beside others in FP16
    exact     whether S was a power of two at every sampled step; otherwise counts hold to within an octave

    >>> record = halflab.read_gradients("run.halflab")
    >>> record.recommended_scale()
    """

    def __init__(self, folder, *parts):
        self.folder = Path(folder)
        self.manifest = parts[0]["manifest"]
        self.parts = [part["folder"] for part in parts]
        self.steps = _merged_steps([part["steps"] for part in parts])
        self.skips = _merged_skips([part["skips"] for part in parts])
        self.samples = {}
        for part in parts:
            for key, histogram in part["samples"].items():
                self.samples.setdefault(key, ExponentHistogram()).__iadd__(histogram)
        written = [part["exponents"] for part in parts]
        self.exponents = _merged_exponents(written, self.samples, fp32_parameters(self.manifest))
        self.tensors = Tensors()
        for (_, name, kind), histogram in self.samples.items():
            self.tensors.setdefault((name, kind), ExponentHistogram()).__iadd__(histogram)
        scales = dict(zip(self.steps["step"].tolist(), self.steps["scale"].tolist()))
        self.exact = all(findings.is_power_of_two(scales.get(step, 1.0)) for step, _, _ in self.samples)

    @property
    def source(self):
        """Of gradients(): "twin" where steps were repeated in FP32, else "run"."""
        return "twin" if any(of == "twin" for _, of in self.exponents) else "run"

    def bad_steps(self, source):
        """Steps whose counts tell nothing of S: those of the run where it was not finite, those of the twin where FP32 was
        not, or where the forward pass overflowed, which S does not touch."""
        if source == "twin":
            hopeless = {skip["step"] for skip in self.skips if skip["forward_output"] is not None}
            counts = ((step, counts) for (step, of), counts in self.exponents.items() if of == "twin")
            return hopeless | {step for step, histogram in counts if histogram.infinite + histogram.nan}
        return set(self.steps["step"][self.steps["found_inf"] != 0].tolist())

    def gradients(self):
        """One ExponentHistogram of all gradients, S divided out, at steps that were finite where there are any: those in
        FP32 where steps were repeated, skipped ones too; else those of the run."""
        steps_and_counts = [(step, histogram) for (step, of), histogram in self.exponents.items() if of == self.source]
        return findings.total_of(steps_and_counts, self.bad_steps(self.source))

    def recommended_scale(self):
        """The loss scale an octave below the largest at which no gradient that was counted overflows, nor the largest of any
        step, 2^127 at most, which FP32 holds; None without gradients. Where S was no power of two (`exact` is False) it
        holds to within an octave."""
        log2 = findings.total_forecast(self).recommended
        return None if log2 is None else 2.0**log2

    def report(self, out):
        """Writes one page of HTML that says which steps were lost and why, what FP16 makes of the gradients, and what to do.
        Returns its path.

        >>> halflab.read_gradients("run.halflab").report("out.html")
        """
        return page.write(page.record_page(findings.findings_of(self)), out)

    def replay(self, scalers, out=None):
        """What other loss scalers would have done: the Record of `halflab replay`, its tables "scalers" and "steps".

        >>> halflab.read_gradients("run.halflab").replay(["dynamic", "adaptive"]).summary
        """
        scalers = [scalers] if isinstance(scalers, str) else scalers
        if not isinstance(scalers, (list, tuple)):
            raise RecordError(f"replay: scalers = {_halflab.shown(scalers)} is not allowed; allowed: a list of names")
        if len(self.parts) == 1:
            return run_command("replay", self.parts[0], out=out, scalers=scalers)
        with tempfile.TemporaryDirectory() as folder:
            self._write_merged(folder)
            try:
                return run_command("replay", folder, out=out, scalers=scalers)
            except ExperimentError as error:
                raise ExperimentError(str(error).replace(folder, str(self.folder))) from None

    def _write_merged(self, folder):
        """What replay reads, of all ranks."""
        about = ("source", "scaler", "exponents_every")
        writer = Writer(folder, {key: self.manifest[key] for key in about if key in self.manifest})
        for row in self.steps.tolist():
            writer.step(**dict(zip(STEPS, row)))
        scales = dict(zip(self.steps["step"].tolist(), self.steps["scale"].tolist()))
        for (step, of), histogram in sorted(self.exponents.items(), key=operator.itemgetter(0)):
            if of == "twin" or findings.is_power_of_two(scales.get(step, 0.0)):
                writer.exponents(step, of, histogram)
        writer.close(self.manifest["ended"])


class Tensors(dict):
    """Histograms by (name, kind); a name that is none says which are near."""

    def __missing__(self, key):
        names = sorted({f"('{name}', '{kind}')" for name, kind in self})
        wanted = str(key[0]) if isinstance(key, tuple) and key else str(key)
        near = [name for name in names if wanted.split(".")[0] in name] or names
        shown = ", ".join(near[:6]) + (f" and {len(near) - 6} more" if len(near) > 6 else "")
        raise RecordError(f"tensors[{_halflab.shown(key)}]: not in the record; allowed: {shown or 'none, no step was sampled'}")


def _read_part(folder):
    manifest = _read_manifest(folder)
    rows = _rows(folder / "steps.csv")
    steps = structured({name: [float(row[name]) for row in rows] for name in STEPS})
    steps = steps.astype([(name, "i8" if name in ("step", "found_inf") else "f8") for name in STEPS])
    skips = [_skip_of(row) for row in _rows(folder / "skips.csv", optional=True)]
    return {
        "folder": folder,
        "manifest": manifest,
        "steps": steps,
        "skips": skips,
        "samples": _read_samples(folder),
        "exponents": _read_exponents(folder, steps),
    }


def _read_manifest(folder):
    file = Path(folder) / "manifest.json"
    if not file.is_file():
        raise RecordError(f"{folder}: no manifest.json, so no gradient record")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecordError(f"{file}: no JSON: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        raise RecordError(f"{file}: is not that of a gradient record of version {VERSION}")
    return manifest


def _read_samples(folder):
    groups = {}
    for row in _rows(folder / "tensors.csv", optional=True):
        group = groups.setdefault((int(row["step"]), row["tensor"], row["kind"]), ([], []))
        group[row["exponent_log2"] == "max_abs"].append(_cells(row))
    return {key: histogram_of(rows, float(largest[0][1])) for key, (rows, largest) in groups.items() if largest}


def _read_exponents(folder, steps):
    groups = {}
    for row in _rows(folder / "exponents.csv", optional=True):
        groups.setdefault((int(row["step"]), row["of"]), []).append(_cells(row))
    columns = {"run": "max_abs_all", "twin": "twin_max_abs_all"}
    largest = {
        (step, of): value
        for of, column in columns.items()
        for step, value in zip(steps["step"].tolist(), steps[column].tolist())
    }
    return {key: histogram_of(rows, largest[key]) for key, rows in groups.items() if key in largest}


def _cells(row):
    return [row[column] for column in ("exponent_log2", "values", "powers_of_two", "near_next", "top")]


def _rows(file, optional=False):
    """A row that a killed run left half written is the last, and is left out."""
    if not file.is_file():
        if optional:
            return []
        raise RecordError(f"{file}: no such file")
    with open(file, newline="", encoding="utf-8") as lines:
        return [row for row in csv.DictReader(lines) if None not in row and None not in row.values()]


def _skip_of(row):
    numbers = {"scale", "value", "largest_finite", "twin_value", "cured_by"}
    skip = {name: (float(text) if text else None) if name in numbers else text or None for name, text in row.items()}
    skip["step"] = int(row["step"])
    skip["twin_exponent"] = int(row["twin_exponent"]) if row["twin_exponent"] else None
    skip["index"] = tuple(int(i) for i in row["index"].split()) if row["index"] else None
    return skip


def _merged_steps(parts):
    """Ranks share S; a step is not finite where it is so on one of them, and the largest is that of all."""
    length = min(len(part) for part in parts)
    merged = parts[0][:length].copy()
    for part in parts[1:]:
        merged["found_inf"] |= part["found_inf"][:length]
        for name in STEPS[3:]:
            merged[name] = np.fmax(merged[name], part[name][:length])
    return merged


def _merged_exponents(parts, samples, left_out):
    """Where S was no power of two a step's total was not written, and is that of its tensors."""
    merged, written = {}, {key for part in parts for key in part}
    for part in parts:
        for key, histogram in part.items():
            merged.setdefault(key, ExponentHistogram()).__iadd__(histogram)
    for (step, name, kind), histogram in samples.items():
        is_counted = kind in GRADIENTS and not (kind == "gradient" and name in left_out)
        if is_counted and (step, "run") not in written:
            merged.setdefault((step, "run"), ExponentHistogram()).__iadd__(histogram)
    return merged


def _merged_skips(parts):
    if len(parts) == 1:
        return parts[0]
    skips = [dict(skip, rank=rank) for rank, part in enumerate(parts) for skip in part]
    return sorted(skips, key=lambda skip: (skip["step"], skip["rank"]))
