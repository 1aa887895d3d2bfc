"""The files of a gradient record. manifest.json, steps.csv and exponents.csv are what `halflab replay` reads;
tensors.csv holds counts tensor by tensor, skips.csv the ledger."""

import contextlib
import csv
import io
import json
import os
import re

import numpy as np

from .._halflab import ExponentHistogram

LOWEST = int(ExponentHistogram().exponents[0])
GRADIENTS = ("output", "gradient")  # the kinds that loss scaling is about
FORMAT, VERSION = "halflab gradient record", 1
STEPS = ("step", "scale", "found_inf", "max_abs", "max_abs_all", "twin_max_abs", "twin_max_abs_all")
EXPONENTS = ("step", "of", "exponent_log2", "values", "powers_of_two", "near_next", "top")
TENSORS = ("step", "tensor", "kind", "exponent_log2", "values", "powers_of_two", "near_next", "top")
SKIPS = (
    "step", "scale", "outcome", "parameter", "index", "value", "largest_finite", "module_output", "forward_output",
    "weight_before", "twin", "twin_value", "twin_exponent", "cured_by",
)  # fmt: skip
OWN_FILES = {"manifest.json", ".manifest.json", "steps.csv", "exponents.csv", "tensors.csv", "skips.csv"}


def fp32_parameters(manifest):
    """Parameters whose gradients are made in FP32 although the run is one in FP16: those of modules such as nn.LayerNorm
    under autocast. A scale neither saves nor overflows them. The gradient of such a module's output does count: what the
    module hands to a layer in FP16 comes back in FP16."""
    if "float16" not in manifest.get("output_types", {}).values():
        return set()
    return {name for name, dtype in manifest.get("gradient_types", {}).items() if dtype == "float32"}


def histogram_rows(histogram):
    """The last five columns of EXPONENTS: what is no octave by its name, then the octaves that are not empty."""
    rows = [(name, getattr(histogram, name), 0, 0, 0) for name in ("zero", "infinite", "nan")]
    counts = histogram.octave_counts
    places = np.flatnonzero(counts[:, 0])
    return rows + [(place + LOWEST, *cells) for place, cells in zip(places.tolist(), counts[places].tolist())]


def histogram_of(rows, max_abs):
    """What histogram_rows() made `rows` of; cells may be texts."""
    histogram = ExponentHistogram()
    counts, rest = np.zeros_like(histogram.octave_counts), {}
    for place, *cells in rows:
        if place in ("zero", "infinite", "nan"):
            rest[place] = int(cells[0])
        else:
            counts[int(place) - LOWEST] = [int(cell) for cell in cells]
    histogram.add_counts(counts, max_abs, **rest)
    return histogram


class Writer:
    """Writes a record step by step, so that a run that is killed leaves what it had."""

    def __init__(self, folder, description):
        _refuse_what_is_not_ours(folder)
        if description.get("rank") == 0:
            _clear_what_older_runs_left(os.path.dirname(folder), description["ranks"])
        os.makedirs(folder, exist_ok=True)
        self.folder = str(folder)
        self._description, self._described = description, ""
        self._files = {}
        self._write_manifest("running")
        self._tables = {
            name: self._open(name, columns)
            for name, columns in (("steps", STEPS), ("exponents", EXPONENTS), ("tensors", TENSORS), ("skips", SKIPS))
        }

    def _open(self, name, columns):
        self._files[name] = open(os.path.join(self.folder, name + ".csv"), "w", newline="", encoding="utf-8")
        table = csv.writer(_Lines(self._files[name]))
        table.writerow(columns)
        return table

    def _write_manifest(self, ended):
        text = json.dumps({"format": FORMAT, "version": VERSION, **self._description, "ended": ended}, indent=2) + "\n"
        if text == self._described:
            return
        temporary = os.path.join(self.folder, ".manifest.json")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, os.path.join(self.folder, "manifest.json"))
        self._described = text

    def step(self, **cells):
        self._tables["steps"].writerow([_text(cells.get(column, float("nan"))) for column in STEPS])

    def exponents(self, step, of, histogram):
        self._write_rows("exponents", (step, of), histogram_rows(histogram))

    def tensor(self, step, name, kind, histogram):
        rows = [*histogram_rows(histogram), ("max_abs", repr(histogram.max_abs), 0, 0, 0)]
        self._write_rows("tensors", (step, name, kind), rows)

    def _write_rows(self, table, begin, rows):
        """Rows of numbers that begin alike: csv takes twice as long, which a watch of every step would feel."""
        quoted = io.StringIO()
        csv.writer(quoted).writerow(begin)
        begin = quoted.getvalue().removesuffix("\r\n")
        self._files[table].write("".join([f"{begin},{place},{a},{b},{c},{d}\n" for place, a, b, c, d in rows]))

    def skip(self, **cells):
        self._tables["skips"].writerow([_text(cells.get(column)) for column in SKIPS])

    def flush(self):
        for file in self._files.values():
            file.flush()
        self._write_manifest("running")

    def close(self, ended):
        try:
            self.flush()
        finally:
            for file in self._files.values():
                with contextlib.suppress(OSError):  # of what flush() could not write
                    file.close()
        self._write_manifest(ended)


class _Lines:
    """Ends the rows of csv's writer by \\n alone. With that as its own line end it would quote no \\r."""

    def __init__(self, file):
        self._file = file

    def write(self, row):
        self._file.write(row.removesuffix("\r\n") + "\n")


def _refuse_what_is_not_ours(folder):
    """A folder may be new, empty, or an earlier record, which is replaced."""
    if not os.path.lexists(folder):
        return
    if not os.path.isdir(folder):
        raise ValueError(f"{folder}: is a file; allowed: a folder")
    strange = sorted(set(os.listdir(folder)) - OWN_FILES) or ([] if _is_record(folder) else sorted(os.listdir(folder)))
    if strange:
        allowed = "another folder: a new or empty one, or that of a record"
        what = "is of a run on several ranks" if rank_of(strange[0]) is not None else "is not of a gradient record"
        raise ValueError(f"{folder}: holds {strange[0]}, which {what}; allowed: {allowed}")


def rank_of(name):
    """The rank whose record a folder of this name holds; None of other folders."""
    return int(name[4:]) if re.fullmatch("rank[0-9]+", name) else None


def _clear_what_older_runs_left(folder, ranks):
    """Beside the ranks of this run: the record of a run on one process, and those of ranks that this run has not."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    beyond = [os.path.join(folder, name) for name in names if (rank_of(name) or 0) >= ranks]
    for old in filter(_is_record, [folder, *beyond]):
        for name in OWN_FILES.intersection(os.listdir(old)):
            os.remove(os.path.join(old, name))


def _is_record(folder):
    try:
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
            return json.load(file).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return False


def _text(value):
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else value
