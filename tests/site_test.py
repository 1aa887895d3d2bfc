#!/usr/bin/env python3
"""The site of documentation is made without a warning, holds every page and the functions, asks a network for nothing, and
takes the place of nothing but an earlier site.

    tests/site_test.py CHECKOUT
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()


def build(place):
    return subprocess.run([ROOT / "docs/site/build.py", place], capture_output=True, text=True)


class Site(unittest.TestCase):
    def test_folders_of_others_are_left(self):
        for folder in ("html", "sources"):
            with tempfile.TemporaryDirectory() as place:
                file = pathlib.Path(place).resolve() / folder / "thesis.html"
                file.parent.mkdir()
                file.touch()
                refused = build(place)
                reason = f"{file.parent} is not of an earlier site; name another folder, or remove it"
                self.assertEqual((refused.returncode, refused.stderr), (2, f"docs/site/build.py: {reason}\n"))
                self.assertTrue(file.exists())

    def test_it_is_whole_and_works_offline(self):
        with tempfile.TemporaryDirectory() as place:
            html = pathlib.Path(place) / "html"
            for of_an_earlier_site in (None, html / "earlier.html"):
                if of_an_earlier_site:
                    of_an_earlier_site.touch()
                made = build(place)
                self.assertEqual((made.returncode, made.stderr), (0, ""))
            self.assertFalse(of_an_earlier_site.exists())
            for page in (ROOT / "docs").glob("*.md"):
                self.assertTrue((html / f"{page.stem}.html").exists(), page)
            names = "".join(file.read_text() for file in (html / "search").glob("*.js"))
            for name in ("dot_fma", "gemm", "LossScaler", "What was proven"):
                self.assertTrue(name in names, name)
            for page in html.glob("*.html"):
                loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"', page.read_text())
                for address in loaded:
                    self.assertNotRegex(address, r"^(?:\w+:)?//", page)
                    if not address.startswith("data:"):
                        self.assertTrue((html / address.partition("#")[0].partition("?")[0]).exists(), f"{page}: {address}")


if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        print("skipped: doxygen is not installed")
        sys.exit(3)
    unittest.main(argv=sys.argv[:1])
