"""Bytes and kernels of networks, and their refusals."""

import pathlib
import tempfile
import unittest

import numpy as np

import halflab
from oracle import Case


class Networks(Case):
    def test_bytes_per_parameter(self):
        mixed = halflab.memory("mlp", "O2", "adamw")
        parameters = 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10
        self.assertEqual(mixed["parameters"], parameters)
        roles = {role: size / parameters for role, size in mixed.items()}
        self.assertEqual((roles["weights"], roles["master_weights"], roles["optimizer_state"]), (2, 4, 8))
        self.assertEqual(halflab.memory("mlp", "fp32", "sgd")["optimizer_state"], 0)
        self.assertEqual(halflab.memory("mlp", "fp32", "momentum")["optimizer_state"], 4 * parameters)
        counted = set(mixed) - {"total", "inference", "parameters"}
        self.assertEqual(mixed["total"], sum(mixed[role] for role in counted))

    def test_activations_grow_with_the_batch(self):
        small, large = (halflab.memory("mlp", batch=batch)["activations"] for batch in (16, 48))
        self.assertEqual(large, 3 * small)
        table = halflab.activations("mlp", batch=16)
        self.assertEqual(sum(int(table[field].sum()) for field in ("values", "saved", "masks")), small)
        full = halflab.memory("bert_large", recomputation="full", batch=1, sequence=128)
        none = halflab.memory("bert_large", batch=1, sequence=128)
        self.assertLess(full["activations"], none["activations"])
        self.assertEqual(full["weights"], none["weights"])

    def test_products_take_two_flop_a_weight_and_example(self):
        kernels = halflab.kernels("mlp", "fp32", batch=16)
        forward = (kernels["phase"] == "forward") & (kernels["operator_class"] == "tensor contraction")
        self.assertEqual(int(kernels["flop"][forward].sum()), 2 * 16 * (784 * 512 + 512 * 256 + 256 * 10))

    def test_a_file_of_ones_own(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "one.toml"
            file.write_text(
                'name = "one"\nsource = "here"\n[symbols]\nbatch = 2\n[input]\nshape = ["batch", 3]\n[[blocks]]\n'
                'name = "b"\noperators = [{ name = "l", operation = "linear", features = 5 }]\n'
            )
            self.assertEqual(halflab.memory(file)["parameters"], 3 * 5 + 5)
            file.write_text("name = ")
            self.assert_refused("one.toml:1", halflab.memory, file)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("unknown network 'bert'", halflab.memory, "bert")
        refused("unknown policy 'ampp'; did you mean 'amp'", halflab.memory, "mlp", "ampp")
        refused("unknown optimizer", halflab.memory, "mlp", optimizer="newton")
        refused("unknown recomputation 'ful'; did you mean 'full'", halflab.memory, "mlp", recomputation="ful")
        refused("unknown symbol 'bach'; did you mean 'batch'", halflab.memory, "mlp", bach=3)
        for batch in (0.5, True, -1, "3", np.array([3, 4])):
            refused("symbol batch = ", halflab.kernels, "mlp", batch=batch)
        refused("symbol optimizer = 'sgd' is not allowed", halflab.kernels, "mlp", optimizer="sgd")
        self.assertEqual(halflab.memory("mlp", batch=np.int64(3)), halflab.memory("mlp", batch=3))
        refused("cannot be read", halflab.activations, "nowhere.toml")


if __name__ == "__main__":
    unittest.main()
