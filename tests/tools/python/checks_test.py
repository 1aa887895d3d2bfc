"""Matrix products explained and array functions validated: what is right, and known mistakes."""

import unittest

import numpy as np

import halflab
from oracle import Case


def through_float(function):
    """A kernel that computes in float32 and rounds to half at the end."""

    def kernel(*operands):
        with np.errstate(all="ignore"):
            return function(*(operand.astype(np.float32) for operand in operands)).astype(np.float16)

    return kernel


class Products(Case):
    def setUp(self):
        draw = np.random.default_rng(0)
        self.a, self.b = (draw.normal(size=shape).astype(np.float16) for shape in ((24, 40), (40, 32)))

    def test_each_accumulation_is_found(self):
        chains = {"fp16_fma": "fp16_fma_chain", "fp16_mul_add": "fp16_mul_add_chain", "fp32": "fp32_fma_chain"}
        for name, expected in chains.items():
            d = halflab.matmul(self.a, self.b, name)
            d = d.astype(np.float32 if name == "fp32" else np.float16)
            record = halflab.explain_gemm(self.a, self.b, d)
            self.assertEqual(record.summary["best.accumulator"], expected)
            self.assertEqual(record.summary["unexplained"], 0)
            self.assertIn("hypotheses", record.tables)

    def test_the_order_of_bytes_does_not_matter(self):
        d = halflab.matmul(self.a, self.b, "fp16_fma").astype(">f2")
        record = halflab.explain_gemm(self.a.astype(">f2"), self.b, d)
        self.assertEqual(record.summary["best.accumulator"], "fp16_fma_chain")

    def test_several_products_and_an_epilogue(self):
        d = halflab.matmul(self.a, self.b, "fp16_fma").astype(np.float16)
        record = halflab.explain_gemm([self.a, self.a[::-1]], [self.b, self.b], [d, d[::-1]])
        self.assertEqual((record.summary["triples"], record.summary["outputs"]), (2, 2 * 24 * 32))
        doubled = halflab.explain_gemm(self.a, self.b, 2 * d, alpha=2.0)
        self.assertEqual(doubled.summary["best.accumulator"], "fp16_fma_chain")

    def test_a_real_bug_is_an_answer(self):
        d = halflab.matmul(self.a, self.b, "fp16_fma").astype(np.float16)
        d[3, 4] += 80
        record = halflab.explain_gemm(self.a, self.b, d)
        self.assertEqual(record.summary["classification"], "real_bug")
        self.assertEqual((record.summary["first_real_bug.row"], record.summary["first_real_bug.column"]), (3, 4))
        self.assertTrue(record.failure)

    def test_what_is_not_allowed(self):
        d = np.zeros((24, 32), dtype=np.float16)
        for fragment, arrays in (
            ("explain_gemm: b: a masked array is not allowed", (self.a, np.ma.masked_array(self.b, mask=self.b > 0), d)),
            ("explain_gemm: d = 3 is not allowed; allowed: arrays of two dimensions", (self.a, self.b, 3)),
            ("d = array([0., ", (self.a, self.b, d[0])),
            ("allowed: arrays of two dimensions, of float16, bfloat16 or float32", (np.ones((24, 40), dtype=int), self.b, d)),
            ("a = array([[1, 1, 1,", (np.ones((24, 40), dtype=int), self.b, d)),
            (" of int64 is not allowed", (np.ones((24, 40), dtype=int), self.b, d)),
            ("explain_gemm: b = array([[", (self.a, self.b.astype(float), d)),
            (" of float64 is not allowed; allowed: arrays of two dimensions, of float16, bfloat16 or float32",
             (self.a, self.b.astype(float), d)),
        ):  # fmt: skip
            self.assert_refused(fragment, halflab.explain_gemm, *arrays)
        with self.assertRaisesRegex(halflab.ExperimentError, "--b: the matrix is 5 x 32"):
            halflab.explain_gemm(self.a, self.b[:5], d)


