"""All of these tests beside numpy 2, whose structures differ from those that pybind11 before 2.12 knows.

The interpreter that HALFLAB_NUMPY2_PYTHON names runs them: one that loads this very build and imports numpy 2 or newer.
"""

import os
import pathlib
import subprocess
import unittest

HERE = pathlib.Path(__file__)


class Numpy2(unittest.TestCase):
    def test_all_the_others(self):
        python = os.environ.get("HALFLAB_NUMPY2_PYTHON")
        if not python:
            self.skipTest("HALFLAB_NUMPY2_PYTHON names no Python with numpy 2")

        def output_of(*arguments):
            run = subprocess.run([python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(run.returncode, 0, f"{arguments}\n{run.stdout}")
            return run.stdout

        version = output_of("-c", "import numpy, halflab; print(numpy.__version__)").strip()
        self.assertGreaterEqual(int(version.split(".")[0]), 2, version)
        for test in sorted(HERE.parent.glob("*_test.py")):
            if test != HERE:
                with self.subTest(test.name):
                    self.assertIn("OK", output_of("-W", "error::DeprecationWarning", str(test)).splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
