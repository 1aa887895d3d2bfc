"""Elementary functions against exact results and float64."""

import math
import unittest

import numpy as np

import halflab
from oracle import Case, half_of


class Functions(Case):
    def test_all_names_are_functions(self):
        self.assertGreaterEqual(len(halflab.math.functions), 31)
        for name in halflab.math.functions:
            self.assertEqual(getattr(halflab.math, name)(np.ones((2, 2))).shape, (2, 2), name)

    def test_against_float64(self):
        """The standard library's value, known to a few parts in 2^52, rounds to the same half on either side."""
        halves = halflab.binary16.values()[::37]
        for name, domain in {
            "exp": halves < 12,
            "log": halves > 0,
            "tanh": halves == halves,
            "sin": halves == halves,
            "atan": halves == halves,
            "erf": halves == halves,
            "expm1": halves < 12,
        }.items():
            x = halves[domain]
            found = getattr(halflab.math, name)(x)
            for half, value in zip(x, found):
                reference = getattr(math, name)(half)
                sides = {half_of(reference * (1 + side * 2.0**-48)) for side in (-1, 1)}
                self.assertIn(half_of(value), sides, (name, half))

    def test_special_values(self):
        self.assert_same(halflab.math.log([0.0, 1.0, -1.0, np.inf]), [-np.inf, 0.0, np.nan, np.inf])
        self.assert_same(halflab.math.pow([2.0, 0.0], [3.0, 0.0]), [8.0, 1.0])
        self.assert_same(halflab.math.hypot(3.0, 4.0), 5.0)
        self.assert_same(halflab.math.atan2(-0.0, 1.0), -0.0)
        counts = halflab.Counts()
        halflab.math.log([0.0, -1.0], counts=counts)
        self.assertEqual((counts.divide_by_zero, counts.invalid), (1, 1))
        self.assertGreater(
            halflab.math.exp(1.0, rounding="toward_positive"), halflab.math.exp(1.0, rounding="toward_negative")
        )
        self.assert_refused("not a number of binary16", halflab.math.exp, 0.1)


if __name__ == "__main__":
    unittest.main()
