"""Tensors that PyTorch saved: values and codes, and files that would run code."""

import unittest

from case import Case, halflab, needs, np, torch


class RunsCode:
    def __reduce__(self):
        return print, ("this code ran",)


class SavedTensors(Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "saved.pt"

    @needs(2, 0)  # earlier ones load no file with a float in it as weights alone
    def test_a_state_dict_and_what_lies_beside_it(self):
        layer = torch.nn.BatchNorm1d(4)
        torch.save({"model": layer.state_dict(), "steps": [torch.arange(3), torch.ones(2, dtype=torch.float16)], "lr": 0.1}, self.path)
        tensors = halflab.read_tensors(self.path)
        self.assertEqual(list(tensors), [f"model.{name}" for name in layer.state_dict()] + ["steps.0", "steps.1"])
        for name, tensor in layer.state_dict().items():
            np.testing.assert_array_equal(tensors[f"model.{name}"], tensor.numpy())
        self.assertEqual(tensors["steps.1"].dtype, np.float16)
        self.assertEqual(list(halflab.read_tensors(self.path, select="running")), ["model.running_mean", "model.running_var"])

    @needs(2, 8)
    def test_formats_that_numpy_has_not(self):
        codes = torch.arange(256, dtype=torch.uint8)
        dtypes = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
        held = {str(dtype): codes.view(dtype) for dtype in dtypes}
        held["torch.bfloat16"] = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
        torch.save(held, self.path)
        values, pairs = halflab.read_tensors(self.path), halflab.read_tensors(self.path, codes=True)
        self.assertEqual(list(values), list(held))
        for name, value in values.items():
            format, bits = pairs[name]
            self.assertEqual(value.dtype, np.float32)
            np.testing.assert_array_equal(value, halflab.decode(bits, format))
        self.assertEqual(pairs["torch.float8_e4m3fn"][0], halflab.e4m3)
        self.assertEqual(pairs["torch.bfloat16"][1].dtype, np.uint16)

    @needs(2, 0)
    def test_one_tensor_and_others_than_plain_ones(self):
        torch.save(torch.nn.Parameter(torch.ones(2, 3).T), self.path)
        self.assertEqual(halflab.read_tensors(self.path)["saved"].shape, (3, 2))
        torch.save({"s": torch.eye(3).to_sparse(), "c": torch.ones(2, dtype=torch.complex64)}, self.path)
        tensors = halflab.read_tensors(self.path)
        self.assertEqual(list(tensors), ["s"])
        np.testing.assert_array_equal(tensors["s"], np.eye(3))
        torch.save({"q": torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8)}, self.path)
        self.assert_refused("torch.qint8, which is no array", halflab.read_tensors, self.path)

    def test_code_is_not_run(self):
        torch.save({"w": torch.ones(2), "x": RunsCode()}, self.path)
        self.assert_refused("holds no weights that PyTorch would load", halflab.read_tensors, self.path)
        self.path.write_bytes(b"no pickle")
        self.assert_refused("holds no weights that PyTorch would load", halflab.read_tensors, self.path)
        self.assert_refused("cannot be read (No such file or directory)", halflab.read_tensors, "none.pt")


if __name__ == "__main__":
    unittest.main()
