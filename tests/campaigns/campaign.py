#!/usr/bin/env python3
"""Kills programs, fills their disks, removes their folders, and holds what they leave to what an undisturbed run leaves.

    tests/campaigns/campaign.py build/bin --kinds kills --count 200

Exit code: 0 all held; 1 something did not; 3 a kind could not be tried, with its reason.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from kinds import KINDS
from subjects import SUBJECTS, Fault, Laboratory


def named(entries, names, what):
    by_name = {entry.name: entry for entry in entries}
    if unknown := [name for name in names if name not in by_name]:
        sys.exit(f"no such {what}: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names] or entries


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path, help="the folder of the programs")
    parser.add_argument("--kinds", default="", help="separated by commas; default: all")
    parser.add_argument("--subjects", default="", help="separated by commas; default: all")
    parser.add_argument("--count", type=int, default=5, help="disturbances of each kind and subject, or all that differ "
                        "where these are fewer (default 5); read_only: one")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default 0)")
    options = parser.parse_args()
    options.kinds = named(KINDS, options.kinds.split(",") if options.kinds else [], "kind")
    options.subjects = named(SUBJECTS, options.subjects.split(",") if options.subjects else [], "subject")
    return options


def in_a_space_of_mounts():
    """Runs this script again where it may mount: as root, and as a user where the kernel lets him."""
    if "HALFLAB_CAMPAIGN_MOUNTS" in os.environ:
        return os.environ["HALFLAB_CAMPAIGN_MOUNTS"] == "yes"
    can = shutil.which("unshare") is not None and subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], stderr=subprocess.DEVNULL).returncode == 0
    os.environ["HALFLAB_CAMPAIGN_MOUNTS"] = "yes" if can else "no"
    words = [sys.executable, *sys.argv]
    os.execvp("unshare" if can else words[0], ["unshare", "-rm", *words] if can else words)


def obstacle(kind, mounts):
    missing = [program for program in kind.needs if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    return "mounting is not allowed here" if kind.mounts and not mounts else ""


def main():
    options = parsed()
    mounts = in_a_space_of_mounts()
    faults = skipped = 0
    with tempfile.TemporaryDirectory(prefix="halflab-campaign-") as place:
        laboratory = Laboratory(options.binaries, place)
        for kind in options.kinds:
            if reason := obstacle(kind, mounts):
                print(f"{kind.name}: skipped: {reason}", flush=True)
                skipped += 1
                continue
            for subject in options.subjects:
                try:
                    figures = kind.disturb(laboratory, subject, options.count,
                                           random.Random(f"{options.seed} {kind.name} {subject.name}"))
                except Fault as fault:
                    print(f"{kind.name}: FAULT: {fault}", flush=True)
                    faults += 1
                    continue
                if figures:
                    told = ", ".join(f"{number} {noun}" for noun, number in figures.items())
                    print(f"{kind.name}, {subject.name}: {told}: held", flush=True)
    return 1 if faults else 3 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
