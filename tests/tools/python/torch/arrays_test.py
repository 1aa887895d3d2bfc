"""Tensors where numpy's arrays may stand: histograms, matrix products, kernels."""

import unittest

from case import Case, halflab, has_module, np, torch


class Histograms(Case):
    DTYPES = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")

    def test_every_type_counts_as_its_values(self):
        values = torch.randn(300, 7) * 2.0 ** torch.randint(-20, 9, (300, 7))
        for dtype in [getattr(torch, name) for name in self.DTYPES if hasattr(torch, name)]:
            tensor = values.to(dtype)
            expected = halflab.ExponentHistogram(tensor.double().numpy())
            self.assertEqual(halflab.ExponentHistogram(tensor), expected, dtype)
            self.assertEqual(halflab.ExponentHistogram(tensor.t()), expected, dtype)
            self.assertEqual(halflab.ExponentHistogram(torch.nn.Parameter(tensor.float())).total, 2100)

    def test_dense_tensors_are_not_copied(self):
        from halflab._arrays import in_memory_order

        tensor = torch.zeros(2, 3, 4)
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            for each in (tensor.to(dtype), tensor.to(dtype).permute(2, 0, 1)):
                array = in_memory_order(each)[0]
                self.assertTrue(array.flags.c_contiguous)
                self.assertEqual(array.__array_interface__["data"][0], each.data_ptr())

    def test_what_is_not_allowed(self):
        refused = self.assert_refused
        refused("a tensor of no values (meta) is not allowed", halflab.ExponentHistogram, torch.ones(2, device="meta"))
        refused("torch.complex64 is not allowed", halflab.ExponentHistogram, torch.ones(2, dtype=torch.complex64))
        refused("torch.sparse_coo is not allowed", halflab.ExponentHistogram, torch.eye(2).to_sparse())

    @unittest.skipUnless(has_module("tensorboard"), "needs tensorboard")
    def test_tensorboard_reads_the_counts_back(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from torch.utils.tensorboard import SummaryWriter

        shown = halflab.ExponentHistogram(np.ldexp(1.5, [-3, -3, 0, 4])).tensorboard()
        with SummaryWriter(str(self.folder)) as writer:
            writer.add_histogram_raw("gradients", global_step=7, **shown)
        events = EventAccumulator(str(self.folder)).Reload()
        (event,) = events.Histograms("gradients")
        read = event.histogram_value
        self.assertEqual(event.step, 7)
        self.assertEqual((list(read.bucket_limit), list(read.bucket)), (shown["bucket_limits"], shown["bucket_counts"]))
        self.assertEqual([read.min, read.max, read.num, read.sum], [shown[key] for key in ("min", "max", "num", "sum")])


class Values(Case):
    def test_tensors_are_values(self):
        values = torch.randn(40)
        for dtype in (torch.bfloat16, torch.float8_e4m3fn) if hasattr(torch, "float8_e4m3fn") else (torch.bfloat16,):
            tensor = values.to(dtype)
            expected = tensor.double().numpy()
            np.testing.assert_array_equal(halflab.round_to(tensor, "binary64"), expected)
            np.testing.assert_array_equal(halflab.round_to(values.double(), dtype), expected)
            np.testing.assert_array_equal(halflab.round_to(expected, halflab.formats["e2m1"]), halflab.round_to(tensor, "e2m1"))
            self.assertEqual(halflab.sum(tensor, format=dtype), halflab.sum(expected, format=dtype))
        weights = torch.nn.Parameter(values)
        np.testing.assert_array_equal(halflab.round_to(weights), halflab.round_to(values.numpy()))
        np.testing.assert_array_equal(halflab.decode(torch.arange(9)), halflab.decode(np.arange(9)))
        blocks = halflab.round_to_blocks(values[:32].bfloat16(), "mxfp4")
        np.testing.assert_array_equal(blocks, halflab.round_to_blocks(values[:32].bfloat16().float().numpy(), "mxfp4"))

    def test_what_is_no_value(self):
        self.assert_refused("torch.complex64 is not allowed", halflab.round_to, torch.ones(2, dtype=torch.complex64))
        self.assert_refused("unknown format 'int8'", halflab.round_to, [1.0], torch.int8)

    def test_what_has_no_dense_values(self):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])
        for what, tensor in (
            ("torch.quint8", torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)),
            ("no values (meta)", torch.ones(2, device="meta")),
            ("nested tensors", nested),
        ):
            refusal = f"a tensor of {what} is not allowed; allowed: dense real ones"
            for function in (halflab.round_to, halflab.decode, halflab.sum):
                self.assert_refused(refusal, function, tensor)
            self.assert_refused(refusal, halflab.explain_gemm, tensor, tensor, tensor)

    def test_gradients_of_any_type(self):
        gradients = {"a": torch.full((9,), 2.0**-20).bfloat16(), "b": torch.nn.Parameter(torch.ones(3))}
        for format in ("binary16", "e4m3"):
            report = halflab.report_gradients(gradients, self.folder / "page.html", format=format)
            self.assertEqual(report.tensors["a"].total, 9)
        bad = {**gradients, "c": torch.ones(2, dtype=torch.complex64)}
        out = self.folder / "page.html"
        self.assert_refused("tensors['c']: a tensor of torch.complex64", halflab.report_gradients, bad, out)


