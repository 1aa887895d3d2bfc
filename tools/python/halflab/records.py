"""Reading what the experiments write."""

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ._columns import structured


class RecordError(ValueError):
    """A directory that is no record of a finished run, or a file in it that cannot be read. One line."""

    def __init__(self, text):
        super().__init__("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))


@dataclass
class Record:
    """A run of an experiment.

    tables   its CSV files by name, numpy structured arrays whose fields are the columns: int64 (or uint64) where every cell is
             a whole number, float64 where every cell is a number (an empty cell is NaN), else text
    failure  of a run from Python: what its check found wrong, or "". Files do not keep it, so read_record() leaves it empty
    """

    directory: Path
    manifest: dict = field(repr=False)
    summary: dict
    verdict: str = field(repr=False)
    tables: dict = field(repr=False)
    failure: str = ""

    @property
    def steps(self):
        """The table of single steps of training, of experiments that have one."""
        if "steps" not in self.tables:
            raise RecordError(f"{self.directory}: no table 'steps'; tables: {', '.join(self.tables) or 'none'}")
        return self.tables["steps"]


def read_record(directory):
    """The record of a finished run in `directory`: manifest, summary, verdict and tables.

    Raises RecordError, a ValueError, where there is no such directory, the run has not finished, or a file is damaged.

    >>> record = halflab.read_record("results/underflow_sweep")
    >>> sweep = record.tables["sweep"]
    >>> sweep["fraction_flushed"][sweep["scale_log2"] == 8]
    """
    directory = Path(directory)
    if not directory.is_dir():
        raise RecordError(f"{directory}: no such directory")
    if not (directory / "manifest.json").is_file():
        unfinished = (directory / ".partial").is_dir()
        raise RecordError(
            f"{directory}: " + ("the run has not finished" if unfinished else "no manifest.json, so no record of a run")
        )
    manifest = _read_json(directory / "manifest.json")
    return Record(
        directory=directory,
        manifest=manifest,
        summary={key: _number_named(value) for key, value in _read_json(directory / "summary.json").items()},
        verdict=_read_text(directory / "verdict.txt"),
        tables={file.stem: _read_table(file) for file in sorted(directory.glob("*.csv"))},
    )


def _read_text(file):
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RecordError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file}: {error}") from None


def _read_json(file):
    try:
        content = json.loads(_read_text(file))
    except json.JSONDecodeError as error:
        raise RecordError(f"{file}:{error.lineno}: no JSON: {error.msg}") from None
    if not isinstance(content, dict):
        raise RecordError(f"{file}: found no JSON object; allowed: one object")
    return content


def _number_named(value):
    """JSON has no infinities and NaNs; their names stand for them."""
    return float(value) if value in ("nan", "inf", "-inf") else value


def _read_table(file):
    rows = list(csv.reader(io.StringIO(_read_text(file))))
    if not rows:
        raise RecordError(f"{file}: empty; allowed: a header and rows")
    header, cells = rows[0], rows[1:]
    if len(set(header)) != len(header):
        raise RecordError(f"{file}:1: two columns have one name")
    for line, row in enumerate(cells, start=2):
        if len(row) != len(header):
            raise RecordError(f"{file}:{line}: {len(row)} cells; allowed: {len(header)}, as in the header")
    return structured({name: _column([row[i] for row in cells]) for i, name in enumerate(header)})


def _column(texts):
    for convert in (_whole_numbers, _numbers):
        try:
            return convert(texts)
        except ValueError:
            pass
    return np.array(texts)


def _whole_numbers(texts):
    numbers = [int(text) for text in texts]
    for dtype in (np.int64, np.uint64):
        if all(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max for number in numbers):
            return np.array(numbers, dtype=dtype)
    raise ValueError


def _numbers(texts):
    return np.array([float(text or "nan") for text in texts], dtype=np.float64)
