"""The programs that campaigns kill and disturb, and what must hold of their folders whatever happens to them."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import time
import zlib

NOT_OF_THE_BITS = {"manifest.json", "report.html", "timing.csv"}  # they tell folders, dates, machines and times


SECONDS = 600  # after which a program that takes a few is said to hang


class Fault(Exception):
    """What a campaign has found."""


class Subject:
    """A command that writes into a folder: `{out}` in its words, and, where it reads tensors, `{tensors}`."""

    def __init__(self, name, command, draws=False):
        self.name = name
        self.command = command
        self.draws = draws

    def words(self, binaries, out, tensors):
        program, *words = shlex.split(self.command)
        return [str(binaries / program), *(word.format(out=out, tensors=tensors) for word in words)]


SUBJECTS = [
    Subject(
        "sweep",
        "training --sweep --model mlp:hidden1=32:hidden2=16,cnn:channels=2 --policy fp32,amp --seeds 2 --batch 8"
        " --steps 60 --checkpoint-every 5 --threads 2 --out {out}",
    ),
    Subject(
        "recording",
        "training --model mlp:hidden1=32:hidden2=16 --scalers dynamic:growth_interval=9 --batch 16 --steps 300"
        " --checkpoint-every 7 --twin-every 13 --record --dump-tensors 0,100,200 --out {out}",
    ),
    Subject("shards", "validate_gpu --device cpu --op hadd,hfma,hexp --samples 8388608 --out {out}"),
    Subject("histogram", "halflab hist {tensors} --out {out}", draws=True),
    Subject("quantize", "halflab quantize {tensors} --to {out}/q.safetensors"),
]


class Laboratory:
    """Where the programs are and what they read; runs them."""

    def __init__(self, binaries, place):
        self.binaries = pathlib.Path(binaries).resolve()
        self.place = pathlib.Path(place)
        self.times = {}
        self.tensors = self.place / "tensors"
        self.tensors.mkdir(parents=True, exist_ok=True)
        operands = ",".join(str(self.tensors / f"{name}.npy") for name in "abc")
        subprocess.run(
            [self.binaries / "halflab", "inputs", "fma", "--format", "binary32", "--count", "60000", "--to", operands],
            check=True, stdout=subprocess.DEVNULL)

    def start(self, subject, out, before=(), **options):
        """A process group of its own, without gnuplot unless the subject is to draw. `before` are words of a program that runs it."""
        if "{out}/" in subject.command:
            out.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ, TERM="dumb")
        if not subject.draws:
            environment["PATH"] = "/no/gnuplot"
        return subprocess.Popen(
            [*before, *subject.words(self.binaries, out, self.tensors)], env=environment | options.pop("env", {}),
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **options)

    def run(self, subject, out, **options):
        return finished(self.start(subject, out, **options))

    def reference(self, subject):
        """The files of a run that nothing disturbs, and its time in seconds."""
        out = self.place / f"{subject.name}-whole"
        if not out.exists():
            start = time.monotonic()
            code, _, said = self.run(subject, out)
            self.times[subject.name] = time.monotonic() - start
            if code != 0:
                raise Fault(f"{subject.name}: undisturbed, it ended with {code}: {said}")
        return files_of(out), self.times[subject.name]


def files_of(folder):
    """The bytes of every file below the folder, hidden ones too, by relative name."""
    files = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name not in NOT_OF_THE_BITS:
            files[str(file.relative_to(folder))] = file.read_bytes()
    return files


def require_equal(found, expected, what):
    if found.keys() != expected.keys():
        raise Fault(f"{what}: other files: {sorted(found.keys() ^ expected.keys())}")
    different = [name for name in expected if found[name] != expected[name]]
    if different:
        raise Fault(f"{what}: other bytes: {different}")


def require_whole(folder, what):
    """A folder with a manifest holds all the files that it lists, with their checksums. So do the folders below it."""
    for manifest in folder.rglob("manifest.json"):
        if ".partial" in manifest.parts or any(part.startswith(".") for part in manifest.relative_to(folder).parts):
            continue
        try:
            checksums = json.loads(manifest.read_text()).get("checksums", {})  # none in a record of gradients
        except ValueError as error:
            raise Fault(f"{what}: {manifest} is no JSON ({error})") from None
        for name, checksum in checksums.items():
            file = manifest.parent / name
            if not file.is_file() or f"{zlib.crc32(file.read_bytes()):08x}" != checksum:
                raise Fault(f"{what}: {manifest} lists {name}, which is missing or damaged")


def require_one_line(subject, code, said, what):
    """A run that failed said so in one line after its name, and ended with 2."""
    program = subject.command.split()[0]
    lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
    if code != 2 or len(lines) != 1 or not lines[0].startswith(program):
        raise Fault(f"{what}: exit code {code} and the lines {lines}")


def finished(process):
    """Exit code, what it printed, and what it said of errors, of a process that has its time."""
    try:
        printed, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        end(process)
        raise Fault(f"{' '.join(map(str, process.args))}: takes more than {SECONDS} s") from None
    return process.returncode, printed, said


def end(process):
    """Kills the process and its children, and waits for them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()
