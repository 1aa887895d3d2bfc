"""Files that numpy, PyTorch and safetensors wrote, read by `halflab hist`: its counts are those that numpy makes.

written_files_test.py HALFLAB; exit code 3 (skipped) where one of the three is absent.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
    import torch
    from safetensors.numpy import save_file as save_numpy
    from safetensors.torch import save_file as save_torch
except ImportError as absent:
    print(f"skipped: {absent}")
    sys.exit(3)

program = sys.argv.pop(1)
np.seterr(over="ignore")  # casts to FP16 overflow on purpose


def hist(path, *options):
    run = subprocess.run([program, "hist", str(path), "--json", *options], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


def counts(values):
    """What a cast to FP16 at S = 1 makes zero, subnormal and infinite, of the non-zero finite values; and zeros."""
    values = np.asarray(values, dtype=np.float64).ravel()
    cast = np.abs(values.astype(np.float16).astype(np.float64))
    alive = np.isfinite(values) & (values != 0)
    shares = [np.count_nonzero(alive & outcome) / max(1, np.count_nonzero(alive)) for outcome in
              (cast == 0, (cast > 0) & (cast < 2.0**-14), np.isinf(cast))]
    return [values.size, int(np.count_nonzero(values == 0)), *shares]


def found(row):
    return [row["values"], row["zero"], row["fraction_flushed_at_1"], row["fraction_subnormal_at_1"], row["fraction_overflow_at_1"]]


class WrittenFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        rng = np.random.default_rng(3)
        self.values = (rng.standard_normal((33, 7, 5)) * 2.0 ** rng.integers(-40, 20, (33, 7, 5))).astype(np.float32)
        self.values[0, 0, :3] = [0, np.inf, np.nan]

    def check(self, path, arrays, *options):
        rows = {row["tensor"]: found(row) for row in hist(path, *options)["tables"]["tensors"]}
        for name, array in arrays.items():
            self.assertEqual(rows[name], counts(array), name)

    def test_npy(self):
        variants = {"float32": self.values, "float64": self.values.astype(np.float64), "float16": self.values.astype(np.float16),
                    "big": self.values.astype(">f4"), "fortran": np.asfortranarray(self.values), "scalar": self.values[1, 1, 1],
                    "empty": self.values[:0]}
        for name, array in variants.items():
            np.save(self.folder / f"{name}.npy", array)
        self.check(self.folder, variants)

    def test_npz(self):
        arrays = {"a": self.values, "b": self.values.T}
        np.savez(self.folder / "plain.npz", **arrays, ids=np.arange(4))
        np.savez_compressed(self.folder / "packed.npz", **arrays)
        for name in ("plain", "packed"):
            self.check(self.folder / f"{name}.npz", arrays)

    def test_formats_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("needs ml_dtypes")
        finite = np.nan_to_num(self.values, posinf=1, nan=2).clip(-400, 400)
        for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"):
            for array in (finite.astype(getattr(ml_dtypes, name)), np.asfortranarray(finite).astype(getattr(ml_dtypes, name))):
                np.save(self.folder / "m.npy", array)
                self.check(self.folder / "m.npy", {"m": array}, "--dtype", name)
                np.savez_compressed(self.folder / "m.npz", m=array)
                self.check(self.folder / "m.npz", {"m": array}, "--dtype", name)

    def test_objects_are_refused(self):
        np.save(self.folder / "o.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
        run = subprocess.run([program, "hist", str(self.folder / "o.npy")], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("Python objects", run.stderr)

    def test_safetensors(self):
        save_numpy({"w": self.values, "h": self.values.astype(np.float16)}, self.folder / "n.safetensors")
        self.check(self.folder / "n.safetensors", {"w": self.values, "h": self.values.astype(np.float16)})
        finite = torch.from_numpy(np.nan_to_num(self.values, posinf=1, nan=2))
        tensors = {"bf16": finite.to(torch.bfloat16), "e4m3": finite.clamp(-400, 400).to(torch.float8_e4m3fn),
                   "e5m2": finite.clamp(-400, 400).to(torch.float8_e5m2), "wide": finite.double()}
        save_torch(tensors, self.folder / "t.safetensors")
        self.check(self.folder / "t.safetensors", {name: tensor.double().numpy() for name, tensor in tensors.items()})


if __name__ == "__main__":
    unittest.main()
