"""Tensors of files, against what numpy wrote and against codes decoded one by one."""

import json
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import halflab
from oracle import Case


def safetensors(tensors):
    """A file of tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, held) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(held)]}
        data += held
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


class Tensors(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.values = np.random.default_rng(5).standard_normal((6, 7, 5)).astype(np.float32)

    def assert_same(self, found, expected):
        self.assertEqual(found.dtype, expected.dtype.newbyteorder("="))
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_array_equal(found, expected)

    def test_arrays_that_numpy_wrote(self):
        arrays = {
            "half": self.values.astype(np.float16),
            "single": self.values,
            "double": self.values.astype(np.float64),
            "big": self.values.astype(">f8"),
            "fortran": np.asfortranarray(self.values),
            "scalar": np.float32(0.1),
            "empty": self.values[:0],
            "labels": np.arange(-3, 9, dtype=">i8").reshape(3, 4),
            "mask": np.array([True, False]),
        }
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
        folder = halflab.read_tensors(self.folder)
        self.assertEqual(set(folder), set(arrays))
        for name, array in arrays.items():
            self.assert_same(folder[name], np.asarray(array))
            self.assert_same(halflab.read_tensors(str(self.folder / f"{name}.npy"))[name], np.asarray(array))
        for save in (np.savez, np.savez_compressed):
            save(self.folder / "all.npz", **arrays)
            for name, array in halflab.read_tensors(self.folder / "all.npz").items():
                self.assert_same(array, np.asarray(arrays[name]))

    def test_nans_keep_their_bits(self):
        codes = np.arange(65536, dtype=np.uint16)
        np.save(self.folder / "x.npy", codes.view(np.float16))
        np.testing.assert_array_equal(halflab.read_tensors(self.folder / "x.npy")["x"].view(np.uint16), codes)

    def test_formats_that_numpy_has_not(self):
        codes = {
            "bfloat16": ("BF16", np.arange(65536, dtype=np.uint16)),
            "e4m3": ("F8_E4M3", np.arange(256, dtype=np.uint8)),
            "e5m2_fnuz": ("F8_E5M2FNUZ", np.arange(256, dtype=np.uint8)),
            "e8m0": ("F8_E8M0", np.arange(256, dtype=np.uint8)),
        }
        tensors = {name: (dtype, (2, held.size // 2), held.tobytes()) for name, (dtype, held) in codes.items()}
        nibbles = np.arange(16, dtype=np.uint8)
        codes["e2m1"] = ("F4", nibbles)
        tensors["e2m1"] = ("F4", (2, 8), (nibbles[::2] | nibbles[1::2] << 4).tobytes())
        (self.folder / "x.safetensors").write_bytes(safetensors(tensors))
        values = halflab.read_tensors(self.folder / "x.safetensors")
        pairs = halflab.read_tensors(self.folder / "x.safetensors", codes=True)
        for name, (_, held) in codes.items():
            self.assert_same(values[name], halflab.decode(held, name).astype(np.float32).reshape(2, -1))
            format, bits = pairs[name]
            self.assertEqual(format, halflab.formats[name])
            self.assert_same(bits, held.reshape(2, -1))

    def test_codes_are_of_floating_point_alone(self):
        np.savez(self.folder / "x.npz", w=np.asfortranarray(self.values[0]), labels=np.arange(4))
        tensors = halflab.read_tensors(self.folder / "x.npz", codes=True)
        self.assertEqual(list(tensors), ["w"])
        np.testing.assert_array_equal(tensors["w"][1], self.values[0].view(np.uint32))

    def test_files_without_a_header(self):
        codes = np.arange(256, dtype=np.uint8)
        codes.tofile(self.folder / "codes.bin")
        raw = halflab.read_tensors(self.folder / "codes.bin", dtype="e4m3", shape=(16, 16))["codes"]
        self.assert_same(raw, halflab.decode(codes, "e4m3").astype(np.float32).reshape(16, 16))
        halves = halflab.read_tensors(self.folder / "codes.bin", dtype=np.float16, shape=128)["codes"]
        self.assert_same(halves, codes.view(np.float16))
        self.assert_same(halflab.read_tensors(self.folder / "codes.bin", dtype=halflab.binary32)["codes"], codes.view(np.float32))

    def test_a_dtype_of_no_use_is_refused(self):
        np.save(self.folder / "x.npy", np.ones(4, np.float32))
        with self.assertRaisesRegex(ValueError, "read_tensors: dtype: tensor 'x' in file '.*x.npy' is of the file's own type, binary32"):
            halflab.read_tensors(self.folder / "x.npy", dtype="bfloat16")
        with self.assertRaisesRegex(ValueError, "read_tensors: shape: no raw file is read"):
            halflab.read_tensors(self.folder / "x.npy", dtype="float32", shape=4)
        self.assertEqual(list(halflab.read_tensors(self.folder / "x.npy", dtype="float32")), ["x"])

    def test_integers_as_codes(self):
        codes = np.arange(65536, dtype=np.uint16).reshape(256, 256)
        np.savez(self.folder / "x.npz", signed=codes.view(np.int16), wide=np.arange(3))
        tensors = halflab.read_tensors(self.folder / "x.npz", dtype="bfloat16")
        self.assert_same(tensors["signed"], halflab.decode(codes, "bfloat16").astype(np.float32))
        self.assert_same(tensors["wide"], np.arange(3))
        self.assertEqual(halflab.read_tensors(self.folder / "x.npz")["signed"].dtype, np.int16)
        np.savez(self.folder / "y.npz", w=np.ones(2, np.float32), labels=np.arange(3, dtype=np.int32))
        labels = halflab.read_tensors(self.folder / "y.npz", dtype="float32")["labels"]
        self.assert_same(labels, np.arange(3, dtype=np.int32))

    def test_selection(self):
        np.savez(self.folder / "x.npz", w1=self.values, w2=self.values, bias=self.values, labels=np.arange(3))
        read = lambda select: list(halflab.read_tensors(self.folder / "x.npz", select=select))
        self.assertEqual(read("w[0-9]"), ["w1", "w2"])
        self.assertEqual(read("labels"), ["labels"])
        np.savez(self.folder / "jax.npz", **{"['params']['w']": self.values, "['params']['b']": self.values})
        jax = halflab.read_tensors(self.folder / "jax.npz", select="['params']['w']")
        self.assertEqual(list(jax), ["['params']['w']"])
        self.assert_refused("is found in none of the 4 names of tensors, such as 'w1'", read, "gradient")
        self.assert_refused("no regular expression", read, "(")
        self.assert_refused("no regular expression", read, 3)

    def test_refusals(self):
        refused = self.assert_refused
        read = halflab.read_tensors
        np.save(self.folder / "x.npy", self.values)
        place = self.folder / "x.npy"
        refused("paths are missing", read)
        refused("cannot be read", read, self.folder / "none.npy")
        refused("lies in no file; allowed: binary64", read, place, dtype="tf32")
        refused("float99", read, place, dtype="float99")
        refused("read_tensors: shape: is of raw files, which need dtype, too", read, place, shape=(2, 3))
        refused("sizes, as (128, 64)", read, place, dtype="binary16", shape=(-1,))
        place.write_bytes(place.read_bytes()[:-1])
        refused("x.npy", read, place)
        with mock.patch.dict(sys.modules, torch=None):
            refused("needs PyTorch, which this Python has not", read, "w.pt")
        refused("a .pt file is read alone", read, "w.pt", place)


if __name__ == "__main__":
    unittest.main()
