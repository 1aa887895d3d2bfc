"""Operations on arrays against exact rationals."""

import math
import random
import unittest
from fractions import Fraction

import numpy as np

import halflab
from oracle import Case, DIRECTIONS, hard_values, rounded


class Operations(Case):
    def operands(self, count, seed, arity):
        columns = []
        for i in range(arity):
            values = [rounded(x) for x in hard_values("binary16", 2 * count, seed + i)]
            columns.append([x for x in values if math.isfinite(x)][:count])
        return columns

    def test_rational_operations_in_every_direction(self):
        for rounding in DIRECTIONS:
            a, b, c = self.operands(400, 10, 3)
            rational = [tuple(map(Fraction, row)) for row in zip(a, b, c)]
            for name, exact in {
                "add": lambda x, y, z: x + y,
                "subtract": lambda x, y, z: x - y,
                "multiply": lambda x, y, z: x * y,
                "divide": lambda x, y, z: x / y if y else None,
                "fma": lambda x, y, z: x * y + z,
            }.items():
                operands = (a, b, c) if name == "fma" else (a, b)
                found = getattr(halflab, name)(*operands, rounding=rounding)
                for value, row in zip(found, rational):
                    expected = exact(*row)
                    if expected:  # signs of zeros are for the other tests
                        self.assertEqual(value, rounded(expected, rounding=rounding), (name, rounding, row))

    def test_counting_changes_no_bit(self):
        a, b = self.operands(500, 20, 2)
        for name in ("add", "multiply", "divide"):
            operation, counts = getattr(halflab, name), halflab.Counts()
            self.assert_same(operation(a, b, counts=counts), operation(a, b))
            self.assertEqual(counts.total, 500)

    def test_numpy_halves_agree(self):
        """numpy computes in binary32 and rounds once more, which for these four changes nothing."""
        codes = np.random.default_rng(4).integers(0, 2**16, size=(2, 20000), dtype=np.uint16)
        a, b = codes.view(np.float16)
        with np.errstate(all="ignore"):
            for name in ("add", "subtract", "multiply", "divide"):
                self.assert_same(getattr(halflab, name)(a, b), getattr(np, name)(a, b), name)
            self.assert_same(halflab.sqrt(a), np.sqrt(a))

    def test_square_roots(self):
        for x in hard_values("binary16", 300, seed=5):
            half = rounded(abs(x))
            if not math.isfinite(half):
                continue
            # Between two neighbours: lower^2 <= x < upper^2.
            lower = halflab.sqrt(half, rounding="toward_zero")
            upper = halflab.next_up(lower)
            self.assertTrue(Fraction(lower) ** 2 <= Fraction(half) < Fraction(upper) ** 2)

    def test_remainders(self):
        a, b = self.operands(300, 30, 2)
        b = [y or 1.0 for y in b]
        self.assert_same(halflab.remainder(a, b), [math.remainder(x, y) for x, y in zip(a, b)])
        self.assert_same(halflab.fmod(a, b), [math.fmod(x, y) for x, y in zip(a, b)])
        self.assert_same(halflab.remainder([1.0, np.inf], [0.0, 1.0]), [np.nan, np.nan])

    def test_scalb(self):
        (a,) = self.operands(300, 40, 1)
        for n in (-30, -3, 0, 5, 40):
            self.assert_same(halflab.scalb(a, n), [math.copysign(rounded(Fraction(x) * Fraction(2) ** n), x) for x in a])

    def test_binary64_is_the_processors(self):
        a, b = np.random.default_rng(6).normal(size=(2, 1000))
        self.assert_same(halflab.add(a, b, "binary64"), a + b)
        self.assert_same(halflab.multiply(a, b, "binary64"), a * b)

    def test_comparisons(self):
        a = np.array([1.0, -0.0, np.nan, 2.0])
        b = np.array([2.0, 0.0, 1.0, 1.0])
        self.assertEqual(halflab.compare(a, "less", b).tolist(), [True, False, False, False])
        self.assertEqual(halflab.compare(a, "equal", b).tolist(), [False, True, False, False])
        self.assertEqual(halflab.compare(a, "not_less", b).tolist(), [False, True, True, True])
        self.assertEqual(halflab.compare(a, "unordered", b).tolist(), [False, False, True, False])
        self.assertEqual(halflab.total_order(a, b).tolist(), [True, True, False, False])
        self.assertEqual(len(halflab.predicates), 12)
        self.assert_refused("did you mean 'less'", halflab.compare, 1, "les", 2)

    def test_operands_of_every_kind_are_read_alike(self):
        halves = np.arange(-12, 12, dtype=np.float16)
        expected = halflab.fma(halves, halves, 1)
        for dtype in (">f2", "<f4", ">f4", ">f8", "i1", ">i2", ">i8"):
            apart = np.zeros((len(halves), 3), dtype=dtype)
            apart[:, 1] = halves
            self.assert_same(halflab.fma(apart[:, 1], apart[:, 1], 1), expected, dtype)
            self.assert_same(halflab.fma(apart[::-1, 1], apart[::-1, 1], 1), expected[::-1], dtype)
        self.assert_same([halflab.fma(x, np.array(x), 1) for x in halves], expected)
        self.assert_same(halflab.fma(halves.tolist(), halves.tolist(), [1]), expected)
        self.assertEqual(halflab.add(np.ones((0, 3)), 1).shape, (0, 3))

    def test_broadcasting(self):
        table = halflab.multiply(np.arange(4.0)[:, None], np.arange(3.0))
        np.testing.assert_array_equal(table, np.outer(np.arange(4), np.arange(3)))


if __name__ == "__main__":
    unittest.main()
