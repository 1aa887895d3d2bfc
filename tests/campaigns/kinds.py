"""What may happen to a program that writes: each kind disturbs one subject many times, checks what must hold after each, lets an
undisturbed run go on from there, and holds its files to those of a run that nothing happened to. Each returns how often it did;
read_only, which has nothing to vary, does it once."""

import contextlib
import itertools
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

from subjects import Fault, end, files_of, finished, require_equal, require_one_line, require_whole

PAGE = 4096


def finish(laboratory, subject, out, expected, what):
    """After a disturbance: the folder is sound, and the same command ends with the files of an undisturbed run."""
    require_whole(out, what)
    code, _, said = laboratory.run(subject, out)
    if code != 0:
        raise Fault(f"{what}: then undisturbed, it ended with {code}: {said}")
    require_equal(files_of(out), expected, what)


def require_failed_or_done(subject, code, said, out, expected, what):
    """A disturbed run failed in one line, or did all its work."""
    if code == 0:
        require_equal(files_of(out), expected, what)
    else:
        require_one_line(subject, code, said, what)


def disturbed(laboratory, subject, out, after, disturb, what):
    """Whether a run ended, in one line, that is disturbed in a way of its own after so many seconds."""
    shutil.rmtree(out, ignore_errors=True)
    process = laboratory.start(subject, out)
    time.sleep(after)
    disturb()
    code, _, said = finished(process)
    if code != 0:
        require_one_line(subject, code, said, what)
    return code != 0


def kills(laboratory, subject, count, random):
    """kill -9 at a random moment, again and again in one folder until a run comes to its end. A third of them come soon after
    Ctrl-C, while the run writes down how far it came."""
    expected, duration = laboratory.reference(subject)
    out = laboratory.place / "kills"
    ends = done = 0
    while done < count:
        shutil.rmtree(out, ignore_errors=True)
        while done < count:
            process = laboratory.start(subject, out)
            time.sleep(random.uniform(0, 1.1 * duration))
            if process.poll() is None:
                done += 1
                if random.randrange(3) == 0:
                    process.send_signal(signal.SIGINT)
                    time.sleep(random.uniform(0, 0.05))
            end(process)
            if process.returncode == 0:
                break
            require_whole(out, f"{subject.name}, kill {done}")
        finish(laboratory, subject, out, expected, f"{subject.name}, after kill {done}")
        ends += 1
    return {"kills": done, "runs brought to their end": ends}


@contextlib.contextmanager
def small_file_system(place):
    """A file system in memory whose size can be changed while it is used."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "none", place], check=True)
    try:
        yield lambda option: subprocess.run(["mount", "-o", f"remount,{option}", place], check=True)
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def spread(highest, count):
    """`count` of the numbers from 1 to `highest`, or all of them where these are fewer."""
    return sorted({1 + i * (highest - 1) // max(1, count - 1) for i in range(count)})


def full_disk(laboratory, subject, count, _random):
    """A disk of N pages, N growing until all fits; then more room."""
    expected, _ = laboratory.reference(subject)
    pages = 4 * sum(-(-len(content) // PAGE) + 1 for content in expected.values())  # some are there twice, and checkpoints
    tried = failed = 0
    with small_file_system(laboratory.place / "disk") as remount:
        out = laboratory.place / "disk" / "out"
        for limit in spread(pages, count):
            what = f"{subject.name} on a disk of {limit} pages"
            shutil.rmtree(out, ignore_errors=True)
            remount(f"size={limit * PAGE}")
            try:
                code, _, said = laboratory.run(subject, out)
            except OSError:
                continue  # not even the folder, which the subject does not make itself, found room
            tried += 1
            require_failed_or_done(subject, code, said, out, expected, what)
            failed += code != 0
            remount("size=1g")
            finish(laboratory, subject, out, expected, what)
    return {"sizes of the disk": tried, "of them too small": failed}


def file_sizes(laboratory, subject, count, _random):
    """No file may grow beyond N bytes (ulimit -f), N growing to the largest file's size; then no limit."""
    expected, _ = laboratory.reference(subject)
    out = laboratory.place / "sizes"
    tried = failed = 0
    for limit in spread(max(map(len, expected.values())), count):
        what = f"{subject.name} with files of at most {limit} bytes"
        shutil.rmtree(out, ignore_errors=True)
        code, _, said = laboratory.run(
            subject, out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        if subject.draws and code == 0:
            continue  # figures that do not fit are left out with a warning
        tried += 1
        require_failed_or_done(subject, code, said, out, expected, what)
        failed += code != 0
        finish(laboratory, subject, out, expected, what)
    return {"limits": tried, "of them too low": failed}


CALLS = {"write": "ENOSPC", "writev": "ENOSPC", "copy_file_range": "EIO", "sendfile": "EIO", "fsync": "EIO", "rename": "EIO",
         "mkdir": "ENOSPC", "ftruncate": "EIO", "flock": "EIO", "unlink": "EIO", "unlinkat": "EIO", "rmdir": "EIO"}


def calls(laboratory, subject, count, random):
    """The N-th call of the system that changes a file fails, for calls of each kind."""
    expected, _ = laboratory.reference(subject)
    out, log = laboratory.place / "calls", laboratory.place / "strace.log"

    def traced(call, injection):
        shutil.rmtree(out, ignore_errors=True)
        return laboratory.run(subject, out, before=[shutil.which("strace"), "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", f"trace={call}",
                                                    *injection], env={"PATH": "/no/gnuplot"})

    failed = tried = 0
    for call, error in CALLS.items():
        traced(call, [])
        by_thread = {}
        for line in log.read_text().splitlines():
            if re.match(rf"\d+ +{call}\(", line):
                by_thread[line.split()[0]] = by_thread.get(line.split()[0], 0) + 1
        for number in spread(max(by_thread.values(), default=0), count) if by_thread else []:
            what = f"{subject.name} whose {call} number {number} fails with {error}"
            code, _, said = traced(call, ["-e", f"inject={call}:error={error}:when={number}"])
            injected = [line for line in log.read_text().splitlines() if "(INJECTED)" in line]
            if not injected:
                continue
            tried += 1
            if not any("(2," in line for line in injected):  # its own words, which then are cut
                if code == 0:
                    code, _, said = laboratory.run(subject, out)
                else:
                    require_one_line(subject, code, said, what)
            failed += code != 0
            finish(laboratory, subject, out, expected, what)
    return {"calls that failed": tried, "of them ended the run": failed}


def read_only(laboratory, subject, _count, _random):
    """The file system is read-only from the start."""
    expected, _ = laboratory.reference(subject)
    with small_file_system(laboratory.place / "disk") as remount:
        out = laboratory.place / "disk" / "out"
        out.mkdir()
        remount("ro")
        code, _, said = laboratory.run(subject, out)
        require_one_line(subject, code, said, f"{subject.name} on a read-only disk")
        remount("rw")
        finish(laboratory, subject, out, expected, f"{subject.name} on a disk that was read-only")
    return {"read-only disks": 1}


def vanished(laboratory, subject, count, random):
    """The folder is removed at a random moment."""
    expected, duration = laboratory.reference(subject)
    out, aside = laboratory.place / "vanished", laboratory.place / "aside"

    def remove():
        with contextlib.suppress(FileNotFoundError):
            out.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)

    failed = 0
    for i in range(count):
        what = f"{subject.name} whose folder vanished, {i}"
        failed += disturbed(laboratory, subject, out, random.uniform(0, duration), remove, what)
        finish(laboratory, subject, out, expected, what)
    return {"folders removed": count, "of them ended the run": failed}


