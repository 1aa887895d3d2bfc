"""Formats and rounding in exact rationals, and what the tests of the module have in common."""

import math
import random
import struct
import unittest
from fractions import Fraction

import numpy as np

# name: precision, emin, largest number, and what an overflow to nearest becomes.
ROWS = {
    "binary64": (53, -1022, Fraction(2**53 - 1) * 2**971, "inf"),
    "binary32": (24, -126, Fraction(2**24 - 1) * 2**104, "inf"),
    "tf32": (11, -126, Fraction(2**11 - 1) * 2**117, "inf"),
    "bfloat16": (8, -126, Fraction(2**8 - 1) * 2**120, "inf"),
    "binary16": (11, -14, Fraction(65504), "inf"),
    "e5m2": (3, -14, Fraction(57344), "inf"),
    "e4m3": (4, -6, Fraction(448), "nan"),
    "e5m2_fnuz": (3, -15, Fraction(57344), "nan"),
    "e4m3_fnuz": (4, -7, Fraction(240), "nan"),
    "e3m2": (3, -2, Fraction(28), "max"),
    "e2m3": (4, 0, Fraction(15, 2), "max"),
    "e2m1": (2, 0, Fraction(6), "max"),
}
DIRECTIONS = ("nearest_even", "nearest_away", "toward_zero", "toward_positive", "toward_negative", "to_odd")


def floor_log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def rounded(x, row="binary16", rounding="nearest_even"):
    """The rational x in a format, as a float: the definition, digit by digit."""
    precision, emin, largest, overflow = ROWS[row]
    if x == 0:
        return 0.0
    negative, magnitude = x < 0, abs(x)
    quantum = Fraction(2) ** (max(floor_log2(magnitude), emin) - precision + 1)
    units, rest = divmod(magnitude / quantum, 1)
    up = {
        "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and units % 2 == 1),
        "nearest_away": rest >= Fraction(1, 2),
        "toward_zero": False,
        "toward_positive": rest > 0 and not negative,
        "toward_negative": rest > 0 and negative,
        "to_odd": rest > 0 and units % 2 == 0,
    }[rounding]
    result = (units + up) * quantum
    if result > largest:
        stays = rounding in ("toward_zero", "to_odd") or rounding == (
            "toward_positive" if negative else "toward_negative"
        )
        result = float(largest) if stays or overflow == "max" else float(overflow)
    return -float(result) if negative else float(result)


def hard_values(row, count, seed):
    """Numbers of a format, midpoints between neighbours and what lies just beside them, near all its borders."""
    precision, emin, largest, _ = ROWS[row]
    draw = random.Random(seed)
    emax = floor_log2(largest)
    values = []
    while len(values) < count:
        exponent = draw.choice([emin - precision - 1, emin - 1, emin, 0, emax, draw.randint(emin - precision, emax)])
        units = draw.choice([1, 2**precision - 1, draw.randint(1, 2**precision)])
        x = Fraction(units) * Fraction(2) ** (exponent - precision + 1)
        half_ulp = Fraction(2) ** (max(exponent, emin) - precision)
        x += half_ulp * draw.choice([0, 0, 1, 1, -1, 1 + Fraction(1, 2**20), 1 - Fraction(1, 2**20)])
        x *= draw.choice([1, -1])
        if -sys_max <= x <= sys_max and Fraction(float(x)) == x:
            values.append(x)
    return values


sys_max = Fraction(math.ldexp(2**53 - 1, 971))


def half_of(value):
    """binary16 to nearest-even as the standard library packs it."""
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


class Case(unittest.TestCase):
    def assert_same(self, found, expected, message=None):
        """Equal numbers, NaNs and signs of zeros included."""
        found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        np.testing.assert_array_equal(found, expected, err_msg=str(message))
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(found)[numbers], np.signbit(expected)[numbers], err_msg=f"signs: {message}"
        )

    def assert_refused(self, fragment, function, *arguments, **options):
        with self.assertRaises(ValueError) as caught:
            function(*arguments, **options)
        text = str(caught.exception)
        self.assertIn(fragment, text)
        self.assertEqual(len(text.splitlines()), 1, text)
