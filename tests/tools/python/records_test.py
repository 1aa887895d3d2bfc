"""Run directories, read back and written by the programs."""

import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import numpy as np

import halflab
from oracle import Case


class Records(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name) / "run"

    def write(self, **files):
        self.directory.mkdir(exist_ok=True)
        contents = {"manifest.json": '{"experiment": "x"}', "summary.json": '{"a": 1, "b": "nan"}', "verdict.txt": "so"}
        for name, text in {**contents, **files}.items():
            (self.directory / name).write_text(text)

    def test_what_is_read(self):
        self.write(**{"steps.csv": 'step,loss,kind,big\n0,nan,"a, b",18446744073709551615\n1,,"c""d",0\n2,1e-3,e,1\n'})
        record = halflab.read_record(self.directory)
        self.assertEqual(record.manifest, {"experiment": "x"})
        self.assertEqual(record.summary["a"], 1)
        self.assertTrue(math.isnan(record.summary["b"]))
        self.assertEqual(record.verdict, "so")
        steps = record.steps
        self.assertEqual(steps.dtype.names, ("step", "loss", "kind", "big"))
        self.assertEqual(steps["step"].tolist(), [0, 1, 2])
        np.testing.assert_array_equal(steps["loss"], [np.nan, np.nan, 1e-3])
        self.assertEqual(steps["kind"].tolist(), ["a, b", 'c"d', "e"])
        self.assertEqual(int(steps["big"][0]), 2**64 - 1)
        self.assertEqual(steps[steps["loss"] > 0]["kind"].tolist(), ["e"])

    def test_what_is_refused(self):
        def refused(fragment):
            with self.assertRaises(halflab.RecordError) as caught:
                halflab.read_record(self.directory)
            self.assertIn(fragment, str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

        refused("no such directory")
        self.directory.mkdir()
        refused("no record of a run")
        (self.directory / ".partial").mkdir()
        refused("the run has not finished")
        self.write(**{"t.csv": "a,b\n1,2\n3\n"})
        refused("t.csv:3: 1 cells; allowed: 2")
        self.write(**{"t.csv": ""})
        refused("t.csv: empty")
        self.write(**{"t.csv": "a,a\n1,2\n"})
        refused("two columns have one name")
        self.write(**{"t.csv": "a\n1\n", "summary.json": "{"})
        refused("summary.json:1: no JSON")
        self.write(**{"summary.json": "[]"})
        refused("no JSON object")
        self.write()
        self.assertEqual(list(halflab.read_record(self.directory).tables), ["t"])
        (self.directory / "verdict.txt").unlink()
        refused("verdict.txt: no such file")

    def test_a_run_without_steps(self):
        self.write()
        with self.assertRaisesRegex(halflab.RecordError, "no table 'steps'"):
            halflab.read_record(self.directory).steps

    def program(self):
        program = pathlib.Path(os.environ.get("HALFLAB_BIN_DIR", "build/bin")) / "formats"
        if not program.exists():
            self.skipTest(f"{program} is not built")
        return program

    def test_runs_that_leave_no_record(self):
        self.program()
        for fragment, name, options in (
            ("experiment 'formets' was not found; did you mean 'formats'? allowed: ", "formets", {}),
            ("did you mean --quick", "formats", {"quck": True}),
            ("formats: left no record", "formats", {"help": True}),
            ("'3,4' is not allowed", "formats", {"rows": np.array([3, 4])}),
            ("'e4m3' is not allowed", "formats", {"rows": np.array("e4m3")}),
            ("'3,4' is not allowed", "formats", {"quick": np.True_, "help": np.False_, "rows": [3, 4]}),
        ):
            with self.assertRaises(halflab.ExperimentError) as caught:
                halflab.run_experiment(name, **options)
            self.assertIn(fragment, str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_a_check_that_failed_is_an_answer(self):
        self.program()
        a, b = (self.directory.parent / name for name in ("a.npy", "b.npy"))
        np.save(a, np.float32([1, 2]))
        np.save(b, np.float32([1, 3]))
        for out in (None, self.directory):
            record = halflab.run_command("compare", a, b, out=out)
            self.assertEqual(record.failure, f"'{a}' and '{b}' are different")
            self.assertEqual((record.summary["class"], record.tables["tensors"]["differing"].tolist()), ("different", [1]))
            self.assertIn("different", record.verdict)
        self.assertEqual(halflab.run_command("compare", a, a).failure, "")
        with self.assertRaisesRegex(halflab.ExperimentError, "halflab compare: .*none.npy"):
            halflab.run_command("compare", a, self.directory.parent / "none.npy")
        program = self.directory.parent / "broken"
        program.write_text("#!/bin/sh\necho broken: no such thing >&2\nexit 1\n")
        program.chmod(0o755)
        with mock.patch.dict(os.environ, HALFLAB_BIN_DIR=str(program.parent)):
            with self.assertRaisesRegex(halflab.ExperimentError, "^broken: no such thing$"):
                halflab.run_experiment("broken", self.directory)  # in which a record lies

    def test_a_run_of_a_program(self):
        program = self.program()
        subprocess.run([program, "--quick", "--quiet", "--out", self.directory], check=True, capture_output=True)
        record = halflab.read_record(self.directory)
        self.assertEqual(record.manifest["experiment"], "formats")
        self.assertEqual(json.loads((self.directory / "summary.json").read_text()).keys(), record.summary.keys())
        table = record.tables["formats"]
        for row in table:
            here = halflab.formats[row["format"]]
            self.assertEqual((row["max"], row["min_subnormal"]), (here.max, here.min_subnormal))
            self.assertEqual((row["precision_bits"], row["finite_values"]), (here.precision, here.finite_values))

    def test_the_records_that_notebooks_read(self):
        records = pathlib.Path(__file__).parents[3] / "experiments" / "records"
        kept = [manifest.parent for manifest in records.glob("*/manifest.json")]
        self.assertTrue(kept)
        for directory in kept:
            self.assertTrue(halflab.read_record(directory).verdict, directory)


if __name__ == "__main__":
    unittest.main()