def two_at_once(laboratory, subject, count, random):
    """The same command twice, the second begun at a random moment of the first."""
    expected, duration = laboratory.reference(subject)
    out = laboratory.place / "two"
    refused = 0
    for i in range(count):
        what = f"{subject.name} twice in one folder, {i}"
        shutil.rmtree(out, ignore_errors=True)
        processes = [laboratory.start(subject, out)]
        time.sleep(random.uniform(0, duration))
        processes.append(laboratory.start(subject, out))
        codes = []
        for process in processes:
            _, _, said = finished(process)
            codes.append(process.returncode)
            if process.returncode != 0:
                require_one_line(subject, process.returncode, said, what)
                refused += 1
        if 0 not in codes:
            raise Fault(f"{what}: both were refused")
        require_equal(files_of(out), expected, what)
    return {"pairs": count, "of which one was refused": refused}


def clocks(laboratory, subject, count, random):
    """The clock jumps by up to ten years, back or on, three times in a run."""
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    expected, duration = laboratory.reference(subject)
    out, clock = laboratory.place / "clocks", laboratory.place / "clock"
    jumps = itertools.count()
    for i in range(count):
        shutil.rmtree(out, ignore_errors=True)
        clock.write_text("+0\n")
        process = laboratory.start(subject, out, env={
            "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        for _ in range(3):
            time.sleep(random.uniform(0, duration / 3))
            clock.write_text(f"{random.uniform(-3650, 3650):+f}d\n")
            next(jumps)
        _, _, said = finished(process)
        if process.returncode != 0:
            raise Fault(f"{subject.name} whose clock jumps, {i}: it ended with {process.returncode}: {said}")
        require_equal(files_of(out), expected, f"{subject.name} whose clock jumps, {i}")
    return {"jumps": next(jumps)}


def shorter(laboratory, subject, count, random):
    """A file becomes shorter while it is read."""
    expected, duration = laboratory.reference(subject)
    if "{tensors}" not in subject.command:
        return {}
    out, file = laboratory.place / "shorter", laboratory.tensors / "b.npy"
    whole = file.read_bytes()
    failed = 0
    for i in range(count):
        what = f"{subject.name} of a file that became shorter, {i}"
        after, size = random.uniform(0, duration), random.randrange(len(whole))
        failed += disturbed(laboratory, subject, out, after, lambda: os.truncate(file, size), what)
        file.write_bytes(whole)
        finish(laboratory, subject, out, expected, what)
    return {"files made shorter": count, "of them ended the run": failed}


class Kind:
    def __init__(self, disturb, needs=(), mounts=False):
        self.name = disturb.__name__
        self.disturb = disturb
        self.needs = needs
        self.mounts = mounts


KINDS = [Kind(kills), Kind(full_disk, mounts=True), Kind(file_sizes), Kind(calls, needs=["strace"]), Kind(read_only, mounts=True),
         Kind(vanished), Kind(two_at_once), Kind(clocks, needs=["faketime"]), Kind(shorter)]
