"""Running the experiments from Python."""

import dataclasses
import difflib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .records import read_record


class ExperimentError(RuntimeError):
    """An experiment that was not found, or that refused its options or failed. One line, its own where it has one."""


def run_experiment(name, out=None, **options):
    """Runs an experiment and returns its Record. That its check failed (exit code 1) is an answer: `failure` says what did.

    name     of the program, as "underflow_sweep". It is looked for in the directory that the environment variable
             HALFLAB_BIN_DIR names, then in the build or the installation that this module is part of, then on the
             PATH.
    out      the directory for its results; they are read and not kept where none is given
    options  of its command line: `twin_every=10` is --twin-every 10, `quick=True` is --quick,
             `scalers=["none", "dynamic"]` is --scalers none,dynamic

    >>> record = halflab.run_experiment("underflow_sweep", model="mlp", steps=200)
    >>> record.tables["sweep"]["fraction_flushed"][0]
    """
    return _record_of([_program(name)], name, out, options)


def run_command(name, *paths, out=None, **options):
    """Runs a command of `halflab`, such as hist or compare, on files or folders and returns its Record. That what was asked
    does not hold (exit code 1) is an answer: `failure` says why.

    >>> record = halflab.run_command("hist", "gradients", format="e4m3")
    >>> record.tables["tensors"]["fraction_flushed_at_1"]
    """
    return _record_of([_program("halflab"), name, *map(str, paths)], f"halflab {name}", out, options)


def _record_of(words, name, out, options):
    if out is not None:
        return _run(words, name, out, options)
    with tempfile.TemporaryDirectory() as directory:
        return _run(words, name, Path(directory) / name.replace(" ", "_"), options)


def _run(words, name, out, options):
    command = [*words, "--out", str(out), "--quiet", *_words(options)]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = run.stderr.strip().splitlines() or [f"{name}: ended with code {run.returncode}"]
    failure = lines[-1].partition(": check failed: ")[2] if run.returncode == 1 else ""
    if run.returncode and not failure:
        raise ExperimentError(lines[-1])
    if not (Path(out) / "manifest.json").is_file():
        raise ExperimentError(f"{name}: left no record; allowed: options that run it, unlike help and list")
    return dataclasses.replace(read_record(out), failure=failure)


def _program(name):
    above = Path(__file__).resolve().parents
    directories = [str(above[2] / "bin")]
    for prefix in above:
        experiments = prefix / "libexec" / "halflab"
        if experiments.is_dir():
            directories += [str(experiments), str(prefix / "bin")]
    directories.append(os.environ.get("PATH", os.defpath))
    if os.environ.get("HALFLAB_BIN_DIR"):
        directories.insert(0, os.environ["HALFLAB_BIN_DIR"])
    program = shutil.which(name, path=os.pathsep.join(directories))
    if program is None:
        raise ExperimentError(f"experiment '{name}' was not found; {_allowed(name, directories)}")
    return program


def _allowed(name, directories):
    """The experiments that lie beside one that each build and each installation has."""
    place = shutil.which("underflow_sweep", path=os.pathsep.join(directories))
    if place is None:
        return (
            "there are none in HALFLAB_BIN_DIR, beside this module or on the PATH: ./lab build in a checkout makes them, "
            "and the wheel and the Debian package halflab bring them"
        )
    programs = (p for p in Path(place).parent.iterdir() if p.is_file() and os.access(p, os.X_OK) and not p.suffix)
    names = sorted(program.name for program in programs if program.name != "halflab")
    meant = difflib.get_close_matches(name, names, 1)
    return (f"did you mean '{meant[0]}'? " if meant else "") + "allowed: " + ", ".join(names)


def _words(options):
    words = []
    for option, value in options.items():
        flag = "--" + option.replace("_", "-")
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if isinstance(value, np.bool_):
            value = bool(value)
        if value is True:
            words.append(flag)
        elif isinstance(value, Iterable) and not isinstance(value, str):
            words += [flag, ",".join(map(str, value))]
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words