class Checks(Case):
    def test_lists_of_tensors_that_numpy_cannot_hold(self):
        for tensors in ([torch.ones(2).bfloat16()] * 2, (torch.tensor(1.5).bfloat16(),)):
            for call in (halflab.encode, halflab.round_to, lambda values: halflab.round_to_blocks(values, "mxfp4")):
                with self.assertRaisesRegex(ValueError, r"no array \(.*BFloat16\) is not allowed; allowed: one .* torch.stack"):
                    call(tensors)
            halflab.round_to(torch.stack(list(tensors)))
        np.testing.assert_array_equal(halflab.round_to([torch.tensor(1.5)] * 2), [1.5, 1.5])

    def test_products_of_bfloat16(self):
        a, b = torch.randn(24, 48).bfloat16(), torch.randn(48, 32).bfloat16()
        d = torch.zeros(24, 32)
        for k in range(48):  # products are exact in float64, and so are these sums
            d = (d.double() + torch.outer(a[:, k].double(), b[k].double())).float()
        for product in (d, d.numpy()):
            self.assertEqual(halflab.explain_gemm(a, b, product).summary["best.accumulator"], "fp32_fma_chain")

    def test_a_kernel_on_tensors_of_each_type(self):
        """Products of float64, which are exact, rounded once."""
        for name, shards in (("float16", (7, 1 << 16)), ("bfloat16", (9, 1 << 16)), ("float32", None)):
            seen, dtype = set(), getattr(torch, name)

            def product(x, y):
                seen.update((x.dtype, y.dtype))
                return (x.double() * y.double()).to(dtype)

            count = 5000 if name == "float32" else None
            found = halflab.validate(product, "multiply", name, "torch", shards, count=count, nan="any")
            self.assertEqual((found.verdict, seen), ("equal", {dtype}), name)

    def test_a_kernel_that_flushes(self):
        def root(x):
            return torch.where(x.abs() < 2.0**-126, x * 0, x).double().sqrt().to(torch.bfloat16)

        found = halflab.validate(root, "sqrt", "bfloat16", "torch", nan="any")
        self.assertEqual((found.verdict, found.explanation), ("different", "it reads subnormal operands as zeros"))

    @unittest.skipUnless(hasattr(torch, "float8_e4m3fn"), "needs FP8")
    def test_a_format_by_its_dtype(self):
        found = halflab.validate(lambda x: x.float(), "cast", torch.float8_e4m3fn, "torch", nan="any")
        self.assertEqual((found.verdict, found.results), ("equal", 256))

    def test_formats_that_pytorch_has_not(self):
        from halflab.torch.arrays import tensor_of

        self.assert_refused("format e2m3 is not allowed with arrays='torch'", tensor_of, np.zeros(1, np.uint8), halflab.e2m3)


if __name__ == "__main__":
    unittest.main()
