"""Sums and dot products in every order against exact rationals."""

import random
import sys
import unittest
from fractions import Fraction
from unittest import mock

import numpy as np

import halflab
from oracle import Case, rounded


class Sums(Case):
    def values(self, count, seed):
        return [rounded(Fraction(x)) for x in np.random.default_rng(seed).normal(size=count)]

    def test_orders(self):
        values = self.values(77, 7)
        exact = [Fraction(x) for x in values]

        def pairwise(terms):
            if len(terms) == 1:
                return terms[0]
            left = 1 << (len(terms) - 1).bit_length() - 1
            return Fraction(rounded(pairwise(terms[:left]) + pairwise(terms[left:])))

        chain = [exact[0]]
        for x in exact[1:]:
            chain.append(Fraction(rounded(chain[-1] + x)))
        self.assertEqual(halflab.sum(values), float(chain[-1]))
        self.assert_same(halflab.partial_sums(values), [float(x) for x in chain])
        self.assertEqual(halflab.sum(values, "pairwise"), float(pairwise(exact)))
        self.assertEqual(halflab.sum(values, "exact"), rounded(sum(exact)))
        self.assertEqual(halflab.sum(values, "exact", "binary64"), rounded(sum(exact), "binary64"))
        for order in halflab.sum_orders:
            self.assertLess(abs(halflab.sum(values, order, "binary32") - float(sum(exact))), 1e-4)

    def test_what_a_half_cannot_count(self):
        ones = np.ones(5000)
        self.assertEqual(halflab.sum(ones), 2048)
        self.assertEqual(halflab.sum(ones, format="bfloat16"), 256)
        self.assertEqual(halflab.sum(ones, format="binary32"), 5000)
        self.assertEqual(halflab.sum(ones, "kahan"), 5000)
        stochastic = halflab.partial_sums(ones, rounding="stochastic", seed=1)
        self.assertAlmostEqual(stochastic[-1], 5000, delta=300)

    def test_axes(self):
        np.testing.assert_array_equal(halflab.sum(np.ones((2, 3, 4))), np.full((2, 3), 4))
        np.testing.assert_array_equal(halflab.partial_sums(np.ones((2, 3))), [[1, 2, 3], [1, 2, 3]])
        np.testing.assert_array_equal(halflab.sum(np.ones((2, 0))), [0, 0])
        np.testing.assert_array_equal(halflab.dot(np.ones((2, 3)), np.arange(3.0)), [3, 3])
        self.assertEqual(halflab.dot(np.ones((2, 1, 3)), np.ones((5, 3))).shape, (2, 5))
        np.testing.assert_array_equal(halflab.dot(np.ones((2, 0)), np.ones(0)), [0, 0])

    def test_dot_products(self):
        a, b = self.values(60, 8), self.values(60, 9)
        exact = [(Fraction(x), Fraction(y)) for x, y in zip(a, b)]
        fused = twice = wide = Fraction(0)
        for x, y in exact:
            fused = Fraction(rounded(fused + x * y))
            twice = Fraction(rounded(twice + Fraction(rounded(x * y))))
            wide = Fraction(rounded(wide + x * y, "binary32"))
        self.assertEqual(halflab.dot(a, b, "fma"), float(fused))
        self.assertEqual(halflab.dot(a, b, "mul_add"), float(twice))
        self.assertEqual(halflab.dot(a, b, "binary32"), rounded(wide))
        self.assertEqual(halflab.dot(a, b, "exact"), rounded(sum(x * y for x, y in exact)))
        self.assertEqual(halflab.matmul(a, b, "fp16_fma"), float(fused))
        self.assertEqual(halflab.matmul(a, b, "fp16_mul_add"), float(twice))
        self.assertEqual(halflab.matmul(a, b, "fp32"), float(wide))

    def test_matrix_products(self):
        a = np.reshape(self.values(6 * 5, 10), (6, 5))
        b = np.reshape(self.values(5 * 4, 11), (5, 4))
        for accumulation in halflab.accumulations:
            product = halflab.matmul(a, b, accumulation)
            np.testing.assert_allclose(product, a @ b, atol=0.02)
            self.assertEqual(product[2, 3], halflab.matmul(a[2], b[:, 3], accumulation))
            # One chain may be cut where a step of every accumulation here ends.
            whole = halflab.matmul(np.tile(a[0, :4], 8), np.tile(b[:4, 0], 8), accumulation)
            start = halflab.matmul(np.tile(a[0, :4], 4), np.tile(b[:4, 0], 4), accumulation)
            self.assertEqual(whole, halflab.matmul(np.tile(a[0, :4], 4), np.tile(b[:4, 0], 4), accumulation, c=start))

    def test_tensor_cores_by_hand(self):
        # 1 + 3 * 2^-24: FP32 loses each term, Volta's 23 bits below the largest too, Ampere's 24 bits keep them and
        # truncate the sum to 1 + 2^-23.
        a, b = [1.0] + [2.0**-12] * 3, [1.0] + [2.0**-12] * 3
        self.assertEqual(halflab.matmul(a, b, "fp32"), 1)
        self.assertEqual(halflab.matmul(a, b, "volta_fp32"), 1)
        self.assertEqual(halflab.matmul(a, b, "ampere_fp32"), 1 + 2.0**-23)
        self.assertEqual(halflab.tensor_cores["hopper"]["products_per_step"], 16)

    def test_wrong_arguments(self):
        refused = self.assert_refused
        refused("did you mean 'pairwise'", halflab.sum, [1.0], "pairwize")
        refused("partial_sums", halflab.sum, [1.0], rounding="stochastic", seed=1)
        refused("a scalar is not allowed", halflab.sum, 1.0)
        refused("dot: a has 3 values along its last axis and b 1; allowed: equal", halflab.dot, [1.0, 2.0, 3.0], [2.0])
        refused("dot: a has 1 values", halflab.dot, np.ones((3, 1)), np.ones((3, 2)))
        refused("dot: a scalar is not allowed", halflab.dot, [1.0, 2.0], 2.0)
        refused("broadcast", halflab.dot, np.ones((2, 3)), np.ones((4, 3)))
        refused("did you mean 'hopper_fp32'", halflab.matmul, [1.0], [1.0], "hoper_fp32")
        refused("a has 1 columns and b 2 rows", halflab.matmul, [1.0], [1.0, 2.0])
        refused("3 dimensions", halflab.matmul, np.ones((1, 1, 1)), [1.0])
        refused("shape of the product", halflab.matmul, [1.0], [1.0], c=[1.0])
        refused("c: 0.1 is not a number of binary32", halflab.matmul, [1.0], [1.0], c=0.1)
        refused("format 'binary64' is not allowed", halflab.dot, [1.0], [1.0], format="binary64")


