#!/usr/bin/env python3
"""Every kind of campaign finds fault with a program that is careless: it writes its manifest first, adds to what lies there,
and says nothing of errors. What is told of a campaign is what was tried."""

import contextlib
import pathlib
import random
import re
import sys
import tempfile
import unittest
from unittest import mock

import kinds
from campaign import in_a_space_of_mounts, obstacle
from kinds import KINDS
from subjects import Fault, Laboratory, Subject

CARELESS = f"""#!{sys.executable}
import contextlib, datetime, json, pathlib, sys, time, zlib
out, tensors, row = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), b"a row\\n"
def add(name, content):
    with contextlib.suppress(OSError):
        out.mkdir(parents=True, exist_ok=True)
        with open(out / name, "ab") as stream:
            stream.write(content)
add("manifest.json", json.dumps({{"checksums": {{"rows.csv": f"{{zlib.crc32(20 * row):08x}}"}}}}).encode())
add("year", str(datetime.date.today().year).encode())
for _ in range(20):
    add("rows.csv", row)
    time.sleep(0.01)
add("read", str((tensors / "b.npy").stat().st_size).encode())
"""


class Writer:
    """A laboratory whose subject writes three bytes, and whose disks of one page have no room for its folder."""

    def __init__(self, place):
        self.place = place
        self.pages = 0

    def reference(self, _subject):
        return {"file": b"123"}, 0.01

    def run(self, _subject, out, **_options):
        if self.pages == 1:
            raise OSError
        out.mkdir(parents=True, exist_ok=True)
        (out / "file").write_bytes(b"123")
        return 0, "", ""

    @contextlib.contextmanager
    def disk(self, _place):
        def remount(option):
            size = option.partition("=")[2]
            self.pages = int(size) // kinds.PAGE if size.isdigit() else 0
        yield remount


class CarelessTest(unittest.TestCase):
    def test_counts_are_of_what_was_tried(self):
        subject = Subject("writer", "writer {out}")
        with tempfile.TemporaryDirectory() as place:
            laboratory = Writer(pathlib.Path(place))
            with mock.patch.object(kinds, "small_file_system", laboratory.disk):  # of 8 pages at most
                self.assertEqual(kinds.full_disk(laboratory, subject, 20, None),
                                 {"sizes of the disk": 7, "of them too small": 0})
            self.assertEqual(kinds.file_sizes(laboratory, subject, 20, None), {"limits": 3, "of them too low": 0})

    def test_ctest_knows_every_kind(self):
        listed = re.search(r"foreach\(kind ([\w ]+)\)", pathlib.Path(__file__).with_name("campaigns.cmake").read_text())[1]
        self.assertEqual(listed.split(), [kind.name for kind in KINDS])

    def test_every_kind_finds_fault(self):
        binaries, mounts = pathlib.Path(sys.argv[1]).resolve(), in_a_space_of_mounts()
        for kind in KINDS:
            if reason := obstacle(kind, mounts):
                print(f"{kind.name}: skipped: {reason}")
                continue
            with self.subTest(kind.name), tempfile.TemporaryDirectory() as place:
                place = pathlib.Path(place)
                (place / "bin").mkdir()
                (place / "bin" / "halflab").symlink_to(binaries / "halflab")
                (place / "bin" / "careless").write_text(CARELESS)
                (place / "bin" / "careless").chmod(0o755)
                laboratory = Laboratory(place / "bin", place / "work")
                subject = Subject("careless", "careless {out} {tensors}")
                with self.assertRaises(Fault) as raised:
                    kind.disturb(laboratory, subject, 10, random.Random(0))
                print(f"{kind.name}: {raised.exception}")


if __name__ == "__main__":
    in_a_space_of_mounts()
    unittest.main(argv=sys.argv[:1])
