#!/usr/bin/env python3
"""Every kind of campaign finds fault with a program that is careless: it writes its manifest first, adds to what lies there,
and says nothing of errors."""

import pathlib
import random
import re
import sys
import tempfile
import unittest

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


class CarelessTest(unittest.TestCase):
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