class Kernels(Case):
    def test_a_right_kernel(self):
        calls = []
        found = halflab.validate(
            through_float(np.tanh), "tanh", nan="any", shards=4, progress=lambda *done: calls.append(done)
        )
        self.assertEqual((found.verdict, found.results, found.differing, found.is_complete), ("equal", 65536, 0, True))
        self.assertEqual(calls, [(1, 4), (2, 4), (3, 4), (4, 4)])
        self.assertEqual(found.distances.tolist(), [(0, 0, 65536)])

    def test_a_known_deviation_is_named(self):
        drawn = dict(count=20000, seed=3, nan="any")
        found = halflab.validate(through_float(lambda x, y, z: x * y + z), "fma", **drawn)
        self.assertEqual((found.verdict, found.is_complete), ("different", False))
        self.assertEqual(found.explanation, "it rounds twice: to float, and then to the format")
        self.assertEqual(halflab.validate(through_float(lambda x, y, z: x * y + z), "fma", ulp=1, **drawn).verdict, "within")
        self.assertIn("<svg", found.figure)
        self.assertIn(f"{found.differing} of 20000 results of fma differ, by up to 1 ulp", str(found))

    def test_right_results_that_speak_against_an_explanation_are_counted(self):
        def kernel(x, y):
            product = x * y
            turned = (product == 0) & (np.arange(len(x)) % 4 != 0)
            return np.where(turned, -product, product)

        found = halflab.validate(kernel, "multiply", count=20000, nan="any")
        self.assertEqual(found.explanation, "its zeros have the wrong sign")
        self.assertGreater(found.contradicted, 0)
        self.assertIn(f", but {found.contradicted} right results speak against it", str(found))

    def test_nans_on_one_side_are_told(self):
        """They have no distance: 65536 - 2046 operands are no NaNs, and tanh is none of these."""
        for shards in (None, 3):
            found = halflab.validate(lambda x: np.full_like(x, np.nan), "tanh", nan="any", shards=shards)
            told = "different: 63490 of 65536 results of tanh differ; 63490 times one side alone is a NaN"
            self.assertEqual((str(found), found.one_nan), (told, 63490))
        found = halflab.validate(lambda x: np.where(x > 1, np.float16(np.nan), x), "tanh", nan="any")
        self.assertRegex(str(found), r"differ, by up to \d+ ulp; 16384 times one side alone is a NaN")

    def test_pairs_are_drawn_where_a_count_is_given(self):
        found = halflab.validate(through_float(np.add), "add", count=5000, nan="any")
        self.assertEqual((found.verdict, found.results, found.is_complete), ("equal", 5000, False))

    def test_wrong_numbers_stand_before_nans_in_all_shards(self):
        def kernel(x):
            y = np.where(np.isnan(x), np.float16(np.nan), np.sqrt(np.abs(x)))
            return np.where(x < -60000, np.float16(1), np.where(x < 0, np.float16(np.nan), y))

        differences = halflab.validate(kernel, "sqrt", shards=8).counterexamples["difference"].tolist()
        self.assertEqual(differences, ["wrong"] * 8)

    def test_shards_are_one_validation(self):
        kernel = through_float(lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1))
        whole, sharded = (halflab.validate(kernel, "tanh", shards=shards) for shards in (None, 5))
        for field in ("verdict", "results", "differing", "beyond", "most_ulp", "explanation"):
            self.assertEqual(getattr(whole, field), getattr(sharded, field), field)
        for table in ("distances", "counterexamples", "parts"):
            one, many = getattr(whole, table), getattr(sharded, table)
            self.assertEqual(one.dtype.names, many.dtype.names)
            for row, expected in zip(sorted(many.tolist()), sorted(one.tolist())):
                for field, cell, other in zip(one.dtype.names, row, expected):
                    if isinstance(cell, str):
                        self.assertEqual(cell, other)
                    else:
                        np.testing.assert_allclose(cell, other, rtol=1e-3)
        first = whole.counterexamples
        self.assertEqual((first["index"][0], first["expected"][0]), (1, "6e-08 (0x0001)"))

    def test_formats_by_all_names(self):
        kernel = through_float(np.tanh)
        for format in ("float16", np.float16, np.dtype("f2"), halflab.binary16):
            self.assertEqual(halflab.validate(kernel, "tanh", format, shards=(1, 256), nan="any").verdict, "equal")
        self.assert_refused("unknown format 'float99'", halflab.validate, kernel, "tanh", "float99")

    def test_results_of_other_types(self):
        """Of arithmetic in float32, of a cast in any type; of functions in that of the operands alone."""
        add = lambda a, b: a.astype(np.float32) + b
        with np.errstate(all="ignore"):
            self.assertEqual(halflab.validate(add, "add", nan="any", count=1000).verdict, "equal")
        cast = lambda a: a.astype(np.float64)
        self.assertEqual(halflab.validate(cast, "cast", nan="any").verdict, "equal")
        with self.assertRaisesRegex(halflab.ExperimentError, "allowed: results of binary16"):
            halflab.validate(cast, "tanh")

    def test_one_shard_of_all_pairs(self):
        found = halflab.validate(through_float(np.multiply), "multiply", nan="any", shards=(3, 1 << 16))
        self.assertEqual((found.verdict, found.results, found.is_complete), ("equal", 65536, False))

    def test_what_is_not_allowed(self):
        kernel = through_float(np.tanh)
        for fragment, f, options in (
            ("arrays = 'jax' is not allowed; allowed: 'numpy', 'torch', 'cupy'", kernel, {"arrays": "jax"}),
            ("shards = 0 is not allowed", kernel, {"shards": 0}),
            ("f gave 3; allowed: 65536 floating-point results", lambda x: 3, {}),
            ("allowed: 65536 floating-point results", lambda x: x[1:], {}),
            ("allowed: 65536 floating-point results", lambda x: x.view(np.int16), {}),
        ):
            self.assert_refused(fragment, halflab.validate, f, "tanh", **options)
        for fragment, operation, options in (
            ("unknown operation 'tangh'", "tangh", {}),
            ("--ulp: '-1' is not allowed", "tanh", {"ulp": -1}),
            ("known for operands of tf32 in a file", "tanh", {"format": halflab.tf32}),
        ):
            with self.assertRaisesRegex(halflab.ExperimentError, fragment):
                halflab.validate(kernel, operation, **options)


if __name__ == "__main__":
    unittest.main()