class RevealedOrders(Case):
    def test_orders_of_our_sums(self):
        def in_order(order):
            return lambda x: halflab.sum(x, order=order, format="binary32")

        self.assertEqual(halflab.reveal_order(in_order("sequential"), 4), (((0, 1), 2), 3))
        self.assertEqual(halflab.reveal_order(in_order("pairwise"), 5), (((0, 1), (2, 3)), 4))
        self.assertEqual(halflab.reveal_order(in_order("exact"), 4), (0, 1, 2, 3))
        self.assertEqual(halflab.reveal_order(in_order("sequential"), 1), 0)

    def test_numpy(self):
        def evaluate(tree, terms):
            return terms[tree] if isinstance(tree, int) else evaluate(tree[0], terms) + evaluate(tree[1], terms)

        for dtype in ("float32", "float64"):
            for n in (7, 40, 300):
                tree = halflab.reveal_order(np.sum, n, dtype)
                for seed in range(20):
                    terms = np.random.default_rng(seed).normal(size=n).astype(dtype)
                    self.assertEqual(evaluate(tree, terms), np.sum(terms))

    def test_flat_orders(self):
        for order, flat in (
            (0, []),
            ((0, 1), [(0, 1)]),
            ((0, (1, 2)), [(1, 2), (0, 3)]),
            ((2, (3, 0), 1), [(3, 0), (2, 4, 1)]),
        ):
            self.assertEqual(halflab.flat_order(order), flat)
        for name in ("sequential", "pairwise"):
            order = halflab.reveal_order(lambda x: halflab.sum(x, order=name, format="binary32"), 40)
            values = [2**term for term in range(40)]
            for places in halflab.flat_order(order):
                values.append(sum(values[place] for place in places))
            self.assertEqual(values[-1], 2**40 - 1)

    def test_flat_orders_of_many_terms(self):
        order = 0
        for term in range(1, 20000):
            order = (order, term)
        flat = halflab.flat_order(order)
        self.assertEqual(flat, [(0, 1)] + [(20000 + i, i + 2) for i in range(19998)])
        self.assertIn("(20000, 2)", repr(flat))

    def test_what_is_no_order(self):
        deep = 1
        for _ in range(20000):
            deep = (deep,)
        for what, order in (
            ("None is", None), ("True is", (True, 0)), ("-1 is", (0, -1)), ("place 0 twice is", (0, 0)), ("0.0 is", (0.0, 1)),
            ("a tuple of 0 is", ()), ("a tuple of 1 is", (0, deep)), ("[0, 1] is", [0, 1]), ("place 3 of 2 is", (0, 3)),
        ):  # fmt: skip
            self.assert_refused(f"flat_order: {what} not allowed; allowed: what reveal_order gives", halflab.flat_order, order)

    def test_refusals(self):
        refused = self.assert_refused
        refused("no sum in a fixed order", halflab.reveal_order, lambda x: x[0] * 2, 3)
        for n in (0, -1, 65537, 10**30, 2.5, "3"):
            refused("integers from 1 to 65536", halflab.reveal_order, np.sum, n)
        refused("what can be called", halflab.reveal_order, 3, 3)
        refused("float99", halflab.reveal_order, np.sum, 3, "float99")
        refused("dtype = 'bfloat16' has no arrays of numpy; allowed: float16", halflab.reveal_order, np.sum, 3, "bfloat16")
        with mock.patch.dict(sys.modules, torch=None):
            refused("needs PyTorch, which cannot be imported", halflab.reveal_order, np.sum, 3, "torch.bfloat16")

    def test_formats_by_all_names(self):
        for dtype in ("float16", np.float16, np.dtype("f2"), "binary16", halflab.binary16):
            self.assertEqual(halflab.reveal_order(lambda x: x[0] + (x[1] + x[2]), 3, dtype), (0, (1, 2)))


if __name__ == "__main__":
    unittest.main()
